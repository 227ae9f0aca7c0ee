"""A model that reads beside the primary one: the same prompt, without any cache."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ragcache.errors import PromptTooLong
from ragcache.model.checkpoint import check_model
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
SIBLING_TUNED = "sibling-tuned"
SIBLING_TOKENS = 2100  # its longest context in training
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
    tokens : int
        How many it read.
    flops : float
        What reading cost.
    ms : float
        Milliseconds that it took.
    """

    masses: tuple[Tensor, ...]
    spans: tuple[Tensor, ...] | None
    tokens: int
    flops: float
    ms: float

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
    began = time.perf_counter()
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
    masses = tuple(mass[p.span(i)] for i in prompt.chunks())
    return Reading(masses, where, end, p.flop_counter.flops, (time.perf_counter() - began) * 1e3)


def about_sibling(primary: Reader, tokens: int) -> list[str]:
    """What is to be said where the bundled reader's sibling reads a prompt of so many tokens for a primary."""
    from ragcache.model.notice import is_test_model

    other = (
        "name another with --auxiliary NAME or Auxiliary(NAME), such as smollm2 beside a larger SmolLM2, or "
        "Qwen/Qwen2.5-0.5B-Instruct beside a larger Qwen2.5"
    )
    notes = []
    if not is_test_model(primary):
        notes.append(
            f"the built-in test model's sibling chose tokens for {primary.name}, and can read little but that model's "
            f"own plain English; {other}"
        )
    if tokens > SIBLING_TOKENS:
        notes.append(
            f"the auxiliary, the built-in test model's sibling, was trained on contexts of up to {SIBLING_TOKENS:,} "
            f"tokens, and read {tokens:,}; {other}"
        )
    return notes


def check_auxiliary(name: str) -> None:
    """Refuse a name by which no auxiliary model can be loaded.

    Raises
    ------
    InvalidArgument
        As `check_model`.
    """
    if name not in (SIBLING, SIBLING_TUNED):
        check_model(name, "the auxiliary model", "--auxiliary")


def reader_of(model: str | Reader) -> Reader:
    """The auxiliary of that name: loaded once per process, on CPU."""
    if not isinstance(model, str):
        return model
    with _loading:  # two first questions at once must not load it twice
        return _loaded(model)


@cache
def _loaded(name: str) -> Reader:
    from ragcache.bundled import sibling_path, tuned_sibling_path
    from ragcache.model.loading import load_reader

    if name == SIBLING_TUNED:
        return load_reader(str(sibling_path()), device="cpu", adapter=tuned_sibling_path())
    return load_reader(str(sibling_path()) if name == SIBLING else name, device="cpu")


def _prefill(p: PrefillContext, *, deepest: int) -> None:
    """Everything before the question, up to the keys and values of layer `deepest`."""
    context = Slots(torch.arange(int(p.question[0])))
    if len(context):
        p.forward(context, last=deepest)  # nobody looks at what that layer makes of them
        p.fresh[context] = False
