"""The tokens that the question attends to."""

from dataclasses import dataclass

from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import ScoreSink, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.mass import Layers, Mass, Reduce, layer_indices
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class QuestionAttention(Selector):
    """Attention mass from the question's rows to each context token, over the stitched, uncorrected cache.

    With A[h, q, t] the attention probability of head h, question row q and token t, the score is, averaged over the
    layers:

    - "sum": sum over h, q of A; "mean": the mean over h, q (the same order)
    - "max": max over h, q of A
    - "norm": sqrt(sum over q of (mean over h of A)^2)

    The published reductions, each over the whole of the question's own text:

    - FusionRAG (2601.12904): `layers="last", reduce="sum"`, the sum over rows and heads of the last layer. That is one
      of several readings of its section on the choice: one softmax over the whole context, the question's own tokens
      included. A softmax over each chunk's keys alone, or raw logits, would choose other tokens.
    - ProphetKV (2602.02579): `layers="all", reduce="mean"`, the mean over rows, heads and all layers.
    - QCFuse (2606.05875): `layers=(13, 14, 17), reduce="max"` for Llama-3.1-8B, the max over heads and rows, then the
      mean over three layers profiled for each model (Mistral-7B: 15, 16, 19; Qwen3-8B: 18, 20, 21; Qwen3-14B: 21, 24,
      26); here over all keys, where QCFuse's own probe reads the layers below from anchors only.
    - InfoFlow (2603.05353): `layers=(22 / 32, 23 / 32, 24 / 32, 25 / 32), reduce="norm"`, the L2 norm over rows of the
      head mean, accumulated over layers 22 to 25 of 32 (indices there, fractions of the depth here: a model with fewer
      layers may have two of them in one).

    The pass costs the question's rows (and any fresh text in the context) through the layers up to the last one scored,
    where it stops. It writes nothing that outlives it: the question is computed again in the final forward.

    Attributes
    ----------
    layers : "last", "all", or tuple of int or float
        Layers to score: indices (negative from the end), or fractions of the depth.
    reduce : {"sum", "mean", "max", "norm"}
        How rows and heads become one number.
    """

    layers: Layers = "last"
    reduce: Reduce = "sum"

    def scores(self, p: PrefillContext) -> Tensor:
        """Attention mass per slot."""
        question = p.question
        in_front = torch.arange(len(p.prompt)) < int(question[0])
        rows = Slots(torch.cat([(p.fresh & in_front).nonzero().squeeze(1), question]))
        before = len(rows) - len(question)
        masses = {layer: Mass(self.reduce, before) for layer in layer_indices(self.layers, p.reader.layers)}
        sinks: dict[int, ScoreSink] = {layer: mass.add for layer, mass in masses.items()}
        p.forward(rows, scores=sinks, stop_after_scores=True)
        total = torch.stack([mass.total() for mass in masses.values()]).mean(0).cpu()  # (keys,)
        scores = torch.full((len(p.prompt),), float("-inf"))
        scores[: total.shape[0]] = total[: len(p.prompt)]
        return scores
