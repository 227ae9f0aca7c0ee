"""A prompt that somebody else wrote: its words stay as they are, and chunks that the index knows are found in it.

Frameworks hand over one string, or the messages of a conversation, with the retrieved chunks pasted in among words of
their own. Each chunk found becomes a segment of its own, so its KV can be loaded; all other text is fresh.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragcache.index.chunks import Chunk
from ragcache.prompt import Prompt, Segment


@dataclass(frozen=True, eq=False)
class ChunkPlace:
    """Where a chunk stands.

    Attributes
    ----------
    chunk : Chunk
        The one that was found here.
    kept : int
        How many of its stored tokens fit here.
    rest : Segment
        What the text has instead of the others.
    last : bool
        Whether it ends the prompt, whose last token must be fresh: the first logits come from it.
    cut : bool
        Whether the prompt has the chunk's beginning only.
    """

    chunk: Chunk
    kept: int
    rest: Segment
    last: bool = False
    cut: bool = False

    def segments(self, chunk: Segment, whole: int | None = None) -> Iterator[Segment]:
        """The chunk, cut where the text goes on in another way; any other, or its first tokens, with its own end."""
        ids, rest = chunk.token_ids[:whole], Segment(())
        if chunk.chunk == self.chunk.id:
            ids, rest = chunk.token_ids[: self.kept], self.rest
        if self.last and not rest:
            ids, rest = ids[:-1], Segment(ids[-1:])
        yield from filter(len, (replace(chunk, token_ids=ids), rest))


@dataclass(frozen=True, eq=False)
class ParsedPrompt:
    """A prompt with places for chunks; it arranges any chunks, in the order given, as it was written.

    Attributes
    ----------
    parts : sequence of (Segment or ChunkPlace)
        In causal order.
    asks : Segment or None
        The fresh one that holds the question, behind all chunks; None for whatever comes last.
    question : str
        What the last message says beside its chunks.
    unknown : int
        Marked blocks that are no chunk of the index; they are fresh text.
    escaped : sequence of str
        Chunks that stand there as JSON has them, or a program prints a list of texts: other text, in which form no KV
        of them is kept.
    missed : str
        Why none was found, where none was.
    """

    parts: Sequence[Segment | ChunkPlace]
    asks: Segment | None
    question: str
    unknown: int = 0
    escaped: Sequence[str] = ()
    missed: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying in the answer's report."""
        cut = [part for part in self.parts if isinstance(part, ChunkPlace) and part.cut]
        begun = (
            f"{len(cut)} chunks stand in the prompt without their ends: {sum(part.kept for part in cut)} of their "
            f"{sum(len(part.chunk.segment) for part in cut)} tokens are there, and only those can be reused"
        )
        unknown = f"{self.unknown} marked as chunks are not in the index, and prefilled"
        escaped = (
            f"{len(self.escaped)} chunks stand in the prompt escaped, as JSON or a printed list has them, and are "
            "prefilled; join their texts with blank lines instead (llama-index: any response_mode but "
            "simple_summarize), or have `ragcache serve --learn` keep them in that form, too"
        )
        counted = (
            (self.unknown, unknown),
            (len(self.escaped), escaped),
            (len(cut), begun),
            (len(self.missed), self.missed),
        )
        return tuple(note for count, note in counted if count)

    @property
    def chunks(self) -> list[Chunk]:
        """Those that were found, in order."""
        return [part.chunk for part in self.parts if isinstance(part, ChunkPlace)]

    @property
    def fresh_tokens(self) -> int:
        """How many tokens are of no chunk."""
        return sum(len(part.rest if isinstance(part, ChunkPlace) else part) for part in self.parts)

    def prompt(self, chunks: Sequence[Segment], question: str = "", *, prefix: Segment | None = None) -> Prompt:
        """The prompt with chunks in its places; its question is its own, and its beginning, `prefix` or not."""
        waiting = iter(chunks)
        segments: list[Segment] = []
        longest = self._longest()
        for part in self.parts:
            if isinstance(part, ChunkPlace):
                chunk = next(waiting)
                segments += part.segments(chunk, longest.get(chunk.chunk or ""))  # what was cut off stays so elsewhere
            else:
                segments.append(part)
        segments = _behind(prefix, segments) if prefix else segments
        asks = next((i for i, segment in enumerate(segments) if segment is self.asks), len(segments) - 1)
        return Prompt(tuple(segments), asks)

    def _longest(self) -> dict[str, int]:
        """How many of each chunk's tokens stand in the prompt, where most of them do."""
        found: dict[str, int] = {}
        for part in self.parts:
            if isinstance(part, ChunkPlace):
                own = part.kept if part.cut else len(part.chunk.segment)
                found[part.chunk.id] = max(own, found.get(part.chunk.id, 0))
        return found


def _behind(prefix: Segment, segments: list[Segment]) -> list[Segment]:
    """The same, with the index's own system prefix as one segment if that is how they begin."""
    ids: tuple[int, ...] = ()
    for number, segment in enumerate(segments):
        if segment.chunk is not None or len(ids) >= len(prefix):
            break
        ids += segment.token_ids
        if ids == prefix.token_ids:
            return [prefix, *segments[number + 1 :]]
    return segments
