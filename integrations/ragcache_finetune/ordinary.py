"""What training costs elsewhere: how likely a model finds its own former replies to ordinary prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F

PROMPTS = (
    "What is the capital of Australia?",
    "Explain what a black hole is to a child.",
    "Give me three tips for sleeping better.",
    "How do I boil an egg?",
    "Name five fruits.",
    "Write a haiku about the sea.",
    "Why is the sky blue?",
    "Write a Python function that reverses a string.",
    "How many days are in a leap year?",
    "What are the benefits of exercise?",
    "Write a thank-you note to a teacher.",
    "What is the past tense of 'go'?",
)
REPLY = 32
"""Tokens of a reply, at most."""


@dataclass(frozen=True)
class Reply:
    """A prompt's tokens, and what the untrained model said to it greedily."""

    ids: list[int]
    said: list[int]


@torch.inference_mode()
def replies(model: Any, tokenizer: Any) -> list[Reply]:
    """What a model says to the prompts."""
    found = []
    for text in PROMPTS:
        ids = _ids(tokenizer, text)
        given = torch.tensor([ids], device=model.device)
        out = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=REPLY, do_sample=False)
        found.append(Reply(ids, out[0, len(ids) :].tolist()))
    return found


@torch.inference_mode()
def nats(model: Any, former: Sequence[Reply]) -> float:
    """Negative log-likelihood a token of former replies, in nats: a mean over the prompts."""
    return fmean(_nats(model, one) for one in former if one.said)


def leading_space(tokenizer: Any, former: Sequence[Reply]) -> str:
    """What a model says in front of its first word: a space where most replies begin with one."""
    begun = [tokenizer.decode(one.said, skip_special_tokens=True).startswith(" ") for one in former if one.said]
    return " " if sum(begun) * 2 > len(begun) else ""


def _nats(model: Any, reply: Reply) -> float:
    whole = torch.tensor([[*reply.ids, *reply.said]], device=model.device)
    logits = model(whole, use_cache=False).logits[0, len(reply.ids) - 1 : -1].float()  # (said, vocabulary)
    return float(F.cross_entropy(logits, whole[0, len(reply.ids) :]))


def _ids(tokenizer: Any, text: str) -> list[int]:
    if not getattr(tokenizer, "chat_template", None):
        return list(tokenizer(text)["input_ids"])
    messages = [{"role": "user", "content": text}]
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(rendered, add_special_tokens=False)["input_ids"])
