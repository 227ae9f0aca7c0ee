"""What a benchmark question is."""

from dataclasses import dataclass


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
    """

    id: str
    task: str
    chunks: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    gold: tuple[int, ...]
    gap: int | None = None


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
