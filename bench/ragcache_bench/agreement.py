"""How far an auxiliary model looks at what the primary would: CacheClip's key claim (2510.10129), measured."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ragcache.errors import InvalidArgument
from ragcache.model.cost import FlopCounter
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import Auxiliary

_FLOOR = 1e-6  # of uniform: attention that underflows to 0 costs much, not infinitely much


@dataclass(frozen=True)
class Agreement:
    """Two score vectors over the same tokens.

    Attributes
    ----------
    kl : float
        KL(primary || auxiliary) in nats, of the scores normalised to distributions; 0 where they are equal.
    overlap : float
        Share of the primary's best tokens that are among the auxiliary's best as many, in [0, 1].
    """

    kl: float
    overlap: float


def agreement(auxiliary: Tensor, primary: Tensor, share: float) -> Agreement:
    """Compare what two selectors give to the selectable tokens of one prompt.

    Parameters
    ----------
    auxiliary, primary : Tensor
        (selectable tokens,), finite, 0 or more, not all 0.
    share : float
        The best tokens are this share of all, rounded as `Flat` does and at least one; ties go to the earlier one.

    Raises
    ------
    InvalidArgument
        If the two cannot be compared, or the share is outside (0, 1].
    """
    if auxiliary.shape != primary.shape:
        raise InvalidArgument(f"{len(auxiliary)} scores cannot be compared with {len(primary)}; score the same tokens")
    if not 0 < share <= 1:
        raise InvalidArgument(f"share is {share:g}; the best tokens are a share above 0 and up to 1")
    q, p = _distribution(auxiliary), _distribution(primary)
    wanted = best(primary, share)
    shared = torch.isin(wanted, best(auxiliary, share)).sum()
    return Agreement(kl=float((p * (p / q).log()).sum()), overlap=float(shared) / len(wanted))


def looks(auxiliary: Auxiliary, p: PrefillContext) -> tuple[Tensor, Tensor]:
    """What an auxiliary gives to the selectable tokens of a prompt, and what the primary does in its place.

    Both read the whole prompt; nothing is charged to the pass.
    """
    aside = replace(p, flop_counter=FlopCounter(p.flop_counter.dims))
    itself = replace(auxiliary, model=p.reader)
    found, wanted = (selector.scores(aside)[p.selectable] for selector in (auxiliary, itself))
    return found, wanted


def best(scores: Tensor, share: float) -> Tensor:
    """Indices of the best scores, at least one, ties to the earlier one."""
    return scores.argsort(descending=True, stable=True)[: max(1, round(share * len(scores)))]


def _distribution(scores: Tensor) -> Tensor:
    """Scores as shares of their sum, (tokens,) fp64, a little of each token's spread over all."""
    if not bool((scores >= 0).all() and scores.isfinite().all() and (scores > 0).any()):
        raise InvalidArgument(
            f"{len(scores)} scores between {scores.min() if len(scores) else 'nothing'} and "
            f"{scores.max() if len(scores) else 'nothing'} make no distribution; compare attention over the selectable "
            "tokens of one prompt"
        )
    shares = scores.double() / scores.double().sum()
    return (1 - _FLOOR) * shares + _FLOOR / len(scores)
