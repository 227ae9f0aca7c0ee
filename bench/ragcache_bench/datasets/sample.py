"""Questions drawn from a public set, each with so many chunks."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.item import Item, closed, holds
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
    shuffled; a question whose needed passages are not marked keeps all it has. Where they belong together (bAbI's
    stories, long contexts, key-value pairs), they keep their order, and some are left out to meet the number.

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
    pool = list(dict.fromkeys(text for item in items for text in item.passages)) if dataset.independent else []
    drawn = random.Random(f"{name} {seed}").sample(items, len(items))[:n]
    count = dataset.chunks if chunks is None else chunks
    cut = _mixed if dataset.independent else _ordered
    examples = []
    for item in drawn:
        texts, gold = cut(random.Random(f"{seed} {item.id}"), item, count, pool)
        examples.append(Example(item.id, name, tuple(texts), item.question, item.answers, tuple(gold)))
    return examples


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


def _mixed(rng: random.Random, item: Item, count: int | None, pool: Sequence[str]) -> tuple[list[str], list[int]]:
    own = list(dict.fromkeys(item.passages))
    gold = {item.passages[i] for i in item.gold} or set(own)  # not marked: any may be needed
    room = max(0, (count or len(own)) - len(gold))
    chunks = [text for text in own if text in gold]
    chunks += [text for text in own if text not in gold][:room]
    chunks += _foreign(rng, item, pool, (count or 0) - len(chunks))
    rng.shuffle(chunks)
    return chunks, [i for i, text in enumerate(chunks) if item.gold and text in gold]


def _ordered(rng: random.Random, item: Item, count: int | None, _: Sequence[str]) -> tuple[list[str], list[int]]:
    others = [i for i in range(len(item.passages)) if i not in item.gold]
    room = len(others) if count is None else max(0, count - len(item.gold))
    kept = sorted([*item.gold, *rng.sample(others, min(room, len(others)))])
    return [item.passages[i] for i in kept], [kept.index(i) for i in item.gold]


def _foreign(rng: random.Random, item: Item, pool: Sequence[str], count: int) -> Iterator[str]:
    """Up to `count` passages of other questions which contain no accepted answer."""
    places = rng.sample(range(len(pool)), min(len(pool), max(0, count) * _TRIES))
    foreign = (pool[i] for i in places if pool[i] not in item.passages)
    return islice((text for text in foreign if not _answers(text, item)), max(0, count))


def _answers(text: str, item: Item) -> bool:
    return not closed(item.answers) and holds(text, item.answers)
