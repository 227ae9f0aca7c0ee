"""What is `ragcache serve --learn` worth, where nothing was ever ingested? Popular chunks in ever other orders.

    python bench/studies/learnt_texts.py --out docs/benchmarks/learnt-texts.json

Questions over chunks of one pool, drawn by popularity (Zipf) as those of RAGPulse are, are asked one after the other
through a server over an empty index, in the words that the model knows; between two of them the server has as long as
it takes to make what it has learnt. Each is asked by full prefill too, through the same server. The exact prefix cache
beside them is transformers' own, without a limit: the longest beginning that a prompt has in common with any earlier
one is at hand, and its time is that of the rest's forward alone. All other times are those of a request's first token,
from when the engine takes it.
"""

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any

import httpx
import typer
from openai_ragcache import Tenants
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.metrics import agrees, bootstrap, bootstrap_ratio, exact_match
from ragcache_bench.tasks import Example, Trace
from studied_server import serve, wait_until_idle

from ragcache import Message, RagCache, Reader
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM

_MIB = 1 << 20
_PARTS = 5  # of the trace, over which what is reused grows
_TOKENS = 24  # of an answer, at most


@dataclass(frozen=True)
class Asked:
    """One question, asked in three ways.

    Attributes
    ----------
    tokens, reused, prefix : int
        Of its prompt; those of them whose KV was learnt; and those that an exact prefix cache would have had.
    learnt_ms, full_ms, prefix_ms : float
        To the first token.
    em, full_em : float
        Exact match of the answer from learnt KV, and of full prefill's.
    agrees : bool
        Whether both say the same.
    """

    tokens: int
    reused: int
    prefix: int
    learnt_ms: float
    full_ms: float
    prefix_ms: float
    em: float
    full_em: float
    agrees: bool


class PrefixCache:
    """An exact prefix cache without a limit: transformers' own cache of every earlier prompt."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: list[tuple[tuple[int, ...], Any]] = []

    def ask(self, ids: Sequence[int]) -> tuple[int, float]:
        """How many tokens a prompt begins with that an earlier one began with, and how long the others take, in ms."""
        lengths = [min(_in_common(ids, known), len(ids) - 1) for known, _ in self._known]
        length = max(lengths, default=0)
        cache = copy.deepcopy(self._known[lengths.index(length)][1]) if length else None
        if cache is not None and (surplus := cache.get_seq_length() - length):
            cache.crop(-surplus)
        began = perf_counter()
        _, cache = self._reader.stock(ids[length:], cache)
        taken = (perf_counter() - began) * 1e3
        self._known.append((tuple(ids), cache))
        return length, taken


def messages_of(example: Example) -> list[dict[str, str]]:
    """A question over its chunks, as a front end that knows the model's own words would write it."""
    notes = "\n\n".join(text.strip() for text in example.chunks)
    user = f"{BEFORE_CHUNKS}{notes}\n\n{BEFORE_QUESTION}{example.question}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def ask_all(
    rag: RagCache, client: httpx.Client, name: str, examples: Sequence[Example], log: Callable[[str], None] = print
) -> list[Asked]:
    """Ask every question, in order, in three ways; the server is idle before each."""
    prefixes, found = PrefixCache(rag.reader), list[Asked]()

    def ask(messages: Sequence[Mapping[str, str]], **choice: Any) -> tuple[str, dict[str, Any]]:
        body = {"model": name, "messages": messages, "max_tokens": _TOKENS, "ragcache": choice}
        answer = client.post("/chat/completions", json=body).raise_for_status().json()
        return answer["choices"][0]["message"]["content"], answer["ragcache"]

    warm = [{"role": "user", "content": "A word. " * 200}]
    for choice in ({}, {"method": "full"}):
        ask(warm, **choice)
    for number, example in enumerate(examples, 1):
        messages = messages_of(example)
        full, by_full = ask(messages, method="full")
        learnt, about = ask(messages)
        wait_until_idle(client)
        parsed = rag.engine.requests.parser.parse([Message(one["role"], one["content"]) for one in messages])
        length, prefix_ms = prefixes.ask(parsed.prompt([chunk.segment for chunk in parsed.chunks]).token_ids)
        reused = sum(chunk["tokens"] - chunk["recomputed"] for chunk in about["chunks"] if chunk["cache"] != "miss")
        found.append(
            Asked(
                tokens=about["tokens"]["context"] + about["tokens"]["question"],
                reused=reused,
                prefix=length,
                learnt_ms=about["ms"]["first_token"],
                full_ms=by_full["ms"]["first_token"],
                prefix_ms=prefix_ms,
                em=exact_match(learnt, example.answers),
                full_em=exact_match(full, example.answers),
                agrees=agrees(learnt, full),
            )
        )
        log(f"{number}/{len(examples)}: {reused} of {found[-1].tokens} tokens reused")
    return found


def summarise(asked: Sequence[Asked]) -> dict[str, Any]:
    """All questions together, and what was reused in each part of the trace; means with their 95 % intervals."""
    edges = [len(asked) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [asked[first:end] for first, end in pairwise(edges) if end > first]
    full = [one.full_ms for one in asked]
    return {
        "reused": asdict(bootstrap_ratio([one.reused for one in asked], [one.tokens for one in asked])),
        "reused_over_time": [sum(one.reused for one in part) / sum(one.tokens for one in part) for part in parts],
        "prefix_over_time": [sum(one.prefix for one in part) / sum(one.tokens for one in part) for part in parts],
        "median_ms": {
            name: median(getattr(one, f"{name}_ms") for one in asked) for name in ("learnt", "full", "prefix")
        },
        "median_ms_last_part": {
            name: median(getattr(one, f"{name}_ms") for one in parts[-1]) for name in ("learnt", "full", "prefix")
        },
        "sooner_than_full": asdict(bootstrap_ratio(full, [one.learnt_ms for one in asked])),
        "sooner_than_prefix": asdict(
            bootstrap_ratio([one.prefix_ms for one in asked], [one.learnt_ms for one in asked])
        ),
        "em": asdict(bootstrap([one.em for one in asked])),
        "full_em": asdict(bootstrap([one.full_em for one in asked])),
        "em_minus_full": asdict(bootstrap([one.em - one.full_em for one in asked])),
        "agreement": fmean(one.agrees for one in asked),
    }


def _in_common(one: Sequence[int], other: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def main(
    out: Annotated[Path, typer.Option(help="File to write.")],
    questions: Annotated[int, typer.Option(help="Questions.")] = 60,
    chunks: Annotated[int, typer.Option(help="Chunks of a question.")] = 10,
    pool: Annotated[int, typer.Option(help="Chunks there are, at least.")] = 200,
    skew: Annotated[float, typer.Option(help="Exponent of their popularity by rank.")] = 1.0,
    model: Annotated[str, typer.Option(help="Who answers.")] = "bundled",
    method: Annotated[str | None, typer.Option(help="The server's method; the default where none is named.")] = None,
    learn: Annotated[int, typer.Option(help="MiB of learnt KV.")] = 512,
    seed: Annotated[int, typer.Option(help="Same questions every time.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Of the processor.")] = None,
) -> None:
    """Ask, and write what was reused, how soon answers began, and how right they were."""
    use_threads(threads)
    trace = Trace(pool, chunks, skew)
    with tempfile.TemporaryDirectory() as folder:
        rag = RagCache.open(Path(folder) / "index", model=model, method=method, second_sight_bytes=learn * _MIB)
        with rag, serve(Tenants.of_one(rag), model="asked") as url, httpx.Client(base_url=url, timeout=600) as client:
            asked = ask_all(rag, client, "asked", trace.examples(questions, seed))
            about, own = report.about_reader(rag.reader), rag.method
            held = rag.index.second_sight.nbytes
    meta = report.meta(**about, method=own, trace=asdict(trace), questions=questions, learn_mib=learn, seed=seed)
    summary = summarise(asked) | {"learnt_bytes": held}
    write(out, {"meta": meta, "summary": summary, "rows": [asdict(one) for one in asked]})
    typer.echo("\n".join(f"{name}: {value}" for name, value in summary.items()))


if __name__ == "__main__":
    typer.run(main)
