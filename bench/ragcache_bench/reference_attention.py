"""A prompt read through a dense mask by transformers' own attention and cache: a second way to answer.

Nothing of the engine takes part: no stored KV, no rotation, no scatter. A chunk that sees only itself, at the place
where it stands, has the very keys that naive reuse stitches in. What a mask can say beyond that, the engine need not
know. Where tokens are recomputed, their chunk stands there twice: the others see the *ghost*, which sees only itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ragcache.model.architecture import cache_argument
from ragcache.model.decode import Sampling, decode, pieces
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Template
from ragcache_bench.tasks import Example


@dataclass(frozen=True)
class View:
    """Who sees whom.

    Attributes
    ----------
    alone : bool
        Chunks see themselves only, as in naive reuse; otherwise everything before them, as in full prefill.
    prefixed : bool
        Chunks that are alone see the system prefix too, as if it stood right before them.
    again : int
        That many first tokens of each chunk that is alone are recomputed, seeing everything before them.
    blind : bool
        Neither the question nor the answer sees the first token of any chunk. Where a reader sums a chunk up in the
        first token of the *next* one, a loss by naive reuse says nothing about what the chunks need of each other.
    """

    alone: bool = False
    prefixed: bool = False
    again: int = 0
    blind: bool = False


@dataclass
class Canvas:
    """Tokens at positions, written run by run, and for each run the earlier slots that it sees.

    Attributes
    ----------
    ids, positions : list of int
        Of every slot.
    sees : list of (range, list of int)
        Each run's slots, and what it sees beside itself.
    """

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sees: list[tuple[range, list[int]]] = field(default_factory=list)

    def write(self, ids: Sequence[int], position: int, context: list[int]) -> range:
        """Append a causal run that also sees `context`; return its slots."""
        slots = range(len(self.ids), len(self.ids) + len(ids))
        self.ids += ids
        self.positions += range(position, position + len(ids))
        self.sees.append((slots, list(context)))
        return slots

    def mask(self) -> Tensor:
        """(slots, slots) bool: row sees column."""
        seen = torch.zeros(len(self.ids), len(self.ids), dtype=torch.bool)
        for slots, context in self.sees:
            span = slice(slots.start, slots.stop)
            seen[span, context] = True
            seen[span, span] = torch.ones(len(slots), len(slots), dtype=torch.bool).tril()
        return seen


def lay_out(prompt: Prompt, view: View) -> tuple[Canvas, list[int]]:
    """A prompt as seen through a view, and the slots that its answer sees; its first segment is the prefix."""
    canvas, seen, firsts = Canvas(), list[int](), set[int]()
    chunks, prefix = prompt.chunks(), prompt.segments[0].token_ids
    for i, segment in enumerate(prompt.segments):
        ids, at = segment.token_ids, prompt.slots[i]
        if i not in chunks or not view.alone:
            own = list(canvas.write(ids, at, seen))
        else:
            ghost = canvas.write(ids, at, list(canvas.write(prefix, at - len(prefix), [])) if view.prefixed else [])
            own = [*(canvas.write(ids[: view.again], at, seen) if view.again else ()), *ghost[view.again :]]
        seen += own
        firsts |= {own[0]} if i in chunks else set()
        if view.blind and chunks and i == chunks[-1]:
            seen = [slot for slot in seen if slot not in firsts]
    return canvas, seen


def prompt_of(reader: Reader, example: Example) -> Prompt:
    """A benchmark's question over its chunks, in the reader's own template."""
    template = Template(reader.tokenizer)
    chunks = [template.chunk(text, str(i)) for i, text in enumerate(example.chunks)]
    return template.prompt(chunks, example.question)


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
    cache : DynamicCache
        K and V by the canvas' slots.
    """

    def __init__(self, reader: Reader, prompt: Prompt, view: View) -> None:
        from transformers import DynamicCache

        self._reader = reader
        self.cache = DynamicCache()
        canvas, seen = lay_out(prompt, view)
        self._positions = torch.tensor(canvas.positions)  # (slots,), growing with the answer
        self._later = torch.zeros(len(canvas.ids), dtype=torch.bool)  # (slots,): what the answer's tokens see
        self._later[seen] = True
        self.logits = self._forward(canvas.ids, canvas.mask())

    def step(self, token: int) -> Tensor:
        """Logits after one more token, (vocabulary,) fp32."""
        self._later = torch.cat([self._later, torch.ones(1, dtype=torch.bool)])
        self._positions = torch.cat([self._positions, self._positions[-1:] + 1])
        return self._forward([token], self._later[None])

    @torch.no_grad()
    def _forward(self, token_ids: list[int], seen: Tensor) -> Tensor:
        reader = self._reader
        output = reader.model(
            input_ids=torch.tensor([token_ids], device=reader.device),
            position_ids=self._positions[None, -len(token_ids) :].to(reader.device),
            attention_mask=self._mask(seen),
            use_cache=True,
            logits_to_keep=1,
            **cache_argument(reader.model, self.cache),
        )
        logits: Tensor = output.logits[0, -1].float()
        return logits

    def _mask(self, seen: Tensor) -> Any:
        """The additive mask of the last rows, (1, 1, rows, keys), one per kind of layer where the model has several."""
        config, at = self._reader.model.config, self._positions
        age = at[-len(seen) :, None] - at[None, :]  # (rows, keys)
        window = getattr(config, "sliding_window", None)
        near = seen & (age < window) if window else seen
        if getattr(config, "layer_types", None):
            return {"full_attention": self._additive(seen), "sliding_attention": self._additive(near)}
        return self._additive(near)

    def _additive(self, seen: Tensor) -> Tensor:
        mask = torch.zeros(seen.shape, dtype=self._reader.model.dtype, device=self._reader.device)
        return mask.masked_fill_(~seen.to(self._reader.device), float("-inf"))[None, None]
