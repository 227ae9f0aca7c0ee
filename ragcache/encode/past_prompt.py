"""What a chunk stood behind in a prompt that was answered, and what its KV is worth behind something else."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp
from operator import truediv
from statistics import fmean
from typing import Any, Self


@dataclass(frozen=True)
class PastPrompt:
    """The context of a harvested KV, with the sums that Cache-Craft (2502.15734) judges its reuse by.

    With A the attention probabilities of one layer, mean over heads, C the chunk and C_j a chunk in front of it:
    inter_j = sum over tokens t of C and u of C_j of A[t, u], and intra = the sum over t and u of C, u <= t.

    Attributes
    ----------
    before : tuple of str
        Ids of the chunks that stood in front, in order.
    lengths : tuple of int
        Tokens of each.
    tokens : int
        Of the chunk itself.
    inter : tuple of tuple of float
        Of each layer, inter_j of each chunk in front.
    intra : tuple of float
        Of each layer.
    """

    before: tuple[str, ...]
    lengths: tuple[int, ...]
    tokens: int
    inter: tuple[tuple[float, ...], ...]
    intra: tuple[float, ...]

    @property
    def cci(self) -> float:
        """CCI, in [1/2, 1): how much the chunk looked at others rather than at itself.

        sigma(a / b), where a is the layer mean of sum over j of inter_j / (|C| |C_j|) and b that of intra / |C|^2.
        """
        others = fmean(sum(map(truediv, layer, self.lengths)) for layer in self.inter) / self.tokens
        own = fmean(self.intra) / self.tokens**2
        return 1 / (1 + exp(-others / own))

    def overlap(self, ahead: Sequence[str]) -> float:
        """Beta' = beta (1 - gamma): how much of what the chunk looked at stands in front of it now, in its old order.

        beta is the share of inter, over all layers, of the chunks that are among those `ahead`; gamma the Kendall tau
        distance between the two orders of the common ones, 0 for the same and 1 for the reverse. Where it looked at
        nothing in front, nothing is left of it either: 0, unless nothing stands there now.
        """
        looked = dict.fromkeys(self.before, 0.0)
        for layer in self.inter:
            for chunk, inter in zip(self.before, layer, strict=True):
                looked[chunk] += inter
        whole = sum(looked.values())
        if not whole:
            return float(not ahead)
        common = [chunk for chunk in looked if chunk in ahead]
        places = [ahead.index(chunk) for chunk in common]
        pairs = [first > second for first, second in combinations(places, 2)]
        return sum(looked[chunk] for chunk in common) / whole * (1 - (fmean(pairs) if pairs else 0.0))

    def overhead(self, ahead: Sequence[str]) -> float:
        """CCI (1 - beta'): the cache fix overhead at alpha = 1 behind the chunks `ahead`."""
        return self.cci * (1 - self.overlap(ahead))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `dataclasses.asdict` and JSON made of one."""
        inter = tuple(tuple(layer) for layer in values["inter"])
        before, lengths, intra = (tuple(values[name]) for name in ("before", "lengths", "intra"))
        return cls(before, lengths, values["tokens"], inter, intra)
