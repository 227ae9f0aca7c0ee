"""The token loop: sampling through transformers' own processors, text as it becomes certain, stop strings.

The loop knows nothing of buffers: it is handed the first token's logits and a `step` that returns the next ones, so the
same loop decodes from assembled chunk KV and from the stock cache.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from ragcache.checks import MOST, check_count, check_number, check_stops
from ragcache.errors import UnsupportedModel
from ragcache.model.lazy import Tensor, torch
from ragcache.model.prompt_lookup import PromptLookup
from ragcache.model.upload import upload

_COLD, _MOST = 1e-6, 1e6  # logits that are divided by less, or by more, are no numbers any more, or all alike
_PENALTIES = 0.01, 100

#: Forwards one token and returns the next logits, (vocabulary,) fp32.
Step = Callable[[int], Tensor]
#: Takes a draft of the answer's next tokens; gives how many of them hold, and the logits behind those.
VerifyDraft = Callable[[Sequence[int]], tuple[int, Tensor]]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; greedy unless `temperature` is above 0.

    Attributes
    ----------
    max_new_tokens : int
        Most tokens of the answer.
    temperature, top_k, top_p, repetition_penalty : float
        As in transformers' `GenerationConfig`; a temperature below 1e-6 is greedy, as which it cannot be told apart.
    seed : int or None
        Makes sampling repeatable; None draws anew every time.
    stop : tuple of str
        The answer ends before the first of these strings.
    prompt_lookup_num_tokens : int
        Most tokens that are drafted at once from what the prompt says, and verified by a single forward; 0 is off. Only
        where decoding is greedy, without a repetition penalty and from reused KV; see `PromptLookup`.
    """

    max_new_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    prompt_lookup_num_tokens: int = 8

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From options as frameworks name them, `max_tokens` among them; what is None or unknown is left out."""
        given = {name: value for name, value in options.items() if value is not None}
        given.setdefault("max_new_tokens", given.get("max_tokens", cls.max_new_tokens))
        chosen = {one.name: given[one.name] for one in fields(cls) if one.name in given}
        stop = chosen.get("stop", ())
        return cls(**{**chosen, "stop": (stop,) if isinstance(stop, str) else tuple(stop)})

    def __post_init__(self) -> None:
        check_count("max_new_tokens", self.max_new_tokens, 1, "an answer needs at least 1")
        check_number("temperature", self.temperature, 0, _MOST, "it must be 0 (greedy) or above")
        check_count("top_k", self.top_k, 0, "it must be 0 (all tokens) or above")
        check_number("top_p", self.top_p, 0, 1, "it must be above 0 and at most 1 (all tokens)", above=True)
        least, most = _PENALTIES
        hint = f"it must be from {least} to {most} (1 is none)"
        check_number("repetition_penalty", self.repetition_penalty, least, most, hint)
        check_stops(self.stop)
        check_count("prompt_lookup_num_tokens", self.prompt_lookup_num_tokens, 0, "it must be 0 (off) or above")
        if self.seed is not None:
            check_count("seed", self.seed, -MOST, f"it must be from {-MOST:,} to {MOST:,}")
            check_count("seed", -self.seed, -MOST, f"it must be from {-MOST:,} to {MOST:,}")
        for name in ("max_new_tokens", "top_k", "prompt_lookup_num_tokens", "seed"):
            if (value := getattr(self, name)) is not None:  # of numpy, perhaps, which torch and transformers refuse
                object.__setattr__(self, name, int(value))
        if self.temperature < _COLD:
            object.__setattr__(self, "temperature", 0.0)

    @property
    def verifiable(self) -> bool:
        """Whether the next token is the likeliest one, whatever was drafted: only then can a draft be verified."""
        return self.temperature == 0 and self.repetition_penalty == 1


def decode(
    step: Step, logits: Tensor, prompt: Sequence[int], sampling: Sampling, stop_ids: Collection[int]
) -> Iterator[int]:
    """Yield the answer's token ids; the one that ends the answer is not among them.

    Parameters
    ----------
    step : callable
        Forwards a token.
    logits : Tensor
        (vocabulary,) of the first token.
    prompt : sequence of int
        What the repetition penalty looks at, with the answer so far.
    sampling : Sampling
        How tokens are chosen.
    stop_ids : collection of int
        Tokens that end the answer.
    """
    choose = _chooser(sampling, logits.device)
    seen = list(prompt)
    for produced in range(1, sampling.max_new_tokens + 1):
        token = choose(seen, logits)
        if token in stop_ids:
            return
        seen.append(token)
        yield token
        if produced < sampling.max_new_tokens:
            logits = step(token)


def decode_drafts(
    verify_draft: VerifyDraft, logits: Tensor, prompt: Sequence[int], sampling: Sampling, stop_ids: Collection[int]
) -> Iterator[int]:
    """Yield the token ids that `decode` yields greedily, from fewer forwards where the answer quotes the prompt.

    Parameters
    ----------
    verify_draft : callable
        Forwards a draft.
    logits, prompt, sampling, stop_ids
        As `decode` takes them; what is drafted is looked up in the prompt, and in the answer so far.
    """
    lookup: PromptLookup | None = None
    left = sampling.max_new_tokens
    while (token := int(logits.argmax())) not in stop_ids:
        yield token
        left -= 1
        if not left:
            return
        lookup = lookup or PromptLookup(prompt, sampling.prompt_lookup_num_tokens)  # the first token waits for nothing
        lookup.append(token)
        draft = lookup.draft(left - 1)  # the answer's last token needs no forward
        kept, logits = verify_draft([token, *draft])
        if draft:
            lookup.note_kept(kept - 1)
        for token in draft[: kept - 1]:
            if token in stop_ids:
                return
            lookup.append(token)
            yield token
            left -= 1


def pieces(tokens: Iterator[int], tokenizer: Any, stop: Sequence[str], sink: list[int]) -> Iterator[str]:
    """Text of the tokens, piece by piece, as soon as it is certain.

    A piece is held back while its last character is incomplete or could be the beginning of a stop string.

    Parameters
    ----------
    tokens : iterator of int
        From `decode`.
    tokenizer : PreTrainedTokenizerBase
        Turns ids into text.
    stop : sequence of str
        The text ends before the first of these.
    sink : list of int
        Collects the token ids.
    """
    given = 0
    text = ""
    for token in tokens:
        sink.append(token)
        text = tokenizer.decode(sink, skip_special_tokens=True)
        end = _first_stop(text, stop)
        if end is not None:
            yield from _rest(text[:end], given)
            return
        certain = len(text) - _held_back(text, stop)
        if certain > given:
            yield text[given:certain]
            given = certain
    yield from _rest(text, given)


def _rest(text: str, given: int) -> Iterator[str]:
    if len(text) > given:
        yield text[given:]


def _first_stop(text: str, stop: Sequence[str]) -> int | None:
    found = [at for at in (text.find(word) for word in stop) if at >= 0]
    return min(found, default=None)


def _held_back(text: str, stop: Sequence[str]) -> int:
    """Characters at the end that the next token may still change or make part of a stop string."""
    whole = text.rstrip("\ufffd")  # what stands for a character that is not complete yet
    longest = len(whole) + 1
    starts = [size for word in stop for size in range(1, min(len(word), longest)) if whole.endswith(word[:size])]
    return len(text) - len(whole) + max(starts, default=0)


def _chooser(sampling: Sampling, device: "torch.device") -> Callable[[list[int], Tensor], int]:
    from transformers.generation.logits_process import (
        LogitsProcessorList,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    processors = LogitsProcessorList()
    if sampling.repetition_penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(float(sampling.repetition_penalty)))
    if sampling.temperature > 0:
        processors.append(TemperatureLogitsWarper(float(sampling.temperature)))
        if sampling.top_k > 0:
            processors.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1.0:
            processors.append(TopPLogitsWarper(sampling.top_p))
    generator = torch.Generator(device)
    if sampling.seed is None:
        generator.seed()  # a new generator has the same seed every time
    else:
        generator.manual_seed(sampling.seed)

    looks_back = sampling.repetition_penalty != 1.0

    def choose(seen: list[int], logits: Tensor) -> int:
        before = upload([seen if looks_back else []], device)  # (1, seen)
        scores = processors(before, logits[None])[0] if processors else logits
        if sampling.temperature == 0:
            return int(scores.argmax())
        probabilities = scores.softmax(-1)
        if bool(probabilities.isnan().any()):  # on a GPU such a draw would end the process
            raise UnsupportedModel(
                "the model's logits are no numbers; load it in another number format, by --dtype float32"
            )
        return int(torch.multinomial(probabilities, 1, generator=generator))

    return choose
