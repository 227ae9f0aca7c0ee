"""Spans instead of single tokens."""

from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class Grouped(Selector):
    """CacheClip's grouping (2510.10129): neighbouring tokens are recomputed together, to keep local coherence.

    A window's score is the mean of its tokens' scores; a token's score is the best of the windows that hold it. Windows
    lie within one chunk, the last of a chunk being shorter where it ends. What `inner` always or never takes stays so
    and is no part of a mean.

    Attributes
    ----------
    inner : Selector
        Scores single tokens.
    window : int or None
        Tokens that stay together (tuned here: the papers do not say); None for the whole chunk.
    stride : int
        From one window's start to the next (tuned here); never more than the window, which would leave tokens out.

    Raises
    ------
    InvalidArgument
        If window or stride is below 1.
    """

    inner: Selector
    window: int | None = 8
    stride: int = 4

    def __post_init__(self) -> None:
        if min(self.stride, 1 if self.window is None else self.window) < 1:
            raise InvalidArgument(f"window is {self.window} and stride {self.stride}; both are at least 1 token")

    @property
    def needs(self) -> tuple[str, ...]:
        """What `inner` needs."""
        return self.inner.needs

    @property
    def query_agnostic(self) -> bool:
        """If `inner` is."""
        return self.inner.query_agnostic

    def begin(self, prompt: Prompt) -> Selector:
        """`inner` begins."""
        return replace(self, inner=self.inner.begin(prompt))

    def close(self) -> None:
        """`inner` is closed."""
        self.inner.close()

    def scores(self, p: PrefillContext) -> Tensor:
        """The best window's mean, chunk by chunk."""
        scores = self.inner.scores(p).clone()
        for segment in p.prompt.chunks():
            span = p.span(segment)
            if bool(p.selectable[span].any()):
                scores[span] = self._grouped(scores[span])
        return scores

    def _grouped(self, scores: Tensor) -> Tensor:
        """The same for one chunk, (tokens,)."""
        tokens = len(scores)
        window = tokens if self.window is None else self.window
        stride = tokens if self.window is None else min(self.stride, window)
        steps = max(0, -(-(tokens - window) // stride))  # windows after the first, until one reaches the end
        counted = scores.new_full((window + steps * stride,), float("nan"))  # (tokens, and room for the last window)
        counted[:tokens] = scores.masked_fill(scores.isinf(), float("nan"))
        means = counted.unfold(0, window, stride).nanmean(1).nan_to_num(nan=float("-inf"))  # (windows,)
        members = torch.arange(len(counted)).unfold(0, window, stride)  # (windows, window)
        best = torch.full_like(counted, float("-inf")).scatter_reduce(
            0, members.flatten(), means.repeat_interleave(window), "amax"
        )
        return torch.where(scores.isinf(), scores, best[:tokens])
