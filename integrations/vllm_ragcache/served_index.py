"""An index as vLLM's scheduler reads it: no model is loaded, nothing is written, and it may change meanwhile."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragcache.encode import Encoder
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk, read_chunks
from ragcache.index.copies import encoder_for, mark_copies, resolve_copies
from ragcache.index.encoding_context import STRUCTURAL
from ragcache.index.settings import no_index
from ragcache.index.variants import rank_rows
from ragcache.store import PREFIX, Catalog, EncodingRow, KeyMaker, LocalStore, read_attachment
from vllm_ragcache.token_matcher import TokenMatch, TokenMatcher

_AT_ONCE = 1000  # chunks whose tokens are read in one query


@dataclass(frozen=True)
class Piece:
    """Some tokens of a stored KV, and where they stand in a prompt.

    Attributes
    ----------
    key : str
        The KV's.
    first : int
        First of its tokens that is taken.
    slot : int
        Where that stands in the prompt.
    count : int
        How many are taken.
    chunk : str or None
        Id of the chunk that they are of; None for the system prefix.
    exact : bool
        Whether a full prefill of the prompt would give them this very KV.
    """

    key: str
    first: int
    slot: int
    count: int
    chunk: str | None = None
    exact: bool = False

    @property
    def end(self) -> int:
        """The slot behind it."""
        return self.slot + self.count

    def within(self, start: int, end: int) -> "Piece":
        """What of it stands in slots `start` to `end`; of no tokens, if nothing does."""
        low, high = max(self.slot, start), min(self.end, end)
        return replace(self, first=self.first + low - self.slot, slot=low, count=max(0, high - low))


@dataclass(frozen=True)
class Miss:
    """A chunk of the prompt that is not loaded, and why.

    Attributes
    ----------
    chunk : str
        Its id.
    source : str
        Its document.
    tokens : int
        How many of its tokens stand in the prompt.
    reason : str
        Why they are computed.
    """

    chunk: str
    source: str
    tokens: int
    reason: str


@dataclass(frozen=True)
class Composition:
    """What of a prompt comes from the store.

    Attributes
    ----------
    pieces : tuple of Piece
        From left to right: the system prefix, then chunks. None where no chunk can be loaded.
    misses : tuple of Miss
        The prompt's other chunks.
    """

    pieces: tuple[Piece, ...] = ()
    misses: tuple[Miss, ...] = field(default=())

    @property
    def end(self) -> int:
        """The slot behind the last piece."""
        return self.pieces[-1].end if self.pieces else 0

    @property
    def chunks(self) -> int:
        """How many chunks are loaded."""
        return sum(piece.chunk is not None for piece in self.pieces)

    @property
    def fresh(self) -> int:
        """Tokens in front of the last piece that are in none, and have to be computed."""
        return self.end - sum(piece.count for piece in self.pieces)

    @property
    def inexact(self) -> int:
        """Tokens in front of the last piece's end whose KV is not what a full prefill would give."""
        return self.end - sum(piece.count for piece in self.pieces if piece.exact)

    @property
    def digest(self) -> str:
        """The same for the same KV in the same places: what may share vLLM's own blocks."""
        parts = "".join(f"{piece.key}:{piece.first}:{piece.slot}:{piece.count};" for piece in self.pieces)
        return hashlib.sha256(parts.encode()).hexdigest()


def check_local(path: Path) -> None:
    """Refuse a copy of a published index, whose KV is fetched as it is asked for: vLLM reads this machine's files.

    Raises
    ------
    InvalidArgument
        If it is one.
    """
    attached = read_attachment(path)
    if attached is not None and attached.replica:
        raise InvalidArgument(
            f"the index {path} is a copy of {attached.url}, and vLLM does not fetch KV from there; serve it by "
            f"`ragcache serve --index {attached.url}` without vLLM, or ingest the documents on this machine"
        )


class ServedIndex:
    """Looks up in an index what a prompt can be composed of.

    Parameters
    ----------
    path : Path
        The index's folder.

    Attributes
    ----------
    catalog : Catalog
        Read-only; whatever others write is seen at once.
    fingerprint : str
        Of the model that made the KV.

    Raises
    ------
    EmptyIndex
        If there is no index.
    IndexFormat
        If it was made by an older or newer version, or is damaged.
    InvalidArgument
        If it is a copy of a published one.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not all((path / name).is_file() for name in ("catalog.sqlite", "secret")):
            raise no_index(path)
        check_local(path)
        self.path = path
        self.catalog = Catalog(path / "catalog.sqlite", read_only=True)
        self.fingerprint: str = self.catalog.setting("fingerprint", "")
        self._store = LocalStore(path / "kv", read_only=True)
        self._keys = KeyMaker.of(self.catalog, path)
        self._prefix = tuple(self.catalog.setting("prefix_ids", ()))
        self._matcher = TokenMatcher(self._read_tokens)
        self._edition: int | None = None
        self._unusable: dict[str, tuple[str, tuple[int, ...]]] = {}  # reason and file, by key
        self._take_up_new()

    def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks by id, in the order asked for; those that are gone are left out."""
        return read_chunks(self.catalog, ids)

    def compose(self, token_ids: Sequence[int], encoder: Encoder, most_fresh: int = 0) -> Composition:
        """Find what of a prompt can be loaded.

        Parameters
        ----------
        token_ids : sequence of int
            The prompt, whoever wrote and tokenised it.
        encoder : Encoder
            Whose KV is loaded.
        most_fresh : int
            Most tokens in front of a chunk that may have to be computed; at 0, all pieces are neighbours.
        """
        self._take_up_new()
        pieces, places = self._load_prefix(token_ids), self._find(token_ids)
        before: tuple[str, ...] | None = (pieces[0].key,) if pieces else None
        misses, ahead, end, fresh = list[Miss](), list[str](), sum(piece.count for piece in pieces), 0
        last = len(token_ids) - 1  # it has to be computed, whatever it is
        for match, chunk in (place for place in places if place[0].slot < last):
            gap, count = match.slot - end, min(match.count, last - match.slot)
            before = before if gap == 0 else None
            found, reason = self._find_row(chunk, encoder, before, ahead)
            ahead.append(chunk.id)
            if found is not None and fresh + gap > most_fresh:
                found, reason = None, _too_many(fresh + gap, most_fresh, begun=bool(pieces))
            if found is None:
                misses.append(Miss(chunk.id, chunk.source, match.count, reason))
                continue
            exact = before is not None and found.left == before and match.first == 0
            pieces.append(Piece(found.key, match.first, match.slot, count, chunk.id, exact))
            whole = exact and count == len(chunk.segment)
            before = (*before, found.key) if whole and before is not None else None
            end, fresh = match.slot + count, fresh + gap
        found_any = any(piece.chunk is not None for piece in pieces)
        return Composition(tuple(pieces) if found_any else (), tuple(misses))

    def set_aside(self, key: str, reason: str) -> None:
        """Note that a KV failed its checks; it is not looked at again until its file is another."""
        self._unusable[key] = reason, self._status(key)

    def _load_prefix(self, token_ids: Sequence[int]) -> list[Piece]:
        """The system prefix, if the prompt begins with it and its KV is there."""
        key, count = self._key(PREFIX, (), self._prefix), len(self._prefix)
        there = self._begins(token_ids) and count > 0 and not self._refusal(key)
        return [Piece(key, 0, 0, count, exact=True)] if there else []

    def _begins(self, token_ids: Sequence[int]) -> bool:
        return tuple(token_ids[: len(self._prefix)]) == self._prefix

    def _find(self, token_ids: Sequence[int]) -> list[tuple[TokenMatch, Chunk]]:
        """The chunks of a prompt, each as that of the document that is meant."""
        matches = self._matcher.find(token_ids, len(self._prefix) if self._begins(token_ids) else 0)
        known = {chunk.id: chunk for chunk in self.chunks([match.chunks[0] for match in matches])}
        matches = [match for match in matches if match.chunks[0] in known]
        chunks = mark_copies(self, [known[match.chunks[0]] for match in matches])
        return list(zip(matches, resolve_copies(self, chunks), strict=True))

    def _find_row(
        self, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None, ahead: Sequence[str]
    ) -> tuple[EncodingRow | None, str]:
        """The KV to load for a chunk, or why there is none; chosen as `ragcache.index.Index.load` does."""
        structural = encoder.recipe in self.catalog.setting(STRUCTURAL, [])
        usable, reason = encoder_for(chunk, encoder, follows_document=structural)
        if usable is None:
            return None, reason
        reason = f"no {usable.recipe} KV was made for it"
        for one in rank_rows(self._rows(chunk, usable), before, ahead):
            if self._key(one.recipe, one.left, chunk.segment.token_ids) != one.key:
                reason = "its KV was made by another model, or for other tokens"
            elif not (refused := self._refusal(one.key)):
                return one, ""
            else:
                reason = refused
        return None, reason

    def _rows(self, chunk: Chunk, encoder: Encoder) -> list[EncodingRow]:
        recipes = [encoder.recipe, *([encoder.base_encoding.recipe] if encoder.base_encoding else [])]
        return [one for recipe in recipes for one in self.catalog.encodings(chunk.id, recipe)]

    def _refusal(self, key: str) -> str:
        """Why a KV cannot be loaded, as far as that is known without reading it."""
        if self._store.head(key) is None:
            return "its file is missing"
        reason, status = self._unusable.get(key, ("", ()))
        return reason if reason and status == self._status(key) else ""

    def _status(self, key: str) -> tuple[int, ...]:
        file = self._store.path_of(key)
        try:
            status = file.stat()
        except OSError:
            return ()
        return status.st_size, status.st_mtime_ns, status.st_ino

    def _key(self, recipe: str, left: Sequence[str], token_ids: Sequence[int]) -> str:
        return self._keys.make(recipe, left, token_ids)

    def _read_tokens(self, ids: Sequence[str]) -> dict[str, tuple[int, ...]]:
        return {row.id: row.token_ids for row in self.catalog.chunks(ids)}

    def _take_up_new(self) -> None:
        """Look for chunks that came meanwhile. Those that went stay in the dictionary, and are found nowhere else."""
        edition = self.catalog.edition()
        if edition != self._edition:
            new = self._matcher.lacking(id for id, _ in self.catalog.places())
            for start in range(0, len(new), _AT_ONCE):
                self._matcher.add(self._read_tokens(new[start : start + _AT_ONCE]).items())
            self._edition = edition


def _too_many(fresh: int, most: int, *, begun: bool) -> str:
    """Why what stands in front of a chunk cannot be computed within a load."""
    if most:
        return f"{fresh:,} tokens in front of it have to be computed first, and a step of vLLM takes {most:,}"
    if not begun:
        return "the prompt does not begin with the index's system prompt, or that one's KV is gone"
    return "other tokens stand in front of it, and have to be computed first"
