"""Where a small model looks, and where the primary would: CacheClip's key claim (2510.10129), task by task."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean
from typing import Any

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.methods import METHODS
from ragcache.select import Auxiliary
from ragcache.select.companion import reader_of
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
#: Measures one question over its chunks.
Measure = Callable[[Engine, Example, list[Chunk]], dict[str, Any]]
_HALF = 0.5  # of the primary's choice: the claim is that the two mostly agree


def at_gaze(bench: Bench, tasks: Tasks) -> Finding:
    """Finding j: KL and overlap between auxiliary and primary, and how often each looks at the chunks that matter."""
    found = {task: _measured(bench, task, examples, _looked, "gaze") for task, examples in tasks.items()}
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


def at_layers(bench: Bench, tasks: Tasks) -> Finding:
    """Finding k: KL and overlap between auxiliary and primary by layer; paired by depth, the last with the last."""
    depth = reader_of(_AUXILIARY.model).layers
    seen = [one for task, examples in tasks.items() for one in _measured(bench, task, examples, _by_layer, "layers")]
    kl = [[one[f"kl {layer}"] for one in seen] for layer in range(depth)]
    last = bootstrap([fmean(one[:-1]) - one[-1] for one in zip(*kl, strict=True)])
    verdict: Verdict = "confirmed" if last.low > 0 else "partly" if last.mean > 0 else "not confirmed"
    because = (
        f"the mean KL of the layers before the last, minus the last's, is {shown(last)} nats. Confirmed above 0, "
        "partly if that is within the noise."
    )
    rows = tuple(
        {
            "layer": f"{layer} of {depth}", "n": len(seen), "KL, nats": shown(bootstrap(kl[layer])),
            f"overlap at {SHARE:.0%}": shown(bootstrap([one[f"overlap {layer}"] for one in seen])),
        }
        for layer in range(depth)
    )  # fmt: skip
    return Finding("k", "Auxiliary and primary agree most in their last layers", "CacheClip 2510.10129, version 2",
                   verdict, because, rows)  # fmt: skip


def _by_layer(engine: Engine, example: Example, chunks: list[Chunk]) -> dict[str, Any]:
    """KL and overlap by the auxiliary's layer."""
    p = engine.prefill(example.question, chunks, method="naive").context
    assert p is not None  # only full prefill has none
    depth, found = reader_of(_AUXILIARY.model).layers, dict[str, Any]()
    for layer in range(depth):
        share = (layer + 1) / depth - 0.5 / max(depth, p.reader.layers)  # of either's depth, the last with the last
        one = agreement(*looks(replace(_AUXILIARY, layers=(share,)), p), SHARE)
        found |= {f"kl {layer}": one.kl, f"overlap {layer}": one.overlap}
    return found


def _measured(
    bench: Bench, task: str, examples: Sequence[Example], measure: Measure, name: str
) -> list[dict[str, Any]]:
    """One entry per question, under a name of its own in the journal."""
    naive, seen = Contender(METHODS["naive"]), []
    job = Job(task, tuple(examples), tuple(Asked(one, (("", naive),)) for one in examples), bench.sampling)
    with filled(job, bench.reader, bench.embedder, bench.progress) as (index, ids):
        engine = Engine(bench.reader, index)
        for done, example in enumerate(examples, 1):
            chunks = index.chunks([ids[text] for text in example.chunks])
            about = (name, bench.reader.fingerprint, repr(_AUXILIARY), str(SHARE), str(example.gold))
            parts = (*about, example.question, *example.chunks)
            seen.append(bench.journal.recall(parts, partial(measure, engine, example, chunks)))
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
