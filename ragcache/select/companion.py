"""A model that reads beside the primary one: the same prompt, without any cache."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ragcache.errors import PromptTooLong
from ragcache.model.cost import FlopCounter
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import CHUNK_END, Prompt, Segment
from ragcache.select.mass import layer_indices
from ragcache.select.offsets import spans, spread
from ragcache.select.question_attention import QuestionAttention
from ragcache.select.rendering import rendering

if TYPE_CHECKING:
    from ragcache.model.reader import Reader

SIBLING = "sibling"
_loading = threading.Lock()


@dataclass(frozen=True, eq=False)
class Reading:
    """What the question looked at when another model read the prompt.

    Attributes
    ----------
    masses : tuple of Tensor
        By chunk, (own tokens of the chunk,) fp32.
    spans : tuple of Tensor or None
        By chunk, the characters of each own token; None where its tokens are the primary's.
    flops : float
        What reading cost.
    """

    masses: tuple[Tensor, ...]
    spans: tuple[Tensor, ...] | None
    flops: float

    def onto(self, p: PrefillContext) -> Tensor:
        """The masses on the primary's tokens, (slots,); -inf outside the chunks."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        for n, segment in enumerate(p.prompt.chunks()):
            scores[p.span(segment)] = self._mapped(n, p.prompt.segments[segment], p.reader)
        return scores

    def _mapped(self, chunk: int, segment: Segment, reader: Reader) -> Tensor:
        if self.spans is None:
            return self.masses[chunk]
        others = spans(reader.tokenizer, segment.text + CHUNK_END, segment.token_ids)
        return spread(self.masses[chunk], self.spans[chunk], others)


def read(reader: Reader, asked: Prompt, look: QuestionAttention) -> Reading:
    """Read a prompt up to the end of its question, which is all that can change what the question looks at.

    Parameters
    ----------
    reader : Reader
        May be the primary itself.
    asked : Prompt
        The primary's.
    look : QuestionAttention
        What is taken from the question's rows.

    Raises
    ------
    PromptTooLong
        If the reader takes less than that.
    UnsupportedModel
        If the reader's tokens are not the primary's and its tokenizer gives no character offsets.
    """
    prompt, where = rendering(reader).own(asked)
    end = prompt.slots[prompt.question + 1]
    if end > reader.limit:
        raise PromptTooLong(
            f"the prompt has {len(asked):,} tokens, for which the auxiliary {reader.name} would read {end:,} of its "
            f"own, but it takes {reader.limit:,}; name an auxiliary that takes more, or ask with a smaller --top-k"
        )
    p = PrefillContext(reader, prompt, reader.buffer(end), {}, frozenset(), FlopCounter(reader.dims))
    _prefill(p, deepest=layer_indices(look.layers, reader.layers)[-1])
    mass = look.scores(p)
    return Reading(tuple(mass[p.span(i)] for i in prompt.chunks()), where, p.flop_counter.flops)


def reader_of(model: str | Reader) -> Reader:
    """The auxiliary of that name: loaded once per process, on CPU."""
    if not isinstance(model, str):
        return model
    with _loading:  # two first questions at once must not load it twice
        return _loaded(model)


@cache
def _loaded(name: str) -> Reader:
    from ragcache.bundled import sibling_path
    from ragcache.model.reader import Reader

    return Reader.load(str(sibling_path()) if name == SIBLING else name, device="cpu")


def _prefill(p: PrefillContext, *, deepest: int) -> None:
    """Everything before the question, up to the keys and values of layer `deepest`."""
    context = Slots(torch.arange(int(p.question[0])))
    if len(context):
        p.forward(context, last=deepest)  # nobody looks at what that layer makes of them
        p.fresh[context] = False
