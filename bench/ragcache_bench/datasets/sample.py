"""Questions drawn from a public set, each with so many chunks."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.item import Item, closed, holds
from ragcache_bench.datasets.overlap import Overlap
from ragcache_bench.datasets.table import Dataset, find
from ragcache_bench.tasks.example import Example

_TRIES = 20  # foreign passages looked at per passage wanted


def load(
    name: str,
    path: Path | str,
    n: int | None = None,
    seed: int = 0,
    chunks: int | None = None,
    size: int | None = None,
) -> list[Example]:
    """Draw questions from a file of a public set.

    Passages that the file marks as needed are always among a question's chunks. Where passages stand for themselves,
    its other passages follow in the file's order, then other questions' which contain no accepted answer, and all are
    shuffled; a question whose needed passages are not marked keeps all it has. Where a question's passages are whole
    documents (SQuAD's articles), those of the same document follow in random order, as far as they contain no accepted
    answer; in ConTEB those of any document that share the most words with the question. Where passages belong together
    (stories, papers, conversations, long contexts, key-value pairs), they keep their order, and some are left out to
    meet the number: at random, or, where none is marked as needed, those that share the fewest words with the question.

    Parameters
    ----------
    name : str
        Of a set in `DATASETS`, or one of its tasks, "babi-15".
    path : Path or str
        The file as it is published, plain or gzipped.
    n : int, optional
        Questions to draw, at most as many as there are; without it all. Fewer are the first of more.
    seed : int
        Of the draw and the order of chunks.
    chunks : int, optional
        Chunks per question, more where more are needed; without it the set's own number.
    size : int, optional
        How large a chunk is: sentences of bAbI, key-value pairs, words of a long context; without it the set's own.

    Returns
    -------
    list of Example
        The same for the same file and `seed`.

    Raises
    ------
    InvalidArgument
        If there is no such set or file, the file has another format, a number is below 1, or `size` is given for
        passages that stay whole.
    """
    dataset = find(name)
    _check(name, dataset, n=n, chunks=chunks, size=size)
    items = list(_named(name, dataset.items(Path(path), size)))
    if not items:
        raise InvalidArgument(f"{path}: expected questions with answers of {name}, found none")
    passages = _Passages(items, dataset)
    drawn = random.Random(f"{name} {seed}").sample(items, len(items))[:n]
    count = dataset.chunks if chunks is None else chunks
    cut = _mixed if dataset.independent else _ordered
    examples = []
    for item in drawn:
        texts, gold = cut(random.Random(f"{seed} {item.id}"), item, count, passages)
        pages, titles = passages.pages(item, texts), passages.titles(texts)
        examples.append(
            Example(item.id, name, tuple(texts), item.question, item.answers, tuple(gold), pages=pages, titles=titles)
        )
    return examples


class _Passages:
    """All passages of a file: what distractors are drawn from, their documents, and their titles.

    A text that comes again has the title and the document that it has first.
    """

    def __init__(self, items: Sequence[Item], dataset: Dataset) -> None:
        shared: dict[int, Item] = {}  # questions of one document share its passages
        for item in items:
            shared.setdefault(id(item.passages), item)
        first = shared.values()
        texts = dict.fromkeys(text for item in first for text in item.passages)
        self.texts = list(texts) if dataset.independent else []
        self.overlap = Overlap(self.texts) if dataset.alike else None
        self._pages: dict[str, tuple[str, ...]] = {}
        self._titles: dict[str, str] = {}
        for item in first:
            for page in item.pages():
                for text in page:
                    self._pages.setdefault(text, page)
            for text, title in zip(item.passages, item.titles, strict=False):  # no titles at all, or one each
                self._titles.setdefault(text, title)

    def pages(self, item: Item, chunks: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The documents that chunks come from, each once; a question's own before others with the same text."""
        own = {text: page for page in item.pages() for text in page}
        return tuple(dict.fromkeys(page for text in chunks if (page := own.get(text, self._pages.get(text, ())))))

    def titles(self, chunks: Sequence[str]) -> tuple[str, ...]:
        """A title for each chunk; nothing where none has one."""
        found = tuple(self._titles.get(text, "") for text in chunks)
        return found if any(found) else ()


def _check(name: str, dataset: Dataset, **numbers: int | None) -> None:
    for key, value in numbers.items():
        if value is not None and value < 1:
            raise InvalidArgument(f"{key} of {name} is {value}; give 1 or more, or leave it out")
    if dataset.size is None and numbers["size"] is not None:
        raise InvalidArgument(f"size of {name} is {numbers['size']}, but its passages stay whole; leave it out")


def _named(name: str, items: Iterator[Item]) -> Iterator[Item]:
    """Put the set's name before each id, and a number behind the ids that occur again."""
    seen: dict[str, int] = {}
    for item in items:
        times = seen[item.id] = seen.get(item.id, 0) + 1
        yield replace(item, id=f"{name}-{item.id}" + f"#{times}" * (times > 1))


def _mixed(rng: random.Random, item: Item, count: int | None, passages: _Passages) -> tuple[list[str], list[int]]:
    own = list(dict.fromkeys(item.passages))
    gold = {item.passages[i] for i in item.gold} or set(own)  # not marked: any may be needed
    room = max(0, (count or len(own)) - len(gold))
    chunks = [text for text in own if text in gold]
    chunks += islice(_beside(rng, item, [text for text in own if text not in gold], passages), room)
    chunks += _foreign(rng, item, passages.texts, chunks, (count or 0) - len(chunks))
    rng.shuffle(chunks)
    return chunks, [i for i, text in enumerate(chunks) if item.gold and text in gold]


def _beside(rng: random.Random, item: Item, others: Sequence[str], passages: _Passages) -> Iterator[str]:
    """What comes first beside what a question needs."""
    if not item.starts:
        return iter(others)
    if passages.overlap is None:
        found = rng.sample(others, len(others))
    else:
        needed = {item.passages[i] for i in item.gold}
        ranked = (passages.texts[place] for place in passages.overlap.nearest(item.question))
        found = [text for text in ranked if text not in needed]
    return (text for text in found if not _answers(text, item))


def _ordered(rng: random.Random, item: Item, count: int | None, _: _Passages) -> tuple[list[str], list[int]]:
    others = [i for i in range(len(item.passages)) if i not in item.gold]
    room = len(others) if count is None else min(max(0, count - len(item.gold)), len(others))
    if item.gold or room == len(others):
        kept = sorted([*item.gold, *rng.sample(others, room)])
    else:
        kept = sorted(Overlap(item.passages).nearest(item.question, room))
    return [item.passages[i] for i in kept], [kept.index(i) for i in item.gold]


def _foreign(rng: random.Random, item: Item, pool: Sequence[str], chosen: Sequence[str], count: int) -> Iterator[str]:
    """Up to `count` passages of other questions which contain no accepted answer."""
    places = rng.sample(range(len(pool)), min(len(pool), max(0, count) * _TRIES))
    known = {*item.passages, *chosen}
    foreign = (pool[i] for i in places if pool[i] not in known)
    return islice((text for text in foreign if not _answers(text, item)), max(0, count))


def _answers(text: str, item: Item) -> bool:
    return not closed(item.answers) and holds(text, item.answers)
