"""HotpotQA and 2WikiMultihopQA: titled paragraphs as lists of sentences, and which of them support the answer.

Papers 1809.09600 and 2011.01060. Both in the official form, and in the columns that dataset hubs make of it.
"""

from collections.abc import Iterator

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import Item, titled


def item(row: Node) -> Item:
    """Make an item of one record."""
    context = [(title.text(), _joined(sentences)) for title, sentences in _pairs(row["context"], "sentences")]
    needed = {title.text() for title, _ in _pairs(row["supporting_facts"], "sent_id")}
    return Item(
        row["id" if "id" in row else "_id"].label(),
        row["question"].filled(),
        (row["answer"].filled(),),
        tuple(titled(title, text) for title, text in context),
        tuple(i for i, (title, _) in enumerate(context) if title in needed),
    )


def _pairs(table: Node, second: str) -> Iterator[tuple[Node, Node]]:
    if "title" not in table:
        return iter([row.pair() for row in table])
    titles, values = list(table["title"]), list(table[second])
    if len(titles) != len(values):
        raise table.wrong(f"as many entries under 'title' as under {second!r}")
    return zip(titles, values, strict=True)


def _joined(sentences: Node) -> str:
    return " ".join(text for sentence in sentences if (text := sentence.text()))
