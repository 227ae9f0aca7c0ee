"""Where a small model looks, and where the primary would: CacheClip's key claim (2510.10129), task by task."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.methods import METHODS
from ragcache.select import Auxiliary
from ragcache_bench.agreement import agreement, best, looks
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.contenders import Contender
from ragcache_bench.findings.finding import Finding, Verdict, shown
from ragcache_bench.metrics import bootstrap
from ragcache_bench.runs import Bench, Tasks
from ragcache_bench.tasks import Example

SHARE = 0.15
_AUXILIARY = Auxiliary()
_WHO = ("auxiliary", "primary", "chance")
_HALF = 0.5  # of the primary's choice: the claim is that the two mostly agree


def at_gaze(bench: Bench, tasks: Tasks) -> Finding:
    """Finding j: KL and overlap between auxiliary and primary, and how often each looks at the chunks that matter."""
    found = {task: _measured(bench, task, examples) for task, examples in tasks.items()}
    seen = [one for of_task in found.values() for one in of_task]
    overlap = bootstrap([one["overlap"] for one in seen])
    verdict: Verdict = "confirmed" if overlap.low > _HALF else "partly" if overlap.low > SHARE else "not confirmed"
    auxiliary, primary, chance = (fmean(one[who] for one in seen) for who in _WHO)
    because = (
        f"of the {SHARE:.0%} of tokens that the primary would choose, the auxiliary chooses {shown(overlap)}; random "
        f"tokens, {SHARE:.2f}. In the chunks that hold the answer lie {auxiliary:.2f} of the auxiliary's choice, "
        f"{primary:.2f} of the primary's, and {chance:.2f} of all tokens. Confirmed above {_HALF:.2f}, partly above "
        f"{SHARE:.2f}."
    )
    return Finding("j", "A small model of the same kind looks where the primary looks", "CacheClip 2510.10129",
                   verdict, because, tuple(_row(task, of_task) for task, of_task in found.items()))  # fmt: skip


def _measured(bench: Bench, task: str, examples: Sequence[Example]) -> list[dict[str, Any]]:
    """One entry per question."""
    naive, seen = Contender(METHODS["naive"]), []
    job = Job(task, tuple(examples), tuple(Asked(one, (("", naive),)) for one in examples), bench.sampling)
    with filled(job, bench.reader, bench.embedder, bench.progress) as (index, ids):
        engine = Engine(bench.reader, index)
        for done, example in enumerate(examples, 1):
            chunks = index.chunks([ids[text] for text in example.chunks])
            about = ("gaze", bench.reader.fingerprint, repr(_AUXILIARY), str(SHARE), str(example.gold))
            parts = (*about, example.question, *example.chunks)
            seen.append(bench.journal.recall(parts, partial(_looked, engine, example, chunks)))
            bench.progress(f"{task}: auxiliary", done, len(examples))
    return seen


def _looked(engine: Engine, example: Example, chunks: list[Chunk]) -> dict[str, Any]:
    """KL, overlap, and the share of each one's choice that stands in gold chunks; chance is theirs of all tokens."""
    p = engine.prefill(example.question, chunks, method="naive").context
    assert p is not None  # only full prefill has none
    auxiliary, primary = looks(_AUXILIARY, p)
    gold = p.selectable.new_zeros(len(p.prompt))
    segments = p.prompt.chunks()
    for place in example.gold:
        gold[p.span(segments[place])] = True
    gold = gold[p.selectable]  # (selectable tokens,)
    return {
        **asdict(agreement(auxiliary, primary, SHARE)),
        "auxiliary": float(gold[best(auxiliary, SHARE)].float().mean()),
        "primary": float(gold[best(primary, SHARE)].float().mean()),
        "chance": float(gold.float().mean()),
    }


def _row(task: str, seen: list[dict[str, Any]]) -> dict[str, Any]:
    auxiliary, primary, chance = (fmean(one[who] for one in seen) for who in _WHO)
    return {
        "task": task,
        "n": len(seen),
        "KL, nats": shown(bootstrap([one["kl"] for one in seen])),
        f"overlap at {SHARE:.0%}": shown(bootstrap([one["overlap"] for one in seen])),
        "auxiliary's choice in gold chunks": auxiliary,
        "primary's": primary,
        "all tokens": chance,
    }
