"""RULER: instruction, context and question in one text, as prepared with its `base` template (2404.06654).

Several outputs are parts of one answer, all of them wanted; in its `qa` tasks they are alternatives. Gold are the
pieces which contain an output: the needles, every step of a variable's chain.
"""

import re

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import PARTS, Item, containing
from ragcache.evaluate.datasets.pieces import pieces

# The instruction ends here; after its last occurrence, for some tasks show an example first.
_INSTRUCTION = re.compile(
    r"I will quiz you about the .*? afterwards\.|hidden in the following text\.|The following are given documents\."
    r"|Memorize the ones that appear most often\.|Find the three most frequently appeared coded words\."
)
_QA = "Answer the question based on the given documents."
_ASKED = re.compile(r"(?s)(.*)\n(?:Question:)?\s*(\S[^\n]*?)\s*")
_PREFIX = re.compile(r"\s+(?:Answer:|The special magic ).*")  # older versions leave the answer's beginning in the input


def item(row: Node, words: int) -> Item:
    """Make an item of one record, the context in pieces of at most so many words."""
    text, outputs = row["input"].filled(), row["outputs"].texts()
    parts = _ASKED.fullmatch(text)
    if not parts:
        raise row["input"].wrong("a context, and a question in the last line")
    qa = _QA in text
    passages = pieces(_context(parts[1], qa), words)
    answers = outputs if qa else (PARTS.join(outputs),)
    question = _PREFIX.sub("", parts[2])
    name = row["index"].label() if "index" in row else ""
    return Item(name, question, answers, passages, containing(passages, outputs))


def _context(text: str, qa: bool) -> str:
    ends = [match.end() for match in _INSTRUCTION.finditer(text)]
    body = text[ends[-1] :] if ends else text
    return body.rpartition(_QA)[0] if qa and _QA in body else body
