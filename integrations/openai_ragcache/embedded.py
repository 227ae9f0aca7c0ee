"""Texts that were sent to `/v1/embeddings` are chunks that will come in prompts: their KV is made in idle time.

A front end embeds what it is going to retrieve, in the order of its documents. Where a text begins with the words that
another one ends with, it is the next one of that document, and is prefilled behind it; any other stands alone.
"""

import logging
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from threading import Lock

from openai_ragcache.engine_queue import EngineQueue, GaveWay
from ragcache import RagCache
from ragcache.index.chunks import text_id
from ragcache.index.collection import Entry

NAME = "embeddings"
"""Under which the index keeps them apart."""

_log = logging.getLogger(__name__)

_LEAST = 200  # characters of a chunk; shorter texts are questions, or not worth a KV of their own
_OVERLAP = 20  # characters that two neighbours have in common, at least
_TAIL = 4_000  # and at most
_BATCH = 16  # texts that are prefilled before room is made for them
_RECENT = 512  # texts that others may follow
_WAITING = 32 << 20  # characters that wait to be prefilled

#: What embedding models want in front of texts, and of questions; no prompt has it.
_TASK = re.compile(r"(?:search_document|passage|document|title: none \| text):\s*")
_QUESTION = re.compile(r"(?:search_query|query|task: search result \| query):")


class EmbeddedTexts:
    """Takes in what a tenant has embedded, up to a limit.

    Parameters
    ----------
    rag : RagCache
        The tenant's index, in which the texts are documents; it keeps them when the server ends.
    queue : EngineQueue
        In whose idle time KV is made.
    limit : int
        Most bytes of KV; the documents that were added first go first.
    """

    def __init__(self, rag: RagCache, queue: EngineQueue, limit: int) -> None:
        self._rag = rag
        self._queue = queue
        self._limit = limit
        self._collection = rag.collection(NAME)
        self._recent: OrderedDict[str, Entry] = OrderedDict()
        self._waiting: deque[str] = deque()
        self._characters = 0
        self._is_scheduled = False
        self._lock = Lock()

    def take(self, texts: Iterable[str]) -> None:
        """Have texts prefilled that look like chunks; what there is no room for in the queue is passed over."""
        chunks = [chunk for text in texts if len(chunk := _chunk(text)) >= _LEAST]
        with self._lock:
            for chunk in chunks:
                if self._characters + len(chunk) <= _WAITING:
                    self._waiting.append(chunk)
                    self._characters += len(chunk)
            if self._waiting and not self._is_scheduled:
                self._is_scheduled = self._queue.when_idle(self._ingest)

    def _ingest(self, give_way: Callable[[], None]) -> None:
        while texts := self._next():
            try:
                with self._rag.reader.checked(give_way):
                    self._collection.add([self._place(text) for text in texts if not self._is_ingested(text)])
                    self._make_room()
            except GaveWay:
                raise
            except Exception:  # nobody waits for it
                _log.exception("%d embedded texts could not be prefilled", len(texts))
            self._drop(len(texts))

    def _next(self) -> list[str]:
        with self._lock:
            self._is_scheduled = bool(self._waiting)
            return [self._waiting[place] for place in range(min(_BATCH, len(self._waiting)))]

    def _drop(self, count: int) -> None:
        with self._lock:
            self._characters -= sum(len(self._waiting.popleft()) for _ in range(count))

    def _is_ingested(self, text: str) -> bool:
        """Whether the index has a text as a chunk already, or the model could not take it as one."""
        chunk = self._rag.engine.chunk(text)
        return bool(chunk.source) or len(chunk.segment) > self._rag.reader.limit // 2

    def _place(self, text: str) -> Entry:
        """A text as the next one of the document that it goes on with, or the first one of its own."""
        name = text_id(text)
        if (known := self._recent.get(name)) is not None:
            return known
        before = next((one for one in reversed(self._recent.values()) if overlap(one.text, text)), None)
        document = before.document if before else f"embedded text {name.rpartition('-')[2]}"
        place = (before.place[0] + 1,) if before else (0,)
        entry = self._recent[name] = Entry(name, text, document, place, title=document)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return entry

    def _make_room(self) -> None:
        """Forget the documents that were added first, until the others are within the limit."""
        known = [one for one in self._rag.documents() if one.collection == NAME]
        known.sort(key=lambda one: one.added.timestamp() if one.added else 0.0)
        total = sum(one.bytes for one in known)
        for one in known:
            if total <= self._limit:
                break
            total -= one.bytes
            self._collection.discard_document(one.source)
            for name in [name for name, entry in self._recent.items() if entry.document == one.source]:
                del self._recent[name]


def overlap(before: str, text: str) -> int:
    """How many characters a text begins with that another one ends with; 0 where those are too few to tell."""
    tail, first = before[-_TAIL:], text[:_OVERLAP]
    start = tail.find(first)
    while start >= 0:
        if text.startswith(tail[start:]):
            return len(tail) - start
        start = tail.find(first, start + 1)
    return 0


def _chunk(text: str) -> str:
    """What a prompt will have of a text; nothing of a question."""
    task = _TASK.match(text)
    return "" if _QUESTION.match(text) else text[task.end() if task else 0 :].strip()
