"""How far K or V is from what it might be: the score of half of the literature, and of half of our benchmarks."""

from ragcache.model.lazy import Tensor


def moved(ours: Tensor, other: Tensor) -> Tensor:
    """The study's deviation (2603.20218), (…, tokens) fp32: (1/H) sum over kv heads of ||ours[t] - other[t]||^2.

    Both are (…, kv_heads, tokens, head_dim).
    """
    return (ours.float() - other.float()).pow(2).sum(-1).mean(-2)
