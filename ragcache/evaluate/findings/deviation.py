"""Where keys deviate: at the chunks' beginnings? and do the same tokens deviate in every layer?

The deviation of token t in a layer is (1/H) sum over heads of ||K_full[t] - K_reused[t]||^2, as in the study
2603.20218. Layers are counted from 0; the keys of layer 0 come from embeddings alone and deviate nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

import torch
from torch import Tensor

from ragcache.evaluate.findings.finding import Finding, Verdict, shown
from ragcache.evaluate.metrics import Interval, bootstrap
from ragcache.evaluate.notes import Notes
from ragcache.evaluate.runs import Progress
from ragcache.evaluate.tasks import Example
from ragcache.model.reader import Reader
from ragcache.segments import Prompt, Template

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
    _, cache = reader.stock(prompt.token_ids)
    left = (reader.encode(prompt.segments[0].token_ids),) if encoding == "prefixed" else ()
    buffer = reader.buffer(len(prompt))
    chunks = prompt.chunks()
    for i in chunks:
        reader.place(buffer, reader.encode(prompt.segments[i].token_ids, left), prompt.slots[i], prompt.starts[i])
    first, end = prompt.slots[chunks[0]], prompt.slots[chunks[-1] + 1]
    reused = [layer[0] for layer in buffer.read(first, end)]  # per layer (kv_heads, chunk tokens, head_dim)
    moved = [
        (layer.keys[0, :, first:end].float() - keys.float()).pow(2).sum(-1).mean(0)
        for layer, keys in zip(cache.layers, reused, strict=True)
    ]
    return torch.stack(moved).cpu()


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


@dataclass(frozen=True)
class Deviating:
    """Measures deviation question by question.

    Attributes
    ----------
    reader : Reader
        The model.
    notes : Notes
        What was measured already.
    progress : callable
        Called after each question.
    """

    reader: Reader
    notes: Notes
    progress: Progress

    def measure(self, tasks: Mapping[str, Sequence[Example]]) -> Deviations:
        """One entry per question, by task and encoding."""
        found: Deviations = {(task, encoding): [] for task in tasks for encoding in ENCODINGS}
        for task, examples in tasks.items():
            for done, example in enumerate(examples, 1):
                for encoding in ENCODINGS:
                    found[task, encoding].append(self._one(example, encoding))
                self.progress(f"{task}: deviation", done, len(examples))
        return found

    def _one(self, example: Example, encoding: Encoding) -> Any:
        parts = ("deviation", self.reader.fingerprint, encoding, example.question, *example.chunks)
        return self.notes.recall(parts, lambda: self._measured(example, encoding))

    def _measured(self, example: Example, encoding: Encoding) -> dict[str, Any]:
        template = Template(self.reader.tokenizer)
        chunks = [template.chunk(text, str(i)) for i, text in enumerate(example.chunks)]
        moved = deviations(self.reader, template.prompt(chunks, example.question), encoding)
        offsets = torch.cat([torch.arange(len(chunk)) for chunk in chunks])
        return {"heads": at_heads(moved, offsets), "kept": kept(moved)}


def heads_finding(found: Deviations) -> Finding:
    """Finding a, from all questions; it is decided where CacheBlend looks, in layer 1 of chunks computed alone."""
    rows = [row for key, group in found.items() for row in _by_layer(*key, group, "heads", ("mass", "chosen"))]
    alone = [one["heads"] for (_, encoding), group in found.items() for one in group if encoding == "alone"]
    mass = _interval([one["mass"][1] for one in alone])
    chance = fmean(one["chance"] for one in alone)
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
    rows = [row for key, group in found.items() for row in _by_layer(*key, group, "kept", ("with_first",))]
    alone = [one["kept"] for (_, encoding), group in found.items() for one in group if encoding == "alone"]
    share = _interval([one["all"] for one in alone])
    chance = fmean(one["chance"] or 0.0 for one in alone)
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


def _by_layer(
    task: str, encoding: Encoding, group: Sequence[dict[str, Any]], part: str, columns: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    for layer in range(len(group[0][part][columns[0]])):
        found = {name: _interval([one[part][name][layer] for one in group]) for name in columns}
        cells = {name: shown(value) if value else None for name, value in found.items()}
        chance = fmean(one[part]["chance"] or 0.0 for one in group)
        if any(found.values()):
            rows.append({"task": task, "encoding": encoding, "layer": layer, "n": len(group), **cells,
                         "chance": SHARE if part == "kept" else chance})  # fmt: skip
    if part == "kept" and (every := _interval([one[part]["all"] for one in group])):
        rows.append({"task": task, "encoding": encoding, "layer": "all", "n": len(group), columns[0]: shown(every),
                     "chance": fmean(one[part]["chance"] or 0.0 for one in group)})  # fmt: skip
    return rows


def _interval(values: Sequence[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return bootstrap(known) if known else None
