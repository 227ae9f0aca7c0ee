"""Chunking: how an index cuts documents into chunks, and the title lines in front of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcache.checks import check_count
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import MARKS
from ragcache.index.index import Index
from ragcache.model.cost import tokens_to_outweigh_states
from ragcache.retrieve import (
    EDITION,
    Document,
    GivenSplitter,
    Layout,
    Limit,
    Piece,
    Splitter,
    Titles,
    title_line,
    title_parts,
)
from ragcache.retrieve.given import AnyEmbedder, AnySplitter, splitter_name
from ragcache.retrieve.places import mark_at
from ragcache.store import ChunkRow, DocumentRow

_LAYOUTS: Mapping[str, Layout] = {  # lines of all other formats are never wrapped
    **dict.fromkeys(("md", "markdown"), "markdown"),
    **dict.fromkeys(("txt", "rst", "pdf"), "prose"),
}
_TITLES = "titles"  # in a document's metadata: where its title lines stand
_IN_TEXT, _IN_EMBEDDING = ("text", "both"), ("embedding", "both")
_TITLE_SHARE = 4  # a title line takes at most one token in so many of a chunk's


@dataclass(frozen=True)
class Chunking:
    """How an index cuts documents into chunks.

    Attributes
    ----------
    index : Index
        Whose reader limits the chunks.
    embedder : AnyEmbedder
        Limits them too.
    tokens : int
        Most reader tokens of a chunk.
    titles : Titles
        Where title lines stand.
    splitter : AnySplitter or None
        A program's own splitter.

    Raises
    ------
    InvalidArgument
        If `tokens` is no whole number from 1.
    """

    index: Index
    embedder: AnyEmbedder
    tokens: int
    titles: Titles = "none"
    splitter: AnySplitter | None = None

    def __post_init__(self) -> None:
        check_count("chunk_tokens", self.tokens, 1, "a chunk has a token at least")

    def split(self, document: Document) -> list[Piece]:
        """Cut a document; a piece's text begins with its title line, where the model is to read one."""
        layout = _LAYOUTS.get(document.metadata["format"], "lines")
        lines = _TitleLines(self, document.metadata, document.source, document.marks)
        pieces = self._splitter(lines).split(document.text, layout)
        if self.titles not in _IN_TEXT:
            return pieces
        return [Piece(lines.at(one.start, one.text) + one.text, one.start, one.end) for one in pieces]

    def embed(self, rows: Sequence[ChunkRow]) -> NDArray[np.float32]:
        """Vectors of some chunks, (rows, dim): of their text with or without its title line, as their document says."""
        catalog = self.index.catalog
        documents = {one.id: one for one in catalog.documents({row.document for row in rows})}
        return self.embedder.embed([self._embedded_text(row, documents.get(row.document)) for row in rows])

    def _embedded_text(self, row: ChunkRow, document: DocumentRow | None) -> str:
        about = document.metadata if document else {}
        where = about.get(_TITLES, "none")
        if document is None or where in ("none", "both"):  # the same as the model reads
            return row.text
        if where == "text":
            return row.body
        return _TitleLines(self, about, document.source, about.get(MARKS, ())).at(row.start, row.body) + row.body

    @property
    def settings(self) -> dict[str, int | str]:
        """What decides how a document is cut."""
        own = EDITION if self.splitter is None else splitter_name(self.splitter)
        return {"chunk_tokens": self.tokens, "splitter": own, _TITLES: self.titles}

    def holds(self, row: DocumentRow) -> bool:
        """Whether a document was cut in this way."""
        known = {_TITLES: "none", **row.metadata}  # older versions had no titles
        return known.items() >= self.settings.items()

    def notes(self) -> tuple[str, ...]:
        """What limits keep chunks shorter than was asked for, and whether longer ones would take less room."""
        caps = (
            (self._room, f"{self.index.reader.name} takes"),
            (self.embedder.max_tokens, f"{self.embedder.name} embeds"),
        )
        shorter = (
            f"chunks are shorter than the {self.tokens:,} tokens asked for: {takes} at most {most:,}"
            for most, takes in caps
            if most < self.tokens
        )
        return (*shorter, *self._note_states())

    def _note_states(self) -> Iterator[str]:
        """That most of an index would be states, where the model's layers carry some and chunks are short."""
        reader = self.index.reader
        if not reader.states or reader.refused:
            return
        fixed, longest = reader.bytes_per_chunk, min(self.tokens, self._room, self.embedder.max_tokens)
        even = tokens_to_outweigh_states(fixed, reader.bytes_per_token)
        if longest < even:
            yield (
                f"{len(reader.states)} of the model's {reader.layers} layers carry a state, which takes "
                f"{fixed / 1e6:,.1f} MB of each chunk, as much as keys and values of {even:,} tokens, and chunks have "
                f"at most {longest:,}: longer ones (--chunk-tokens, --embedder) take less room in all"
            )

    def fits_title(self, line: str) -> bool:
        """Whether a title line leaves most of a chunk to its text."""
        read, embedded = self._count(line), self.embedder.count(line)
        return _TITLE_SHARE * read <= self._most and _TITLE_SHARE * embedded <= self.embedder.max_tokens

    def _splitter(self, lines: "_TitleLines") -> Splitter | GivenSplitter:
        read = max(lines.possible, key=self._count) if self.titles in _IN_TEXT else ""
        embedded = max(lines.possible, key=self.embedder.count) if self.titles in _IN_EMBEDDING else ""
        limited = Splitter([
            Limit(lambda text: self._count(read + text), self._most, "the reader"),
            Limit(lambda text: self.embedder.count(embedded + text), self.embedder.max_tokens, "the embedder"),
        ])  # fmt: skip
        return limited if self.splitter is None else GivenSplitter(self.splitter, limited)

    def _count(self, text: str) -> int:
        return len(self.index.template.plain(text))

    @property
    def _most(self) -> int:
        """Tokens of a chunk's text: its own end takes some too."""
        end = len(self.index.template.chunk("", "").token_ids)
        if self.tokens <= end:
            raise InvalidArgument(f"chunk_tokens is {self.tokens}; a chunk's end alone takes {end}")
        return min(self.tokens, self._room) - end

    @property
    def _room(self) -> int:
        """Tokens of the longest chunk that fits the model behind the system prefix."""
        return self.index.reader.limit - len(self.index.prefix_segment)


@dataclass(frozen=True)
class _TitleLines:
    """The title lines of one document; of its metadata, source and marks."""

    chunking: Chunking
    metadata: Mapping[str, Any]
    source: str
    marks: Sequence[Any]

    def at(self, offset: int, text: str) -> str:
        """The line above a text that stands there."""
        return self._line(mark_at(self.marks, offset)[2], text)

    @cached_property
    def possible(self) -> list[str]:
        """Every line that may stand above a text of the document, also one that begins with its own headings."""
        headings = dict.fromkeys(["", *(heading for _, _, heading in self.marks)])
        named = {tuple(parts[:count]) for parts in map(self._parts, headings) for count in range(len(parts) + 1)}
        return sorted({title_line(parts, "", self.chunking.fits_title) for parts in named})

    def _line(self, heading: str, text: str) -> str:
        return title_line(self._parts(heading), text, self.chunking.fits_title)

    def _parts(self, heading: str) -> list[str]:
        return title_parts(self.metadata.get("title", ""), self.source, heading)
