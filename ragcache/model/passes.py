"""Pass: what a method's choices are handed while an answer is being prepared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.cost import Ledger
from ragcache.model.plan import ForwardPlan, Positions, ScoreSink, Slots, UpdateSink
from ragcache.model.reader import Reader
from ragcache.segments import Prompt


@dataclass
class Pass:
    """One prompt, its buffer, and the means to run part of the model over it, charged.

    Attributes
    ----------
    reader : Reader
        The model that answers.
    prompt : Prompt
        Segments, slots and positions.
    buffer : KVBuffer
        K and V of every placed segment, in place.
    placed : dict of int to ChunkKV
        Segment index to the KV that was placed for it, as stored.
    exact : frozenset of int
        Segments whose placed KV equals what a full prefill would compute.
    ledger : Ledger
        What has been computed so far.
    """

    reader: Reader
    prompt: Prompt
    buffer: KVBuffer
    placed: Mapping[int, ChunkKV]
    exact: frozenset[int]
    ledger: Ledger
    token_ids: Tensor = field(init=False)  # (slots,)
    positions: Tensor = field(init=False)  # (slots,)
    fresh: Tensor = field(init=False)  # (slots,) bool: no KV was placed
    selectable: Tensor = field(init=False)  # (slots,) bool: placed and inexact

    def __post_init__(self) -> None:
        prompt, device = self.prompt, self.reader.device
        self.token_ids = torch.tensor(prompt.token_ids)
        self.positions = torch.cat(
            [torch.arange(start, start + len(s)) for start, s in zip(prompt.starts, prompt.segments, strict=True)]
        ).to(device)
        self.fresh = torch.ones(len(prompt), dtype=torch.bool)
        self.selectable = torch.zeros(len(prompt), dtype=torch.bool)
        for index in self.placed:
            self.fresh[self.span(index)] = False
            self.selectable[self.span(index)] = index not in self.exact

    def span(self, segment: int) -> slice:
        """Slots of a segment."""
        return slice(self.prompt.slots[segment], self.prompt.slots[segment + 1])

    @property
    def question(self) -> Slots:
        """Slots of the question's own words."""
        span = self.span(self.prompt.question)
        return Slots(torch.arange(span.start, span.stop))

    @property
    def context_end(self) -> int:
        """First slot after the last chunk."""
        chunks = self.prompt.chunks()
        return self.prompt.slots[chunks[-1] + 1] if chunks else 0

    def forward(
        self,
        rows: Slots,
        *,
        scores: dict[int, ScoreSink] | None = None,
        stop_after_scores: bool = False,
        on_update: UpdateSink | None = None,
    ) -> None:
        """Run rows of the prompt against the buffer and charge for it.

        Parameters
        ----------
        rows : Slots
            Ascending.
        scores : dict of int to ScoreSink, optional
            Layers whose attention probabilities are wanted.
        stop_after_scores : bool
            End after the deepest of those layers.
        on_update : UpdateSink, optional
            Sees fresh K and V per layer before they are written; may raise `StopForward`.
        """
        deepest = 0

        def watch(layer: int, key: Tensor, value: Tensor) -> None:
            nonlocal deepest
            deepest = layer + 1
            if on_update is not None:
                on_update(layer, key, value)

        plan = ForwardPlan(self._on_device(rows), int(rows[-1]) + 1, scores or {}, stop_after_scores, watch)
        self.reader.forward(*self._rows(rows), self.buffer, plan)
        self._charge(rows, deepest, logits=False)

    def logits(self, rows: Slots) -> Tensor:
        """The same to the end: (vocabulary,) fp32 logits of the last row."""
        plan = ForwardPlan(self._on_device(rows), int(rows[-1]) + 1)
        logits = self.reader.logits(*self._rows(rows), self.buffer, plan)
        self._charge(rows, self.reader.layers, logits=True)
        return logits

    def append(self, tokens: Sequence[int], count: int) -> Tensor:
        """Logits after each of some more tokens, (tokens, vocabulary); not charged.

        The first of them is the `count`-th behind the prompt (from 0); whatever stood there or behind it is forgotten.
        """
        ahead = torch.arange(count, count + len(tokens), device=self.reader.device)  # (tokens,)
        end = len(self.prompt) + count + len(tokens)
        self.buffer.truncate(end - len(tokens))
        plan = ForwardPlan(Slots(len(self.prompt) + ahead), end)
        return self.reader.every_logits(tokens, Positions(self.positions[-1] + 1 + ahead), self.buffer, plan)

    def _on_device(self, rows: Slots) -> Slots:
        return Slots(rows.to(self.reader.device))

    def _rows(self, rows: Slots) -> tuple[list[int], Positions]:
        return self.token_ids[rows].tolist(), Positions(self.positions[self._on_device(rows)])

    def _charge(self, rows: Slots, layers: int, *, logits: bool) -> None:
        self.ledger.charge(rows, layers, selectable=int(self.selectable[rows].sum()), logits=logits)
