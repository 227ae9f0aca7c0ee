"""The chunks that the question looks at most, next to the question."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragcache.layout.overlapped import overlapped
from ragcache.layout.protocol import Layout, Look
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Frame, Prompt, Segment
from ragcache.schedule.ranking import top
from ragcache.select import QuestionAttention, Selector


@dataclass(frozen=True)
class BestLast(Layout):
    """InfoFlow's reordering (2603.05353): chunks ascend by their share of the best-scored tokens.

    The question is first read over a scratch buffer in which every chunk stands at the same positions, so that distance
    plays no part; a chunk's rank is the share of its tokens that are among the prompt's best. The look is loaded,
    placed, computed and charged before the prompt itself. Unfit for chunks whose order means something: steps, events,
    corrections of one another. What the order does is told by two rows that differ in nothing else: `infoflow`, and
    `infoflow-in-order`, whose chunks stay as they were retrieved.

    Attributes
    ----------
    by : Selector
        Scores tokens (paper: L2 norm over the question's rows, layers 22 to 25 of 32).
    share : float
        Of the context's tokens, that are counted as its best (paper: .15).
    """

    by: Selector = field(
        default_factory=lambda: QuestionAttention(layers=(22 / 32, 23 / 32, 24 / 32, 25 / 32), reduce="norm")
    )
    share: float = 0.15

    @property
    def needs(self) -> tuple[str, ...]:
        """What `by` needs."""
        return self.by.needs

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Best last; chunks that are equally good stay in the order of retrieval."""
        prompt = frame.prompt(chunks, question, prefix=prefix)
        if len(chunks) < 2:
            return prompt
        density = self._density(look(overlapped(prompt)))
        order = sorted(range(len(chunks)), key=density.__getitem__)
        return frame.prompt([chunks[i] for i in order], question, prefix=prefix)

    def _density(self, p: PrefillContext) -> list[float]:
        """Each chunk's share of tokens among the best."""
        spans = [p.span(segment) for segment in p.prompt.chunks()]
        first, last = spans[0].start, spans[-1].stop
        best = top(self.by.scores(p)[first:last], self.share * (last - first)) + first  # (best,)
        hits = [int(((best >= span.start) & (best < span.stop)).sum()) for span in spans]
        return [hit / (span.stop - span.start) for hit, span in zip(hits, spans, strict=True)]
