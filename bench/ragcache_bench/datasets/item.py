"""What every format is read into, before questions are drawn and cut to size."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragcache_bench.metrics import normalise

#: Answers that need not stand in any text.
CLOSED = frozenset({"yes", "no"})
#: Between the parts of an answer that names several things; scored like a comma.
PARTS = "; "
_PUNCTUATION = re.compile(r"[^\w\s]")
#: "a" before a word, and "A" before one where a sentence begins; "A is right" names a choice.
_ARTICLE = re.compile(r"(?m)(?:\ba|(?:^\s*|(?<=[.!?]\s))A)\s+(?!(?:is|because)\b)(?=\w)")


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
        Accepted answers; none where the file states none.
    passages : tuple of str
        The question's own texts, in the file's order.
    gold : tuple of int
        Indices of the passages needed; empty where the file does not tell.
    titles : tuple of str
        The title of each passage; empty where the file has none.
    starts : tuple of int
        Indices of the passages that begin a document, where the passages are whole documents in reading order; empty
        where they stand for themselves.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    passages: tuple[str, ...]
    gold: tuple[int, ...] = ()
    titles: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()

    def pages(self) -> list[tuple[str, ...]]:
        """The documents, each as its passages in reading order."""
        return [self.passages[start:end] for start, end in pairwise([*self.starts, len(self.passages)])]


def closed(answers: Sequence[str]) -> bool:
    """Whether the answers are yes or no, or one of several choices, which no text needs to contain."""
    return bool(answers) and (_is_choice(answers) or all(normalise(answer) in CLOSED for answer in answers))


def choice(letter: str, text: str) -> tuple[str, ...]:
    """Accepted answers to a question with choices: the letter with the text, the text, the letter."""
    return f"({letter}) {text}", text, letter


def holds(text: str, answers: Sequence[str]) -> bool:
    """Whether a text contains an answer, both normalised as in scoring; all parts of one that names several things.

    The letter of a choice is looked for among the words with the articles, for "A" is one of each.
    """
    forms = normalise(text), normalise(_spaced(text))
    if any(all(_within(part, *forms) for part in answer.split(PARTS)) for answer in answers):
        return True
    return _is_choice(answers) and _contains(_ARTICLE.sub(" ", text).lower(), answers[-1].lower())


def containing(passages: Sequence[str], answers: Sequence[str]) -> tuple[int, ...]:
    """Indices of the passages which contain an answer, or a part of one."""
    parts = [part for answer in answers for part in answer.split(PARTS)]
    return tuple(i for i, text in enumerate(passages) if holds(text, parts))


def titled(title: str, text: str) -> str:
    """A passage under its title."""
    return f"{title}\n{text}" if title and text else title or text


def _is_choice(answers: Sequence[str]) -> bool:
    return bool(answers) and answers[0].startswith(f"({answers[-1]}) ")


def _within(answer: str, plain: str, spaced: str) -> bool:
    return _contains(plain, normalise(answer)) or _contains(spaced, normalise(_spaced(answer)))


def _contains(text: str, wanted: str) -> bool:
    # not within a longer Latin word; scripts without spaces have no such borders
    return bool(wanted) and re.search(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])", text) is not None


def _spaced(text: str) -> str:
    # scoring deletes punctuation, which glues "5-cylinder" and "Eminem's" together
    return _PUNCTUATION.sub(" ", text)
