"""A prompt of four chunks over a deep tiny Llama, with the reused KV of every chunk as stock forwards make it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from conftest import tiny_reader
from dense import stale
from staged import QUESTION, make
from torch import Tensor

from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.index.chunks import Chunk
from ragcache.layout import Layout
from ragcache.method import Method
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment, Template


@dataclass(frozen=True)
class Stage:
    """An engine over staged chunks, and how its prompts look."""

    engine: Engine
    chunks: list[Chunk]

    @property
    def reader(self) -> Reader:
        return self.engine.reader

    def prefill(self, method: Method, recompute: float | None = None) -> Prefilled:
        """The engine's own answer."""
        return self.engine.prefill(QUESTION, self.chunks, method=method, recompute=recompute)

    def kv(self, prompt: Prompt, chunk_left: Sequence[int] = ()) -> list[tuple[Tensor, Tensor]]:
        """Reused K and V: the prefix exact, every chunk behind `chunk_left`."""
        lefts: dict[int, Sequence[int]] = dict.fromkeys(prompt.chunks(), chunk_left)
        return stale(self.reader, prompt, {0: (), **lefts})

    def selectable(self, prompt: Prompt) -> Tensor:
        """Slots of chunks, ascending."""
        return torch.cat(
            [torch.arange(prompt.slots[segment], prompt.slots[segment + 1]) for segment in prompt.chunks()]
        )

    def fresh(self, prompt: Prompt) -> Tensor:
        """Slots of the question and what follows."""
        return torch.arange(prompt.slots[prompt.question], len(prompt))


@dataclass(frozen=True)
class Spaced(Layout):
    """Puts fresh text between the chunks."""

    words: str

    def place(self, template: Template, prefix: Segment, chunks: list[Segment], question: str, look: object) -> Prompt:
        between = Segment(template.plain(self.words), self.words)
        return template.prompt(list(itertools.chain(*((chunk, between) for chunk in chunks))), question, prefix=prefix)


def stage(tmp_path: Path, *recipes: str, layers: int = 6) -> Stage:
    """Encoded as rows of the table ask for."""
    return Stage(*make(tmp_path, tiny_reader("llama", num_hidden_layers=layers), *recipes))
