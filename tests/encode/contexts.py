"""Two documents in an index, and independent computations of what an encoding of them must be."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import DynamicCache

from ragcache.encode import Encoder
from ragcache.index.index import Index
from ragcache.model.architecture import cache_argument
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader

TIDE = ("# Tide\n\nThis page is about Tide.", "It is based in Oslo, near the harbour.", "It began in May.", "It ends.")
MILL = ("# Mill\n\nThis page is about the mill.", "It grinds rye and nothing else, twice a week.")
WINDOW = 60  # tokens: the nearest chunk, or two


def put(index: Index, source: str, texts: Sequence[str]) -> list[str]:
    """Put a document; the ids of its chunks in reading order."""
    index.put(source, "digest", [(text, 0, len(text)) for text in texts], {})
    document = index.catalog.document_by_source(source)
    assert document is not None
    return [row.id for row in index.catalog.chunks_of(document.id)]


def opened(path: Path, reader: Reader) -> tuple[Index, list[str], list[str]]:
    """An index of both documents, and the ids of their chunks."""
    index = Index(path / "index", reader)
    return index, put(index, "tide", TIDE), put(index, "mill", MILL)


def stored(index: Index, encoder: Encoder, name: str) -> ChunkKV:
    """A chunk's KV by exactly this encoding."""
    (row,) = index.catalog.encodings(name, encoder.recipe)
    (chunk,) = index.chunks([name])
    found = index._kv.load(chunk, row, exact=False).kv
    assert found is not None
    return found


@torch.no_grad()
def dense(reader: Reader, ids: Sequence[int], positions: Tensor, sees: Tensor) -> list[tuple[Tensor, Tensor]]:
    """K and V per layer, (kv_heads, tokens, head_dim), by stock attention with one explicit mask.

    Parameters
    ----------
    positions : Tensor
        (tokens,) RoPE positions.
    sees : Tensor
        (tokens, tokens) bool: which keys each row attends to where no sliding window forbids it.
    """
    config = reader.model.config
    window = getattr(config, "sliding_window", None)
    near = sees & (positions[None, :] > positions[:, None] - window) if window else sees
    masks: Tensor | dict[str, Tensor] = near[None, None]
    if getattr(config, "layer_types", None):
        masks = {"full_attention": sees[None, None], "sliding_attention": near[None, None]}
    cache = DynamicCache()
    reader.model.base_model(
        input_ids=torch.tensor([list(ids)]), position_ids=positions[None], attention_mask=masks,
        use_cache=True, **cache_argument(reader.model.base_model, cache),
    )  # fmt: skip
    return [(layer.keys[0], layer.values[0]) for layer in cache.layers]


def assert_same(reader: Reader, kv: ChunkKV, expected: Sequence[tuple[Tensor, Tensor]], position: int) -> None:
    """That a KV, moved to a position, is what was computed there."""
    buffer = reader.buffer(len(kv))
    reader.place(buffer, kv, 0, position)
    for ours, (key, value) in zip(buffer.read(0, len(kv)), expected, strict=True):
        assert (ours[0] - key).abs().max() <= 1e-4
        assert (ours[1] - value).abs().max() <= 1e-4
