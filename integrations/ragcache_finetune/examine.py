"""How a model in training reads: the share of replies that hold the answer, under the mask that it is trained for."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from ragcache_bench.datasets.item import holds
from torch import Tensor
from transformers.cache_utils import DynamicCache

from ragcache.model.architecture import cache_argument
from ragcache_finetune.contexts import Context
from ragcache_finetune.layout import Sample, SampleLayout
from ragcache_finetune.links import activation_dtype, embed
from ragcache_finetune.masks import additive, visible

REPLY = 24
"""Tokens of a reply, at most."""


@torch.inference_mode()
def share_answered(
    model: Any, tokenizer: Any, layout: SampleLayout, contexts: Sequence[Context], *, independent: bool
) -> float:
    """The share of all questions whose greedy reply holds an accepted answer.

    Parameters
    ----------
    model : PreTrainedModel
        Without PEFT's wrap, its layers as they are in training.
    tokenizer : PreTrainedTokenizerBase
        Its tokenizer.
    layout : SampleLayout
        How contexts are read.
    contexts : sequence of Context
        One or more; their chunks are read once for all their questions.
    independent : bool
        Whether chunks are read apart.
    """
    found: list[bool] = []
    for context in contexts:
        sample = layout.sample(context, independent=independent)
        cache = _read(model, sample)
        for number, asked in enumerate(context.asked, 1):
            said = _reply(model, sample, number, copy.deepcopy(cache), layout.end)
            found.append(holds(tokenizer.decode(said, skip_special_tokens=True), asked.answers))
    return sum(found) / len(found)


def _read(model: Any, sample: Sample) -> DynamicCache:
    """The KV of everything in front of the questions."""
    shared, device = sample.branch.index(1), model.device
    cache = DynamicCache(config=model.config)
    inputs = {
        "input_ids": torch.tensor([sample.ids[:shared]], device=device),
        "attention_mask": additive(visible(sample)[:shared, :shared], activation_dtype(model)).to(device),
        "position_ids": torch.tensor([sample.positions[:shared]], device=device),
        "link": torch.tensor([sample.link[:shared]], device=device),
    }
    model.base_model(**embed(model, inputs), **cache_argument(model, cache), use_cache=True)
    return cache


def _reply(model: Any, sample: Sample, branch: int, cache: DynamicCache, end: int) -> list[int]:
    """What is said to a question: it sees everything that was read."""
    asked = [i for i, of in enumerate(sample.branch) if of == branch and not sample.answer[i]]
    ids, position, said = [sample.ids[i] for i in asked], sample.positions[asked[0]], list[int]()
    while len(said) < REPLY:
        logits = _continue(model, ids, position, cache)
        position += len(ids)
        ids = [int(logits.argmax())]
        if ids[0] == end:
            break
        said += ids
    return said


def _continue(model: Any, ids: list[int], position: int, cache: DynamicCache) -> Tensor:
    """(vocabulary,) logits behind the last of some tokens, which see all before them."""
    seen, count = cache.get_seq_length(), len(ids)
    mask = torch.ones(count, seen + count, dtype=torch.bool).tril(seen)
    output = model(
        input_ids=torch.tensor([ids], device=model.device),
        attention_mask=additive(mask, activation_dtype(model)).to(model.device),
        position_ids=torch.arange(position, position + count, device=model.device)[None],
        use_cache=True,
        logits_to_keep=1,
        **cache_argument(model, cache),
    )
    logits: Tensor = output.logits[0, -1]
    return logits
