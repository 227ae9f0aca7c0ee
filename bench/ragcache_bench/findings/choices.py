"""What one choice is worth against another: claims of the literature put as pairs of methods, question by question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ragcache.encode import Activations, Alone, Encoder, Fused, Prefixed
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.select import Grouped, QuestionAttention, RandomTokens, Selector
from ragcache_bench.contenders import Contender
from ragcache_bench.findings.finding import Finding, Verdict, shown
from ragcache_bench.metrics import bootstrap
from ragcache_bench.records import Record
from ragcache_bench.references import TrueDeviation
from ragcache_bench.runs import Bench, Tasks

SHARE = 0.15
_MARGIN = 0.05  # what a way may gain and still count as no better
_PSR = METHODS["psr"]


@dataclass(frozen=True)
class Pair:
    """One way of answering against another.

    Attributes
    ----------
    words : str
        What is compared.
    better, base : Contender
        The two.
    gain : bool
        Whether the claim is that the first is better; otherwise that it is no better.
    """

    words: str
    better: Contender
    base: Contender
    gain: bool = True


@dataclass(frozen=True)
class Claim:
    """A finding of the literature, as pairs that decide it.

    Attributes
    ----------
    letter, claim, source : str
        As in `Finding`.
    pairs : tuple of Pair
        Confirmed if all come out as claimed, partly if some do.
    """

    letter: str
    claim: str
    source: str
    pairs: tuple[Pair, ...]


def _row(name: str) -> Contender:
    row = METHODS[name]
    return Contender(row, None if row.recompute is None else SHARE)


def _way(name: str, encode: Encoder | None, select: Selector | None = None, **choices: Any) -> Contender:
    share = SHARE if select else None
    return Contender(Method(name, encode, select, share, **choices), share)


def _sinks() -> Iterator[Pair]:
    still, asked = _way("prefixed", Prefixed()), METHODS["prophetkv"].select
    yield Pair("behind the system prefix, nothing recomputed, against alone", still, _row("naive"))
    yield Pair("sinks thrown away, nothing recomputed, against alone", _row("link0"), _row("naive"))
    behind, thrown = _way("prefixed, question", Prefixed(), asked), _way("sink, question", _PSR.encode, asked)
    yield Pair("behind the prefix, the question's choice, against alone", behind, _row("prophetkv"))
    yield Pair("sinks thrown away, the question's choice, against alone", thrown, _row("prophetkv"))


def _parts() -> Iterator[Pair]:
    for words, part in (
        ("prefix alone (link0)", _row("link0")),
        ("scale alone", _way("scaled", Alone(), attend=_PSR.attend)),
        ("recompute alone (cacheblend)", _row("cacheblend")),
        ("prefix and scale", _way("sink, scaled", _PSR.encode, attend=_PSR.attend)),
        ("prefix and recompute", _way("sink, deviation", _PSR.encode, _PSR.select)),
    ):
        yield Pair(f"PSR against {words}", _row("psr"), part)


def _late() -> Iterator[Pair]:
    def true(layer: int | float | None) -> Contender:
        return _way(f"true deviation, layer {layer}", Alone(), TrueDeviation(layer))

    yield Pair("true deviation in layer 1 against the last layer", true(1), true(-1))
    yield Pair("true deviation in a middle layer against the last layer", true(0.5), true(-1))
    yield Pair("true deviation over all layers against the last layer", true(None), true(-1))


def _again() -> Iterator[Pair]:
    again, once = METHODS["droidspeak"], METHODS["cacheblend"].select
    yield Pair("chosen again over states of chunks made alone, no better than chosen once",
               _row("droidspeak"), _row("cacheblend"), gain=False)  # fmt: skip
    for words, encoder in (
        ("behind similar chunks", Fused(10)),
        ("behind the document's own chunks", Fused(10, by="structure")),
    ):
        twice = _way(f"{words}, again", Activations(encoder, layer=0.5), once, schedule=again.schedule)
        base = _way(f"{words}, once", encoder, once)
        yield Pair(f"the same over states of chunks made {words}, better", twice, base)


def _small() -> Iterator[Pair]:
    small, own = _row("cacheclip"), Grouped(QuestionAttention(layers="last", reduce="mean"), window=8, stride=4)
    drawn = _way("prefixed, random", Prefixed(), RandomTokens())
    yield Pair("a small model's choice against random tokens", small, drawn)
    yield Pair("a small model's choice against the primary's over reused KV", small, _way("own", Prefixed(), own))


CLAIMS = (
    Claim("e", "One attention sink serves better than one in each chunk", "the study 2603.20218, EPIC 2410.15332",
          tuple(_sinks())),
    Claim("f", "Prefix, scale and recompute together are above any one of them, and any two",
          "PSR, the study 2603.20218", tuple(_parts())),
    Claim("g", "Tokens chosen by a late layer are not those that early layers need", "the study 2603.20218",
          tuple(_late())),
    Claim("h", "Choosing again at a middle layer fails over states without context, and works with it",
          "the study 2603.20218 on DroidSpeak 2411.02820", tuple(_again())),
    Claim("i", "A small model that reads the whole prompt chooses well", "CacheClip 2510.10129", tuple(_small())),
)  # fmt: skip


def at_choices(bench: Bench, letters: Sequence[str], tasks: Tasks) -> list[Finding]:
    """Findings e to i, those of them that are asked for: all pairs on all tasks, in one run."""
    claims = [claim for claim in CLAIMS if claim.letter in letters]
    if not claims:
        return []
    field = dict.fromkeys(who for claim in claims for pair in claim.pairs for who in (pair.better, pair.base))
    records = bench.answers(tasks, [Contender(METHODS["full"]), *field])
    return [_decided(claim, records, list(tasks)) for claim in claims]


def _decided(claim: Claim, records: Sequence[Record], tasks: Sequence[str]) -> Finding:
    rows: list[dict[str, Any]] = []
    held, told = [], []
    for pair in claim.pairs:
        ours, theirs = (_of(records, who) for who in (pair.better, pair.base))
        rows += [_scored(pair, task, ours, theirs) for task in (*tasks, "all")]
        worth = bootstrap([one.em - other.em for one, other in zip(ours, theirs, strict=True)])
        held.append(worth.low > 0 if pair.gain else worth.high < _MARGIN)
        told.append(f"{pair.words}: {shown(worth)}")
    verdict: Verdict = "confirmed" if all(held) else "partly" if any(held) else "not confirmed"
    because = (
        "; ".join(told) + f". {sum(held)} of {len(held)} as claimed: better where the interval is above 0, no better "
        f"where it stays below {_MARGIN}."
    )
    return Finding(claim.letter, claim.claim, claim.source, verdict, because, tuple(rows))


def _of(records: Sequence[Record], who: Contender) -> list[Record]:
    """A contender's answers, in the order of the questions."""
    return [r for r in records if (r.method, r.recompute) == (who.method.name, who.recompute)]


def _scored(pair: Pair, task: str, ours: Sequence[Record], theirs: Sequence[Record]) -> dict[str, Any]:
    """Exact match of both, what they charge, and the difference."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if task in ("all", a.task)]
    return {
        "pair": pair.words,
        "task": task,
        "n": len(both),
        "first": fmean(a.em for a, _ in both),
        "second": fmean(b.em for _, b in both),
        "first charged": _charged([a for a, _ in both]),
        "second charged": _charged([b for _, b in both]),
        "difference": shown(bootstrap([a.em - b.em for a, b in both])),
    }


def _charged(records: Sequence[Record]) -> float | None:
    """The mean where something was selectable."""
    known = [r.charged for r in records if r.charged is not None]
    return fmean(known) if known else None
