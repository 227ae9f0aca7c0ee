"""Texts of no document that come in prompts again: their KV is made in idle time, and found from then on.

Front ends paste retrieved chunks, tool results and files into their prompts, each in a wrapper of its own. A message is
cut where such wrappers begin and end, and then into paragraphs. Paragraphs that were seen before, behind other words,
are a text that comes again; those that followed one another then and now are one text.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from openai_ragcache.engine_queue import EngineQueue
from ragcache.encode import Encoder
from ragcache.engine.parsed_prompt import ChunkPlace, ParsedPrompt
from ragcache.engine.request import Request
from ragcache.index.chunks import text_id
from ragcache.index.index import Index

_LEAST = 120  # characters of a text that is worth a KV of its own
_NOTED = 20_000  # paragraphs that are remembered as seen, by their digests

_TAGS = "|".join(
    [
        *("sources?", "documents?", "docs?", "contexts?", "passages?", "chunks?", "files?", "references?", "results?"),
        *("tool_response", "content", "text"),
    ]
)
#: Where a wrapper begins or ends: a tag, AnythingLLM's labels, a number in a list, a rule, a fence, a JSON string.
_BORDER = re.compile(
    rf"</?(?:{_TAGS})\b[^<>]*>|\[(?:END )?CONTEXT \d+\]:?|^\[\d+\][ \t]|^(?:-{{3,}}|={{3,}}|```\w*)[ \t]*$"
    r"""|\{?"\w+":\s*"|\[\s*"|(?<!\\)"\s*,\s*"(?!\w+":)|(?<!\\)"\s*[],}]""",
    re.MULTILINE,
)
_BLANK = re.compile(r"\n[ \t]*\n\s*")

_Place = tuple[int, int]


@dataclass(frozen=True)
class _Seen:
    """A paragraph's first sight: what stood in front of it, and what came next."""

    before: bytes
    following: bytes


class Learner:
    """Notices what comes again in a tenant's prompts, in a bounded memory.

    Parameters
    ----------
    index : Index
        Keeps what is learnt, in the memory that it was given for that; without any nothing is noticed.
    queue : EngineQueue
        In whose idle time KV is made.
    """

    def __init__(self, index: Index, queue: EngineQueue) -> None:
        self._index = index
        self._queue = queue
        self._seen: OrderedDict[bytes, _Seen] = OrderedDict()
        self._pending: set[str] = set()

    def notice(self, request: Request) -> None:
        """Look at what a prompt has beside the index's chunks, and have made what comes again.

        A chunk of the index that stands there in JSON need not come again: its text is known to be one that does.
        """
        encoder = (request.instead_of or request.method).encode
        if not self._index.second_sight.limit or encoder is None or not isinstance(request.frame, ParsedPrompt):
            return
        for text in [*request.frame.escaped, *self._find_repeated(request.frame)]:
            name = text_id(text)
            if name in self._pending or self._index.second_sight.has(name):
                continue
            if self._queue.when_idle(partial(self._make, name, text, encoder)):
                self._pending.add(name)

    def _make(self, name: str, text: str, encoder: Encoder, give_way: Callable[[], None]) -> None:
        with self._index.reader.checked(give_way):
            self._index.learn(text, encoder)
        self._pending.discard(name)

    def _find_repeated(self, frame: ParsedPrompt) -> list[str]:
        """Texts that came before, behind other words; what is new is noted."""
        before, found = hashlib.sha256(), list[str]()
        for part in frame.parts:
            if isinstance(part, ChunkPlace):
                before.update(part.chunk.text.encode("utf-8", "surrogatepass"))
                continue
            for start, stop in _blocks(part.text):
                found += self._look(part.text, list(_paragraphs(part.text, start, stop)), before.copy(), start)
            before.update(part.text.encode("utf-8", "surrogatepass"))
        return found

    def _look(self, text: str, places: Sequence[_Place], before: "hashlib._Hash", start: int) -> Iterator[str]:
        """The texts of a block that came before, each as long as it is the same as then."""
        digests = [_digest(text[begin:end]) for begin, end in places] + [b""]
        before.update(text[:start].encode("utf-8", "surrogatepass"))
        first = None
        for (begin, end), own, following in zip(places, digests, digests[1:], strict=False):
            front = before.copy()
            front.update(text[start:begin].encode("utf-8", "surrogatepass"))
            seen = self._note(own, _Seen(front.digest(), following))
            if seen is None or seen.before == front.digest():
                first = None
                continue
            first = begin if first is None else first
            if not following or seen.following != following:
                if end - first >= _LEAST:
                    yield text[first:end]
                first = None

    def _note(self, paragraph: bytes, seen: _Seen) -> _Seen | None:
        """How it was first seen; None where it is now."""
        if (known := self._seen.get(paragraph)) is not None:
            self._seen.move_to_end(paragraph)
            return known
        self._seen[paragraph] = seen
        if len(self._seen) > _NOTED:
            self._seen.popitem(last=False)
        return None


def _blocks(text: str) -> Iterator[_Place]:
    """What stands between the borders of wrappers."""
    start = 0
    for border in _BORDER.finditer(text):
        yield start, border.start()
        start = border.end()
    yield start, len(text)


def _paragraphs(text: str, start: int, stop: int) -> Iterator[_Place]:
    """What stands between blank lines, without the white space around it."""
    while start < stop:
        blank = _BLANK.search(text, start, stop)
        end = blank.start() if blank else stop
        words = text[start:end]
        if core := words.strip():
            first = start + words.index(core)
            yield first, first + len(core)
        start = blank.end() if blank else stop


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
