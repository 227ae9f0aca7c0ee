"""Each chunk behind a few throw-away tokens that take the attention sink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragcache.encode.protocol import BaseEncoder, EncodingContext, LeftContext
from ragcache.errors import UnsupportedModel
from ragcache.prompt import Segment

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV
    from ragcache.model.reader import Reader


@dataclass(frozen=True)
class Sink(BaseEncoder):
    """Link0: `tokens` line ends are prefilled before the chunk and dropped (EPIC, 2410.15332; PSR, 2603.20218).

    Attributes
    ----------
    tokens : int
        Throw-away tokens; the study 2603.20218 tunes them in {1, 2, 3, 5, 10}, for each model and task together with
        PSR's temperature and scale (tuned here: none, 4 is design's; `ragcache bench tune` tries the study's).
    """

    tokens: int = field(default=4, metadata={"tune": (1, 2, 3, 5, 10)})

    @property
    def recipe(self) -> str:
        """Name and fields."""
        return f"sink(tokens={self.tokens})"

    @property
    def discarded_tokens(self) -> int:  # type: ignore[override]
        """The sink."""
        return self.tokens

    def left(self, chunk: str, context: EncodingContext) -> LeftContext:
        """The throw-away tokens; their key is never what stands before a chunk in a prompt, so nothing is exact."""
        return LeftContext(keys=(self.recipe,), words=f"{self.tokens} throw-away tokens")

    def encode(self, reader: Reader, todo: Sequence[tuple[Segment, LeftContext]]) -> list[ChunkKV]:
        """Prefill chunks, each behind sink tokens of its own; only the chunks' KV is kept.

        Raises
        ------
        UnsupportedModel
            If the tokenizer has no token for the end of a line.
        """
        newline = _line_end(reader)
        sink = (reader.encode([newline] * self.tokens),)
        return reader.encode_all([(chunk.token_ids, sink) for chunk, _ in todo])


def _line_end(reader: Reader) -> int:
    ids: list[int] = reader.tokenizer("\n", add_special_tokens=False)["input_ids"]
    if not ids:
        raise UnsupportedModel(
            f"the tokenizer of {reader.name} has no token for the end of a line, which `link0` prefills before each "
            "chunk; take another method, `ragcache methods` lists them"
        )
    return ids[-1]
