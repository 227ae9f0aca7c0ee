"""Log probabilities of an answer's tokens, as OpenAI's chat endpoint gives them: before temperature and top_p."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from torch import Tensor


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

    def take(self, token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """What there is to tell of those tokens of an answer that were chosen since it was last asked."""
        new = token_ids[self._told :]
        self._told = len(token_ids)
        return [self._describe(token, self._rows.popleft()) for token in new]

    def _describe(self, token: int, row: Tensor) -> dict[str, Any]:
        likeliest = row.topk(self._others).indices.tolist() if self._others else []
        return {**self._name(token, row), "top_logprobs": [self._name(other, row) for other in likeliest]}

    def _name(self, token: int, row: Tensor) -> dict[str, Any]:
        text = self._tokenizer.decode([token])
        data = None if "\ufffd" in text else list(text.encode("utf-8"))  # a part of a character has no text of its own
        return {"token": text, "logprob": float(row[token]), "bytes": data}
