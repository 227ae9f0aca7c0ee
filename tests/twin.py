"""The reference twin: selective recompute by stock attention, the stock cache and one explicit 4D mask.

No buffer, no scatter, no rotation of ours. Stale keys come from stock forwards of each chunk *at the positions it will
stand at*; the cache holds the stale tokens that are not recomputed, the recomputed and fresh ones are the input, and a
mask built from slot numbers alone says who sees whom. Keys may lie in any order, since the mask names them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from ragcache.model.architecture import cache_argument
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt


@torch.no_grad()
def stale_kv(reader: Reader, ids: Sequence[int], left: Sequence[int], position: int) -> list[tuple[Tensor, Tensor]]:
    """K and V of `ids` behind `left`, computed where the chunk will stand: positions end up contiguous before it."""
    cache = DynamicCache()
    start = position - len(left)
    positions = torch.arange(start, position + len(ids))
    base = reader.model.base_model
    given = cache_argument(base, cache)
    base(input_ids=torch.tensor([[*left, *ids]]), position_ids=positions[None], use_cache=True, **given)
    return [(layer.keys[:, :, len(left) :], layer.values[:, :, len(left) :]) for layer in cache.layers]


@torch.no_grad()
def twin_logits(reader: Reader, prompt: Prompt, lefts: dict[int, Sequence[int]], recomputed: Tensor) -> Tensor:
    """Logits of the last token, (vocabulary,).

    Parameters
    ----------
    lefts : dict of int to sequence of int
        For every segment whose KV is reused, the tokens it was prefilled behind.
    recomputed : Tensor
        (slots,) bool, of reused tokens that are computed again.
    """
    keys: list[list[Tensor]] = [[] for _ in range(reader.layers)]
    values: list[list[Tensor]] = [[] for _ in range(reader.layers)]
    kept: list[int] = []
    for segment, left in lefts.items():
        first = prompt.slots[segment]
        ids = prompt.segments[segment].token_ids
        stale = [i for i in range(len(ids)) if not recomputed[first + i]]
        kept += [first + i for i in stale]
        for layer, (key, value) in enumerate(stale_kv(reader, ids, left, first)):
            keys[layer].append(key[:, :, stale])
            values[layer].append(value[:, :, stale])
    rows = [slot for slot in range(len(prompt)) if slot not in set(kept)]
    cache = DynamicCache()
    for layer in range(reader.layers) if kept else ():
        cache.update(torch.cat(keys[layer], 2), torch.cat(values[layer], 2), layer)
    slots = torch.tensor(kept + rows)
    query = torch.tensor(rows)
    output = reader.model(
        input_ids=torch.tensor([[prompt.token_ids[slot] for slot in rows]]),
        position_ids=query[None],
        attention_mask=_masks(reader, query, slots),
        use_cache=True,
        **cache_argument(reader.model, cache),
    )
    return output.logits[0, -1].float()


def _masks(reader: Reader, query: Tensor, slots: Tensor) -> Tensor | dict[str, Tensor]:
    config = reader.model.config
    causal = slots[None, :] <= query[:, None]
    window = getattr(config, "sliding_window", None)
    sliding = causal & (slots[None, :] > query[:, None] - window) if window else causal
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return {"full_attention": causal[None, None], "sliding_attention": sliding[None, None]}
    return sliding[None, None]
