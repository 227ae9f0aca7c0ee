"""MuSiQue: twenty titled paragraphs a question, two to four of them supporting (2108.00573)."""

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import Item, titled


def item(row: Node) -> Item | None:
    """Make an item of one record; None for a question marked unanswerable."""
    if not row.flag("answerable", default=True):
        return None
    paragraphs = list(row["paragraphs"])
    aliases = [alias.text() for alias in row["answer_aliases"]] if "answer_aliases" in row else []
    return Item(
        row["id"].label(),
        row["question"].filled(),
        tuple(dict.fromkeys(filter(None, [row["answer"].filled(), *aliases]))),
        tuple(titled(one["title"].text(), one["paragraph_text"].text()) for one in paragraphs),
        tuple(i for i, one in enumerate(paragraphs) if one.flag("is_supporting")),
    )
