"""What is read in training: chunks in the order of a prompt, and questions about them."""

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument

_FORM = '{"question": "...", "answers": ["..."], "chunks": ["text", "text", ...]}'


@dataclass(frozen=True)
class Asked:
    """A question and its accepted answers, of which the first is learnt."""

    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """Chunks in the order of the prompt, and the questions that are asked about them."""

    chunks: tuple[str, ...]
    asked: tuple[Asked, ...]


def read_contexts(file: Path) -> list[Context]:
    """Contexts of a JSONL file; lines that follow each other with the same chunks are one context.

    Its chunks are then read once for all of their questions, none of which sees another.

    Raises
    ------
    InvalidArgument
        If the file cannot be read or holds nothing, a line is no question, has no answer or no chunks, or no line has
        a border between chunks.
    """
    rows = [_row(file, number, line) for number, line in _lines(file)]
    contexts = [Context(chunks, tuple(asked for asked, _ in of)) for chunks, of in groupby(rows, lambda row: row[1])]
    if not contexts:
        raise InvalidArgument(
            f"{file} is empty, so there is nothing to train on; write one question a line, as {_FORM}"
        )
    if all(len(context.chunks) == 1 for context in contexts):
        raise InvalidArgument(
            f"every line of {file} has one chunk, so there is no border between chunks to learn from; give each "
            f"question several chunks, the right one among them: {_FORM}"
        )
    return contexts


def digest(contexts: Iterable[Context]) -> str:
    """Of everything that is read; a run that goes on must read the same."""
    found = hashlib.sha256()
    for context in contexts:
        found.update(json.dumps(asdict(context)).encode())
    return found.hexdigest()[:16]


def hold_out(contexts: Sequence[Context], seed: int, most: int) -> tuple[list[Context], list[Context]]:
    """Contexts to train on, and one in ten, at most so many, to examine by, which share no chunk with those.

    Returns
    -------
    tuple of list of Context
        Those to train on; those held out.
    """
    places = random.Random(f"held out {seed}").sample(range(len(contexts)), min(most, len(contexts) // 10))
    held = [contexts[place] for place in sorted(places)]
    apart = {chunk for context in held for chunk in context.chunks}
    return [context for context in contexts if not apart & set(context.chunks)], held


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read ({error}); write one question a line, as {_FORM}") from error
    lines = text.split("\n")  # splitlines() would break a string at U+2028, which JSON allows there
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _row(file: Path, number: int, line: str) -> tuple[Asked, tuple[str, ...]]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    match values:
        case {"question": str(question)} if question.strip():
            return Asked(question, _answers(file, number, values)), _chunks(file, number, values)
    raise InvalidArgument(f"line {number} of {file} is no question; write {_FORM}")


def _answers(file: Path, number: int, values: dict[str, Any]) -> tuple[str, ...]:
    given = values.get("answers", values.get("answer"))
    answers = _strings([given] if isinstance(given, str) else given)
    if not answers:
        raise InvalidArgument(
            f"line {number} of {file} has no answer to learn; write it as {_FORM}, the answer to be said first"
        )
    return answers


def _chunks(file: Path, number: int, values: dict[str, Any]) -> tuple[str, ...]:
    given = values.get("chunks", values.get("context"))
    if isinstance(given, str):
        raise InvalidArgument(
            f"line {number} of {file} has its chunks as one text, without borders; write a list of texts: {_FORM}"
        )
    chunks = _strings(given)
    if not chunks:
        raise InvalidArgument(f"line {number} of {file} has no chunks; write those to answer from as {_FORM}")
    return chunks


def _strings(value: object) -> tuple[str, ...]:
    """A list of texts that are not blank; nothing for anything else."""
    texts = value if isinstance(value, list) else []
    return tuple(texts) if all(isinstance(one, str) and one.strip() for one in texts) else ()
