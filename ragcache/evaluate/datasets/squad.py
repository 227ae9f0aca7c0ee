"""SQuAD 1.1 and 2.0, XQuAD: articles of paragraphs, each with questions (1606.05250, 1806.03822, 1910.11856)."""

from collections.abc import Iterator
from pathlib import Path

from ragcache.evaluate.datasets.files import Node, document
from ragcache.evaluate.datasets.item import Item


def read(path: Path) -> Iterator[Item]:
    """Yield the questions that have an answer; those marked impossible are left out."""
    for article in document(path)["data"]:
        for paragraph in article["paragraphs"]:
            yield from _items(paragraph)


def _items(paragraph: Node) -> Iterator[Item]:
    context = paragraph["context"].filled()
    for asked in paragraph["qas"]:
        if not asked.flag("is_impossible"):
            yield Item(asked["id"].label(), asked["question"].filled(), _answers(asked["answers"]), (context,), (0,))


def _answers(answers: Node) -> tuple[str, ...]:
    return Node([answer["text"].text() for answer in answers], answers.where).texts()
