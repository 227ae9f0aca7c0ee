"""Verify: whether full prefill says the answer that was given from reused KV, and the other way round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from torch import Tensor

from ragcache.engine.plan import plan_prompt
from ragcache.engine.prefill import choose_strategy
from ragcache.engine.request import Request
from ragcache.engine.stream import Stream
from ragcache.index.index import Index
from ragcache.prompt import Prompt

_Z = 1.96


@dataclass(frozen=True, eq=False)
class Given:
    """A greedy answer that was given to a request.

    Attributes
    ----------
    request : Request
        What was asked.
    prompt : Prompt
        What was answered.
    token_ids : tuple of int
        The answer's tokens.
    logits : Tensor
        (vocabulary,) fp32, of its first token.
    ended : bool
        Whether the model itself ended it, rather than the most tokens or a stop string.
    """

    request: Request
    prompt: Prompt
    token_ids: tuple[int, ...]
    logits: Tensor
    ended: bool

    @classmethod
    def of(cls, request: Request, stream: Stream) -> "Given":
        """What a stream has said, once it has been read to its end."""
        answer, sampling = stream.answer, request.sampling
        ended = len(answer.token_ids) < sampling.max_new_tokens and not stream.was_stopped
        return cls(request, stream.prompt, answer.token_ids, stream.logits, ended)


@dataclass(frozen=True)
class Verification:
    """What full prefill says of an answer.

    Attributes
    ----------
    confirmed : bool
        Whether it says the same, token by token, up to the end.
    agreed : int
        Tokens that it says too, before it says another.
    first_token_kl : float
        KL(full prefill || reuse) of the first token, nats.
    instead : str
        What it says in the place of the first other token; empty where it ends there, or is of one mind.
    """

    confirmed: bool
    agreed: int
    first_token_kl: float
    instead: str = ""


def verify_by_full_prefill(given: Given, index: Index) -> Verification:
    """Forward the prompt and the answer behind it once, as full prefill does, and look what it would have said.

    Raises
    ------
    PromptTooLong
        If the prompt and the answer do not fit the model.
    """
    reader = index.reader
    prompt = plan_prompt(given.request.repeated_in_full(given.prompt), index).prompt
    logits, _ = reader.stock([*prompt.token_ids, *given.token_ids], rows=len(given.token_ids) + 1)
    said: list[int] = logits.argmax(-1).tolist()
    wanted = [*given.token_ids, *([None] if given.ended else [])]
    place = next((i for i, token in enumerate(wanted) if not _is_same(said[i], token, reader.stop_ids)), None)
    instead = "" if place is None else reader.tokenizer.decode([said[place]], skip_special_tokens=True)
    agreed = len(given.token_ids) if place is None else place
    return Verification(place is None, agreed, divergence(logits[0], given.logits), instead)


def verify_by_reuse(given: Given, request: Request, index: Index) -> Verification:
    """The same where full prefill gave the answer: whether a request by another method gives it too, as a draft."""
    again = replace(request.repeated(), drafts=(given.token_ids,))
    stream = Stream(index.reader, again, choose_strategy(again.method).prefill(again, index))
    own = Given.of(again, stream)
    agreed = _count_common(own.token_ids, given.token_ids)
    same = own.token_ids == given.token_ids and own.ended == given.ended
    instead = index.reader.tokenizer.decode(list(given.token_ids[agreed : agreed + 1]), skip_special_tokens=True)
    return Verification(same, agreed, divergence(given.logits, own.logits), "" if same else instead)


def divergence(full: Tensor, other: Tensor) -> float:
    """KL(full || other) of two next-token distributions, nats, from their (vocabulary,) logits; inf if one is NaN."""
    if bool(full.isnan().any() or other.isnan().any()):
        return float("inf")
    p, q = full.double().log_softmax(-1), other.double().log_softmax(-1)
    return max(0.0, float((p.exp() * (p - q)).nansum()))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % score interval (Wilson, 1927) of a share of so many; all of it where nothing was counted.

    A bootstrap of fifty agreements out of fifty has no width; this one says that the next may differ.
    """
    if not count:
        return 0.0, 1.0
    squared = _Z**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = _Z * sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def _is_same(said: int, token: int | None, ends: frozenset[int]) -> bool:
    """Whether this token was said; None stands for the end."""
    return said in ends if token is None else said == token


def _count_common(one: Sequence[int], other: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
