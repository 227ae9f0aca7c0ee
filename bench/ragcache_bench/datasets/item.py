"""What every format is read into, before questions are drawn and cut to size."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragcache_bench.metrics import normalise

#: Answers that need not stand in any text.
CLOSED = frozenset({"yes", "no"})
#: Between the parts of an answer that names several things; scored like a comma.
PARTS = "; "
_PUNCTUATION = re.compile(r"[^\w\s]")


@dataclass(frozen=True)
class Item:
    """A question of a public set.

    Attributes
    ----------
    id : str
        The file's own, or its place in the file.
    question : str
        As it stands in the file.
    answers : tuple of str
        Accepted answers, at least one.
    passages : tuple of str
        The question's own texts, in the file's order.
    gold : tuple of int
        Indices of the passages needed; empty where the file does not tell.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    passages: tuple[str, ...]
    gold: tuple[int, ...] = ()


def closed(answers: Iterable[str]) -> bool:
    """Whether all answers are of the kind of yes and no, which no text needs to contain."""
    return all(normalise(answer) in CLOSED for answer in answers)


def holds(text: str, answers: Sequence[str]) -> bool:
    """Whether a text contains an answer, both normalised as in scoring; all parts of one that names several things."""
    forms = normalise(text), normalise(_spaced(text))
    return any(all(_within(part, *forms) for part in answer.split(PARTS)) for answer in answers)


def containing(passages: Sequence[str], answers: Sequence[str]) -> tuple[int, ...]:
    """Indices of the passages which contain an answer, or a part of one."""
    parts = [part for answer in answers for part in answer.split(PARTS)]
    return tuple(i for i, text in enumerate(passages) if holds(text, parts))


def titled(title: str, text: str) -> str:
    """A passage under its title."""
    return f"{title}\n{text}" if title and text else title or text


def _within(answer: str, plain: str, spaced: str) -> bool:
    return _contains(plain, normalise(answer)) or _contains(spaced, normalise(_spaced(answer)))


def _contains(text: str, wanted: str) -> bool:
    # not within a longer Latin word; scripts without spaces have no such borders
    return bool(wanted) and re.search(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])", text) is not None


def _spaced(text: str) -> str:
    # scoring deletes punctuation, which glues "5-cylinder" and "Eminem's" together
    return _PUNCTUATION.sub(" ", text)
