"""Windows and chunks as transformers masks them, and whether a model's layers tell their attention so.

Stock attention takes the window from the mask, ours from the argument `sliding_window`. Most models give both; of
chunked attention (Llama 4) the mask alone knows. Where the two differ the mask is right, and the windows are handed
down with every forward. Two tokens are forwarded to look, behind a cache that claims to hold all that a prompt may have
in front of them.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.masking_utils import sdpa_mask

from ragcache.errors import UnsupportedModel
from ragcache.model.architecture import cache_argument
from ragcache.model.linear_attention import STATE_KINDS, find_state_layers
from ragcache.model.plan import Chunked, Window, visible, window_size
from ragcache.model.reduced import WINDOWS

NAME = "ragcache-windows"
HANDED = "layer_windows"  # the argument that our attention takes them by
_FARTHEST = 1 << 20  # tokens; a window beyond it is none

#: Has the model run with the attention of a name meanwhile.
Attending = Callable[[str], AbstractContextManager[None]]

_seen: ContextVar[dict[int, tuple[Tensor | None, Window]]] = ContextVar("seen")


def find_windows(
    model: Any, attending: Attending, limit: int
) -> tuple[tuple[Window, ...], dict[str, tuple[Window, ...]]]:
    """Find how far back each layer sees, and what a forward must be given for our attention to see as far.

    Parameters
    ----------
    model : PreTrainedModel
        The decoder.
    attending : callable
        Has it run with the attention of a name.
    limit : int
        Most tokens of a prompt.

    Returns
    -------
    windows : tuple of Window
        By layer, of a model with layers that carry a state too; empty, where every layer sees everything.
    handed : dict
        Arguments of a forward.

    Raises
    ------
    UnsupportedModel
        If a mask is no sliding window, or the model does not pass the argument on to its layers.
    """
    config, span = model.config.get_text_config(), min(limit, _FARTHEST)
    if not _windowed(config, span):
        return (), {}
    masked, told = _look(model, attending, span, {})
    if masked == told:
        return masked, {}
    handed = {HANDED: masked}
    if _look(model, attending, span, handed)[1] != masked:
        wrong = [layer for layer, (mask, window) in enumerate(zip(masked, told, strict=True)) if mask != window]
        raise UnsupportedModel(f"layers {wrong} do not tell their attention how far back they see, as their masks do")
    return masked, handed


def _windowed(config: Any, span: int) -> bool:
    """Whether the configuration speaks of a window that a prompt can outgrow."""
    sizes = [getattr(config, name, None) for name in WINDOWS]
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"} - STATE_KINDS
    return bool(kinds) or any(isinstance(size, int) and 0 < size < span for size in sizes)


@torch.no_grad()
def _look(
    model: Any, attending: Attending, span: int, handed: dict[str, tuple[Window, ...]]
) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """Each layer's window by its mask, and by what its attention is told, for the last token of a span."""
    config = model.config.get_text_config()
    layers, states = range(config.num_hidden_layers), set(find_state_layers(config))
    ids, positions = (torch.tensor([row], device=model.device) for row in ([0, 0], [span - 2, span - 1]))
    with _looking() as seen, attending(NAME):
        base = model.base_model
        cache = cache_argument(base, _Claimed(len(layers), span - 2))
        base(input_ids=ids, position_ids=positions, use_cache=True, **cache, **handed)
    told = (None if layer in states else seen[layer][1] for layer in layers)
    return (
        tuple(None if layer in states else _window(layer, seen[layer][0], config) for layer in layers),
        tuple(None if (size := window_size(window)) is None or size >= span else window for window in told),
    )


@contextmanager
def _looking() -> Iterator[dict[int, tuple[Tensor | None, Window]]]:
    found: dict[int, tuple[Tensor | None, Window]] = {}
    token = _seen.set(found)
    try:
        yield found
    finally:
        _seen.reset(token)


def _window(layer: int, mask: Tensor | None, config: Any) -> Window:
    """The window that a mask of the last rows stands for, (1, 1, rows, keys) bool."""
    if mask is None:
        return None
    rows, keys = mask.shape[2:]
    slots = torch.arange(keys - rows, keys, device=mask.device)
    chunk = getattr(config, "attention_chunk_size", None)
    guesses: list[Window] = [None, int(mask[0, 0, -1].sum()), *([Chunked(chunk)] if chunk else [])]
    for guess in guesses:
        shown = visible(slots, 0, keys, guess)
        if shown is not None and torch.equal(mask[0, 0], shown):
            return guess
    raise UnsupportedModel(f"layer {layer} masks more than the future and what lies beyond a sliding window or a chunk")


def _attention(
    module: torch.nn.Module,
    query: Tensor,  # (1, heads, rows, head_dim)
    key: Tensor,
    value: Tensor,  # (1, kv_heads, rows, head_dim)
    attention_mask: Tensor | None,
    sliding_window: int | None = None,
    layer_windows: tuple[Window, ...] | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention that only notes what it is told."""
    layer: int = module.layer_idx  # type: ignore[assignment]
    _seen.get()[layer] = attention_mask, sliding_window if layer_windows is None else layer_windows[layer]
    return query.new_zeros(1, query.shape[2], query.shape[1], value.shape[3]), None


class _Claimed(Cache):
    """A cache that claims to hold tokens, and keeps nothing."""

    def __init__(self, layers: int, filled: int) -> None:
        super().__init__(layers=[_ClaimedLayer(filled) for _ in range(layers)])

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> None:
        """None: no state is kept either."""

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> None:
        """The same."""

    def update_conv_state(self, conv_states: Tensor, layer_idx: int, state_idx: int = 0, **kwargs: Any) -> Tensor:
        return conv_states

    def update_recurrent_state(
        self, recurrent_states: Tensor, layer_idx: int, state_idx: int = 0, **kwargs: Any
    ) -> Tensor:
        return recurrent_states


class _ClaimedLayer(CacheLayerMixin):
    is_initialized = True
    is_sliding = False

    def __init__(self, filled: int) -> None:
        super().__init__()
        self._filled = filled

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: nothing is kept."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return key_states, value_states

    def get_seq_length(self) -> int:
        return self._filled

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._filled + query_length, 0


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
