"""An answer being written: what comes behind a prefilled prompt, token by token."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ragcache.engine.answer import Answer, Source
from ragcache.index.chunks import Chunk
from ragcache.model import notice
from ragcache.model.decode import Sampling, Step, decode, pieces
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.report import CacheReport


@dataclass(frozen=True, eq=False)
class Prefilled:
    """A prompt ready to be answered.

    Attributes
    ----------
    prompt : Prompt
        What was prefilled.
    logits : Tensor
        (vocabulary,) fp32, of the first token.
    step : callable
        Forwards one more token.
    verify_draft : callable or None
        Forwards a draft of what comes next: how many of its tokens greedy decoding says too, and the logits behind
        those; None for full prefill, the baseline, which takes every step.
    report : CacheReport
        What it was made from.
    recomputed : Tensor
        (slots,) bool: reused tokens that were computed again.
    passed : PrefillContext or None
        The buffer as it stands behind the prompt, and what it was made with; None for full prefill.
    """

    prompt: Prompt
    logits: Tensor
    step: Step
    verify_draft: "VerifyDraft | None"
    report: CacheReport
    recomputed: Tensor
    passed: PrefillContext | None


#: Takes a draft of the answer's next tokens; gives how many of them hold, and the logits behind those.
VerifyDraft = Callable[[Sequence[int]], tuple[int, Tensor]]


class DecodeSession:
    """What comes behind a prompt, from our buffer."""

    def __init__(self, p: PrefillContext, logits: Tensor) -> None:
        self._pass = p
        self._logits = logits
        self._count = 0

    def step(self, token: int) -> Tensor:
        """Forward one more token."""
        self._count += 1
        return self._pass.append([token], self._count - 1)[-1]

    def verify_draft(self, draft: Sequence[int]) -> tuple[int, Tensor]:
        """Forward what a draft says next, and keep what greedy decoding says too."""
        rows = torch.cat([self._logits[None], self._pass.append(draft, self._count)])  # (tokens + 1, vocabulary)
        said = rows.argmax(-1).tolist()
        kept = next((i for i, token in enumerate(draft) if said[i] != token), len(draft))
        self._count, self._logits = self._count + kept, rows[kept]
        return kept, self._logits


class Stream:
    """An answer being written: iterate for its pieces, then read `answer`.

    Attributes
    ----------
    refused : bool
        Whether the pieces say that the model cannot read the text, instead of an answer.
    report : CacheReport
        What the answer is made from; complete before its first piece.
    """

    def __init__(
        self,
        reader: Reader,
        question: str,
        chunks: Sequence[Chunk],
        prefilled: Prefilled,
        sampling: Sampling,
        began: float,
        drafts: Sequence[Sequence[int]] = (),
    ) -> None:
        self._reader = reader
        self._question = question
        self._chunks = chunks
        self._prefilled = prefilled
        self.sampling = sampling
        self._began = began
        self._drafts = drafts
        self._text: list[str] = []
        self._ids: list[int] = []
        self.refused = not notice.can_read(reader, (question, "".join(chunk.text for chunk in chunks)))
        said = (notice.TEST_MODEL,) if notice.is_test_model(reader) and not self.refused else ()
        self.report: CacheReport = replace(prefilled.report, notes=(*prefilled.report.notes, *said))
        self._pieces = self._refusal() if self.refused else self._written()  # one decode, however often it is iterated

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def _refusal(self) -> Iterator[str]:
        self._text.append(notice.UNREADABLE)
        yield notice.UNREADABLE

    def _written(self) -> Iterator[str]:
        reader, ready, sampling = self._reader, self._prefilled, self.sampling
        said, logits = self._followed()
        tokens = decode(
            ready.step, logits, [*ready.prompt.token_ids, *said],
            replace(sampling, max_new_tokens=sampling.max_new_tokens - len(said)), reader.stop_ids,
        )  # fmt: skip
        for piece in pieces(itertools.chain(said, tokens), reader.tokenizer, self.sampling.stop, self._ids):
            self._text.append(piece)
            yield piece
        self.report.ms.total = (time.perf_counter() - self._began) * 1e3

    def _followed(self) -> tuple[Sequence[int], Tensor]:
        """What greedy decoding says of drafts, each taken where it says all that was said so far, and the logits."""
        ready, sampling = self._prefilled, self.sampling
        said: tuple[int, ...] = ()
        logits = ready.logits
        if ready.verify_draft is None or sampling.temperature or sampling.repetition_penalty != 1:
            return said, logits
        drafts = [tuple(draft[: sampling.max_new_tokens - 1]) for draft in self._drafts]
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
    def logits(self) -> Tensor:
        """Of the first token, (vocabulary,) fp32."""
        return self._prefilled.logits

    @property
    def answer(self) -> Answer:
        """The whole answer; reads the rest of the stream first."""
        for _ in self:
            pass
        sources = tuple(Source.of(chunk, self._question) for chunk in self._chunks)
        return Answer(
            text="".join(self._text).strip(),
            question=self._question,
            model=self._reader.name,
            sources=sources,
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
