"""Log probabilities of an answer's tokens, as OpenAI's two endpoints give them: before temperature and top_p."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

_Named = tuple[str, float]  # a token's text, and its log probability


@dataclass(frozen=True)
class TokenLogprob:
    """A token of an answer.

    Attributes
    ----------
    token : str
        Its text.
    logprob : float
        Its log probability.
    start : int
        Where it begins in the answer's text, in characters; a part of a character begins where that does.
    likeliest : sequence of (str, float)
        The likeliest tokens in its place, best first.
    """

    token: str
    logprob: float
    start: int
    likeliest: Sequence[_Named] = ()


class Logprobs:
    """Takes the logits of each token before it is chosen, and tells of it once it was.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        Names tokens.
    others : int
        How many of the likeliest are named in each place.
    """

    def __init__(self, tokenizer: Any, others: int) -> None:
        self._tokenizer = tokenizer
        self._others = others
        self._rows: deque[Tensor] = deque()
        self._told = 0

    def watch(self, logits: Tensor) -> None:
        """Take in a token's logits, (vocabulary,)."""
        self._rows.append(logits.float().log_softmax(-1).cpu())

    def take(self, token_ids: Sequence[int], shift: int = 0) -> list[TokenLogprob]:
        """What there is to tell of those tokens of an answer that were chosen since it was last asked.

        The answer's text may have `shift` characters more in front than its tokens, or less; the first token has them.
        """
        first, self._told = self._told, len(token_ids)
        return [
            self._describe(token, self._rows.popleft(), self._start(token_ids[:place], shift))
            for place, token in enumerate(token_ids[first:], start=first)
        ]

    def _describe(self, token: int, row: Tensor, start: int) -> TokenLogprob:
        likeliest = row.topk(self._others).indices.tolist() if self._others else []
        return TokenLogprob(*self._name(token, row), start, [self._name(other, row) for other in likeliest])

    def _name(self, token: int, row: Tensor) -> _Named:
        return self._tokenizer.decode([token]), float(row[token])

    def _start(self, before: Sequence[int], shift: int) -> int:
        """Where a token begins: behind the whole characters of those before it."""
        text = self._tokenizer.decode(list(before), skip_special_tokens=True) if before else ""
        return max(0, len(text.rstrip("\ufffd")) + shift) if before else 0


def as_chat_logprobs(tokens: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
    """Tokens in the shape of `/v1/chat/completions`."""
    if tokens is None:
        return None
    content = [
        {**_named(one.token, one.logprob), "top_logprobs": [_named(*other) for other in one.likeliest]}
        for one in tokens
    ]
    return {"content": content, "refusal": None}


def as_completion_logprobs(tokens: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
    """Tokens in the shape of `/v1/completions`; the one that was chosen is always among the likeliest."""
    if tokens is None:
        return None
    return {
        "tokens": [one.token for one in tokens],
        "token_logprobs": [one.logprob for one in tokens],
        "top_logprobs": [_likeliest(one) for one in tokens],
        "text_offset": [one.start for one in tokens],
    }


def _likeliest(one: TokenLogprob) -> dict[str, float]:
    found: dict[str, float] = {}
    for token, logprob in (*one.likeliest, (one.token, one.logprob)):
        found.setdefault(token, logprob)  # tokens that are parts of characters share a text; the likelier one has it
    return found


def _named(token: str, logprob: float) -> dict[str, Any]:
    data = None if "\ufffd" in token else list(token.encode("utf-8"))  # a part of a character has no text of its own
    return {"token": token, "logprob": logprob, "bytes": data}
