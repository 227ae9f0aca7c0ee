"""The text format of IRCoT's annotated samples: titled paragraphs, `Q:`, `A:` (2212.10509). Gold is not marked."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache.evaluate.datasets.files import content
from ragcache.evaluate.datasets.item import Item, titled

START = "# METADATA:"
_TITLE = "Wikipedia Title:"
_BLOCK = re.compile(rf"^{START}(.*)$", re.MULTILINE)
_ASKED = re.compile(r"\nQ: *(\S.*)\nA: *(\S.*?)\s*\Z")


def read(path: Path) -> Iterator[Item]:
    """Yield the file's questions."""
    text = content(path)
    starts = list(_BLOCK.finditer(text))
    for start, end in zip(starts, [*(match.start() for match in starts[1:]), len(text)], strict=True):
        where = f"{path}, line {text.count(chr(10), 0, start.start()) + 1}"
        yield _item(start[1], text[start.end() : end], where)


def _item(metadata: str, block: str, where: str) -> Item:
    asked = _ASKED.search(block)
    if not asked:
        raise InvalidArgument(f"{where}: expected a block that ends in a line 'Q: …' and a line 'A: …'")
    paragraphs = [part.strip() for part in f"\n{block[: asked.start()]}".split(f"\n{_TITLE}")[1:]]
    if not paragraphs:
        raise InvalidArgument(f"{where}: expected paragraphs that start with {_TITLE!r}")
    return Item(_id(metadata, where), asked[1].strip(), (asked[2],), tuple(titled(*_split(one)) for one in paragraphs))


def _split(paragraph: str) -> tuple[str, str]:
    title, _, text = paragraph.partition("\n")
    return title.strip(), text.strip()


def _id(metadata: str, where: str) -> str:
    try:
        return str(json.loads(metadata)["qid"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(f"{where}: expected {START} with an object that has 'qid'") from error
