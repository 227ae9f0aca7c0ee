"""How chunks are found: by one ranking, or by several that are fused."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, get_args

Retriever = Literal["dense", "hybrid", "iterative"]
"""How chunks are found: by their vectors; by their words too; by those and their sentences, and again with the best."""

RETRIEVERS: tuple[Retriever, ...] = get_args(Retriever)
DEFAULT_RETRIEVER: Retriever = "hybrid"
_DAMPING = 60


def fuse_ranks(*rankings: Sequence[str]) -> list[str]:
    """Return all that is ranked, best first by reciprocal rank fusion: the sum of 1 / (60 + rank).

    Parameters
    ----------
    *rankings : sequence of str
        Ids, best first, each once; what a ranking lacks gets nothing from it. Ties keep the order of the first ranking.

    References
    ----------
    Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods",
    SIGIR 2009.
    """
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] += 1 / (_DAMPING + rank)
    return sorted(scores, key=lambda name: -scores[name])
