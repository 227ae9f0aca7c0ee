"""Where keys deviate: at the chunks' beginnings? and do the same tokens deviate in every layer?

Deviation is that of `ragcache_bench.references.moved`. Layers are counted from 0; the keys of layer 0 come from
embeddings alone and deviate nowhere.
"""

from collections.abc import Collection, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Literal

import torch
from torch import Tensor

from ragcache.model.deviation import moved
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache_bench.findings.finding import Finding, Verdict, shown
from ragcache_bench.metrics import Interval, bootstrap
from ragcache_bench.reference_attention import prompt_of
from ragcache_bench.references import stock_kv
from ragcache_bench.runs import Bench, Tasks
from ragcache_bench.tasks import Example

Encoding = Literal["alone", "prefixed"]
ENCODINGS: tuple[Encoding, ...] = ("alone", "prefixed")
HEADS = 4  # tokens at a chunk's beginning
SHARE = 0.15  # of the tokens that are chosen
_STUDY_KEPT = 0.20  # the study finds 8 to 20 % of the top 15 % chosen in all layers
Deviations = dict[tuple[str, Encoding], list[dict[str, Any]]]


@torch.no_grad()
def deviations(reader: Reader, prompt: Prompt, encoding: Encoding) -> Tensor:
    """How far each chunk token's reused key is from full prefill's, (layers, chunk tokens) fp32.

    Parameters
    ----------
    reader : Reader
        The model.
    prompt : Prompt
        Its chunks stand one after the other.
    encoding : {"alone", "prefixed"}
        Whether chunks are computed by themselves, or behind the system prefix.
    """
    left = (reader.encode(prompt.segments[0].token_ids),) if encoding == "prefixed" else ()
    buffer, chunks = reader.buffer(len(prompt)), prompt.chunks()
    made = (reader.encode(prompt.segments[i].token_ids, left) for i in chunks)
    reader.place_all(buffer, [(kv, prompt.slots[i], prompt.starts[i]) for i, kv in zip(chunks, made, strict=True)])
    first, end = prompt.slots[chunks[0]], prompt.slots[chunks[-1] + 1]
    pairs = zip(buffer.read(first, end), stock_kv(reader, prompt), strict=True)
    return torch.stack([moved(reused, full[:, :, first:end])[0] for reused, full in pairs]).cpu()


def at_heads(deviation: Tensor, offsets: Tensor, heads: int = HEADS, share: float = SHARE) -> dict[str, Any]:
    """How much of the deviation lies on the chunks' first tokens.

    Parameters
    ----------
    deviation : Tensor
        (layers, tokens).
    offsets : Tensor
        (tokens,) place of each token in its chunk, from 0.
    heads : int
        Tokens that count as a chunk's beginning.
    share : float
        Of the tokens that are chosen.

    Returns
    -------
    dict
        "mass": per layer, share of all deviation that lies there; "chosen": per layer, share of the tokens with the
        most deviation that stand there; "chance": share of all tokens that do. Layers without deviation give None.
    """
    there = offsets < heads  # (tokens,)
    top = chosen(deviation, share)  # (layers, chosen)
    none = _still(deviation)
    mass = (deviation[:, there].sum(1) / deviation.sum(1)).tolist()
    hits = there[top].float().mean(1).tolist()
    return {
        "mass": [None if still else value for still, value in zip(none, mass, strict=True)],
        "chosen": [None if still else value for still, value in zip(none, hits, strict=True)],
        "chance": float(there.float().mean()),
    }


def kept(deviation: Tensor, share: float = SHARE) -> dict[str, Any]:
    """How many of the tokens with the most deviation are the same ones in all layers.

    Layers that do not deviate are left out; the others choose k of N tokens each. Independent choices in L layers would
    have k (k / N)^(L - 1) in common.

    Returns
    -------
    dict
        "all": share of k chosen in every layer; "chance": the same for independent choices; "with_first": per layer,
        share of k that the first of them chose too, None for layers left out.
    """
    still = _still(deviation)
    layers = [i for i, none in enumerate(still) if not none]
    if not layers:
        return {"all": None, "chance": None, "with_first": [None] * len(still)}
    sets = {i: set(row.tolist()) for i, row in zip(layers, chosen(deviation[layers], share), strict=True)}
    k, first = len(sets[layers[0]]), sets[layers[0]]
    return {
        "all": len(set.intersection(*sets.values())) / k,
        "chance": (k / deviation.shape[1]) ** (len(layers) - 1),
        "with_first": [len(first & sets[i]) / k if i in sets else None for i in range(len(still))],
    }


def chosen(deviation: Tensor, share: float) -> Tensor:
    """The tokens with the most deviation in each layer, (layers, chosen); at least one."""
    count = max(1, round(share * deviation.shape[1]))
    return deviation.argsort(dim=1, descending=True, stable=True)[:, :count]


def _still(deviation: Tensor) -> list[bool]:
    """Layers that do not deviate; what layer 0 shows is the rounding of its rotation."""
    return [layer == 0 or total == 0 for layer, total in enumerate(deviation.sum(1).tolist())]


def at_keys(bench: Bench, letters: Collection[str], tasks: Tasks) -> list[Finding]:
    """Findings a and b, those of them that are asked for."""
    makers = {"a": heads_finding, "b": kept_finding}
    wanted = [makers[letter] for letter in letters if letter in makers]
    found = _measured(bench, tasks) if wanted else {}
    return [make(found) for make in wanted]


def _measured(bench: Bench, tasks: Tasks) -> Deviations:
    """One entry per question, by task and encoding."""
    found: Deviations = {(task, encoding): [] for task in tasks for encoding in ENCODINGS}
    for task, examples in tasks.items():
        for done, example in enumerate(examples, 1):
            for encoding in ENCODINGS:
                parts = ("deviation", bench.reader.fingerprint, encoding, example.question, *example.chunks)
                entry = bench.journal.recall(parts, partial(_shares, bench.reader, example, encoding))
                found[task, encoding].append(entry)
            bench.progress(f"{task}: deviation", done, len(examples))
    return found


def _shares(reader: Reader, example: Example, encoding: Encoding) -> dict[str, Any]:
    prompt = prompt_of(reader, example)
    found = deviations(reader, prompt, encoding)
    offsets = torch.cat([torch.arange(len(prompt.segments[i])) for i in prompt.chunks()])
    return {"heads": at_heads(found, offsets), "kept": kept(found)}


def heads_finding(found: Deviations) -> Finding:
    """Finding a, from all questions; it is decided where CacheBlend looks, in layer 1 of chunks computed alone."""
    rows = [row for key, group in found.items() for row in _by_layer(*key, [one["heads"] for one in group])]
    alone = _alone(found, "heads")
    mass, chance = _interval([one["mass"][1] for one in alone]), _mean(alone, "chance")
    verdict: Verdict = "not confirmed"
    if mass and mass.low > chance:
        verdict = "confirmed" if mass.low > 0.5 else "partly"
    because = (
        f"in layer 1 of chunks computed alone, their first {HEADS} tokens carry {shown(mass)} of all key deviation, "
        f"{mass.mean / chance:.1f} times their share of the tokens. Confirmed above one half, partly above their share."
        if mass else "nothing deviates in layer 1."
    )  # fmt: skip
    return Finding("a", "The first tokens of every chunk dominate early key deviation",
                   "the study 2603.20218 and EPIC 2410.15332", verdict, because, tuple(rows))  # fmt: skip


def kept_finding(found: Deviations) -> Finding:
    """Finding b, from all questions, on chunks computed alone."""
    rows: list[dict[str, Any]] = []
    for (task, encoding), group in found.items():
        parts = [one["kept"] for one in group]
        rows += _by_layer(task, encoding, [{"with_first": one["with_first"], "chance": SHARE} for one in parts])
        # The same for all layers at once: a row of its own.
        all_of_them = [{"with_first": [one["all"]], "chance": one["chance"]} for one in parts]
        rows += [{**row, "layer": "all"} for row in _by_layer(task, encoding, all_of_them)]
    alone = _alone(found, "kept")
    share, chance = _interval([one["all"] for one in alone]), _mean(alone, "chance")
    verdict: Verdict = "not confirmed"
    if share and share.high < 0.5:
        verdict = "confirmed" if share.mean <= _STUDY_KEPT else "partly"
    because = (
        f"of the {SHARE:.0%} of tokens that deviate most in a layer, {shown(share)} do in all layers; {chance:.2g} "
        f"would by chance. Confirmed up to {_STUDY_KEPT:.2f} (the study has .08 to .20), partly below one half."
        if share else "nothing deviates."
    )  # fmt: skip
    return Finding("b", "Only a small share of chosen tokens stays chosen in all layers",
                   "the study 2603.20218", verdict, because, tuple(rows))  # fmt: skip


def _by_layer(task: str, encoding: Encoding, group: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each layer in which something deviates: every list's mean over the questions, and chance beside it."""
    names = [name for name, values in group[0].items() if isinstance(values, list)]
    rows = []
    for layer in range(len(group[0][names[0]])):
        found = {name: _interval([one[name][layer] for one in group]) for name in names}
        if any(found.values()):
            cells = {name: value and shown(value) for name, value in found.items()}
            rows.append({"task": task, "encoding": encoding, "layer": layer, "n": len(group), **cells,
                         "chance": _mean(group, "chance")})  # fmt: skip
    return rows


def _alone(found: Deviations, part: str) -> list[dict[str, Any]]:
    return [one[part] for (_, encoding), group in found.items() for one in group if encoding == "alone"]


def _mean(group: Sequence[dict[str, Any]], name: str) -> float:
    return fmean(one[name] or 0.0 for one in group)


def _interval(values: Sequence[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return bootstrap(known) if known else None
