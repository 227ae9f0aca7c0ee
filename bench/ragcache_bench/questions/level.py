"""How hard an invented context is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """How hard the contexts are; each field grows along the curriculum.

    Attributes
    ----------
    entities, relations : tuple of int
        Range of subjects of one kind and of relations told about each.
    groups : int
        Kinds of subjects mixed in one context, at most.
    forms : int
        Phrasings in use per relation (statements, questions, section forms).
    filler : float
        Share of idle sentences; it also decides how many sentences join into one chunk.
    sections, twohop, unknown, cut : float
        Shares of section groups, two-hop questions, unanswerable questions and randomly cut contexts.
    wordings : float
        Share of prompts in another framework's wording.
    tokens : int
        Longest context.
    steps : int
        Training moves on after so many, however well the level is known; 0 waits until it is.
    mix : tuple of int, optional
        How many question families meet in one context; without it facts, sections and two hops.
    bindings : float
        Share of mixed contexts with a family whose chunks need another one, or its self-contained twin.
    alike : float
        Share of names that share a word with another one.
    only : tuple of str
        The bindings and look-ups in use; all of a group where none is named.
    interleaved : float
        Share of those in which two or three kinds of subjects, or labels, take turns.
    least : int
        Words in a chunk of these families, at least; the idle sentences stand before the fact first.
    subjects : int
        Subjects, meanings, states or units to tell apart; 0 draws a number each time.
    titled : float
        Share of contexts whose chunks stand under a title: a section's under its subject's name.
    """

    entities: tuple[int, int] = (3, 5)
    relations: tuple[int, int] = (1, 1)
    groups: int = 1
    forms: int = 1
    filler: float = 0.0
    sections: float = 0.0
    twohop: float = 0.0
    unknown: float = 0.0
    cut: float = 0.0
    wordings: float = 0.0
    tokens: int = 200
    steps: int = 0
    mix: tuple[int, int] | None = None
    bindings: float = 0.0
    alike: float = 0.0
    only: tuple[str, ...] = ()
    interleaved: float = 1.0
    least: int = 0
    subjects: int = 0
    titled: float = 0.0
