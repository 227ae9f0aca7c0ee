"""What a program brings of its own: an embedder, a splitter. An index remembers each by its name."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcache.errors import InvalidArgument
from ragcache.retrieve.boundaries import Layout
from ragcache.retrieve.embed import Embedder
from ragcache.retrieve.split import Piece, Splitter

_NO_LIMIT = 1 << 31  # tokens; more than any chunk has


@runtime_checkable
class TextEmbedder(Protocol):
    """Texts to vectors, by whatever means.

    It may have a method ``count(text) -> int`` too, the tokens that it makes of a text, by which chunks are kept within
    `max_tokens`; without it four characters are taken for a token.

    Attributes
    ----------
    name : str
        What the index remembers it by: another name is another embedder.
    max_tokens : int or None
        The most tokens of a text that it reads; None for any number.
    """

    name: str
    max_tokens: int | None

    def embed(self, texts: Sequence[str]) -> ArrayLike:
        """Vectors, (texts, dim), of any length; they are compared by their angles."""


class TextSplitter(Protocol):
    """Texts into pieces, as LangChain's and LlamaIndex's splitters do it; a function of a text will do as well.

    It may have a `name`, which the index remembers; else that is its class's or the function's.
    """

    def split_text(self, text: str) -> Sequence[str]:
        """Pieces in reading order, each word for word as it stands in the text; they may overlap."""


#: What splits documents for a program.
AnySplitter = TextSplitter | Callable[[str], Sequence[str]]


class GivenEmbedder:
    """A program's embedder, as the index uses one: unit vectors, and a count of tokens.

    Raises
    ------
    InvalidArgument
        If it has no name or no `embed`.
    """

    def __init__(self, embedder: TextEmbedder) -> None:
        name, embed = getattr(embedder, "name", None), getattr(embedder, "embed", None)
        if not isinstance(name, str) or not name or not callable(embed):
            raise InvalidArgument(
                f"{type(embedder).__name__} is no embedder: it needs a name, max_tokens and embed(texts); name a "
                "sentence-transformers model instead, or see docs/hooks.md"
            )
        self.name = name
        self.max_tokens = getattr(embedder, "max_tokens", None) or _NO_LIMIT
        self._embedder = embedder

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (texts, dim) float32.

        Raises
        ------
        InvalidArgument
            If what comes back is no vector for each text.
        """
        vectors = np.asarray(self._embedder.embed(list(texts)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise InvalidArgument(
                f"the embedder {self.name} gave {vectors.shape} for {len(texts)} texts; it must give a finite vector "
                "for each, (texts, dim)"
            )
        unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return unit

    def count(self, text: str) -> int:
        """Tokens of a text, by its own count, or about so many."""
        count: Callable[[str], int] | None = getattr(self._embedder, "count", None)
        return len(text) // 4 + 1 if count is None else int(count(text))


#: What an index makes vectors by.
AnyEmbedder = Embedder | GivenEmbedder


class GivenSplitter:
    """A program's splitter, whose pieces are found in the document again, and split further where they are too long.

    Parameters
    ----------
    splitter : AnySplitter
        Gives the pieces.
    limited : Splitter
        Knows the limits.
    """

    def __init__(self, splitter: AnySplitter, limited: Splitter) -> None:
        self._splitter = splitter
        self._limited = limited

    def split(self, text: str, layout: Layout = "prose") -> list[Piece]:
        """Pieces of a document, none of them blank or over a limit.

        Raises
        ------
        InvalidArgument
            If a piece does not stand in the document word for word.
        """
        pieces: list[Piece] = []
        start = 0
        for given in splitting(self._splitter)(text):
            if not given.strip():
                continue
            start = text.find(given, start)
            if start < 0:
                raise InvalidArgument(
                    f"the splitter {splitter_name(self._splitter)} gave a piece that the document does not hold word "
                    f"for word: {given[:60]!r}; let it return parts of the text as they stand there, in order"
                )
            parts = self._limited.split(given, layout)
            pieces += [Piece(part.text, start + part.start, start + part.end) for part in parts]
            start += 1
        return pieces


def splitting(splitter: Any) -> Callable[[str], Sequence[str]]:
    """What splits: a splitter's method, or the function itself.

    Raises
    ------
    InvalidArgument
        If it is neither.
    """
    split = getattr(splitter, "split_text", splitter)
    if not callable(split):
        raise InvalidArgument(
            f"{type(splitter).__name__} is no splitter: it needs split_text(text), as LangChain's and LlamaIndex's "
            "have it, or to be a function of a text"
        )
    found: Callable[[str], Sequence[str]] = split
    return found


def splitter_name(splitter: Any) -> str:
    """What an index remembers a splitter by."""
    name = getattr(splitter, "name", None)
    return name if isinstance(name, str) and name else str(getattr(splitter, "__qualname__", type(splitter).__name__))
