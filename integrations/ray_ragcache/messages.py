"""What an ingestion and its workers say to each other: plain values, and never a KV."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WorkerSpec:
    """Everything a worker needs to make KV as the index's own process would.

    Attributes
    ----------
    version : str
        Of ragcache.
    path : str
        The index's folder, where the index is in no object store: then it has to be the worker's, too.
    url : str or None
        The object store that the index's KV is in.
    secret, fingerprint, codec
        What keys are made of, as in `ragcache.store.KeyMaker`.
    model, dtype, adapter, device
        What answers, as in `Reader.load`.
    reader : str
        Fingerprint of the model as the index's own process has loaded it.
    prefix_ids : tuple of int
        The system prefix.
    prefix_key : str
        Its KV's.
    """

    version: str
    path: str
    url: str | None
    secret: bytes
    fingerprint: str
    codec: str
    model: str
    dtype: str
    adapter: str | None
    device: str | None
    reader: str
    prefix_ids: tuple[int, ...]
    prefix_key: str


@dataclass(frozen=True)
class Piece:
    """A chunk of a document, as the catalogue has it.

    Attributes
    ----------
    id, text, token_ids, access
        As in `ragcache.store.ChunkRow`.
    key : str
        Where its KV lies, if it has some.
    """

    id: str
    text: str
    token_ids: tuple[int, ...]
    access: frozenset[str] | None = None
    key: str = ""


@dataclass(frozen=True)
class Job:
    """Some chunks of one document, in reading order.

    Attributes
    ----------
    document, source : str
        Its id, and what it is called.
    recipe : str
        Of the encoding.
    pieces : tuple of Piece
        All of its chunks, since what stands before one may be a part of its KV.
    todo : tuple of str
        Ids of those whose KV is to be made.
    """

    document: str
    source: str
    recipe: str
    pieces: tuple[Piece, ...]
    todo: tuple[str, ...]


@dataclass(frozen=True)
class Status:
    """What became of a chunk.

    Attributes
    ----------
    chunk : str
        Its id.
    key : str
        Where its KV lies; empty where it was not made.
    left : tuple of str
        Keys of what it was made behind.
    nbytes : int
        Its size there.
    kind : str
        What it was made behind, in words.
    stored : bool
        Whether this worker published it; False where somebody had before.
    error : str
        Why it was not made.
    form : tuple
        Of each layer its KV heads, the width of one, and bytes of a number.
    """

    chunk: str
    key: str = ""
    left: tuple[str, ...] = ()
    nbytes: int = 0
    kind: str = ""
    stored: bool = False
    error: str = ""
    form: tuple[Any, ...] = ()
