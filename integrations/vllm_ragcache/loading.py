"""KV from the store into vLLM's blocks: read, checked, gathered, rotated to its slots, written."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ragcache.errors import CorruptBlob
from ragcache.model.buffer import KVBuffer
from ragcache.model.rope import RopeLayout
from ragcache.store import Blob, LocalStore, MemoryTier, unpack
from vllm_ragcache.served_index import Piece


@dataclass(frozen=True)
class LoadedKV:
    """What a load took.

    Attributes
    ----------
    tokens : int
        Tokens whose KV was loaded.
    nbytes : int
        Bytes of their K and V, of the heads that were wanted.
    ms, read_ms : float
        Milliseconds of all, and of reading and checking files.
    """

    tokens: int
    nbytes: int
    ms: float
    read_ms: float


@dataclass(frozen=True)
class HeadShare:
    """Which of the model's heads a process of several has.

    Attributes
    ----------
    rank, ranks : int
        The how-manyth it is, and of how many.
    """

    rank: int = 0
    ranks: int = 1

    def own(self, count: int, total: int) -> slice:
        """Which `count` of `total` KV heads; where ranks outnumber heads, several ranks have the same one."""
        first = self.rank * total // self.ranks
        return slice(first, first + count)


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
    share : HeadShare
        Which heads are this process's.
    """

    def __init__(
        self,
        store: LocalStore,
        fingerprint: str,
        layouts: Sequence[RopeLayout],
        *,
        block_size: int,
        memory_bytes: int,
        share: HeadShare,
    ) -> None:
        self._store = store
        self._fingerprint = fingerprint
        self._layouts = tuple(layouts)
        self._block_size = block_size
        self._memory = MemoryTier(memory_bytes)
        self._share = share
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
        mapping = self._map_slots(pieces[0].slot, pieces[-1].end, block_ids).to(_device(layers))
        nbytes = 0
        total = blobs[0].layers[0].shape[1]
        heads = {number: self._share.own(layer.num_kv_heads, total) for number, layer in layers.items()}
        for number, both in self._moved(pieces, blobs, heads):
            _write(layers[number], both[0], both[1], mapping)
            nbytes += both.nbytes
        ms = (time.perf_counter() - began) * 1e3
        return LoadedKV(sum(piece.count for piece in pieces), nbytes, ms, read_ms)

    @torch.inference_mode()
    def place(self, pieces: Sequence[Piece], buffer: KVBuffer, device: torch.device) -> LoadedKV:
        """Put the KV of a prompt's pieces, of all heads, into a buffer of ours.

        Raises
        ------
        CorruptBlob
            As `load`.
        """
        began = time.perf_counter()
        blobs = [self._read(piece) for piece in pieces]
        read_ms = (time.perf_counter() - began) * 1e3
        every = dict.fromkeys(range(len(self._layouts)), slice(None))
        parts = [both.to(device, copy=True) for _, both in self._moved(pieces, blobs, every)]
        for piece, start in zip(pieces, _starts(pieces), strict=False):
            buffer.place(piece.slot, [part[:, :, start : start + piece.count] for part in parts])
        ms, nbytes = (time.perf_counter() - began) * 1e3, sum(part.nbytes for part in parts)
        return LoadedKV(sum(piece.count for piece in pieces), nbytes, ms, read_ms)

    @torch.inference_mode()
    def write(self, buffer: KVBuffer, slots: range, block_ids: Sequence[int], layers: Mapping[int, Any]) -> None:
        """Write what a buffer of ours has in some slots into vLLM's cache.

        Parameters
        ----------
        buffer : KVBuffer
            Of all heads.
        slots : range
            Neighbours.
        block_ids, layers
            As of `load`.
        """
        mapping = self._map_slots(slots.start, slots.stop, block_ids).to(_device(layers))
        for number, layer in layers.items():
            keys, values = buffer.layers[number].keys[0], buffer.layers[number].values[0]  # (kv_heads, slots, head_dim)
            heads, taken = self._share.own(layer.num_kv_heads, len(keys)), slice(slots.start, slots.stop)
            _write(layer, keys[heads, taken], values[heads, taken], mapping)

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

    def _moved(
        self, pieces: Sequence[Piece], blobs: Sequence[Blob], heads: Mapping[int, slice]
    ) -> Iterator[tuple[int, Tensor]]:
        """K and V of each layer, (2, heads, tokens, head_dim), its keys rotated to their slots; one at a time."""
        turns: dict[tuple[float, ...], tuple[Tensor, Tensor]] = {}
        for number, some in sorted(heads.items()):
            layout = self._layouts[number]
            if layout.inv_freq not in turns:
                turns[layout.inv_freq] = layout.waves(_distances(pieces, blobs))
            both = self._gather(number, some, pieces, blobs)
            if layout.inv_freq:
                layout.turn(both[0], *turns[layout.inv_freq])
            yield number, both

    def _gather(self, number: int, heads: slice, pieces: Sequence[Piece], blobs: Sequence[Blob]) -> Tensor:
        """K and V of a layer, (2, heads, tokens, head_dim), in memory that every layer and load uses again."""
        parts = [blob.layers[number][:, heads] for blob in blobs]
        tokens = sum(piece.count for piece in pieces)
        both = self._room(parts[0], (2, parts[0].shape[1], tokens, parts[0].shape[3]))
        for part, piece, start in zip(parts, pieces, _starts(pieces), strict=False):
            both[:, :, start : start + piece.count] = part[:, :, piece.first : piece.first + piece.count]
        return both

    def _map_slots(self, start: int, end: int, block_ids: Sequence[int]) -> Tensor:
        """(tokens,) places in vLLM's cache."""
        slots = torch.arange(start, end)
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


def _device(layers: Mapping[int, Any]) -> torch.device:
    device: torch.device = next(iter(layers.values())).kv_cache.device
    return device


def _write(layer: Any, keys: Tensor, values: Tensor, mapping: Tensor) -> None:
    """K and V of a layer, (heads, tokens, head_dim) each, into vLLM's cache, by the backend's own kernel."""
    cache = layer.kv_cache
    key, value = (part.transpose(0, 1).to(cache.device, non_blocking=True) for part in (keys, values))
    layer.impl.do_kv_cache_update(layer, key, value, cache, mapping)
