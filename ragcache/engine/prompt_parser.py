"""Finds the chunks of an index in prompts that somebody else wrote."""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragcache.checks import check_question
from ragcache.engine.chat import Message, contents
from ragcache.engine.chunk_matcher import PREFIX_CHARS, ChunkMatcher, PartialMatch
from ragcache.engine.closest import Closest, explained
from ragcache.engine.escapes import Unescaped
from ragcache.engine.parsed_prompt import ChunkPlace, ParsedPrompt
from ragcache.errors import UnsupportedModel
from ragcache.index.chunks import Chunk
from ragcache.index.copies import mark_copies, resolve_copies
from ragcache.index.index import Index
from ragcache.prompt import Frame, Segment, Template
from ragcache.store import Entries

_OPENING, _CLOSING = re.compile(r"<chunk(?:\s[^<>]*)?>"), "</chunk>"
_SPACE = re.compile(r"\s*")
_PLACE, _PLACES = "\u2042{}\u2042", re.compile("\u2042(\\d+)\u2042")

_LIKE = 0.3  # share of a chunk's words that must stand in a prompt for it to be named as the closest

#: A chunk's place in a text: characters from the first number up to the second.
_Span = tuple[int, int, Chunk]
_Parts = list[Segment | ChunkPlace]


@dataclass(eq=False)
class _MessageText:
    """What a message says, and the chunks in it, from left to right."""

    text: str
    spans: list[_Span]
    unknown: int = 0
    escaped: Sequence[str] = ()

    @property
    def core(self) -> slice:
        """All but the white space around it, which is the chat template's affair."""
        words = self.text.strip()
        start = self.text.index(words)
        return slice(start, start + len(words))

    @property
    def asked(self) -> str:
        """What is said beside the chunks."""
        between = (self.text[start:end].strip() for start, end in _gaps(self.spans, len(self.text)))
        return "\n".join(filter(None, between))

    def around(self, mark: str) -> str:
        """The text with a mark in the place of its core."""
        return self.text[: self.core.start] + mark + self.text[self.core.stop :]

    def parts(self, template: Template, where: slice) -> Iterator[Segment | ChunkPlace]:
        """Fresh text and places in turn; the white space behind a chunk is tokenised with it, as when it was stored."""
        done, stop = where.start, where.stop
        for start, end, chunk in self.spans:
            behind = min(stop, _end_of_space(self.text, end))
            ids = template.plain(self.text[start:behind])
            kept = _shared(ids, chunk.segment.token_ids)
            if kept:
                cut = end - start < len(chunk.text.strip())
                yield _fresh(template, self.text[done:start])
                yield ChunkPlace(chunk, kept, Segment(ids[kept:], self.text[end:behind]), cut=cut)
                done = behind
        yield _fresh(template, self.text[done:stop])


class PromptParser:
    """Reads prompts for the chunks of an index.

    Parameters
    ----------
    index : Index
        Whose chunks are looked for; those that it has when a prompt is read.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._entries = Entries(index.catalog)
        self._lock = threading.Lock()
        self._edition = -1
        self._chunk_matcher = ChunkMatcher(())
        self._kept = (-1, ChunkMatcher(()))  # texts of no document, as of an edition
        self._closest = (-1, 0, Closest(()))  # as of an edition, of how many

    def parse(self, prompt: str | Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> ParsedPrompt:
        """Find the chunks of a prompt.

        What a message says to be a chunk is taken for one; then, of what stands between `<chunk>` and `</chunk>`, what
        the index knows; then every known chunk that stands anywhere.

        Parameters
        ----------
        prompt : str or sequence of Message
            A string is continued as it is, nothing in it is markup; messages go through the model's chat template.
        tools : sequence of mapping
            Functions that the model may call, as the chat template takes them; none with a string.

        Raises
        ------
        InvalidArgument
            If there is nothing but white space.
        UnsupportedModel
            If the chat template cannot render the messages, or leaves one out.
        """
        template = self._index.template
        said = [self._words(one) for one in ([(prompt,)] if isinstance(prompt, str) else map(contents, prompt))]
        check_question("".join(words.text for words in said), "prompt")
        self._resolve(said)
        if isinstance(prompt, str):
            spoken: _Parts = list(said[0].parts(template, slice(0, len(prompt))))
            parts: _Parts = [template.beginning, *spoken]
        else:
            parts, spoken = _rendered(template, prompt, said, tools)
        unknown = sum(words.unknown for words in said)
        escaped = tuple(text for words in said for text in words.escaped)
        found = escaped or any(self._is_known(chunk) for words in said for *_, chunk in words.spans)
        missed = "" if found else self._missed("\n".join(words.text for words in said))
        return _finished(parts, spoken, ParsedPrompt((), None, said[-1].asked, unknown, escaped, missed))

    def notes(self, frame: Frame, chunks: Sequence[Chunk]) -> tuple[str, ...]:
        """What is worth saying of a prompt: of one that was parsed, or of chunks that somebody handed over."""
        if isinstance(frame, ParsedPrompt):
            return frame.notes
        uncached = chunks and not any(self._is_known(chunk) for chunk in chunks)
        return (self._missed("\n\n".join(chunk.text for chunk in chunks)),) if uncached else ()

    def chunk(self, text: str, name: str | None = None) -> Chunk:
        """The index's chunk of a text, the one that a vector store calls by a name first; else an uncached one."""
        text = text.strip()
        entries = [entry.chunk for entry in self._entries.named(name)] if name else []
        named = (chunk for chunk in self._index.chunks(entries) if chunk.text.strip() == text)
        if chunk := next(named, None):
            return chunk
        alike = [name] if name else []
        alike += [found] if (found := self._current_matcher().find_exact(text)) else []
        known = [chunk for chunk in self._index.chunks(alike) if chunk.text.strip() == text]
        return next(iter(mark_copies(self._index, known[:1])), None) or self._index.uncached_chunk(text)

    def _words(self, said: Sequence[str | Chunk]) -> _MessageText:
        text, told = "", list[_Span]()
        for part in said:
            words = part if isinstance(part, str) else part.text.strip()
            if not isinstance(part, str) and words:
                told.append((len(text), len(text) + len(words), part))
            text += words
        known = self._current_matcher()
        blocks = [_stripped(text, *block) for block in find_marked(text) if _apart(block, told)]
        marked = [(start, end, known.find_exact(text[start:end])) for start, end in blocks]
        spans = _sorted(told, self._chunks([(start, end, name) for start, end, name in marked if name]))
        begun = list[PartialMatch]()
        anywhere = [place for gap in _gaps(spans, len(text)) for place in known.find(text, *gap, begun)]
        spans = _sorted(spans, self._chunks(anywhere))
        printed = [place for gap in _gaps(spans, len(text)) for place in _find_escaped(known, text, *gap)]
        whole = {chunk for *_, chunk in printed}
        for start, chunks in begun:  # from left to right
            spans = _sorted(spans, self._cut(text, start, [one for one in chunks if one not in whole], spans))
        spans = _sorted(spans, self._find_kept(text, spans))
        places = [(start, end) for start, end, _ in printed if _apart((start, end), spans)]
        # Shorter ones are likelier to be a coincidence.
        escaped = [text[start:end] for start, end in places if end - start >= PREFIX_CHARS]
        return _MessageText(text, spans, sum(name is None for *_, name in marked), escaped)

    def _find_kept(self, text: str, spans: Sequence[_Span]) -> list[_Span]:
        """Texts of no document whose KV is kept, where no chunk of the index stands."""
        kept = self._kept_matcher()
        places = [place for gap in _gaps(spans, len(text)) for place in kept.find(text, *gap)]
        return [(start, end, self._index.uncached_chunk(text[start:end])) for start, end, _ in places]

    def _is_known(self, chunk: Chunk) -> bool:
        """Whether there may be KV of it."""
        return bool(chunk.source) or self._index.second_sight.has(chunk.id)

    def _resolve(self, said: Sequence[_MessageText]) -> None:
        """Put the chunk of the document that the prompt has more of in the place of its copies."""
        chunks = iter(resolve_copies(self._index, [chunk for words in said for *_, chunk in words.spans]))
        for words in said:
            words.spans = [(start, end, next(chunks)) for start, end, _ in words.spans]

    def _cut(self, text: str, start: int, names: Sequence[str], spans: Sequence[_Span]) -> list[_Span]:
        """The chunk of which most stands at a place, if that is half of it; none where another chunk stands there."""
        if not _apart((start, start + 1), spans):
            return []
        stop = min((begin for begin, *_ in spans if begin > start), default=len(text))
        chunks = self._index.chunks(names)
        ends = [(start + _in_common(text[start:stop], chunk.text.strip()), chunk) for chunk in chunks]
        end, chunk = max(ends, key=lambda one: one[0], default=(start, None))
        return [(start, end, chunk)] if chunk and 2 * (end - start) >= len(chunk.text.strip()) else []

    def _missed(self, text: str) -> str:
        """Why no chunk was found."""
        known, edition = self._index.catalog, self._index.catalog.edition()
        if self._closest[0] != edition:
            texts = known.texts()
            self._closest = edition, len(texts), Closest(texts)
        _, count, closest = self._closest
        name = closest.find(text)
        near = [(chunk, *explained(chunk.text, text)) for chunk in self._index.chunks([name] if name else [])]
        if not count:
            why = "the index holds none yet; `ragcache ingest`, `ragcache adopt` or a wrapped vector store bring them"
        elif not near or near[0][1] < _LIKE:
            why = f"none of the {count:,} in the index stands in the prompt, nor one like it"
        else:
            [(chunk, share, changed)] = near
            why = (
                f"the closest, of {chunk.source}, has {share:.0%} of its words in the prompt, but {changed}; hand over "
                "chunks as they were added"
            )
        return f"no chunk was reused: {why}"

    def _chunks(self, found: Sequence[tuple[int, int, str]]) -> list[_Span]:
        """Chunks in the place of their ids; those that are gone meanwhile are left out."""
        known = self._index.chunks([name for *_, name in found])
        chunks = {chunk.id: chunk for chunk in mark_copies(self._index, known)}
        return [(start, end, chunks[name]) for start, end, name in found if name in chunks]

    def _current_matcher(self) -> ChunkMatcher:
        with self._lock:
            edition = self._index.catalog.edition()
            if edition != self._edition:
                self._chunk_matcher, self._edition = ChunkMatcher(self._index.catalog.texts()), edition
            return self._chunk_matcher

    def _kept_matcher(self) -> ChunkMatcher:
        with self._lock:
            edition = self._index.second_sight.edition
            if edition != self._kept[0]:
                self._kept = edition, ChunkMatcher(self._index.second_sight.texts())
            return self._kept[1]


def _rendered(
    template: Template, messages: Sequence[Message], said: Sequence[_MessageText], tools: Sequence[Mapping[str, Any]]
) -> tuple[_Parts, _Parts]:
    """A conversation's parts as the chat template arranges them, and those of them that somebody says."""
    silent = [bool(message.more) and not words.text.strip() for message, words in zip(messages, said, strict=True)]
    turns = [
        {**message.more, "role": message.role, "content": "" if quiet else words.around(_PLACE.format(number))}
        for number, (message, words, quiet) in enumerate(zip(messages, said, silent, strict=True))
    ]
    parts, spoken = _Parts(), _Parts()
    pieces = _PLACES.split(template.conversation(turns, tools))  # markup, number of a message, markup, ..., markup
    if sorted(map(int, pieces[1::2])) != [number for number, quiet in enumerate(silent) if not quiet]:
        raise UnsupportedModel(
            f"the model's chat template renders {len(pieces) // 2} of {silent.count(False)} messages (roles "
            f"{', '.join(message.role for message in messages)}), or one of them twice; put what the others say into "
            "the user's messages"
        )
    for number, piece in enumerate(pieces):
        if number % 2:
            words = said[int(piece)]
            new = list(words.parts(template, words.core))
            spoken += new
            parts += new
        else:
            parts.append(template.markup(piece))
    return parts, spoken


def _finished(parts: _Parts, spoken: _Parts, read: ParsedPrompt) -> ParsedPrompt:
    """What was read, with its parts but for empty ones."""
    parts = [part for part in parts if isinstance(part, ChunkPlace) or part]
    if isinstance(parts[-1], ChunkPlace):
        parts[-1] = replace(parts[-1], last=True)
    places = [i for i, part in enumerate(parts) if isinstance(part, ChunkPlace)]
    behind = [part for part in parts[places[-1] + 1 if places else 0 :] if isinstance(part, Segment)]
    words = [segment for segment in behind if any(segment is part for part in spoken)]
    return replace(read, parts=parts, asks=[None, *behind, *words][-1])


def _find_escaped(known: ChunkMatcher, text: str, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Chunks that stand in a part of a text as a program prints them, or JSON escapes them."""
    plain = Unescaped(text[start:stop], start)
    for found in known.find(plain.text):
        yield *plain.place(found.start, found.end), found.chunk


def _fresh(template: Template, text: str) -> Segment:
    return Segment(template.plain(text), text)


def _in_common(one: str, other: str) -> int:
    """How many characters two texts begin with in common, up to the end of a word."""
    count = _shared(one, other)
    whole = all(text[count : count + 1].isspace() or count == len(text) for text in (one, other))
    return count if whole else max(0, *(one.rfind(space, 0, count) for space in " \n\t"))


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How many tokens, or characters, two runs begin with in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _end_of_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The same place without the white space around it."""
    words = text[start:end].strip()
    first = text.index(words, start)
    return first, first + len(words)


def _sorted(spans: Sequence[_Span], more: Sequence[_Span]) -> list[_Span]:
    """From left to right; of the second ones those that overlap none of the first."""
    apart = [span for span in more if _apart(span[:2], spans)]
    return sorted([*spans, *apart], key=lambda span: span[0])


def _apart(place: tuple[int, int], spans: Sequence[_Span]) -> bool:
    return not any(place[0] < end and start < place[1] for start, end, _ in spans)


def find_marked(text: str) -> Iterator[tuple[int, int]]:
    """What stands between `<chunk>` and `</chunk>`, in time proportional to the text, however many are left open."""
    at = 0
    while (opening := _OPENING.search(text, at)) and (end := text.find(_CLOSING, opening.end())) >= 0:
        yield opening.end(), end
        at = end + len(_CLOSING)


def _gaps(spans: Sequence[_Span], length: int) -> Iterator[tuple[int, int]]:
    """Where no chunk stands."""
    borders = [0, *(border for start, end, _ in spans for border in (start, end)), length]
    return zip(borders[::2], borders[1::2], strict=True)
