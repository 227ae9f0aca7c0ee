"""A sample as a model's inputs: who sees whom follows from the layout alone."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ragcache_finetune.layout import Sample

IGNORED = -100  # transformers' sign for a label that is none


def visible(sample: Sample) -> Tensor:
    """(T, T), whether the token of a row sees that of a column.

    None sees those behind it or those of another question; where chunks are read apart, theirs see no other segment.
    """
    chunk, branch = torch.tensor(sample.chunk), torch.tensor(sample.branch)
    seen = torch.ones(len(chunk), len(chunk), dtype=torch.bool).tril()
    seen &= (branch == 0) | (branch == branch[:, None])
    if sample.independent:
        seen &= (chunk[:, None] == 0) | (chunk == chunk[:, None])
    return seen


def additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """(1, 1, rows, columns): 0 where a token is seen, the least number of the dtype elsewhere."""
    hidden = torch.finfo(dtype).min
    return torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, hidden)[None, None]


def collate(samples: Sequence[Sample], dtype: torch.dtype) -> dict[str, Any]:
    """One sample as inputs of a causal model of transformers, whose logits are made where an answer is predicted.

    Parameters
    ----------
    samples : sequence of Sample
        One; a step adds up the gradients of several, so that none is padded.
    dtype : torch.dtype
        Of the mask, which is the model's.
    """
    (sample,) = samples
    ids = torch.tensor(sample.ids)  # (T,)
    at = torch.tensor(sample.answer).nonzero()[:, 0]
    first = torch.tensor([IGNORED])  # the Trainer counts labels from the second on
    return {
        "input_ids": ids[None],
        "attention_mask": additive(visible(sample), dtype),
        "position_ids": torch.tensor(sample.positions)[None],
        "logits_to_keep": at - 1,
        "labels": torch.cat([first, ids[at]])[None],
        "link": torch.tensor(sample.link)[None],
    }
