"""One's own questions over one's own index: as `ask` would answer them, by every method that the index holds KV for."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcache import methods
from ragcache.chunks import Chunk
from ragcache.errors import EmptyIndex, InvalidArgument
from ragcache.evaluate.asking import Asked, Progress, ask
from ragcache.evaluate.contenders import Contender, in_turn
from ragcache.evaluate.records import Journal, Record, digest
from ragcache.evaluate.tasks import Example
from ragcache.methods import Method
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache

TASK = "questions"
_FORM = '{"question": "...", "answers": ["..."], "chunks": ["chunk id"]}, the last two as you like'


@dataclass(frozen=True)
class OwnQuestion:
    """A question, the answers to accept (none: full prefill's own), and the chunks to read (none: those retrieved)."""

    line: int
    question: str
    answers: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()


def read(file: Path) -> list[OwnQuestion]:
    """The questions of a JSONL file.

    Raises
    ------
    InvalidArgument
        If the file is not there, or a line is no question.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read ({error}); write one question a line, as {_FORM}") from error
    found = [_question(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise InvalidArgument(f"{file} holds no question; write one a line, as {_FORM}")
    return found


def served(rag: RagCache, names: Sequence[str]) -> list[Method]:
    """Those of some rows that the index holds KV for, and those that need none."""
    made = rag.index.catalog.stats()["encodings"]
    rows = [methods.find(name) for name in names]
    return [row for row in rows if row.encode is None or row.encode.recipe in made]


def run(
    rag: RagCache,
    questions: Sequence[OwnQuestion],
    field: Sequence[Contender],
    journal: Journal,
    *,
    top_k: int,
    max_new_tokens: int,
    progress: Progress,
) -> list[Record]:
    """Ask every question of every contender; retrieval happens once for each question.

    Parameters
    ----------
    rag : RagCache
        The index. It is used as `ask` uses it: KV that is missing is made.
    questions : sequence of OwnQuestion
        What to ask.
    field : sequence of Contender
        Who answers.
    journal : Journal
        What there is already is not asked again.
    top_k : int
        Chunks to retrieve.
    max_new_tokens : int
        Most tokens of an answer.
    progress : callable
        Called after each question.

    Raises
    ------
    EmptyIndex
        If nothing is found for a question.
    MissingEncoding
        If the index lacks a contender's encoding.
    InvalidArgument
        If a question names a chunk that is not there.
    PromptTooLong
        If a question's chunks do not fit the reader.
    """
    for who in field:
        rag.engine.check_encoding(who.method)
    sampling, keys = Sampling(max_new_tokens=max_new_tokens), list[str]()
    for number, question in enumerate(questions):
        chunks = _chunks(rag, question, top_k)
        texts = tuple(chunk.text for chunk in chunks)
        example = Example(f"line {question.line}", TASK, texts, question.question, question.answers, ())
        turns = [(_key(rag, example, chunks, who, sampling), who) for who in in_turn(field, number)]
        keys += [key for key, _ in turns]
        left = tuple(turn for turn in turns if turn[0] not in journal.known)
        if left:
            journal.add(ask(rag.engine, TASK, Asked(example, left), chunks, sampling))
        progress("questions", number + 1, len(questions))
    return [journal.known[key] for key in keys]


def _chunks(rag: RagCache, question: OwnQuestion, top_k: int) -> list[Chunk]:
    if not question.chunks:
        found = rag.retrieve(question.question, top_k=top_k)
        if not found:
            raise EmptyIndex(f"the index {rag.index.path} is empty; run `ragcache ingest PATH…` first")
        return found
    found = rag.index.chunks(question.chunks)
    if lacking := sorted(set(question.chunks) - {chunk.id for chunk in found}):
        raise InvalidArgument(
            f"line {question.line} names the chunk {lacking[0]!r}, which {rag.index.path} does not hold; "
            "`ragcache ask QUESTION --json` shows the ids"
        )
    return found


def _key(rag: RagCache, example: Example, chunks: Sequence[Chunk], who: Contender, sampling: Sampling) -> str:
    """The stored KV is part of it: ingested anew, a chunk may have other neighbours."""
    return digest(rag.reader.fingerprint, *_kv(rag, chunks, who.method), repr(example), repr(who), repr(sampling))


def _kv(rag: RagCache, chunks: Sequence[Chunk], row: Method) -> Iterator[str]:
    if row.encode is not None:
        for chunk in chunks:
            yield from (kept.key for kept in rag.index.catalog.encodings(chunk.id, row.encode.recipe))


def _question(file: Path, number: int, line: str) -> OwnQuestion:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    match values:
        case {"question": str(question)} if question.strip():
            answers, chunks = _strings(values.get("answers")), _strings(values.get("chunks"))
            if answers is not None and chunks is not None:
                return OwnQuestion(number, question, answers, chunks)
    raise InvalidArgument(f"line {number} of {file} is no question; write {_FORM}")


def _strings(value: Any) -> tuple[str, ...] | None:
    """A list of strings, or nothing at all; None for anything else."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None
