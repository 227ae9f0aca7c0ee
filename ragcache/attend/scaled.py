"""A temperature and a scale on reused keys."""

from dataclasses import dataclass

from ragcache.attend.protocol import KeyIndices, ScoreMod, reused
from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import ScoreModFunction, Slots
from ragcache.model.prefill_context import PrefillContext


@dataclass(frozen=True)
class Scaled(ScoreMod):
    """APE's attention temperature and scaling factor (2502.05431), for every method that reuses keys.

    With logits s = q k / sqrt(d), reused keys X and all others O: weights within X are softmax(s_X / T), with
    lse_X = log sum exp(s_X / T); X then takes part in the softmax over O with the log-weight S * T * lse_X. S is a
    power on X's partition function, not a factor on logits; T = S = 1 is plain attention. It holds for recomputed rows,
    the question and every decoded token; recomputed and exact keys are exempt (PSR, 2603.20218).

    Attributes
    ----------
    temperature : float
        T <= 1 sharpens (paper: 0.9 in its demo, tuned per task).
    scale : float
        S <= 1 weakens (paper: 0.9 in its demo, tuned per task).
    """

    temperature: float = 0.9
    scale: float = 0.9

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.scale < 0:
            raise InvalidArgument(
                f"temperature is {self.temperature:g} and scale {self.scale:g}; Scaled takes a temperature above 0 "
                "and a scale of 0 or more (1 and 1 change nothing)"
            )

    def score_mod(self, p: PrefillContext, rows: Slots) -> ScoreModFunction | None:
        """Divide reused keys' logits by T, and move them by (S T - 1) times their log-sum-exp."""
        keys, indices = reused(p, rows), KeyIndices()  # (layers, slots)
        if self.temperature == self.scale == 1 or not bool(keys.any()):
            return None

        def modify(layer: int, logits: Tensor) -> Tensor:
            context = indices.of(keys[layer, : logits.shape[-1]], logits.device)  # (reused keys,)
            if not len(context):
                return logits
            sharpened = logits[..., context] / self.temperature  # (heads, rows, reused keys)
            lse = sharpened.logsumexp(-1, keepdim=True)  # (heads, rows, 1)
            moved = sharpened + (self.scale * self.temperature - 1) * lse
            # A row that sees no reused key has -inf everywhere, lse included: nothing to move.
            return logits.index_copy(-1, context, torch.where(lse.isinf(), sharpened, moved))

        return modify
