"""What questions look at in a context, differentiably: the auxiliary's importance of tokens, and the labels for it.

CacheClip's first version (2510.10129) tunes its auxiliary for selection; neither its labels nor its loss are public.
The natural ones are derived here:

- A **recompute label** of a token: the share of some budgets at which the primary would recompute it. The primary is
  asked by its own question attention, the mean over layers, heads and question rows, under full prefill, with nothing
  stale in it. At budget r it takes the best r N of the N selectable tokens, a uniform distribution over r N tokens; the
  label is the mean of these distributions, so tokens that every budget takes weigh most.
- The **importance** is what the row `cacheclip` ranks by: the auxiliary's attention from the question's rows to each
  selectable token, the mean over rows and heads of its last layer, here divided by its sum.
- The **loss** is KL(label || importance), the cross entropy with soft targets less the labels' own entropy: 0 where
  the auxiliary ranks as the primary does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from ragcache_bench.agreement import best
from ragcache_bench.questions.worlds import Context
from torch import Tensor
from torch.func import functional_call
from transformers import PreTrainedModel

from ragcache.prompt import Template

SHARES = (0.05, 0.15)
"""Budgets that the labels are made at."""
_FLOOR = 1e-6  # of uniform: attention that underflows to 0 costs much, not infinitely much


@dataclass(frozen=True)
class Asked:
    """A context and its questions in one row: each question sees the context, and no question another.

    Attributes
    ----------
    ids, positions : Tensor
        (1, tokens).
    bias : Tensor
        Additive mask, (1, 1, tokens, tokens).
    questions : tuple of slice
        Tokens of each question's own words.
    selectable : slice
        Tokens of the chunks, without the first one: behind the system prefix its KV is exact.
    """

    ids: Tensor
    positions: Tensor
    bias: Tensor
    questions: tuple[slice, ...]
    selectable: slice


def lay_out(template: Template, context: Context) -> Asked:
    """The prompt that the engine would make, up to the end of the question, for all questions at once."""
    chunks = [template.chunk(text, str(number)).token_ids for number, text in enumerate(context.chunks)]
    ids = [*template.prefix.token_ids]
    first = len(ids) + len(chunks[0])
    ids += [token for chunk in chunks for token in chunk]
    end, positions, spans = len(ids), list(range(len(ids))), []
    for question in context.questions:
        own = template.question(question.text)[0].token_ids
        spans.append(slice(len(ids), len(ids) + len(own)))
        ids += own
        positions += range(end, end + len(own))
    seen = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    for span in spans:
        seen[span, end : span.start] = False
    bias = torch.zeros(seen.shape).masked_fill_(~seen, float("-inf"))[None, None]
    return Asked(torch.tensor([ids]), torch.tensor([positions]), bias, tuple(spans), slice(first, end))


def question_attention(
    model: PreTrainedModel, asked: Asked, *, last: bool, weights: Mapping[str, Tensor] | None = None
) -> Tensor:
    """What each question attends to, the mean over its rows, the heads, and all layers or the `last`.

    Parameters
    ----------
    model : PreTrainedModel
        With eager attention.
    asked : Asked
        Context and questions.
    last : bool
        The last layer alone: `QuestionAttention(layers="last", reduce="mean")`; else `layers="all"`.
    weights : mapping of str to Tensor, optional
        Parameters in the place of the model's own of these names.

    Returns
    -------
    Tensor
        (questions, selectable), differentiable.
    """
    given = {
        "input_ids": asked.ids, "position_ids": asked.positions, "attention_mask": asked.bias,
        "output_attentions": True, "use_cache": False, "logits_to_keep": 1,
    }  # fmt: skip
    layers = functional_call(model, dict(weights or {}), kwargs=given).attentions  # of (1, heads, tokens, tokens)
    rows = [
        torch.stack([layer[0, :, span, asked.selectable].mean((0, 1)) for layer in layers[-1 if last else 0 :]]).mean(0)
        for span in asked.questions
    ]
    return torch.stack(rows)


def recompute_labels(mass: Tensor, shares: Sequence[float] = SHARES) -> Tensor:
    """The mean, over budgets, of a uniform distribution over the tokens that each would take.

    Parameters
    ----------
    mass : Tensor
        (questions, selectable): the primary's.
    shares : sequence of float
        Budgets, as shares of the selectable tokens; at least one token is taken, ties go to the earlier one.

    Returns
    -------
    Tensor
        (questions, selectable); each row sums to 1.
    """
    labels = torch.zeros_like(mass)
    for row, scores in zip(labels, mass, strict=True):
        for share in shares:
            taken = best(scores, share)
            row[taken] += 1 / (len(taken) * len(shares))
    return labels


def importance_loss(mass: Tensor, labels: Tensor) -> Tensor:
    """KL(label || importance) in nats, the mean over questions.

    Parameters
    ----------
    mass : Tensor
        (questions, selectable): the auxiliary's.
    labels : Tensor
        (questions, selectable), rows of sum 1.
    """
    importance = (1 - _FLOOR) * mass / mass.sum(-1, keepdim=True) + _FLOOR / mass.shape[-1]
    divergence = torch.xlogy(labels, labels) - labels * importance.log()
    return divergence.sum(-1).mean()
