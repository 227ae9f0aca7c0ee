"""PrefillContext: what a method's choices are handed while an answer is being prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragcache.model.cost import FlopCounter
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import (
    EnterSink,
    ForwardPlan,
    Positions,
    PruneTokens,
    ScoreModFunction,
    ScoreSink,
    Slots,
    StopForward,
    UpdateSink,
)
from ragcache.model.upload import upload
from ragcache.prompt import Prompt

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV, KVBuffer
    from ragcache.model.reader import Reader


@dataclass
class PrefillContext:
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
        Segment index to what was placed for it, without K and V: those stand in the buffer.
    exact : frozenset of int
        Segments whose placed KV equals what a full prefill would compute.
    flop_counter : FlopCounter
        What has been computed so far.
    left : callable
        What stood before a segment in its document when its KV was made, in order, read from the store; often nothing.

    Attributes
    ----------
    token_ids, positions : Tensor
        (slots,) of the prompt; positions are on the model's device, all other tensors here on the CPU.
    fresh : Tensor
        (slots,) bool: no KV was placed.
    selectable : Tensor
        (slots,) bool: placed and inexact.
    chargeable : Tensor
        (slots,) bool: selectable, or a link token, which full prefill would not compute.
    stale : Tensor
        (layers, slots) bool: selectable, and not computed anew in that layer.
    charged : Tensor
        (layers, slots) bool: chargeable, and computed for this answer in that layer, which is charged once however
        often a method's passes do it. The opposite of `stale` for selectable slots, but for those whose KV was missing
        and was made now: they are charged, and stale.
    recomputed : Tensor
        (slots,) bool: selectable, and among the rows of a final forward.
    score_mod : ScoreModFunction or None
        How attention logits are shaped from the final forward on; a method's score mod sets it.
    auxiliary_ms : float
        Milliseconds that another model has read for this prompt.
    notes : list of str
        What the method's choices want the answer's report to say.
    """

    reader: Reader
    prompt: Prompt
    buffer: KVBuffer
    placed: Mapping[int, ChunkKV]
    exact: frozenset[int]
    flop_counter: FlopCounter
    left: Callable[[int], Sequence[ChunkKV]] = lambda segment: ()
    token_ids: Tensor = field(init=False)
    positions: Tensor = field(init=False)
    fresh: Tensor = field(init=False)
    selectable: Tensor = field(init=False)
    chargeable: Tensor = field(init=False)
    stale: Tensor = field(init=False)
    charged: Tensor = field(init=False)
    recomputed: Tensor = field(init=False)
    score_mod: ScoreModFunction | None = field(default=None, init=False)
    auxiliary_ms: float = field(default=0.0, init=False)
    notes: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        prompt, device = self.prompt, self.reader.device
        self.token_ids = torch.tensor(prompt.token_ids)
        self.positions = upload(
            torch.cat(
                [torch.arange(start, start + len(s)) for start, s in zip(prompt.starts, prompt.segments, strict=True)]
            ),
            device,
        )
        self.fresh = torch.ones(len(prompt), dtype=torch.bool)
        self.selectable = torch.zeros(len(prompt), dtype=torch.bool)
        for index in self.placed:
            self.fresh[self.span(index)] = False
            self.selectable[self.span(index)] = index not in self.exact
        self.chargeable = self.selectable.clone()
        for index, segment in enumerate(prompt.segments):
            self.chargeable[self.span(index)] |= segment.link
        self.recomputed = torch.zeros_like(self.selectable)
        self.stale = self.selectable.repeat(self.reader.layers, 1)
        self.charged = torch.zeros(self.reader.layers, len(prompt), dtype=torch.bool)

    def span(self, segment: int) -> slice:
        """Slots of a segment."""
        return self.prompt.span(segment)

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

    def with_fresh(self, rows: Slots) -> Slots:
        """Rows of the context together with all fresh text, ascending."""
        mask = self.fresh.clone()
        mask[rows] = True
        return Slots(mask.nonzero().squeeze(1))

    def hidden(self, rows: Slots, *, upto: int) -> Tensor:
        """Run the layers below `upto`: (rows, width) hidden states that enter it."""
        entered: list[Tensor] = []

        def enter(layer: int, hidden: Tensor) -> None:
            if layer == upto:
                entered.append(hidden)
                raise StopForward

        self.forward(rows, on_enter=enter)
        return entered[0]

    def forward(
        self,
        rows: Slots,
        *,
        scores: dict[int, ScoreSink] | None = None,
        stop_after_scores: bool = False,
        on_update: UpdateSink | None = None,
        on_enter: EnterSink | None = None,
        first: int = 0,
        hidden: Tensor | None = None,
        last: int | None = None,
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
        on_enter : EnterSink, optional
            Sees the hidden states that enter each layer; may raise `StopForward`.
        first : int
            Layer to begin at, which `hidden` enters.
        hidden : Tensor, optional
            (rows, width).
        last : int, optional
            Layer whose K and V end it.
        """
        with self._planned(
            rows, on_update, scores=scores or {}, stop_after_scores=stop_after_scores, on_enter=on_enter,
            first=first, hidden=hidden, last=last,
        ) as plan:  # fmt: skip
            self.reader.forward(*self._rows(rows), self.buffer, plan)

    def logits(
        self,
        rows: Slots,
        *,
        on_update: UpdateSink | None = None,
        prune: PruneTokens | None = None,
        first: int = 0,
        hidden: Tensor | None = None,
    ) -> Tensor:
        """The same to the end, shaped as `score_mod` says: (vocabulary,) fp32 logits of the last row.

        Parameters
        ----------
        prune : PruneTokens, optional
            Lets fewer rows go on, layer by layer; the last row must be among them.
        """
        options = {"prune": prune, "first": first, "hidden": hidden, "score_mod": self.score_mod}
        with self._planned(rows, on_update, **options) as plan:
            logits = self.reader.logits(*self._rows(rows), self.buffer, plan)
        self.flop_counter.add_lm_head()
        self.recomputed[rows] = self.selectable[rows]
        return logits

    def append(self, tokens: Sequence[int], count: int) -> Tensor:
        """Logits after each of some more tokens, (tokens, vocabulary); not charged.

        The first of them is the `count`-th behind the prompt (from 0); whatever stood there or behind it is forgotten.
        """
        first = len(self.prompt) + count
        self.buffer.truncate(first)
        slots, device = Slots(torch.arange(first, first + len(tokens))), self.reader.device  # (tokens,)
        plan = ForwardPlan.on(device, slots, first + len(tokens), score_mod=self.score_mod)
        positions = Positions(self.positions[-1] + 1 + (plan.slots - len(self.prompt)))
        return self.reader.logits(tokens, positions, self.buffer, plan, every=True)

    def _charge(self, layer: int, rows: Slots) -> None:
        """Enter rows of a layer: FLOPs of all of them, and the chargeable ones that it is computed for the first time.

        A selector that has left a layer's fresh K and V for every token has paid for those that are recomputed too.
        With a layer that makes K and V for others, all of them are entered.
        """
        new = self.chargeable[rows] & ~self.charged[layer, rows]
        readers = self.reader.readers_of(layer)
        for one in readers:
            self.charged[one, rows] |= new
        self.flop_counter.charge(rows, readers, selectable=int(new.sum()))

    def charge_elsewhere(self, rows: Slots, slots: Slots) -> None:
        """Enter rows of the prompt that have gone through all layers at other `slots`, those of another buffer."""
        for layer in range(self.reader.layers):
            new = self.chargeable[rows] & ~self.charged[layer, rows]
            self.charged[layer, rows] |= new
            self.flop_counter.charge(slots, [layer], selectable=int(new.sum()))

    def _on_device(self, rows: Slots) -> Slots:
        return Slots(upload(rows, self.reader.device))

    def _rows(self, rows: Slots) -> tuple[list[int], Positions]:
        return self.token_ids[rows].tolist(), Positions(self.positions[self._on_device(rows)])

    @contextmanager
    def _planned(self, rows: Slots, on_update: UpdateSink | None, **options: Any) -> Iterator[ForwardPlan]:
        """A forward that charges each layer's rows as they are computed; once written they are no longer stale.

        Rows that an accelerator chose to leave are asked for once, behind the forward; where attention is shaped by
        what is stale, in every layer.
        """
        unknown: list[tuple[int, Slots]] = []

        def update(layer: int, key: Tensor, value: Tensor) -> None:
            if plan.host_slots is None:
                unknown.append((layer, plan.slots))
            else:
                self._charge(layer, plan.host_slots)
            try:
                if on_update is not None:
                    on_update(layer, key, value)
            finally:  # it may end the forward
                if plan.host_slots is not None:
                    self._renew(layer, plan.host_slots)
                elif plan.score_mod is not None:
                    self._settle(unknown)

        plan = ForwardPlan.on(self.reader.device, rows, int(rows[-1]) + 1, on_update=update, **options)
        try:
            yield plan
        finally:
            # It knows the plan and this context: in a ring, the buffer would wait for the collector.
            plan.on_update = None
            self._settle(unknown)

    def _renew(self, layer: int, rows: Slots) -> None:
        """Note that a layer's K and V of some rows are no longer stale."""
        for one in self.reader.readers_of(layer):
            self.stale[one, rows] = False

    def _settle(self, unknown: list[tuple[int, Slots]]) -> None:
        """Charge layers' rows that only the accelerator knows, and note that they are not stale."""
        if not unknown:
            return
        counts = [len(rows) for _, rows in unknown]
        found = torch.split(torch.cat([rows for _, rows in unknown]).cpu(), counts)
        for (layer, _), rows in zip(unknown, found, strict=True):
            self._charge(layer, Slots(rows))
            self._renew(layer, Slots(rows))
        unknown.clear()
