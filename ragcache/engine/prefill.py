"""Prefill: everything up to the first token's logits, in full or on reused KV."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from ragcache.encode import PromptEncoder
from ragcache.engine.harvest import harvest_context
from ragcache.engine.load import load_context
from ragcache.engine.plan import plan_prompt
from ragcache.engine.reporting import build_report
from ragcache.engine.request import Request
from ragcache.engine.select import select_tokens
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.decode import Step, VerifyDraft
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.report import CacheReport


@dataclass(frozen=True, eq=False)
class Prefilled:
    """A prompt ready to be answered.

    Attributes
    ----------
    prompt : Prompt
        What was prefilled.
    logits : Tensor
        (vocabulary,) fp32, of the first token.
    step : callable
        Forwards one more token.
    verify_draft : callable or None
        Forwards a draft of what comes next: how many of its tokens greedy decoding says too, and the logits behind
        those; None for full prefill, the baseline, and where layers carry a state: every step is taken.
    report : CacheReport
        What it was made from.
    recomputed : Tensor
        (slots,) bool: reused tokens that were computed again.
    context : PrefillContext or None
        The buffer as it stands behind the prompt, and what it was made with; None for full prefill.
    harvest : callable or None
        To be called behind the answer with its report, which comes back with what it took: keeps the KV of this
        prompt's chunks, where the method does that.
    """

    prompt: Prompt
    logits: Tensor
    step: Step
    verify_draft: VerifyDraft | None
    report: CacheReport
    recomputed: Tensor
    context: PrefillContext | None
    harvest: Callable[[CacheReport], CacheReport] | None = None


class Strategy(Protocol):
    """How a request's prompt is prefilled."""

    def prefill(self, request: Request, index: Index) -> Prefilled:
        """Everything up to the first token's logits."""


class FullPrefill:
    """Every token is computed, with transformers' own attention and cache."""

    def prefill(self, request: Request, index: Index) -> Prefilled:
        """Forward the whole prompt."""
        plan = plan_prompt(request, index)
        reader, prompt, counter = plan.loader.reader, plan.prompt, plan.loader.flop_counter
        counter.charge(torch.arange(len(prompt)), range(reader.layers), selectable=0)  # whole, if it is broken off
        with request.clock.stage("prefill"):
            logits, cache = reader.stock(prompt.token_ids)
        counter.add_lm_head()
        request.clock.note_first_token()
        none = torch.zeros(len(prompt), dtype=torch.bool)
        report = build_report(plan, none)
        return Prefilled(prompt, logits, lambda token: reader.stock([token], cache)[0], None, report, none, None)


class Reuse:
    """Stored KV is loaded, some tokens of it are recomputed, and all fresh text is computed."""

    def prefill(self, request: Request, index: Index) -> Prefilled:
        """Load, select, and compute what is selected together with all fresh text."""
        plan = plan_prompt(request, index)
        with closing(plan):  # an auxiliary reads no further if this is broken off
            context = load_context(plan)
            chosen = select_tokens(plan, context)
        with request.clock.stage("prefill"):
            logits = request.method.schedule.logits(chosen.scores, chosen.tokens, chosen.ratio, context)
        context.recomputed[chosen.tokens] = True
        request.clock.note_first_token()
        session = DecodeSession(context, logits)
        verify = None if context.reader.states else session.verify_draft  # a state does not go back
        report = build_report(plan, context.recomputed, context)
        return Prefilled(
            plan.prompt, logits, session.step, verify, report, context.recomputed, context,
            partial(harvest_context, plan, context) if isinstance(request.method.encode, PromptEncoder) else None,
        )  # fmt: skip


def choose_strategy(method: Method) -> Strategy:
    """Full prefill for a row that loads nothing, reuse for any other."""
    return FullPrefill() if method.encode is None else Reuse()


class DecodeSession:
    """What comes behind a prompt, from our buffer."""

    def __init__(self, context: PrefillContext, logits: Tensor) -> None:
        self._context = context
        self._logits = logits
        self._count = 0

    def step(self, token: int) -> Tensor:
        """Forward one more token."""
        self._count += 1
        return self._context.append([token], self._count - 1)[-1]

    def verify_draft(self, draft: Sequence[int]) -> tuple[int, Tensor]:
        """Forward what a draft says next, and keep what greedy decoding says too."""
        rows = torch.cat([self._logits[None], self._context.append(draft, self._count)])  # (tokens + 1, vocabulary)
        said = rows.argmax(-1).tolist()
        kept = next((i for i, token in enumerate(draft) if said[i] != token), len(draft))
        self._count, self._logits = self._count + kept, rows[kept]
        return kept, self._logits
