"""What a benchmark question is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True)
class Example:
    """One question over given chunks.

    Attributes
    ----------
    id : str
        The same for the same task, seed and number; a twin shares the number of its original.
    task : str
        The task's name.
    chunks : tuple of str
        In reading order.
    question : str
        One sentence.
    answers : tuple of str
        Accepted answers; the last is what the bundled reader is trained to say. An answer found step by step is also
        accepted with its steps, "Mara Voss: Oslo".
    gold : tuple of int
        Indices of the chunks needed.
    gap : int or None
        Chunks from the one that tells whose it is (header, antecedent, label, state, unit) to the one with the fact.
    pages : tuple of tuple of str
        The documents that the chunks come from, each as its chunks in reading order, also such as are not in the
        prompt; a chunk that is on no page is a document of its own. Only encoders that look at documents depend on it.
    """

    id: str
    task: str
    chunks: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    gold: tuple[int, ...]
    gap: int | None = None
    pages: tuple[tuple[str, ...], ...] = field(default=(), repr=False)  # repr decides which answers are kept


class Twinned:
    """A task whose fact needs an earlier chunk, unless it is the twin, which tells the same facts in full."""

    subjects: int
    twin: bool

    @property
    def needs(self) -> bool:
        """Whether the answer is meant to need another chunk."""
        return not self.twin

    @property
    def chance(self) -> float | None:
        """Exact match of a guess among the subjects' values."""
        return None if self.twin else 1 / self.subjects


def paged(chunks: Sequence[str], starts: Iterable[int]) -> tuple[tuple[str, ...], ...]:
    """Pages of consecutive chunks, each from one start up to the next.

    What stands before the first start is on no page. One page alone is none: nearly the whole prompt would be a single
    document in reading order, where whatever is computed by document is computed as if by full prefill.
    """
    pages = tuple(tuple(chunks[start:end]) for start, end in pairwise([*sorted(starts), len(chunks)]))
    return pages if len(pages) > 1 else ()
