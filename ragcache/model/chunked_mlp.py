"""Feed-forward parts in chunks of rows: what they make on the way is several times as wide as what they are given.

On a CPU such states, made for many rows at once, exceed what the allocator keeps: the system then hands out their
memory anew, page by page, for every one of them. In chunks the same memory serves again and stays small. The sums are
the same, row by row.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ragcache.model.layer_hooks import replaced_forward

CHUNK_ROWS = 512  # rows at most: enough for full speed of the products, few enough that the allocator keeps the memory


@contextmanager
def chunked_mlp(layers: Iterable[nn.Module], rows: int) -> Iterator[None]:
    """Have every decoder layer's feed-forward part run over chunks of rows.

    Parameters
    ----------
    layers : iterable of nn.Module
        Their `mlp` must treat rows one by one; experts, which gain by many rows, are left as they are.
    rows : int
        Of the forward; without effect up to a chunk.
    """
    with ExitStack() as undo:
        for layer in layers if rows > CHUNK_ROWS else ():
            part = getattr(layer, "mlp", None)
            if isinstance(part, nn.Module) and not hasattr(part, "experts"):
                undo.enter_context(replaced_forward(part, partial(_run_in_chunks, part.forward)))
        yield


def _run_in_chunks(forward: Callable[..., Any], hidden: Tensor, *rest: Any, **named: Any) -> Any:
    """The same of (1, rows, width) hidden states, in chunks of about a size: a short one would be a slow one."""
    # Not by rows alone, or no longer many of them.
    if rest or named or hidden.dim() != 3 or hidden.shape[1] <= CHUNK_ROWS:
        return forward(hidden, *rest, **named)
    chunks = hidden.tensor_split(-(-hidden.shape[1] // CHUNK_ROWS), dim=1)
    return torch.cat([forward(chunk) for chunk in chunks], dim=1)
