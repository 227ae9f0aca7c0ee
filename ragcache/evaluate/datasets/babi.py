"""bAbI: stories of short numbered sentences, with questions in between (1502.05698)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache.evaluate.datasets.files import content
from ragcache.evaluate.datasets.item import Item

_LINE = re.compile(r"(\d+) ([^\t]*\S) *(?:\t *([^\t]*\S) *(?:\t([\d ]*))?)?")


@dataclass
class _Story:
    sentences: list[str] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)  # a line's number -> index of its sentence


def read(path: Path, sentences: int) -> Iterator[Item]:
    """Yield the file's questions, each with its story so far, so many sentences a chunk."""
    story = _Story()
    for number, line in enumerate(content(path).splitlines(), 1):
        parts = _LINE.fullmatch(line)
        if not parts:
            raise InvalidArgument(f"{path}, line {number}: expected '1 a sentence', or '2 question⇥answer⇥1 …'")
        if int(parts[1]) == 1:
            story = _Story()
        if parts[3] is None:
            story.place[int(parts[1])] = len(story.sentences)
            story.sentences.append(parts[2])
        else:
            gold = [story.place.get(int(one), -1) for one in (parts[4] or "").split()]
            if not story.sentences or -1 in gold:
                raise InvalidArgument(f"{path}, line {number}: expected a question about earlier lines of its story")
            yield _item(number, parts[2], parts[3], story.sentences, gold, sentences)


def _item(number: int, question: str, answer: str, story: list[str], gold: list[int], size: int) -> Item:
    chunks = tuple(" ".join(story[i : i + size]) for i in range(0, len(story), size))
    return Item(str(number), question, (answer,), chunks, tuple(sorted({i // size for i in gold})))
