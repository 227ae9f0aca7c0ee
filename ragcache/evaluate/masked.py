"""A prompt read through a dense mask by transformers' own attention and cache: a second way to answer.

Nothing of the engine takes part: no stored KV, no rotation, no scatter. A chunk that sees only itself, at the place
where it stands, has the very keys that naive reuse stitches in. What a mask can say beyond that, the engine need not
know.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ragcache.model.decode import Sampling, decode, pieces
from ragcache.model.reader import Reader
from ragcache.segments import Prompt


@dataclass(frozen=True)
class View:
    """Who sees whom.

    Attributes
    ----------
    alone : bool
        Chunks see themselves only, as in naive reuse; otherwise everything before them, as in full prefill.
    blind : bool
        Neither the question nor the answer sees the first token of any chunk. Where a reader sums a chunk up in the
        first token of the *next* one, a loss by naive reuse says nothing about what the chunks need of each other.
    """

    alone: bool = False
    blind: bool = False

    def sees(self, prompt: Prompt) -> Tensor:
        """(slots, slots) bool: row sees column."""
        seen = torch.ones(len(prompt), len(prompt), dtype=torch.bool).tril()
        chunks = [slice(prompt.slots[i], prompt.slots[i + 1]) for i in prompt.chunks()]
        for span in chunks if self.alone else ():
            seen[span, : span.start] = False
        if self.blind and chunks:
            seen[chunks[-1].stop :, [span.start for span in chunks]] = False
        return seen


def answer(reader: Reader, prompt: Prompt, view: View, sampling: Sampling) -> str:
    """The reader's answer to a prompt seen in this way.

    Parameters
    ----------
    reader : Reader
        Its attention must take a dense mask: sdpa or eager.
    prompt : Prompt
        At positions equal to slots.
    view : View
        Who sees whom.
    sampling : Sampling
        As for the engine.
    """
    reading = Reading(reader, prompt, view)
    tokens = decode(reading.step, reading.logits, prompt.token_ids, sampling, reader.stop_ids)
    return "".join(pieces(tokens, reader.tokenizer, sampling.stop, [])).strip()


class Reading:
    """One prompt, prefilled as seen through a view.

    Attributes
    ----------
    logits : Tensor
        (vocabulary,) fp32, of the first token.
    """

    def __init__(self, reader: Reader, prompt: Prompt, view: View) -> None:
        from transformers import DynamicCache

        self._reader = reader
        self._cache = DynamicCache()
        seen = view.sees(prompt)
        self._later = seen[-1]  # (slots,) bool: what the answer's tokens see of the prompt
        self.logits = self._forward(prompt.token_ids, seen)

    def step(self, token: int) -> Tensor:
        """Logits after one more token, (vocabulary,) fp32."""
        self._later = torch.cat([self._later, torch.ones(1, dtype=torch.bool)])
        return self._forward((token,), self._later[None])

    @torch.no_grad()
    def _forward(self, token_ids: tuple[int, ...], seen: Tensor) -> Tensor:
        reader, end = self._reader, seen.shape[1]
        output = reader.model(
            input_ids=torch.tensor([token_ids], device=reader.device),
            position_ids=torch.arange(end - len(token_ids), end, device=reader.device)[None],
            attention_mask=_mask(reader, seen),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[0, -1].float()
        return logits


def _mask(reader: Reader, seen: Tensor) -> Any:
    """The additive mask of the last rows, (1, 1, rows, keys), one per kind of layer where the model has several."""
    config = reader.model.config
    rows, keys = seen.shape
    age = torch.arange(keys - rows, keys)[:, None] - torch.arange(keys)[None, :]  # (rows, keys)
    window = getattr(config, "sliding_window", None)
    near = seen & (age < window) if window else seen
    if getattr(config, "layer_types", None):
        return {"full_attention": _additive(reader, seen), "sliding_attention": _additive(reader, near)}
    return _additive(reader, near)


def _additive(reader: Reader, seen: Tensor) -> Tensor:
    mask = torch.zeros(seen.shape, dtype=reader.model.dtype, device=reader.device)
    return mask.masked_fill_(~seen.to(reader.device), float("-inf"))[None, None]
