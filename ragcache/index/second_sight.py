"""Second sight: the KV of a text that belongs to no document is kept once it comes in a second prompt."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk, Loaded
from ragcache.model.buffer import ChunkKV

_NOTED = 10_000  # texts that are remembered as seen, by their digests

#: From a recipe, the keys of a left context and token ids: the key of the KV.
MakeKey = Callable[[str, Sequence[str], Sequence[int]], str]
_Name = tuple[str, str]  # a text's id, and the recipe of its KV
_Kept = tuple[ChunkKV, tuple[str, ...]]  # and the keys of what it was made behind
_Text = str  # the text itself; empty where it is not to be looked for in prompts


class SecondSight:
    """Chunks first seen in a prompt, in memory from their second on: FusionRAG's alternative path (2601.12904).

    Nothing of it is written to disk, searched, or left behind the process. Threads may share it.

    Parameters
    ----------
    limit : int
        Most bytes, those used longest ago go first; 0 keeps nothing.
    edition : callable
        Another number whenever documents came or went: everything is forgotten then, for a text of theirs may be kept,
        such as one that stood escaped in a prompt.

    Raises
    ------
    InvalidArgument
        If the limit is negative.
    """

    def __init__(self, limit: int, edition: Callable[[], int] = lambda: 0) -> None:
        if limit < 0:
            raise InvalidArgument(f"second_sight_bytes is {limit}; give 0 or more bytes")
        self.limit = limit
        self.nbytes = 0
        #: Another number whenever other texts are kept.
        self.edition = 0
        self._seen: OrderedDict[_Name, None] = OrderedDict()
        self._kept: OrderedDict[_Name, tuple[_Kept, _Text]] = OrderedDict()
        self._lock = Lock()
        self._documents, self._known = edition, edition() if limit else 0

    def find(self, text: str, recipe: str, token_ids: Sequence[int]) -> _Kept | None:
        """The KV of a text by its id, and the keys of what it was made behind; None where it is not kept."""
        with self._lock:
            self._follow()
            kept = self._kept.get((text, recipe))
            if kept is None or kept[0][0].token_ids != tuple(token_ids):
                return None
            self._kept.move_to_end((text, recipe))
            return kept[0]

    def load(
        self, chunk: Chunk, recipes: Sequence[str], before: tuple[str, ...] | None, make_key: MakeKey
    ) -> Loaded | None:
        """The KV of a text for use behind what stands `before` it, by the first recipe that it is kept by, if any."""
        for recipe in recipes:
            if (kept := self.find(chunk.id, recipe, chunk.segment.token_ids)) is not None:
                kv, left = kept
                key = make_key(recipe, left, kv.token_ids)
                return Loaded(kv, key, f"{recipe}, kept since its second prompt", exact=left == before)
        return None

    def has(self, text: str) -> bool:
        """Whether KV of a text is kept, by its id."""
        with self._lock:
            self._follow()
            return any(name == text for name, _ in self._kept)

    def texts(self) -> list[tuple[str, str]]:
        """Id and text of all that is kept, and may be looked for in prompts."""
        with self._lock:
            self._follow()
            return [(name, text) for (name, _), (_, text) in self._kept.items() if text]

    def note(self, text: str, recipe: str, kv: ChunkKV, left: tuple[str, ...], words: str = "") -> None:
        """Take in a KV that was made for a prompt: at its text's first sight nothing is kept of it but the id.

        Parameters
        ----------
        text, recipe : str
            The text's id, and how its KV was made.
        kv : ChunkKV
            What was made.
        left : tuple of str
            Keys of what it was made behind.
        words : str
            The text, where it is to be found in prompts that somebody else wrote.
        """
        if not self.limit:
            return
        with self._lock:
            self._follow()
            if (text, recipe) in self._seen:
                self._keep((text, recipe), kv, left, words)
            self._see((text, recipe))

    def keep(self, text: str, recipe: str, kv: ChunkKV, left: tuple[str, ...], words: str) -> None:
        """The same of a text that was seen often enough."""
        with self._lock:
            self._follow()
            self._see((text, recipe))
            self._keep((text, recipe), kv, left, words)

    def clear(self) -> None:
        """Forget every text."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._seen.clear()
        self._kept.clear()
        self.nbytes = 0
        self.edition += 1

    def _follow(self) -> None:
        if self.limit and (edition := self._documents()) != self._known:
            self._known = edition
            self._clear()

    def _see(self, name: _Name) -> None:
        self._seen[name] = None
        if len(self._seen) > _NOTED:
            self._seen.popitem(last=False)

    def _keep(self, name: _Name, kv: ChunkKV, left: tuple[str, ...], words: str) -> None:
        if kv.nbytes > self.limit:  # it would drive out all others, and then go itself
            return
        if (old := self._kept.pop(name, None)) is not None:
            self.nbytes -= old[0][0].nbytes
        self._kept[name] = (_in_memory(kv), left), words
        self.nbytes += kv.nbytes
        while self.nbytes > self.limit:
            _, ((gone, _), _) = self._kept.popitem(last=False)
            self.nbytes -= gone.nbytes
        self.edition += 1


def _in_memory(kv: ChunkKV) -> ChunkKV:
    """A copy in the host's memory: what it was read from may be a part of something larger."""
    extras = {name: extra.cpu().clone() for name, extra in kv.extras.items()}
    return replace(kv, layers=tuple(layer.cpu().clone() for layer in kv.layers), extras=extras)
