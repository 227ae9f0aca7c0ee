"""LongBench's question answering: one long context a question (2308.14508).

Gold are the pieces which contain an answer: where an answer takes several steps, only the last is found.
"""

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import Item, closed, containing
from ragcache.evaluate.datasets.pieces import pieces


def item(row: Node, words: int) -> Item:
    """Make an item of one record, the context in its passages or in pieces of at most so many words.

    Summaries and code completion ask nothing and are refused.
    """
    question, answers = row["input"].filled(), row["answers"].texts()
    passages = pieces(row["context"].filled(), words)
    gold = () if closed(answers) else containing(passages, answers)
    return Item(row["_id"].label() if "_id" in row else "", question, answers, passages, gold)
