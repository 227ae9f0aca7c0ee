"""Whether ragcache's forward is the model's own: both read a short prompt, and their logits are compared.

What no list of architectures foresees shows here: an attention that does more than its arguments say, a window that
masks and layers see differently. The prompt is read in full, and once more with its first part as a reused chunk that
was moved. A large model reads a few tokens on its own weights; what takes a prompt longer than its windows, or more
digits than its dtype has, is asked of a reduced copy, once in a process for each configuration.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model import compatibility
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reduced import longest_window, reduce_model

_FEW, _BEYOND = 8, 36  # tokens that are read at the least, and beyond the longest window
_CHEAP = 1 << 29  # parameters times tokens: a second or so on one core
_SHIFT = 3  # positions that the chunk is moved by
_NOISE_FACTOR = 2.0

_found: dict[tuple[type, str], str] = {}  # what became of a class and a configuration; nothing if it passed


def check_behaviour(reader: Any, admit: Callable[[Any], object]) -> None:
    """Compare a reader's logits with stock full prefill's, and a reduced copy's where its own say too little.

    Parameters
    ----------
    reader : Reader
        Probed, so that it can move keys.
    admit : callable
        Has a reduced copy probed, and compared by `compare_whole`.

    Raises
    ------
    UnsupportedModel
        If they differ; the message gives the figures.
    """
    model, tokens = reader.model, _wanted(reader)
    cheap = sum(parameter.numel() for parameter in model.parameters()) * tokens <= _CHEAP
    _compare(reader, tokens if cheap else min(_FEW, tokens))
    if cheap and model.dtype in (torch.float32, torch.float64):
        return
    try:
        reduced = reduce_model(model)
    except Exception:  # a class may refuse sizes in any way; its own weights read the whole prompt then
        _compare(reader, tokens)
        return
    key = type(model), json.dumps(reduced.config.to_dict(), sort_keys=True, default=str)
    if key not in _found:
        try:
            admit(reduced)
            _found[key] = ""
        except UnsupportedModel as error:
            _found[key] = error.reason
    if _found[key]:
        raise UnsupportedModel(_found[key])


def compare_whole(reader: Any) -> None:
    """Compare logits after more tokens than any window holds.

    Raises
    ------
    UnsupportedModel
        As `check_behaviour`.
    """
    _compare(reader, _wanted(reader))


def _wanted(reader: Any) -> int:
    wanted: int = min(longest_window(reader.model.config) + _BEYOND, reader.limit - _SHIFT)
    return wanted


def _compare(reader: Any, tokens: int) -> None:
    """Refuse a model whose logits are others than stock full prefill's of so many tokens."""
    made = torch.Generator().manual_seed(0)
    known = reader.model.get_input_embeddings().num_embeddings
    ids = torch.randint(min(known // 2, 64), min(known, 4096), (tokens,), generator=made).tolist()
    stock, _ = reader.stock(ids)
    whole = _read(reader, ids, 0)
    reused = _read(reader, ids, 2 * tokens // 3)
    off = {"recomputed in full": _distance(stock, whole), "with a reused chunk": _distance(stock, reused)}
    worst = max(off, key=off.__getitem__)
    largest = float(stock.abs().max())
    allowed = compatibility.logit_tolerance(reader.model.dtype) * max(1.0, largest)
    if off[worst] <= allowed:
        return
    steps, _ = reader.stock(ids[tokens // 2 :], reader.stock(ids[: tokens // 2])[1])
    allowed = max(allowed, _NOISE_FACTOR * _distance(stock, steps))
    if not off[worst] <= allowed:
        raise UnsupportedModel(
            f"its logits after {tokens} tokens {worst} are {off[worst]:.2g} off those of the model's own full prefill "
            f"(allowed: {allowed:.2g}; the largest logit is {largest:.2g}), so its attention does something that "
            "ragcache's does not"
        )


def _read(reader: Any, ids: list[int], reused: int) -> Tensor:
    """Logits after all tokens, (vocabulary,); the first ones' KV is made apart, and moved behind other positions.

    Where layers carry a state it is made in two chunks: what the second does to a state is seen only behind another.
    """
    tokens, shift = len(ids), _SHIFT if reused else 0
    buffer = reader.buffer(tokens)
    if reused:
        cut = reused // 2 if reader.states else reused
        first = reader.encode(ids[:cut])
        reader.place(buffer, first, 0, shift)
        if cut < reused:
            reader.place(buffer, reader.encode(ids[cut:reused], [first]), cut, cut + shift)
    slots = torch.arange(reused, tokens, device=reader.device)
    plan = ForwardPlan(Slots(slots), tokens)
    logits: Tensor = reader.logits(ids[reused:], Positions(slots + shift), buffer, plan)
    return logits


def _distance(one: Tensor, other: Tensor) -> float:
    difference = float((one - other).abs().max())
    return difference if difference == difference else float("inf")  # a NaN passes nothing
