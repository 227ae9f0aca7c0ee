"""Decode: an answer being written behind a prefilled prompt, token by token."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from ragcache.engine.answer import Answer, Source
from ragcache.engine.prefill import Prefilled
from ragcache.engine.request import Request
from ragcache.model import notice
from ragcache.model.decode import decode, decode_drafts, pieces
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.report import CacheReport


class Stream:
    """An answer being written: iterate for its pieces, then read `answer`.

    Attributes
    ----------
    sampling : Sampling
        How its tokens are chosen.
    refused : bool
        Whether the pieces say that the model cannot read the text, instead of an answer.
    report : CacheReport
        What the answer is made from; complete before its first piece, but for what is harvested behind the last.
    """

    def __init__(self, reader: Reader, request: Request, prefilled: Prefilled) -> None:
        self._reader = reader
        self._request = request
        self.sampling = request.sampling
        self._prefilled = prefilled
        self._text: list[str] = []
        self._ids: list[int] = []
        self._watch: Callable[[Tensor], None] | None = None
        texts = (request.question, "".join(chunk.text for chunk in request.chunks))
        self.refused = not notice.can_read(reader, texts)
        said = (notice.TEST_MODEL,) if notice.is_test_model(reader) and not self.refused else ()
        self.report: CacheReport = replace(prefilled.report, notes=(*prefilled.report.notes, *said))
        self._pieces = self._refuse() if self.refused else self._decode()  # one decode, however often it is iterated

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def _refuse(self) -> Iterator[str]:
        self._text.append(notice.UNREADABLE)
        yield notice.UNREADABLE

    def _decode(self) -> Iterator[str]:
        reader, ready, sampling = self._reader, self._prefilled, self.sampling
        said, logits = self._verify_drafts()
        rest = replace(sampling, max_new_tokens=sampling.max_new_tokens - len(said))
        before = [*ready.prompt.text_ids, *said]
        if self._drafts_from_prompt and ready.verify_draft is not None:
            tokens = decode_drafts(ready.verify_draft, logits, before, rest, reader.stop_ids)
        else:
            tokens = decode(self._step, self._watched(logits), before, rest, reader.stop_ids)
        for piece in pieces(itertools.chain(said, tokens), reader.tokenizer, sampling.stop, self._ids):
            self._text.append(piece)
            yield piece
        self._request.clock.note_end()
        if ready.harvest is not None:
            with self._request.clock.stage("harvest"):
                self.report = ready.harvest(self.report)

    def watch_logits(self, watch: Callable[[Tensor], None]) -> None:
        """Have the logits of each token that is decoded from now on shown, (vocabulary,) fp32, before it is chosen."""
        self._watch = watch

    @property
    def _drafts_from_prompt(self) -> bool:
        """Whether drafts are looked up; whoever watches the logits is shown every token's, one after the other."""
        return self.sampling.verifiable and self.sampling.prompt_lookup_num_tokens > 0 and self._watch is None

    def _step(self, token: int) -> Tensor:
        return self._watched(self._prefilled.step(token))

    def _watched(self, logits: Tensor) -> Tensor:
        if self._watch is not None:
            self._watch(logits)
        return logits

    def _verify_drafts(self) -> tuple[Sequence[int], Tensor]:
        """What greedy decoding says of drafts, each taken where it says all that was said so far, and the logits."""
        ready, sampling = self._prefilled, self.sampling
        said: tuple[int, ...] = ()
        logits = ready.logits
        drafts = [tuple(draft[: sampling.max_new_tokens - 1]) for draft in self._request.drafts]
        if ready.verify_draft is None or not sampling.verifiable or not drafts:
            return said, logits
        while True:
            begun = (*said, int(logits.argmax()))
            draft = next((one for one in drafts if one[: len(begun)] == begun), None)
            if draft is None:
                return said, logits
            count, logits = ready.verify_draft(draft[len(said) :])
            said = draft[: len(said) + count]

    @property
    def prompt(self) -> Prompt:
        """What is answered."""
        return self._prefilled.prompt

    @property
    def recomputed(self) -> Tensor:
        """Which of the prompt's tokens were reused, and computed again all the same, (slots,) bool."""
        return self._prefilled.recomputed

    @property
    def logits(self) -> Tensor:
        """Of the first token, (vocabulary,) fp32."""
        return self._prefilled.logits

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The answer's tokens, as far as it has been read."""
        return tuple(self._ids)

    @property
    def was_stopped(self) -> bool:
        """Whether a stop string ended the answer, as far as it has been read."""
        text = self._reader.tokenizer.decode(self._ids, skip_special_tokens=True)
        return any(word in text for word in self.sampling.stop)

    @property
    def answer(self) -> Answer:
        """The whole answer; reads the rest of the stream first."""
        for _ in self:
            pass
        question = self._request.question
        return Answer(
            text="".join(self._text).strip(),
            question=question,
            model=self._reader.name,
            adapter=self._reader.adapter,
            sources=tuple(Source.of(chunk, question) for chunk in self._request.chunks),
            report=self.report,
            token_ids=tuple(self._ids),
            refused=self.refused,
        )


def strip_leading_space(stream: Iterable[str]) -> Iterator[str]:
    """An answer's pieces without the white space that models like to begin with, none of them empty."""
    begun = False
    for piece in stream:
        text = piece if begun else piece.lstrip()
        begun = begun or bool(text)
        if text:
            yield text
