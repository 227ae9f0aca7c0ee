"""Decode: an answer being written behind a prefilled prompt, token by token."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from ragcache.engine.answer import Answer, Source
from ragcache.engine.prefill import Prefilled
from ragcache.engine.request import Request
from ragcache.errors import IncompleteAnswer
from ragcache.model import notice
from ragcache.model.decode import decode, decode_drafts, pieces
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.report import CacheReport


@dataclass(eq=False)
class _Writing:
    """An answer as far as it is written.

    It does not know its stream: the two would hold each other, and the prompt's KV would outlive a stream that nobody
    reads on until Python next looks for such rings.
    """

    reader: Reader
    request: Request
    prefilled: Prefilled
    report: CacheReport
    watch: Callable[[Tensor], None] | None = None
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    ended: bool = False

    def refuse(self) -> Iterator[str]:
        """Say that the model cannot read the text."""
        self.text.append(notice.UNREADABLE)
        self.ended = True
        yield notice.UNREADABLE

    def decode(self) -> Iterator[str]:
        """Write it, piece by piece."""
        reader, ready, sampling = self.reader, self.prefilled, self.request.sampling
        said, logits = self._verify_drafts()
        rest = replace(sampling, max_new_tokens=sampling.max_new_tokens - len(said))
        before = [*ready.prompt.text_ids, *said]
        if self._drafts_from_prompt and ready.verify_draft is not None:
            tokens = decode_drafts(ready.verify_draft, logits, before, rest, reader.stop_ids)
        else:
            tokens = decode(self._step, self._watched(logits), before, rest, reader.stop_ids)
        for piece in pieces(itertools.chain(said, tokens), reader.tokenizer, sampling.stop, self.token_ids):
            self.text.append(piece)
            yield piece
        self.request.clock.note_end()
        if ready.harvest is not None:
            with self.request.clock.stage("harvest"):
                self.report = ready.harvest(self.report)
        self.ended = True

    @property
    def _drafts_from_prompt(self) -> bool:
        """Whether drafts are looked up; whoever watches the logits is shown every token's, one after the other."""
        sampling = self.request.sampling
        return sampling.verifiable and sampling.prompt_lookup_num_tokens > 0 and self.watch is None

    def _step(self, token: int) -> Tensor:
        return self._watched(self.prefilled.step(token))

    def _watched(self, logits: Tensor) -> Tensor:
        if self.watch is not None:
            self.watch(logits)
        return logits

    def _verify_drafts(self) -> tuple[Sequence[int], Tensor]:
        """What greedy decoding says of drafts, each taken where it says all that was said so far, and the logits."""
        ready, sampling = self.prefilled, self.request.sampling
        said: tuple[int, ...] = ()
        logits = ready.logits
        drafts = [self._within(draft) for draft in self.request.drafts]
        if ready.verify_draft is None or not sampling.verifiable or not drafts:
            return said, logits
        while True:
            begun = (*said, int(logits.argmax()))
            draft = next((one for one in drafts if one[: len(begun)] == begun), None)
            if draft is None:
                return said, logits
            count, logits = ready.verify_draft(draft[len(said) :])
            said = draft[: len(said) + count]

    def _within(self, draft: Sequence[int]) -> tuple[int, ...]:
        """As much of a draft as an answer can say: up to what ends one or is no token; the last needs no forward."""
        ids, ends = range(len(self.prefilled.logits)), self.reader.stop_ids
        can_say = itertools.takewhile(lambda token: token in ids and token not in ends, draft)
        return tuple(itertools.islice(can_say, self.request.sampling.max_new_tokens - 1))


class Stream:
    """An answer being written: iterate for its pieces, then read `answer`.

    Attributes
    ----------
    sampling : Sampling
        How its tokens are chosen.
    refused : bool
        Whether the pieces say that the model cannot read the text, instead of an answer.
    """

    def __init__(self, reader: Reader, request: Request, prefilled: Prefilled) -> None:
        self.sampling = request.sampling
        texts = (request.question, "".join(chunk.text for chunk in request.chunks))
        self.refused = not notice.can_read(reader, texts)
        said = (notice.TEST_MODEL,) if notice.is_test_model(reader) and not self.refused else ()
        report = replace(prefilled.report, notes=(*prefilled.report.notes, *said))
        self._writing = writing = _Writing(reader, request, prefilled, report)
        self._pieces = writing.refuse() if self.refused else writing.decode()  # one, however often it is iterated

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def watch_logits(self, watch: Callable[[Tensor], None]) -> None:
        """Have the logits of each token that is decoded from now on shown, (vocabulary,) fp32, before it is chosen."""
        self._writing.watch = watch

    @property
    def report(self) -> CacheReport:
        """What the answer is made from; complete before its first piece, but for what is harvested behind the last."""
        return self._writing.report

    @property
    def prompt(self) -> Prompt:
        """What is answered."""
        return self._writing.prefilled.prompt

    @property
    def recomputed(self) -> Tensor:
        """Which of the prompt's tokens were reused, and computed again all the same, (slots,) bool."""
        return self._writing.prefilled.recomputed

    @property
    def logits(self) -> Tensor:
        """Of the first token, (vocabulary,) fp32."""
        return self._writing.prefilled.logits

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The answer's tokens, as far as it has been read."""
        return tuple(self._writing.token_ids)

    @property
    def was_stopped(self) -> bool:
        """Whether a stop string ended the answer, as far as it has been read."""
        text = self._writing.reader.tokenizer.decode(self._writing.token_ids, skip_special_tokens=True)
        return any(word in text for word in self.sampling.stop)

    @property
    def finish_reason(self) -> str:
        """Why the answer ended, as OpenAI names it: "length" if it has the most tokens, else "stop"."""
        return "stop" if len(self.token_ids) < self.sampling.max_new_tokens or self.was_stopped else "length"

    @property
    def answer(self) -> Answer:
        """The whole answer; reads the rest of the stream first.

        Raises
        ------
        IncompleteAnswer
            If an error or an interruption has ended it.
        """
        for _ in self:
            pass
        done = self._writing
        if not done.ended:
            raise IncompleteAnswer(
                f"the answer to {done.request.question[:60]!r} broke off after {len(done.token_ids)} tokens; ask again"
            )
        question = done.request.question
        return Answer(
            text="".join(done.text).strip(),
            question=question,
            model=done.reader.name,
            adapter=done.reader.adapter,
            sources=tuple(Source.of(chunk, question) for chunk in done.request.chunks),
            report=self.report,
            token_ids=self.token_ids,
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
