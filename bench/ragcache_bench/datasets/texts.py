"""The published text formats: bAbI's stories, and IRCoT's annotated samples."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.files import content
from ragcache_bench.datasets.item import Item, titled

START = "# METADATA:"  # of IRCoT's blocks
_LINE = re.compile(r"(\d+) ([^\t]*\S) *(?:\t *([^\t]*\S) *(?:\t([\d ]*))?)?")
_TITLE = "Wikipedia Title:"
_BLOCK = re.compile(rf"^{START}(.*)$", re.MULTILINE)
_ASKED = re.compile(r"\nQ: *(\S.*)\nA: *(\S.*?)\s*\Z")


def babi(path: Path, size: int) -> Iterator[Item]:
    """bAbI: stories of short numbered sentences, with questions in between (1502.05698).

    Each question has its story so far, `size` sentences a chunk.
    """
    story: list[str] = []
    place: dict[int, int] = {}  # a line's number -> index of its sentence
    for number, line in enumerate(content(path).splitlines(), 1):
        parts = _LINE.fullmatch(line)
        if not parts:
            raise InvalidArgument(f"{path}, line {number}: expected '1 a sentence', or '2 question⇥answer⇥1 …'")
        if int(parts[1]) == 1:
            story, place = [], {}
        if parts[3] is None:
            place[int(parts[1])] = len(story)
            story.append(parts[2])
            continue
        gold = [place.get(int(one), -1) for one in (parts[4] or "").split()]
        if not story or -1 in gold:
            raise InvalidArgument(f"{path}, line {number}: expected a question about earlier lines of its story")
        chunks = tuple(" ".join(story[i : i + size]) for i in range(0, len(story), size))
        yield Item(str(number), parts[2], (parts[3],), chunks, tuple(sorted({i // size for i in gold})))


def ircot(path: Path) -> Iterator[Item]:
    """IRCoT's samples: titled paragraphs, `Q:`, `A:` (2212.10509). Gold is not marked."""
    text = content(path)
    starts = list(_BLOCK.finditer(text))
    for start, end in zip(starts, [*(match.start() for match in starts[1:]), len(text)], strict=True):
        where = f"{path}, line {text.count(chr(10), 0, start.start()) + 1}"
        block = text[start.end() : end]
        asked = _ASKED.search(block)
        if not asked:
            raise InvalidArgument(f"{where}: expected a block that ends in a line 'Q: …' and a line 'A: …'")
        found = [part.strip().partition("\n") for part in f"\n{block[: asked.start()]}".split(f"\n{_TITLE}")[1:]]
        if not found:
            raise InvalidArgument(f"{where}: expected paragraphs that start with {_TITLE!r}")
        passages = tuple(titled(title.strip(), body.strip()) for title, _, body in found)
        titles = tuple(title.strip() for title, _, _ in found)
        yield Item(_id(start[1], where), asked[1].strip(), (asked[2],), passages, titles=titles)


def _id(metadata: str, where: str) -> str:
    try:
        return str(json.loads(metadata)["qid"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(f"{where}: expected {START} with an object that has 'qid'") from error
