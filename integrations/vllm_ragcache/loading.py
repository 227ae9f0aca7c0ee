"""KV from the store into vLLM's blocks: read, checked, gathered, rotated to its slots, written."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ragcache.errors import CorruptBlob
from ragcache.model.rope import RopeLayout
from ragcache.store import Blob, LocalStore, MemoryTier, unpack
from vllm_ragcache.served_index import Piece


@dataclass(frozen=True)
class LoadedKV:
    """What a load took.

    Attributes
    ----------
    tokens : int
        Tokens whose KV was written.
    nbytes : int
        Bytes of their K and V, of the heads of this process.
    ms, read_ms : float
        Milliseconds of all, and of reading and checking files.
    """

    tokens: int
    nbytes: int
    ms: float
    read_ms: float


class KVLoader:
    """Writes stored KV into the blocks of vLLM's cache.

    Parameters
    ----------
    store : LocalStore
        Has the blobs.
    fingerprint : str
        Of the model that made them.
    layouts : sequence of RopeLayout
        How each layer rotates its keys.
    block_size : int
        Tokens of one of vLLM's blocks.
    memory_bytes : int
        Most bytes of blobs that are kept in memory.
    rank, ranks : int
        Which share of the heads is this process's, and of how many.
    """

    def __init__(
        self,
        store: LocalStore,
        fingerprint: str,
        layouts: Sequence[RopeLayout],
        *,
        block_size: int,
        memory_bytes: int,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self._store = store
        self._fingerprint = fingerprint
        self._layouts = tuple(layouts)
        self._block_size = block_size
        self._memory = MemoryTier(memory_bytes)
        self._rank, self._ranks = rank, ranks
        self._scratch: dict[str, Tensor] = {}

    @torch.inference_mode()
    def load(self, pieces: Sequence[Piece], block_ids: Sequence[int], layers: Mapping[int, Any]) -> LoadedKV:
        """Write the KV of a prompt's tokens.

        Parameters
        ----------
        pieces : sequence of Piece
            Neighbours, from left to right.
        block_ids : sequence of int
            The request's blocks, from its first token on.
        layers : mapping of int to Attention
            vLLM's attention layers, by number.

        Raises
        ------
        CorruptBlob
            If one of the blobs is missing, damaged or another model's; nothing may be used of what was written.
        """
        began = time.perf_counter()
        blobs = [self._read(piece) for piece in pieces]
        read_ms = (time.perf_counter() - began) * 1e3
        mapping = self._map_slots(pieces, block_ids).to(next(iter(layers.values())).kv_cache.device)
        turns: dict[tuple[float, ...], tuple[Tensor, Tensor]] = {}
        nbytes = 0
        for number, layer in sorted(layers.items()):
            layout = self._layouts[number]
            if layout.inv_freq not in turns:
                turns[layout.inv_freq] = layout.waves(_distances(pieces, blobs))
            keys, values = self._gather(number, layer.num_kv_heads, pieces, blobs)
            self._rotate(layout, keys, *turns[layout.inv_freq])
            cache = layer.kv_cache
            key, value = (part.transpose(0, 1).to(cache.device, non_blocking=True) for part in (keys, values))
            layer.impl.do_kv_cache_update(layer, key, value, cache, mapping)
            nbytes += keys.nbytes + values.nbytes
        ms = (time.perf_counter() - began) * 1e3
        return LoadedKV(sum(piece.count for piece in pieces), nbytes, ms, read_ms)

    def discard(self, key: str) -> None:
        """Let go of a blob that is kept in memory."""
        self._memory.discard(key)

    def _read(self, piece: Piece) -> Blob:
        blob = self._memory.get(piece.key, lambda: unpack(self._store.get(piece.key), piece.key))
        made_by = blob.about.get("fingerprint")
        if made_by != self._fingerprint:
            raise CorruptBlob(piece.key, f"the model {str(made_by)[:12]} made it, not {self._fingerprint[:12]}")
        if len(blob.layers) != len(self._layouts) or len(blob.token_ids) < piece.first + piece.count:
            raise CorruptBlob(piece.key, f"it has {len(blob.layers)} layers of {len(blob.token_ids)} tokens")
        return blob

    def _gather(self, number: int, heads: int, pieces: Sequence[Piece], blobs: Sequence[Blob]) -> tuple[Tensor, Tensor]:
        """K and V of a layer, (heads, tokens, head_dim) each, in memory that every layer and load uses again."""
        parts = [blob.layers[number] for blob in blobs]
        first = self._rank * parts[0].shape[1] // self._ranks
        tokens = sum(piece.count for piece in pieces)
        both = self._room(parts[0], (2, heads, tokens, parts[0].shape[3]))
        for part, piece, start in zip(parts, pieces, _starts(pieces), strict=False):
            taken = part[:, first : first + heads, piece.first : piece.first + piece.count]
            both[:, :, start : start + piece.count] = taken
        return both[0], both[1]

    def _rotate(self, layout: RopeLayout, keys: Tensor, cos: Tensor, sin: Tensor) -> None:
        if layout.inv_freq:
            layout.turn(keys, cos, sin)

    def _map_slots(self, pieces: Sequence[Piece], block_ids: Sequence[int]) -> Tensor:
        """(tokens,) places in vLLM's cache."""
        slots = torch.arange(pieces[0].slot, pieces[-1].end)
        return torch.tensor(block_ids)[slots // self._block_size] * self._block_size + slots % self._block_size

    def _room(self, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        size = shape[0] * shape[1] * shape[2] * shape[3]
        name = str(like.dtype)
        if name not in self._scratch or self._scratch[name].numel() < size:
            self._scratch[name] = torch.empty(size, dtype=like.dtype)
        return self._scratch[name][:size].view(shape)


def _starts(pieces: Sequence[Piece]) -> list[int]:
    return list(accumulate((piece.count for piece in pieces), initial=0))


def _distances(pieces: Sequence[Piece], blobs: Sequence[Blob]) -> Tensor:
    """(tokens,) positions that each key moves by."""
    moved = [piece.slot - piece.first - blob.start for piece, blob in zip(pieces, blobs, strict=True)]
    return torch.repeat_interleave(torch.tensor(moved), torch.tensor([piece.count for piece in pieces]))
