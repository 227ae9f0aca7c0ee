"""How long is a whole answer that quotes its chunks, with drafts looked up in the prompt and without?

    python bench/studies/whole_answer.py --data xquad.en.json --out docs/benchmarks/whole-answer.json

A real model is asked to repeat the paragraph that answers a question, among those of several articles. Four ways
take turns on each question: stock `generate` on the whole prompt and ours on reused KV, each token by token and with
prompt lookup. Everything behind retrieval counts, loading and selection too. Said as well: how many tokens a forward
gave, and for how many questions the drafted answer is the one that came token by token.
"""

import random
import tempfile
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.datasets.formats import squad

from ragcache import RagCache, Sampling
from ragcache.index.chunks import Chunk
from ragcache.model.reader import Reader

LOOKED_UP = ", prompt lookup"
WAYS = ("stock", f"stock{LOOKED_UP}", "ours", f"ours{LOOKED_UP}")
_ASK = "Repeat the paragraph that answers this question, word for word: {}"
_DRAFTED = 10  # tokens, as transformers drafts by default


@dataclass(frozen=True)
class Written:
    """A whole answer: its tokens, the forwards that gave them, and the seconds of all."""

    token_ids: tuple[int, ...]
    forwards: int
    seconds: float


def main(
    data: Annotated[Path, typer.Option(help="A file of SQuAD's format.")],
    model: Annotated[str, typer.Option(help="A model that can quote.")] = "smollm2",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "float32",
    method: Annotated[str, typer.Option(help="Row of the table that ours answers by.")] = "auto",
    context: Annotated[int, typer.Option(help="Tokens of the paragraphs, or a few less.")] = 4096,
    tokens: Annotated[int, typer.Option(help="Most of an answer.")] = 64,
    n: Annotated[int, typer.Option(help="Questions.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the questions.")] = 0,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("whole-answer.json"),
) -> None:
    """Ask every question in four ways, in turning order."""
    use_threads(threads)
    taken: dict[str, list[Written]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as place, RagCache.open(place, model=model, dtype=dtype) as rag:
        for number, (question, chunks) in enumerate(_questions(data, rag, method, context, n + 1, seed)):
            turn = number % len(WAYS)
            for way in (*WAYS[turn:], *WAYS[:turn]):
                said = _write(rag, way, question, chunks, method, Sampling(max_new_tokens=tokens))
                if number:  # the first question warms up
                    taken[way].append(said)
        about = report.meta(**report.about_reader(rag.reader), method=method, context=context, tokens=tokens, n=n)
    rows = [_row(way, taken) for way in WAYS]
    write(out, {"meta": about, "rows": rows})
    for row in rows:
        typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _questions(
    data: Path, rag: RagCache, method: str, context: int, n: int, seed: int
) -> list[tuple[str, list[Chunk]]]:
    """Questions, each with its own article's paragraphs among those of other articles; all are ingested."""
    items, source = list(squad(data)), random.Random(seed)
    articles = source.sample(sorted({item.passages for item in items}), 40)
    size = {text: len(rag.reader.tokenizer(text).input_ids) for passages in articles for text in passages}
    ends = list(accumulate(sum(size[text] for text in passages) for passages in articles))
    used = articles[: bisect(ends, context)]
    for passages in used:
        rag.index.put(passages[0], "", [(text, 0, len(text)) for text in passages], {})
    rag.ingest(methods=[method])
    chunks = rag.index.chunks([id for id, _ in rag.index.catalog.texts()])
    asked = source.sample([item for item in items if item.passages in used], n)
    return [(_ASK.format(item.question), source.sample(chunks, len(chunks))) for item in asked]


def _write(rag: RagCache, way: str, question: str, chunks: Sequence[Chunk], method: str, sampling: Sampling) -> Written:
    looked_up = LOOKED_UP in way
    if way.startswith("ours"):
        drafted = replace(sampling, prompt_lookup_num_tokens=sampling.prompt_lookup_num_tokens * looked_up)
        work = partial(_ours, rag, question, chunks, method, drafted)
    else:
        prompt = rag.engine.stream(question, chunks, method=method, sampling=sampling).prompt
        work = partial(_stock, rag.reader, prompt.token_ids, sampling.max_new_tokens, looked_up)
    forwards: list[None] = []
    counting = rag.reader.model.get_output_embeddings().register_forward_hook(lambda *_: forwards.append(None))
    began = perf_counter()
    token_ids = work()
    taken = perf_counter() - began
    counting.remove()
    return Written(tuple(token_ids), len(forwards), taken)


def _ours(rag: RagCache, question: str, chunks: Sequence[Chunk], method: str, sampling: Sampling) -> Sequence[int]:
    return rag.engine.stream(question, chunks, method=method, sampling=sampling).answer.token_ids


def _stock(reader: Reader, token_ids: Sequence[int], most: int, looked_up: bool) -> Sequence[int]:
    """Transformers' own greedy `generate`."""
    prompt = torch.tensor([list(token_ids)])
    options = {"prompt_lookup_num_tokens": _DRAFTED} if looked_up else {}
    out = reader.model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=most, do_sample=False, **options
    )
    return [token for token in out[0, len(token_ids) :].tolist() if token not in reader.stop_ids]


def _row(way: str, taken: Mapping[str, Sequence[Written]]) -> dict[str, Any]:
    """A way's seconds, and the ratio of others' to them, question by question: median, least and most."""
    mine = taken[way]
    plain = taken[way.removesuffix(LOOKED_UP)]
    ratios = sorted(stock.seconds / one.seconds for stock, one in zip(taken[WAYS[0]], mine, strict=True))
    steps = sorted(before.seconds / one.seconds for before, one in zip(plain, mine, strict=True))
    return {
        "way": way,
        "answer_tokens": sum(len(one.token_ids) for one in mine) / len(mine),
        "tokens_per_forward": sum(len(one.token_ids) for one in mine) / sum(one.forwards for one in mine),
        "same_tokens_as_without": sum(a.token_ids == b.token_ids for a, b in zip(plain, mine, strict=True)),
        "seconds": median(one.seconds for one in mine),
        "stock_ratio": [median(ratios), ratios[0], ratios[-1]],
        "without_ratio": [median(steps), steps[0], steps[-1]],
    }  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
