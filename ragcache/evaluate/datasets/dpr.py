"""Questions with retrieved passages: DPR's files (2004.04906), those of Lost in the Middle (2307.03172), CacheBlend's.

One passage is the evidence: the one marked gold, else the first marked as having the answer. Others that have the
answer too are left out, so that it is known which one is needed. Nothing marked, nothing known: all stay.
"""

from collections.abc import Sequence

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import Item, titled

_HAS = ("hasanswer", "has_answer")


def item(row: Node) -> Item:
    """Make an item of one record."""
    question, answers = row["question"].filled(), row["answer" if "answer" in row else "answers"].texts()
    passages, gold = _training(row) if "positive_ctxs" in row else _retrieved(list(row["ctxs"]))
    return Item(row["id"].label() if "id" in row else "", question, answers, tuple(map(_passage, passages)), gold)


def _retrieved(found: Sequence[Node]) -> tuple[list[Node], tuple[int, ...]]:
    having = [one for one in found if any(one.flag(key) for key in _HAS)]
    needed = next((one for one in found if one.flag("isgold")), having[0] if having else None)
    kept = [one for one in found if one is needed or one not in having]
    return kept, () if needed is None else (kept.index(needed),)


def _training(row: Node) -> tuple[list[Node], tuple[int, ...]]:
    positive = list(row["positive_ctxs"])
    if not positive:
        raise row["positive_ctxs"].wrong("at least one passage")
    others = [one for key in ("hard_negative_ctxs", "negative_ctxs") if key in row for one in row[key]]
    return [positive[0], *others], (0,)


def _passage(node: Node) -> str:
    return titled(node["title"].text() if "title" in node else "", node["text"].filled())
