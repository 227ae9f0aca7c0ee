"""A second choice at a middle layer, of tokens that were not recomputed before it."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.errors import InvalidArgument
from ragcache.model.deviation import moved
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import HIDDEN, Slots, StopForward, layer_index
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.upload import upload
from ragcache.schedule.protocol import Schedule
from ragcache.schedule.ranking import best


@dataclass(frozen=True)
class Reselect(Schedule):
    """DroidSpeak for chunks: choose again where deviation is no longer at chunk heads (2411.02820; study 2603.20218).

    The selector's best tokens are recomputed up to layer m. There every other token comes back with the hidden state
    that was stored when its chunk was encoded (the paper's E-cache), all of them run through layer m, and the keys that
    layer m + 1 makes of the result are compared with the cached ones: the tokens that deviate most go on, as many as
    before. The dense layers are charged: m's attention and MLP, and, as for `KeyDeviation`, m + 1 for its keys.

    Stored states know nothing but the chunk's own left context, so tokens that come back bring stale states among
    fresh ones: the study found junk. Behind a fused encoding they are contextualised.

    Attributes
    ----------
    layer : int or float
        m, or its share of the depth (study: 5 of 32).
    """

    layer: int | float = 0.5
    needs: ClassVar[tuple[str, ...]] = (HIDDEN,)

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """The first choice."""
        return best(scores, budget, p)

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: PrefillContext) -> Tensor:
        """The first choice up to layer m, everything through it, the second choice from there on."""
        middle = layer_index(self.layer, p.reader.restartable)
        if middle + 1 >= p.reader.restartable:
            raise InvalidArgument(
                f"Reselect(layer={self.layer!r}) is layer {middle} of {p.reader.restartable} that a forward may begin "
                "at; it needs one more above it to rank by: take a lower one"
            )
        if len(rows) in (0, int(p.selectable.sum())):  # nothing, or everything: no second choice
            return p.logits(p.with_fresh(rows))
        chosen = p.with_fresh(rows)
        states, known = _states(p, chosen, p.hidden(chosen, upto=middle))
        deviation = _dense(p, Slots(known.nonzero().squeeze(1)), states, middle)
        again = p.with_fresh(best(deviation, budget, p))
        return p.logits(again, first=middle + 1, hidden=states[upload(again, states.device)])


def _states(p: PrefillContext, chosen: Slots, fresh: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states by slot, (slots, width), as just computed or stored with the chunks; and which are known, (slots,).

    What is exact needs no state: nobody computes it again.
    """
    states = fresh.new_zeros(len(p.prompt), fresh.shape[1])
    known = torch.zeros(len(p.prompt), dtype=torch.bool)
    for segment, kv in p.placed.items():
        if segment not in p.exact and HIDDEN in kv.extras:
            states[p.span(segment)] = upload(kv.extras[HIDDEN], states.device).to(states.dtype)
            known[p.span(segment)] = True
    states[upload(chosen, states.device)] = fresh
    known[chosen] = True
    return states, known


def _dense(p: PrefillContext, rows: Slots, states: Tensor, layer: int) -> Tensor:
    """Run a layer over rows, from their states to those that enter the next one: (slots,) deviation of its keys."""
    scores, here = torch.full((len(p.prompt),), float("-inf")), Slots(upload(rows, states.device))

    def entered(number: int, hidden: Tensor) -> None:
        if number == layer + 1:
            states[here] = hidden

    def measured(number: int, key: Tensor, value: Tensor) -> None:
        if number == layer + 1:
            scores[rows] = moved(key, p.buffer.keys_at(number, here)).cpu()
            p.buffer.write(number, here, key, value)
            raise StopForward

    p.forward(rows, first=layer, hidden=states[here], on_enter=entered, on_update=measured)
    return scores
