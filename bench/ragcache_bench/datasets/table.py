"""The table of public sets: how each is read, and what may be done with its passages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets import documents, formats, tables, texts
from ragcache_bench.datasets.files import Node, content, records
from ragcache_bench.datasets.item import Item

#: Summaries, code completion and counting, where LongBench has no question beside the context.
_LONGBENCH_UNASKED = frozenset({"gov_report", "lcc", "multi_news", "passage_count", "repobench-p", "vcsum"})
Read = Callable[..., Iterator[Item]]  # of a path, and of a size where chunks are made here


@dataclass(frozen=True)
class Dataset:
    """A public set.

    Attributes
    ----------
    read : callable
        Yields a file's questions, given its path (and `size`, where there is one).
    chunks : int or None
        Chunks per question unless asked otherwise; None keeps all.
    independent : bool
        Passages stand for themselves: they are shuffled, and other questions' passages make up the number. Otherwise
        they keep their order and company.
    alike : bool
        What makes up the number are the passages of the file, of whatever document, that share the most words with the
        question, as a retriever would return them.
    size : int or None
        How large a chunk is, in `unit`; None where the file's passages stay whole.
    unit : str
        What `size` counts.
    files : str
        Globs of the files that make up a folder of tasks, a space between; empty where a set is one file.
    task : callable
        A file's task, within a set that has several.
    order : callable
        Sorts the files of a folder; of the splits of one task the first is read.
    unasked : frozenset of str
        The tasks of a published folder that ask no question; of a folder they are left out.
    """

    read: Read
    chunks: int | None = 8
    independent: bool = True
    size: int | None = None
    unit: str = ""
    files: str = ""
    task: Callable[[Path], str] = lambda path: path.name.partition(".")[0]
    alike: bool = False
    order: Callable[[Path], tuple[int, str]] = lambda path: (0, str(path))
    unasked: frozenset[str] = frozenset()

    def asks(self, file: Path) -> bool:
        """Whether a file of a folder asks questions; LongBench-E has the same tasks with "_e" behind their names."""
        return self.task(file).removesuffix("_e") not in self.unasked

    def items(self, path: Path, size: int | None = None) -> Iterator[Item]:
        """Yield a file's questions, with chunks of another `size` where one is given."""
        if self.size is None:
            return self.read(path)
        return self.read(path, self.size if size is None else size)


def find(name: str) -> Dataset:
    """Return the row of a set, or of one of its tasks ("babi-15").

    Raises
    ------
    InvalidArgument
        If there is no such set.
    """
    if name in DATASETS:
        return DATASETS[name]
    for key, row in DATASETS.items():
        if row.files and name.startswith(f"{key}-"):
            return row
    raise InvalidArgument(f"{name!r} is no public set; name one of {', '.join(DATASETS)}, as in xquad:xquad.en.json")


def _each(item: Callable[..., Item | None]) -> Read:
    """Read records one by one; what has no name gets its number."""

    def read(path: Path, *size: int) -> Iterator[Item]:
        for number, row in enumerate(records(path), 1):
            found = item(row, *size)
            if found:
                yield found if found.id else replace(found, id=str(number))

    return read


def _samples(item: Callable[[Node], Item | None]) -> Read:
    """Read a set's own format, or samples of it in IRCoT's or CacheBlend's."""
    official = _each(lambda row: formats.retrieved(row) if "ctxs" in row else item(row))
    return lambda path: texts.ircot(path) if content(path).lstrip().startswith(texts.START) else official(path)


def _babi_task(path: Path) -> str:
    return path.name.removeprefix("qa").partition("_")[0]


def _ruler_task(path: Path) -> str:
    return path.parent.name if path.stem in ("validation", "test", "train") else path.name.partition(".")[0]


def _folder(path: Path) -> str:
    return path.parent.name or path.name.partition(".")[0]


def _folder_above(path: Path) -> str:
    return _folder(path.parent)


def _length(length: str | None) -> Dataset:
    read = _each(partial(documents.longbench_v2, length=length))
    return Dataset(read, 64, False, 120, "words")


DATASETS: dict[str, Dataset] = {
    "squad": Dataset(formats.squad, 5),
    "xquad": Dataset(formats.squad, 5),
    "hotpotqa": Dataset(_samples(formats.hotpot)),
    "2wiki": Dataset(_samples(formats.hotpot)),
    "musique": Dataset(_samples(formats.musique)),
    "nq-open": Dataset(_each(formats.retrieved)),
    "triviaqa": Dataset(_each(formats.retrieved)),
    "kv-retrieval": Dataset(_each(formats.pairs), 4, independent=False, size=5, unit="pairs"),
    "babi": Dataset(texts.babi, None, False, 2, "sentences", "qa*_*.txt*", _babi_task),
    "ruler": Dataset(_each(formats.ruler), None, False, 120, "words", "**/*.jsonl*", _ruler_task),
    "longbench": Dataset(_each(formats.longbench), None, False, 120, "words", "*.jsonl*", unasked=_LONGBENCH_UNASKED),
    "longbench-v2": _length(None),
    "longbench-v2-short": _length("short"),
    "multihop-rag": Dataset(documents.multihop_rag, size=120, unit="words"),
    "qasper": Dataset(documents.qasper, 16, False),
    "locomo": Dataset(documents.locomo, 16, False, 6, "turns"),
    "helmet-rag": Dataset(formats.helmet, 20),
    "conteb": Dataset(tables.conteb, 8, files="**/queries/*", task=_folder_above, alike=True, order=tables.preference),
    "kvpress": Dataset(tables.kvpress, None, False, 120, "words", "**/*.parquet **/*.csv **/*.jsonl", _folder),
}
"""Public sets by name."""
