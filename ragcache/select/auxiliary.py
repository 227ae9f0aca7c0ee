"""The tokens that the question attends to when a small model reads the whole prompt."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, is_dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Any

from ragcache.model.lazy import Tensor
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.select.companion import SIBLING, SIBLING_TUNED, Reading, about_sibling, read, reader_of
from ragcache.select.mass import Layers, Reduce
from ragcache.select.protocol import Selector
from ragcache.select.question_attention import QuestionAttention

if TYPE_CHECKING:
    from ragcache.model.reader import Reader


@dataclass(frozen=True)
class Auxiliary(Selector):
    """CacheClip's auxiliary model (2510.10129): what question and context are to each other in a full prefill.

    A small model prefills prefix, chunks and question, all of them attending to each other; the score of a token is the
    attention that it gets from the question's tokens in the last layer, averaged over heads and question rows:
    `QuestionAttention(layers="last", reduce="mean")` of that model, over a cache with nothing stale in it. The primary
    computes nothing for it. The auxiliary runs on CPU in a thread of its own, begun before the primary's KV is loaded.

    Where the auxiliary's tokenizer gives the primary's very ids, it reads those ids, at contiguous positions.
    Otherwise it reads the same text by its own chat template, and the mass of each of its tokens goes to the primary's
    tokens that share characters with it, by length of overlap.

    The auxiliary's FLOPs count in `charged_flops`, and its time is `ms.auxiliary` of the report, beside the other
    stages rather than one of them; token-layers of the primary are not charged.

    The paper's second version takes the small model as it is, and so does this one by default. Its first version tunes
    it for selection: that is "sibling-tuned" here, whose last layer was taught to attend to what the primary attends to
    over all of its layers. Neither the paper's labels nor its loss are public: `bench/auxiliary_tuning` derives them.

    The default fits the bundled reader alone. Beside any other model, and over prompts longer than it was trained on,
    the report says so; `Method.with_auxiliary` and the option `--auxiliary` name another.

    Attributes
    ----------
    model : str or Reader
        "sibling" for the bundled reader's, "sibling-tuned" for the same, tuned to choose tokens, "smollm2", a hub id or
        a folder, loaded once per process; or a reader, which may be the primary (paper: SmolLM2-135M beside
        Qwen2.5-14B).
    layers : "last", "all", or tuple of int or float
        As in `QuestionAttention` (paper: the last).
    reduce : {"sum", "mean", "max", "norm"}
        As in `QuestionAttention` (tuned here: the paper does not say).

    Raises
    ------
    PromptTooLong
        When scores are taken, if the auxiliary takes a shorter prompt.
    UnsupportedModel
        When scores are taken, if the tokenizers differ and one of them gives no character offsets, or if the model's
        attention cannot be read.
    """

    model: str | Reader = SIBLING
    layers: Layers = "last"
    reduce: Reduce = "mean"

    def begin(self, prompt: Prompt) -> Selector:
        """The selector for this prompt, which is being read from now on."""
        # A pool for each prompt: threads that outlived it would be lost in a forked process, and each loaded model
        # reads one prompt at a time anyway.
        pool = ThreadPoolExecutor(1, thread_name_prefix="ragcache-auxiliary")
        unwanted = Event()
        reading = pool.submit(self._read_unless, unwanted, prompt)
        pool.shutdown(wait=False)
        return _Begun(self, reading, unwanted)

    def scores(self, p: PrefillContext) -> Tensor:
        """Mean attention per slot of a chunk."""
        return self.begin(p.prompt).scores(p)

    def read(self, prompt: Prompt) -> Reading:
        """Read a prompt here and now."""
        return read(reader_of(self.model), prompt, QuestionAttention(self.layers, self.reduce))

    def _read_unless(self, unwanted: Event, prompt: Prompt) -> Reading:
        """Read a prompt, up to the layer in front of which `unwanted` is found set."""

        def check() -> None:
            if unwanted.is_set():
                raise _UnwantedError

        with reader_of(self.model).checked(check):
            return self.read(prompt)


class _UnwantedError(Exception):
    """Nobody waits for what an auxiliary reads."""


@dataclass(frozen=True)
class _Begun(Selector):
    """An auxiliary at work on one prompt."""

    auxiliary: Auxiliary
    reading: Future[Reading] = field(repr=False)
    unwanted: Event = field(repr=False)

    def close(self) -> None:
        """End reading in front of the next layer."""
        self.unwanted.set()
        self.reading.cancel()

    def scores(self, p: PrefillContext) -> Tensor:
        """Mean attention per slot of a chunk, once the auxiliary has read the prompt."""
        reading = self.reading.result()
        p.flop_counter.flops += reading.flops
        p.auxiliary_ms += reading.ms
        if self.auxiliary.model in (SIBLING, SIBLING_TUNED):
            p.notes += about_sibling(p.reader, reading.tokens)
        return reading.onto(p)


def with_auxiliary(selector: Any, model: str | Reader) -> Any:
    """The selector with another model as its auxiliary, wherever that is in it; None if it has none."""
    if isinstance(selector, Auxiliary):
        return replace(selector, model=model)
    parts = {name: part for name, part in vars(selector).items() if is_dataclass(part)} if selector else {}
    named = {name: found for name, part in parts.items() if (found := with_auxiliary(part, model)) is not None}
    return replace(selector, **named) if named else None
