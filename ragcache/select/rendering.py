"""One model's prompt as another model reads it: by its own template and tokenizer."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ragcache.model.lazy import Tensor
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, CHUNK_END, Prompt, Segment, Template
from ragcache.select.offsets import spans

if TYPE_CHECKING:
    from ragcache.model.reader import Reader


class Rendering:
    """Renders prompts anew for a model that did not make them.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's. A copy is used: whether text may become special tokens is a switch on a tokenizer, and the model
        may be the primary, for which other threads are tokenising at the same time.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = copy.deepcopy(tokenizer)
        self._template = Template(self._tokenizer)
        self._lock = threading.Lock()

    def own(self, asked: Prompt) -> tuple[Prompt, tuple[Tensor, ...] | None]:
        """The prompt up to its question as the model reads it.

        Returns
        -------
        tuple of (Prompt, tuple of Tensor or None)
            The very prompt at contiguous positions, and None, where the tokenizer gives the same ids; else the same
            text in the model's own tokens, and by chunk the characters of each, (tokens, 2).

        Raises
        ------
        UnsupportedModel
            If the ids differ and the tokenizer gives no character offsets.
        """
        with self._lock:
            front, question = asked.segments[: asked.question], asked.segments[asked.question]
            if all(map(self._reads, (*front, question))):
                return replace(asked, positions=None), None
            own_template = front[:1] if front and front[0].text.endswith(BEFORE_CHUNKS) else ()
            body = [self._segment(segment) for segment in front[len(own_template) :] if not segment.link]
            words = question.text.removeprefix(BEFORE_QUESTION)
            prompt = Prompt((self._template.prefix, *body, *self._template.question(words)), question=len(body) + 1)
            return prompt, tuple(self._spans(prompt.segments[i]) for i in prompt.chunks())

    def _segment(self, segment: Segment) -> Segment:
        if segment.chunk is not None:
            return self._template.chunk(segment.text, segment.chunk)
        return Segment(self._template.plain(segment.text), segment.text)

    def _reads(self, segment: Segment) -> bool:
        """Whether the tokenizer gives the segment's ids; of a chunk that was cut, those that are left."""
        own = self._segment(segment).token_ids
        if segment.chunk is not None:
            return own[: len(segment)] == segment.token_ids
        return segment.token_ids in (own, self._template.markup(segment.text).token_ids)

    def _spans(self, chunk: Segment) -> Tensor:
        return spans(self._tokenizer, chunk.text + CHUNK_END, chunk.token_ids)


_renderings: WeakKeyDictionary[Reader, Rendering] = WeakKeyDictionary()
_making = threading.Lock()


def rendering(reader: Reader) -> Rendering:
    """The reader's rendering, made once for as long as the reader lives."""
    with _making:
        if reader not in _renderings:
            _renderings[reader] = Rendering(reader.tokenizer)
        return _renderings[reader]
