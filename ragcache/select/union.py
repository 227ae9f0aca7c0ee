"""Two rankings under one budget."""

from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class Union(Selector):
    """The best of two selectors side by side, such as first tokens and what the question looks at; unpublished.

    With ranks from 1 over the selectable tokens, the score is -min(rank_first / share, rank_second / (1 - share)):
    whatever the budget, the best k tokens are the best of the first ranking and the best of the second, in the ratio
    share to 1 - share, and a token that both rank high counts once. Only the order of the two scores matters, so they
    may be of any kind. Where one never takes a token the other's rank alone counts; what either always takes is taken.

    Attributes
    ----------
    first, second : Selector
        Each with its own ranking.
    share : float
        Of the first, in [0, 1] (tuned here).
    """

    first: Selector
    second: Selector
    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidArgument(f"share is {self.share:g}; it is the first selector's part, between 0 and 1")

    @property
    def needs(self) -> tuple[str, ...]:
        """What either needs."""
        return tuple(dict.fromkeys((*self.first.needs, *self.second.needs)))

    @property
    def query_agnostic(self) -> bool:
        """If both are."""
        return self.first.query_agnostic and self.second.query_agnostic

    def begin(self, prompt: Prompt) -> Selector:
        """Both begin."""
        return replace(self, first=self.first.begin(prompt), second=self.second.begin(prompt))

    def close(self) -> None:
        """Both are closed."""
        self.first.close()
        self.second.close()

    def scores(self, p: PrefillContext) -> Tensor:
        """Minus the better of the two weighted ranks, selectable slots only."""
        first, second = self.first.scores(p), self.second.scores(p)
        ranks = torch.minimum(_ranks(first, p) / self.share, _ranks(second, p) / (1 - self.share))  # (slots,)
        always = ((first == float("inf")) | (second == float("inf"))) & p.selectable
        return (-ranks).masked_fill(always, float("inf"))


def _ranks(scores: Tensor, p: PrefillContext) -> Tensor:
    """Rank from 1, best first, over selectable tokens; infinite for what is never taken. (slots,) fp32."""
    candidates = (p.selectable & (scores > float("-inf"))).nonzero().squeeze(1)
    order = candidates[scores[candidates].argsort(descending=True, stable=True)]  # ties: the earlier slot first
    ranks = torch.full_like(scores, float("inf"))
    ranks[order] = torch.arange(1, len(order) + 1, dtype=ranks.dtype)
    return ranks
