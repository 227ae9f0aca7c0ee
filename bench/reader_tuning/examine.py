"""What a model answers, greedily: whether the gold answer is in the reply, and whether it is all of it."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from ragcache_bench.datasets.item import holds
from ragcache_bench.metrics import exact_match
from transformers.cache_utils import DynamicCache

from ragcache.model.architecture import cache_argument
from reader_tuning.contexts import Context
from reader_tuning.rows import Layout

_TOKENS = 24  # of a reply, at most


@dataclass(frozen=True)
class Reply:
    """A question, what is accepted, and what the model said."""

    question: str
    answers: tuple[str, ...]
    text: str

    @property
    def holds(self) -> bool:
        """Whether an accepted answer is in the reply."""
        return holds(self.text, self.answers)

    @property
    def exact(self) -> float:
        """Exact match, as the benchmark scores it."""
        return exact_match(self.text, self.answers)


def shares(replies: Sequence[Reply]) -> dict[str, float]:
    """Number of replies, share that holds an accepted answer, share that is one."""
    return {
        "n": len(replies),
        "holds": round(fmean(reply.holds for reply in replies), 3),
        "exact": round(fmean(reply.exact for reply in replies), 3),
    }


@torch.inference_mode()
def examine(model: Any, layout: Layout, contexts: Iterable[Context]) -> list[Reply]:
    """Answer every question of every context; the passages are read once for all of a context's questions."""
    found = []
    for context in contexts:
        prompts = [layout.prompt(context, question) for question, _ in context.asked]
        if not prompts:
            continue
        shared = prompts[0].slots[prompts[0].question]
        cache = DynamicCache(config=model.config)
        read = torch.tensor([prompts[0].token_ids[:shared]], device=model.device)
        model.model(read, **cache_argument(model.model, cache))
        for prompt, (question, answers) in zip(prompts, context.asked, strict=True):
            ids = _continue(model, copy.deepcopy(cache), list(prompt.token_ids[shared:]), layout.end)
            text = layout.tokenizer.decode(ids, skip_special_tokens=True).strip()
            found.append(Reply(question, answers, text))
    return found


def _continue(model: Any, cache: DynamicCache, ids: list[int], end: int) -> list[int]:
    said: list[int] = []
    while len(said) < _TOKENS:
        given = torch.tensor([ids], device=model.device)
        logits = model(given, logits_to_keep=1, **cache_argument(model, cache)).logits
        ids = [int(logits[0, -1].argmax())]
        if ids[0] == end:
            break
        said += ids
    return said
