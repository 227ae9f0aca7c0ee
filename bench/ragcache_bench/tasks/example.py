"""What a benchmark question is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    titles : tuple of str
        The title of each chunk, blank where it has none; empty where none has. Kept beside the text: some sets put it
        into the text too, as its first line, others do not. Only contenders with a title line show it.
    """

    id: str
    task: str
    chunks: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    gold: tuple[int, ...]
    gap: int | None = None
    pages: tuple[tuple[str, ...], ...] = field(default=(), repr=False)  # repr decides which answers are kept
    titles: tuple[str, ...] = field(default=(), repr=False)


def add_titles(example: Example) -> Example:
    """The same question with each chunk's title as its first line: what a practitioner does anyway.

    Where all chunks of a page that are in the prompt have the same title, the page's others have it too: a document's
    title, or a section's. A text that has its title for a first line stays as it is.
    """
    if not example.titles:
        return example
    known = dict(zip(example.chunks, example.titles, strict=True))
    above = dict(known)
    for page in example.pages:
        titles = {known[text] for text in page if known.get(text)}
        if len(titles) == 1:
            above |= {text: title for text in page for title in titles}

    def under(text: str) -> str:
        title = above.get(text, "")
        return f"{title}\n{text}" if title and not text.startswith(f"{title}\n") else text

    return replace(
        example,
        chunks=tuple(map(under, example.chunks)),
        pages=tuple(tuple(map(under, page)) for page in example.pages),
    )


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
