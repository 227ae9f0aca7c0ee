"""One's own questions over one's own index: as `ask` would answer them, by every method that the index holds KV for."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcache import methods
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk, order_by_document
from ragcache.index.settings import lacks_encoding, nothing_in
from ragcache.method import Method
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache
from ragcache.report import Progress
from ragcache_bench.asking import Asked, ask
from ragcache_bench.contenders import Contender, in_turn
from ragcache_bench.lending import lend, lendable
from ragcache_bench.records import Journal, Record, digest
from ragcache_bench.tasks import Example

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
        lines = file.read_text(encoding="utf-8").split("\n")  # not splitlines(): JSON allows U+2028 in a string
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read ({error}); write one question a line, as {_FORM}") from error
    found = [_question(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise InvalidArgument(f"{file} holds no question; write one a line, as {_FORM}")
    return found


def served(rag: RagCache, names: Sequence[str]) -> list[Method]:
    """Those of some rows that the index holds KV for, and those that need none."""
    made = rag.index.catalog.stats()["encodings"]
    rows = [methods.find_method(name) for name in names]
    return [row for row in rows if not lacks_encoding(made, row)]


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
        The index. It is used as `ask` uses it: KV that is missing is made. Of an encoding that it lacks altogether,
        and that needs to know no other chunk, KV is made for the question and thrown away.
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
        if not lendable(who.method):
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
            journal.add(_answers(rag, Asked(example, left), chunks, sampling))
        progress("questions", number + 1, len(questions))
    return [journal.known[key] for key in keys]


def _answers(rag: RagCache, asked: Asked, chunks: Sequence[Chunk], sampling: Sampling) -> list[Record]:
    """One question's open answers; KV that the index lacks is lent to those who need it."""
    rows = {who.method.encode: who.method for _, who in asked.turns}
    held = rag.index.catalog.recipes()
    lacking = [encoder for encoder, row in rows.items() if encoder and lendable(row) and encoder.recipe not in held]
    with lend(rag.index, chunks, lacking) as lent:
        return ask(rag.engine, TASK, asked, chunks, sampling, lent=lent)


def _chunks(rag: RagCache, question: OwnQuestion, top_k: int) -> list[Chunk]:
    if not question.chunks:
        found = rag.retrieve(question.question, top_k=top_k)
        if not found:
            raise nothing_in(rag.index.path)
        return order_by_document(found)
    found = rag.index.chunks(question.chunks)
    if lacking := sorted(set(question.chunks) - {chunk.id for chunk in found}):
        raise InvalidArgument(
            f"line {question.line} names the chunk {lacking[0]!r}, which {rag.index.path} does not hold; "
            "`ragcache ask QUESTION --json` shows the ids"
        )
    return found


def _key(rag: RagCache, example: Example, chunks: Sequence[Chunk], who: Contender, sampling: Sampling) -> str:
    """The stored KV is part of it: ingested anew, a chunk may have other neighbours."""
    return digest(rag.reader.identity, *_kv(rag, chunks, who.method), repr(example), repr(who), repr(sampling))


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
