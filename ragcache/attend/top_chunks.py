"""Only the chunks that the question looks at most."""

from dataclasses import dataclass, field

from ragcache.attend.protocol import KeyIndices, ScoreMod, reused
from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import ScoreModFunction, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import QuestionAttention, Selector


@dataclass(frozen=True)
class TopChunks(ScoreMod):
    """SEL's hard selection (2412.16545): rows attend to the reused keys of the best chunks only.

    Reading chunks in parallel makes the question's attention too even; its entropy falls when most chunks are masked. A
    chunk's score is the sum of its tokens', and all heads, layers and rows share the choice (the paper shares it in
    groups, for speed). The scoring pass is charged as any other. A question that needs more chunks than are left cannot
    be answered.

    Attributes
    ----------
    chunks : int
        How many are left (tuned here: none; the paper tunes it).
    by : Selector
        Scores tokens.
    """

    chunks: int = 4
    by: Selector = field(default_factory=lambda: QuestionAttention(layers="all", reduce="mean"))

    @property
    def needs(self) -> tuple[str, ...]:
        """What `by` needs."""
        return self.by.needs

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise InvalidArgument(f"chunks is {self.chunks}; TopChunks leaves at least 1")

    def score_mod(self, p: PrefillContext, rows: Slots) -> ScoreModFunction | None:
        """Mask the reused keys of all other chunks."""
        chunks = [segment for segment in p.prompt.chunks() if segment in p.placed]
        keys = reused(p, rows)  # (layers, slots)
        if len(chunks) <= self.chunks or not bool(keys.any()):
            return None
        scores = self.by.scores(p)
        mass = torch.stack([scores[p.span(segment)].sum() for segment in chunks])  # (chunks,)
        out = torch.zeros(len(p.prompt), dtype=torch.bool)
        for i in mass.argsort(descending=True, stable=True)[self.chunks :].tolist():
            out[p.span(chunks[i])] = True
        indices = KeyIndices()

        def modify(layer: int, logits: Tensor) -> Tensor:
            count = min(logits.shape[-1], len(out))
            hidden = indices.of(keys[layer, :count] & out[:count], logits.device)  # (masked keys,)
            return logits.index_fill(-1, hidden, float("-inf"))

        return modify
