"""The published sets that are tables: ConTEB's chunks and queries, and the columns that kvpress evaluates on."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.files import Node, table
from ragcache_bench.datasets.formats import pieces
from ragcache_bench.datasets.item import PARTS, Item, closed, containing

_BETWEEN = re.compile(r"""(['"])\s+(?=['"])""")  # numpy writes ['12' '13'], which Python would read as one text
_SPLITS = ("test", "validation", "train")
_ALL_WANTED = ("niah", "vt", "cwe", "fwe")  # tasks of RULER with several outputs; those of the others are alternatives


def conteb(path: Path) -> Iterator[Item]:
    """ConTEB: queries of a retrieval benchmark whose chunks are unclear without their document (2505.24782).

    The query is the question, its chunks are the evidence, and its document is the page. Where a row has an `answer`,
    that is accepted; else none is stated, and full prefill's own answer is the one to agree with.

    Parameters
    ----------
    path : Path
        The table of queries, "queries/test-00000-of-00001.parquet"; the chunks lie in "documents" beside its folder,
        under the same split.
    """
    documents = cache(partial(_documents, path))
    for number, row in enumerate(table(path), 1):
        question = row["query"].filled()
        ids = row["chunk_ids" if "chunk_ids" in row else "chunk_id"]
        found = [_found(one, documents()) for one in (ids if isinstance(ids.value, list) else [ids])]
        if not found or any(page is not found[0][0] for page, _ in found):
            raise ids.wrong("chunks of one document")
        gold = tuple(sorted({place for _, place in found}))
        answers = row["answer"].some() if "answer" in row else ()
        yield Item(str(number), question, answers, found[0][0], gold, starts=(0,))


Place = tuple[tuple[str, ...], int]  # a document, as its chunks in order, and one's place among them


def _found(name: Node, documents: Mapping[str, Place]) -> Place:
    if name.label() not in documents:
        raise name.wrong("the id of a chunk in the documents")
    return documents[name.label()]


def _documents(path: Path) -> dict[str, Place]:
    """Where each chunk stands, by its id, "document_number"."""
    folder, split = path.parent.parent / "documents", split_of(path)
    files = sorted(folder.glob(f"{split}*"))
    if not files:
        raise InvalidArgument(f"{folder}: expected the chunks, as {split}-00000-of-00001.parquet; download them too")
    chunks: dict[str, list[tuple[int, str, str]]] = {}
    for row in table(files[0]):
        name = row["chunk_id"].label()
        document, _, number = name.rpartition("_")
        if not document or not number.isdecimal():
            raise row["chunk_id"].wrong("a document's id, '_' and a number")
        chunks.setdefault(document, []).append((int(number), name, row["chunk"].filled()))
    pages = [sorted(document) for document in chunks.values()]
    made = [(tuple(text for _, _, text in page), page) for page in pages]
    return {name: (texts, place) for texts, page in made for place, (_, name, _) in enumerate(page)}


def split_of(path: Path) -> str:
    """The split that a table holds, by its name: "test-00000-of-00001.parquet", "test.jsonl"."""
    return path.name.partition(".")[0].partition("-")[0]


def preference(path: Path) -> tuple[int, str]:
    """Sorts a set's tables as its authors choose among them: test, else validation, else train."""
    split = split_of(path)
    return (_SPLITS.index(split) if split in _SPLITS else len(_SPLITS)), str(path)


def kvpress(path: Path, words: int) -> Iterator[Item]:
    """Tables that kvpress evaluates on: `context`, `question`, `answer`, and `task` where there are several.

    The context is cut into pieces of so many words at most; gold are those which contain an answer. Several answers are
    alternatives, but in RULER's tasks other than `qa_1` and `qa_2` they are parts of one, all of them wanted.
    `answer_prefix` and `max_new_tokens` are not used: an answer is asked for as in any other task here.
    """
    for number, row in enumerate(table(path), 1):
        question = row["question"].filled()
        task = row["task"].text() if "task" in row else ""
        found = _listed(row["answer" if "answer" in row else "answers"])
        answers = (PARTS.join(found),) if task.partition("_")[0] in _ALL_WANTED else found
        passages = pieces(row["context"].filled(), words)
        gold = () if closed(answers) else containing(passages, found)
        yield Item(f"{task}-{number}" if task else str(number), question, answers, passages, gold)


def _listed(given: Node) -> tuple[str, ...]:
    """One answer or several; in a cell of CSV, several as JSON, or as pandas writes a list or an array."""
    if isinstance(given.value, str) and given.value.startswith("["):
        found = _literal(given.value)
        given = Node(found, given.where) if isinstance(found, list) else given  # an answer may begin with a bracket
    return given.some() or given.texts()


def _literal(text: str) -> object:
    """What JSON or Python reads in a text, None where neither does; an array of texts has no commas."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(_BETWEEN.sub(r"\1, ", text))
    return None
