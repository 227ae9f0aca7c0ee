"""Many tokens in the first layers, few in the last."""

from dataclasses import dataclass
from typing import Literal

from ragcache.errors import InvalidArgument
from ragcache.model.deviation import moved
from ragcache.model.lazy import Tensor
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.upload import upload
from ragcache.schedule.protocol import Schedule
from ragcache.schedule.ranking import best, top


@dataclass(frozen=True)
class ProgressivePruning(Schedule):
    """CacheBlend's gradual filtering (2405.16444, section 4.3), for the scores of any selector.

    Layer l of L recomputes the share r * (1 + spread * (1 - 2 l / (L - 1))) of the selectable tokens, a straight line
    whose mean over layers is the budget r; it never begins above 1, so that r = 1 is all of them everywhere. Layers
    that the selector's own pass has left fresh for every token (CacheBlend's 0 and 1) are no part of the line: it
    begins behind them, and the budget is spent where something is reused. A token that has left doesn't come back: its
    hidden state ends there, and later layers keep its reused K and V.

    Attributes
    ----------
    spread : float
        0 is `Flat`, 1 ends with nothing but fresh text (tuned here: none, the paper gives no curve).
    by : {"scores", "deviation"}
        Who stays: the selector's best, or, as in the paper, those whose keys moved most in the layer they have just
        been through. The selector's scores decide while no key has moved.
    """

    spread: float = 0.5
    by: Literal["scores", "deviation"] = "scores"

    def __post_init__(self) -> None:
        if not 0 <= self.spread <= 1:
            raise InvalidArgument(f"spread is {self.spread:g}; ProgressivePruning takes one between 0 (flat) and 1")

    def share(self, layer: int, layers: int, budget: float) -> float:
        """The share of the selectable tokens that a layer recomputes, of those layers that the line runs over."""
        spread = min(self.spread, (1 - budget) / budget) if budget else 0.0
        return budget * (1 + spread * (1 - 2 * layer / max(1, layers - 1)))

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """What the first layer recomputes."""
        first = _first_reused(p)
        return best(scores, self.share(0, p.reader.layers - first, budget), p)

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: PrefillContext) -> Tensor:
        """One forward that rows leave on the way."""
        first = p.with_fresh(rows)
        leaving = _Leaving(self, scores, first, budget, p)
        return p.logits(first, prune=leaving.prune, on_update=leaving.measure)


class _Leaving:
    """Who is left, layer by layer.

    How many leave is known beforehand. Who leaves by deviation is decided where the keys are: an accelerator is not
    waited for in every layer.
    """

    def __init__(
        self, schedule: ProgressivePruning, scores: Tensor, first: Slots, budget: float, p: PrefillContext
    ) -> None:
        self._schedule = schedule
        self._scores = scores
        self._budget = budget
        self._context = p
        self._layer = _first_reused(p)
        self._rows = first  # on the CPU, while it is the scores that decide
        self._left = int(p.selectable[first].sum())  # selectable rows
        self._fresh = len(first) - self._left
        self._here = first  # the rows' slots on the model's device
        self._moved: Tensor | None = None  # (rows,) squared deviation of the current rows' keys in the last layer
        self._selectable = upload(p.selectable, p.reader.device)

    def measure(self, layer: int, key: Tensor, value: Tensor) -> None:
        """How far the current rows' keys, (kv_heads, rows, head_dim), are from those they replace."""
        # Where a selector's own pass has left fresh keys, what moves them is rounding.
        if self._schedule.by == "deviation" and bool(self._context.stale[layer].any()):
            self._moved = moved(key, self._context.buffer.keys_at(layer, self._here))

    def prune(self, layer: int, slots: Slots) -> Tensor | None:
        """The rows that go on into a layer."""
        p, self._here = self._context, slots
        share = self._schedule.share(max(0, layer - self._layer), p.reader.layers - self._layer, self._budget)
        count = share * int(p.selectable.sum())
        if round(count) >= self._left:
            return None
        stay = self._by_scores(count) if self._moved is None else self._by_deviation(self._moved, round(count))
        self._left = len(stay) - self._fresh
        here = upload(stay, slots.device)
        self._here = Slots(slots[here])
        self._moved = None if self._moved is None else self._moved[here]  # a layer without keys of its own moves none
        return stay

    def _by_scores(self, count: float) -> Tensor:
        """Indices of the rows with the best scores, and of all fresh ones."""
        selectable = self._context.selectable[self._rows]  # (rows,)
        stay, candidates = ~selectable, selectable.nonzero().squeeze(1)
        stay[candidates[top(self._scores[self._rows[candidates]], count)]] = True
        self._rows = Slots(self._rows[stay])
        return stay.nonzero().squeeze(1)

    def _by_deviation(self, deviation: Tensor, count: int) -> Tensor:
        """Indices of the rows that moved most, and of all fresh ones, on the device."""
        values = deviation.nan_to_num().masked_fill(~self._selectable[self._here], float("inf"))  # (rows,)
        order = values.argsort(descending=True, stable=True)[: self._fresh + count]
        return order.sort().values


def _first_reused(p: PrefillContext) -> int:
    """The first layer in which something is still reused; 0 where nothing is."""
    reused = p.stale.any(1).nonzero()
    return int(reused[0]) if len(reused) else 0
