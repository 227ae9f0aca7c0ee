"""Two signals that a token must both have."""

from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class Product(Selector):
    """The product of two selectors' scores, such as what the question looks at times how wrong it is; unpublished.

    Where both scores are finite the score is their product. What either never takes is never taken; what either always
    takes is, unless the other never does.

    Attributes
    ----------
    left, right : Selector
        Their scores are 0 or more.

    Raises
    ------
    InvalidArgument
        When scores are taken, if one of the two gives a negative one: a product of ranks or of minus signs means
        nothing.
    """

    left: Selector
    right: Selector

    @property
    def needs(self) -> tuple[str, ...]:
        """What either needs."""
        return tuple(dict.fromkeys((*self.left.needs, *self.right.needs)))

    @property
    def query_agnostic(self) -> bool:
        """If both are."""
        return self.left.query_agnostic and self.right.query_agnostic

    def begin(self, prompt: Prompt) -> Selector:
        """Both begin."""
        return replace(self, left=self.left.begin(prompt), right=self.right.begin(prompt))

    def close(self) -> None:
        """Both are closed."""
        self.left.close()
        self.right.close()

    def scores(self, p: PrefillContext) -> Tensor:
        """The product, selectable slots only."""
        left, right = _factor(self.left, p), _factor(self.right, p)
        never = (left == float("-inf")) | (right == float("-inf")) | ~p.selectable
        always = (left == float("inf")) | (right == float("inf"))
        scores = torch.where(always, float("inf"), left * right)  # always first: 0 x inf is no number
        return scores.masked_fill(never, float("-inf"))


def _factor(selector: Selector, p: PrefillContext) -> Tensor:
    """A selector's scores, (slots,), none of them a negative number."""
    scores = selector.scores(p)
    usable = scores[p.selectable & scores.isfinite()]
    if bool((usable < 0).any()):
        raise InvalidArgument(
            f"Product multiplies scores of 0 or more, but {selector} gives {float(usable.min()):g}; combine it by "
            "Union, which goes by rank"
        )
    return scores
