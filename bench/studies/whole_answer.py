"""How long is a whole answer that quotes its chunks, with drafts looked up in the prompt and without?

    python bench/studies/whole_answer.py --data xquad.en.json --out docs/benchmarks/whole-answer.json

A real model continues a prompt that begins to quote one of its paragraphs, and is asked to repeat the paragraph that
answers a question, which so small a model seldom does. Stock `generate` on the whole prompt, and ours on reused KV by
some rows of the table, each token by token and with prompt lookup, take turns on every prompt. Everything behind
retrieval counts, loading and selection too. Said as well: what share of an answer stands in the prompt (eight tokens in
a row, at least), how many tokens a forward gave, and for how many prompts the drafted answer is the one that came token
by token.
"""

import random
import tempfile
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.datasets.formats import squad
from ragcache_bench.datasets.item import Item

from ragcache import RagCache, Sampling
from ragcache.engine.stream import Stream
from ragcache.index.chunks import Chunk
from ragcache.model.reader import Reader

_ASK = "Repeat the paragraph that answers this question, word for word: {}"
_QUOTE = '{}\n\nAs the text above says: "{}'
_OPENING = 12  # tokens of the paragraph that the prompt ends with
_RUN = 8  # tokens in a row that make a quotation
_DRAFTED = 10  # tokens, as transformers drafts by default

#: Starts an answer by a row of the table.
Start = Callable[[str, Sampling], Stream]


@dataclass(frozen=True)
class Way:
    """Who writes an answer: a row of the table, or stock `generate` where none is named; and whether by drafts."""

    method: str = ""
    looked_up: bool = False


@dataclass(frozen=True)
class Written:
    """A whole answer: its tokens, the share of them that is quoted, the forwards that gave them, and seconds.

    Of the first token, and of all.
    """

    token_ids: tuple[int, ...]
    quoted: float
    forwards: int
    first: float
    seconds: float


def main(
    data: Annotated[Path, typer.Option(help="A file of SQuAD's format.")],
    model: Annotated[str, typer.Option(help="A model that can quote.")] = "smollm2",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "float32",
    methods: Annotated[str, typer.Option(help="Rows of the table that ours answers by.")] = "auto,naive",
    contexts: Annotated[str, typer.Option(help="Tokens of the paragraphs, or a few less.")] = "4096,7936",
    asks: Annotated[str, typer.Option(help="Contexts in which questions are asked, too.")] = "4096",
    tokens: Annotated[int, typer.Option(help="Most of an answer.")] = 64,
    n: Annotated[int, typer.Option(help="Prompts of each kind.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the prompts.")] = 0,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("whole-answer.json"),
) -> None:
    """Have every prompt answered in every way, in turning order."""
    use_threads(threads)
    ways = [Way(method, looked_up) for method in ("", *split(methods)) for looked_up in (False, True)]
    rows: list[dict[str, Any]] = []
    for context in split(contexts):
        with tempfile.TemporaryDirectory() as place, RagCache.open(place, model=model, dtype=dtype) as rag:
            items, chunks = _ingest(data, rag, split(methods), int(context), seed)
            source = random.Random(seed)
            kinds = {"quotation": [_quoting(rag, chunks, source) for _ in range(n + 1)]}
            if context in split(asks):
                kinds["question"] = [_asking(rag, items, chunks, source) for _ in range(n + 1)]
            for kind, starts in kinds.items():
                taken = _take_turns(rag.reader, ways, starts, Sampling(max_new_tokens=tokens))
                rows += [{"prompt": kind, "context": int(context), **_row(way, taken)} for way in ways]
                about = report.meta(**report.about_reader(rag.reader), tokens=tokens, n=n, seed=seed)
                write(out, {"meta": about, "rows": rows})
                for row in rows[-len(ways) :]:
                    typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _ingest(
    data: Path, rag: RagCache, methods: Sequence[str], context: int, seed: int
) -> tuple[list[Item], list[Chunk]]:
    """The paragraphs of as many articles as a context takes, with each row's KV, and the questions about them."""
    items, source = list(squad(data)), random.Random(seed)
    articles = source.sample(sorted({item.passages for item in items}), 40)
    size = {text: len(rag.reader.tokenizer(text).input_ids) for passages in articles for text in passages}
    ends = list(accumulate(sum(size[text] for text in passages) for passages in articles))
    used = articles[: bisect(ends, context)]
    for passages in used:
        rag.index.put(passages[0], "", [(text, 0, len(text)) for text in passages], {})
    rag.ingest(methods=methods)
    return [item for item in items if item.passages in used], rag.index.chunks(
        [id for id, _ in rag.index.catalog.texts()]
    )


def _quoting(rag: RagCache, chunks: Sequence[Chunk], source: random.Random) -> Start:
    """A prompt over all chunks in some order that begins to quote one of them."""
    tokenizer, order = rag.reader.tokenizer, source.sample(chunks, len(chunks))
    ids = next(ids for chunk in source.sample(chunks, len(chunks)) if len(ids := tokenizer(chunk.text).input_ids) > 90)
    prompt = _QUOTE.format("\n\n".join(chunk.text for chunk in order), tokenizer.decode(ids[:_OPENING]))
    return lambda method, sampling: rag.engine.complete(prompt, method=method, sampling=sampling)


def _asking(rag: RagCache, items: Sequence[Item], chunks: Sequence[Chunk], source: random.Random) -> Start:
    """A question that asks for the paragraph that answers it, over all chunks in some order."""
    asked, order = _ASK.format(source.choice(items).question), source.sample(chunks, len(chunks))
    return lambda method, sampling: rag.engine.stream(asked, order, method=method, sampling=sampling)


def _take_turns(
    reader: Reader, ways: Sequence[Way], starts: Sequence[Start], sampling: Sampling
) -> dict[Way, list[Written]]:
    taken: dict[Way, list[Written]] = {way: [] for way in ways}
    for number, start in enumerate(starts):
        prompt = start(ways[-1].method, sampling).prompt.token_ids  # each row's is the same
        for way in (*ways[number % len(ways) :], *ways[: number % len(ways)]):
            said = _write(reader, way, start, prompt, sampling)
            if number:  # the first prompt warms up
                taken[way].append(said)
    return taken


def _write(reader: Reader, way: Way, start: Start, prompt: Sequence[int], sampling: Sampling) -> Written:
    drafts = sampling.prompt_lookup_num_tokens * way.looked_up
    forwards: list[float] = []
    counting = reader.model.get_output_embeddings().register_forward_hook(lambda *_: forwards.append(perf_counter()))
    began = perf_counter()
    if way.method:
        said = start(way.method, replace(sampling, prompt_lookup_num_tokens=drafts)).answer.token_ids
    else:
        said = _stock(reader, prompt, sampling.max_new_tokens, way.looked_up)
    taken = perf_counter() - began
    counting.remove()
    return Written(said, quoted_share(said, prompt), len(forwards), forwards[0] - began, taken)


def _stock(reader: Reader, token_ids: Sequence[int], most: int, looked_up: bool) -> tuple[int, ...]:
    """Transformers' own greedy `generate`."""
    prompt = torch.tensor([list(token_ids)])
    options = {"prompt_lookup_num_tokens": _DRAFTED} if looked_up else {}
    out = reader.model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=most, do_sample=False, **options
    )
    return tuple(token for token in out[0, len(token_ids) :].tolist() if token not in reader.stop_ids)


def quoted_share(token_ids: Sequence[int], prompt: Sequence[int]) -> float:
    """The share of an answer's tokens that stand in the prompt with as many in a row as make a quotation."""
    known = {tuple(prompt[at : at + _RUN]) for at in range(len(prompt) - _RUN + 1)}
    quoted = {
        place
        for at in range(len(token_ids) - _RUN + 1)
        if tuple(token_ids[at : at + _RUN]) in known
        for place in range(at, at + _RUN)
    }
    return len(quoted) / max(1, len(token_ids))


def _row(way: Way, taken: Mapping[Way, Sequence[Written]]) -> dict[str, Any]:
    """A way's seconds, and how many times sooner it is than others, prompt by prompt: median, least and most."""
    mine = taken[way]
    plain = taken[replace(way, looked_up=False)]
    return {
        "by": way.method or "generate",
        "prompt_lookup": way.looked_up,
        "answer_tokens": fmean(len(one.token_ids) for one in mine),
        "quoted": fmean(one.quoted for one in mine),
        "tokens_per_forward": sum(len(one.token_ids) for one in mine) / sum(one.forwards for one in mine),
        "same_tokens_as_without": sum(a.token_ids == b.token_ids for a, b in zip(plain, mine, strict=True)),
        "first_token_seconds": median(one.first for one in mine),
        "seconds": median(one.seconds for one in mine),
        "than_generate": _times_sooner(taken[Way()], mine),
        "than_generate_with_lookup": _times_sooner(taken[Way(looked_up=True)], mine),
        "than_without": _times_sooner(plain, mine),
    }


def _times_sooner(others: Sequence[Written], mine: Sequence[Written]) -> list[float]:
    ratios = sorted(other.seconds / one.seconds for other, one in zip(others, mine, strict=True))
    return [median(ratios), ratios[0], ratios[-1]]


if __name__ == "__main__":
    typer.run(main)
