"""What is `ragcache serve --learn` worth, where nothing was ever ingested? Popular chunks in ever other orders.

    python bench/studies/learnt_texts.py --out docs/benchmarks/learnt-texts.json

Questions over chunks of one pool, drawn by popularity (Zipf) as those of RAGPulse are, are asked one after the other
through a server over an empty index, in the words that the model knows; between two of them the server has as long as
it takes to make what it has learnt. Each is asked by full prefill too, through the same server. The exact prefix cache
beside them is transformers' own, without a limit: the longest beginning that a prompt has in common with any earlier
one is at hand, and its time is that of the rest's forward alone. A second one has the same chunks in the order that
ContextPilot (https://arxiv.org/abs/2511.03475, its own package) gives them for its sake, without the line that ranks
them; full prefill answers over them in that order too. Times are the processor's, of this process, in which clients,
server and caches are: to the first piece of a streamed answer, or for a forward. All is in float32, so that answers
differ by what was reused and not by rounding.

ContextPilot is none of this project's requirements, and brings many: `pip install --no-deps --target DIR contextpilot`,
and DIR in `PYTHONPATH`.
"""

import copy
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Annotated, Any

import httpx
import typer
from openai_ragcache import Tenants
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.metrics import agrees, bootstrap, bootstrap_ratio, exact_match
from ragcache_bench.speed.peers.contextpilot import ContextPilotOrder
from ragcache_bench.tasks import Example, Trace
from studied_server import serve, wait_until_idle

from ragcache import Message, RagCache, Reader
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM

_MIB = 1 << 20
_PARTS = 5  # of the trace, over which what is reused grows
_TOKENS = 24  # of an answer, at most
_NAME = "asked"
_REUSING = ("reused", "prefix", "reordered")

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Asked:
    """One question, asked in four ways.

    Attributes
    ----------
    tokens, reused, prefix, reordered : int
        Of its prompt; those of them whose KV was learnt; those that an exact prefix cache would have had; and those
        that it would have had of the chunks in ContextPilot's order.
    learnt_ms, full_ms, prefix_ms, reordered_ms : float
        The processor's, to the first token.
    em, full_em, reordered_em : float
        Exact match of the answer from learnt KV, and of full prefill's over the chunks as they came and in
        ContextPilot's order.
    agrees : bool
        Whether both say the same.
    """

    tokens: int
    reused: int
    prefix: int
    reordered: int
    learnt_ms: float
    full_ms: float
    prefix_ms: float
    reordered_ms: float
    em: float
    full_em: float
    reordered_em: float
    agrees: bool


class PrefixCache:
    """An exact prefix cache without a limit: transformers' own cache of every earlier prompt."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: list[tuple[tuple[int, ...], Any]] = []

    def ask(self, ids: Sequence[int]) -> tuple[int, float]:
        """How many tokens a prompt has in common with the beginning of an earlier one, and the others' time, in ms."""
        lengths = [min(_in_common(ids, known), len(ids) - 1) for known, _ in self._known]
        length = max(lengths, default=0)
        cache = copy.deepcopy(self._known[lengths.index(length)][1]) if length else None
        if cache is not None and (surplus := cache.get_seq_length() - length):
            cache.crop(-surplus)
        began = process_time()
        _, cache = self._reader.stock(ids[length:], cache)
        taken = (process_time() - began) * 1e3
        self._known.append((tuple(ids), cache))
        return length, taken


def messages_of(example: Example) -> list[dict[str, str]]:
    """A question over its chunks, as a front end that knows the model's own words would write it."""
    notes = "\n\n".join(text.strip() for text in example.chunks)
    user = f"{BEFORE_CHUNKS}{notes}\n\n{BEFORE_QUESTION}{example.question}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def ask(client: httpx.Client, messages: Messages, **choice: Any) -> tuple[str, dict[str, Any], float]:
    """An answer, the server's report of it, and the processor's milliseconds until it began."""
    body = {"model": _NAME, "messages": messages, "max_tokens": _TOKENS, "stream": True, "ragcache": choice}
    began, first, text, report = process_time(), None, "", dict[str, Any]()
    with client.stream("POST", "/chat/completions", json=body) as answer:
        for line in answer.raise_for_status().iter_lines():
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
            piece = "".join(one["delta"].get("content") or "" for one in event.get("choices", ()))
            if piece and first is None:
                first = process_time()
            text, report = text + piece, event.get("ragcache") or report
    return text, report, ((first or process_time()) - began) * 1e3


def ask_all(
    rag: RagCache,
    client: httpx.Client,
    examples: Sequence[Example],
    order: ContextPilotOrder,
    log: Callable[[str], None] = print,
) -> list[Asked]:
    """Ask every question, in order, in four ways; the server is idle before each."""
    prefixes, reordered_prefixes, found = PrefixCache(rag.reader), PrefixCache(rag.reader), list[Asked]()

    def ids_of(messages: Messages) -> Sequence[int]:
        parsed = rag.engine.requests.parser.parse([Message(one["role"], one["content"]) for one in messages])
        return parsed.prompt([chunk.segment for chunk in parsed.chunks]).token_ids

    for choice in ({}, {"method": "full"}):
        ask(client, [{"role": "user", "content": "A word. " * 200}], **choice)
    for number, example in enumerate(examples, 1):
        messages, reordered = messages_of(example), messages_of(replace(example, chunks=order(example.chunks)))
        full, _, full_ms = ask(client, messages, method="full")
        over_reordered, *_ = ask(client, reordered, method="full")
        learnt, about, learnt_ms = ask(client, messages)
        wait_until_idle(client)
        prefix, prefix_ms = prefixes.ask(ids_of(messages))
        reordered_prefix, reordered_ms = reordered_prefixes.ask(ids_of(reordered))
        reused = sum(chunk["tokens"] - chunk["recomputed"] for chunk in about["chunks"] if chunk["cache"] != "miss")
        found.append(
            Asked(
                tokens=about["tokens"]["context"] + about["tokens"]["question"],
                reused=reused,
                prefix=prefix,
                reordered=reordered_prefix,
                learnt_ms=learnt_ms,
                full_ms=full_ms,
                prefix_ms=prefix_ms,
                reordered_ms=reordered_ms,
                em=exact_match(learnt, example.answers),
                full_em=exact_match(full, example.answers),
                reordered_em=exact_match(over_reordered, example.answers),
                agrees=agrees(learnt, full),
            )
        )
        log(f"{number}/{len(examples)}: {reused} of {found[-1].tokens} tokens reused")
    return found


def summarise(asked: Sequence[Asked]) -> dict[str, Any]:
    """All questions together, and what was reused in each part of the trace; means with their 95 % intervals."""
    edges = [len(asked) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [asked[first:end] for first, end in pairwise(edges) if end > first]
    learnt_ms, tokens = [one.learnt_ms for one in asked], [one.tokens for one in asked]

    def share(part: Sequence[Asked], name: str) -> float:
        return float(sum(getattr(one, name) for one in part) / sum(one.tokens for one in part))

    return {
        **{name: asdict(bootstrap_ratio([getattr(one, name) for one in asked], tokens)) for name in _REUSING},
        **{f"{name}_over_time": [share(part, name) for part in parts] for name in _REUSING},
        "median_ms": _medians(asked),
        "median_ms_last_part": _medians(parts[-1]),
        **{
            f"sooner_than_{name}": asdict(bootstrap_ratio([getattr(one, f"{name}_ms") for one in asked], learnt_ms))
            for name in ("full", "prefix", "reordered")
        },
        "sooner_than_full_last_part": asdict(
            bootstrap_ratio([one.full_ms for one in parts[-1]], [one.learnt_ms for one in parts[-1]])
        ),
        **{
            name: asdict(bootstrap([getattr(one, name) for one in asked])) for name in ("em", "full_em", "reordered_em")
        },
        "em_minus_full": asdict(bootstrap([one.em - one.full_em for one in asked])),
        "reordered_em_minus_full": asdict(bootstrap([one.reordered_em - one.full_em for one in asked])),
        "agreement": fmean(one.agrees for one in asked),
    }


def _medians(asked: Sequence[Asked]) -> dict[str, float]:
    return {
        name: median(getattr(one, f"{name}_ms") for one in asked) for name in ("learnt", "full", "prefix", "reordered")
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
        rag = RagCache.open(
            Path(folder) / "index", model=model, method=method, dtype="float32", second_sight_bytes=learn * _MIB
        )
        with rag, serve(Tenants.of_one(rag), model=_NAME) as url, httpx.Client(base_url=url, timeout=600) as client:
            asked = ask_all(rag, client, trace.examples(questions, seed), ContextPilotOrder())
            about, own = report.about_reader(rag.reader), rag.method
            held = rag.index.second_sight.nbytes
    meta = report.meta(
        **about, method=own, trace=asdict(trace), questions=questions, learn_mib=learn, seed=seed,
        contextpilot=version("contextpilot"),
    )  # fmt: skip
    summary = summarise(asked) | {"learnt_bytes": held}
    write(out, {"meta": meta, "summary": summary, "rows": [asdict(one) for one in asked]})
    typer.echo("\n".join(f"{name}: {value}" for name, value in summary.items()))


if __name__ == "__main__":
    typer.run(main)
