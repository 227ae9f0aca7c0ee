"""Names and values composed at random, so that no list of them can be learnt by heart; one name in ten is held out."""

from ragcache_bench.questions.names import Names, held_out

from reader_tuning.language.made import NAMES
from reader_tuning.language.values import VALUES

#: Kinds whose first word means nothing alone, and is not shared.
_WHOLE = frozenset(
    "title book film song painting play game exhibition podcast show wine horse match dish recipe".split()
)
#: Every kind that can be drawn.
KINDS: tuple[str, ...] = (*NAMES, *(kind for kind in VALUES if kind not in NAMES))


class WideNames(Names):
    """Draws names without repetition within one world, as `Names` does, of every kind that `WIDE` mentions.

    Parameters
    ----------
    rng : random.Random
        Source of randomness.
    held : bool
        Draw only held-out names (one in ten, by CRC-32) instead of only training names. Values (dates, amounts, words
        of small vocabularies) are shared.
    alike : float
        Share of names of two and more words which take their first word from another one of their kind.
    """

    def draw(self, kind: str) -> str:
        """Return a fresh name of `kind`, one of `KINDS`."""
        open_kind = kind in NAMES
        make = NAMES[kind] if open_kind else VALUES[kind]
        name = ""
        for _ in range(2000):
            name = make(self._rng)
            if open_kind and kind not in _WHOLE:
                name = self._shared(kind, name)
            if name not in self._used and (not open_kind or held_out(name) == self._held):
                self._used.add(name)
                if self._alike and open_kind and " " in name:
                    self._first.setdefault(kind, []).append(name.split()[0])
                return name
        return name
