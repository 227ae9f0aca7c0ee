"""What can be told of each kind of subject, and in which words; the words stand in ``wordings/``."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Relation:
    """An attribute and the ways of telling and asking for it.

    Attributes
    ----------
    name : str
        Unlike any other of its kind.
    values : str
        The pattern of its values, see `compose`.
    named : tuple of str
        Statements with the subject ``{s}`` and the value ``{o}``.
    implied : tuple of str
        Statements with the value alone, where the context tells whose it is.
    asked : tuple of str
        Questions with the subject.
    """

    name: str
    values: str
    named: tuple[str, ...]
    implied: tuple[str, ...]
    asked: tuple[str, ...]

    @property
    def wordings(self) -> tuple[str, ...]:
        """All ways of telling and asking for it."""
        return self.named + self.implied + self.asked


@dataclass(frozen=True)
class Kind:
    """A kind of subject.

    Attributes
    ----------
    name, plural : str
        "laboratory" and "laboratories".
    names : str
        The pattern of its subjects' names, see `compose`.
    relations : tuple of Relation
        At least four.
    """

    name: str
    plural: str
    names: str
    relations: tuple[Relation, ...]

    @property
    def article(self) -> str:
        """What its subjects' names have before them in a sentence: "the " for museums, nothing for people."""
        return "the " if all("the {s}" in way.lower() for one in self.relations for way in one.named) else ""


def read_kinds(text: str) -> Iterator[Kind]:
    """Read kinds of subjects from a text of wordings.

    Parameters
    ----------
    text : str
        Blocks between blank lines. A kind starts with ``= singular, plural`` and ``names: pattern``. Each of its
        relations is a block: ``name: pattern``, then statements that name the subject (``+``), statements that do not
        (``-``) and questions (``?``).

    Yields
    ------
    Kind
        In the text's order.
    """
    for part in text.strip().removeprefix("= ").split("\n= "):
        head, *blocks = part.strip().split("\n\n")
        title, names = head.split("\n")
        singular, plural = title.split(", ")
        yield Kind(singular, plural, names.removeprefix("names: "), tuple(map(_relation, blocks)))


def _relation(block: str) -> Relation:
    head, *lines = block.split("\n")
    name, values = head.split(": ", 1)
    named, implied, asked = (tuple(line[2:] for line in lines if line[0] == mark) for mark in "+-?")
    return Relation(name, values, named, implied, asked)


def _all_kinds() -> Iterator[Kind]:
    folder = files(__package__) / "wordings"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".txt"):
            yield from read_kinds(file.read_text(encoding="utf-8"))


#: Every kind of subject.
KINDS = tuple(_all_kinds())
