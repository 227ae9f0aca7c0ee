"""A deeper tiny model, prompts without a model, and stock attention to compare with."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from conftest import CHAT, SPECIAL, tiny_model, tiny_reader
from staged import QUESTION, TEXTS, make
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import DynamicCache, PreTrainedTokenizerFast
from twin import stale_kv

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.architecture import cache_argument
from ragcache.model.buffer import ChunkKV
from ragcache.model.cost import FlopCounter
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment
from ragcache.select import Selector

Attention = Callable[..., list[Tensor]]


@dataclass(frozen=True)
class SelectorStage:
    """An engine over four short chunks with KV made alone, and behind the prefix."""

    engine: Engine
    chunks: Sequence[Chunk]

    def passed(self, method: str | Method = "naive", chunks: Sequence[Chunk] | None = None) -> PrefillContext:
        """The buffer as a method leaves it, nothing in it recomputed."""
        row = METHODS[method] if isinstance(method, str) else method
        share = None if row.recompute is None else 0.0
        p = self.engine.prefill(QUESTION, chunks or self.chunks, method=row, recompute=share).context
        assert p is not None
        return p


@pytest.fixture(scope="session")
def deep() -> Reader:
    return tiny_reader("llama", num_hidden_layers=6)


def merging_tokenizer(*, trim: bool = False) -> PreTrainedTokenizerFast:
    """Byte-level with merges, so that tokens are longer than a character; may leave blanks out of its offsets."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    if trim:
        backend.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=SPECIAL)
    backend.train_from_iterator([*TEXTS * 3, QUESTION * 3, "\u20ac\u20ac 漢字 漢字", "\n\n \n\n"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|bos|>", eos_token="<|end|>", chat_template=CHAT,
        additional_special_tokens=SPECIAL[2:], clean_up_tokenization_spaces=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, PreTrainedTokenizerFast]:
    """Tokenizers that cut the same text differently."""
    return {"merging": merging_tokenizer(), "trimming": merging_tokenizer(trim=True)}


@pytest.fixture(scope="session")
def foreign(tokenizers: dict[str, PreTrainedTokenizerFast]) -> Reader:
    """Another architecture with a tokenizer of its own."""
    return Reader(tiny_model("qwen3", num_hidden_layers=6), tokenizers["trimming"], name="tiny-foreign")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, deep: Reader) -> Iterator[SelectorStage]:
    folder: Path = tmp_path_factory.mktemp("select")
    engine, chunks = make(folder, deep, "naive", "fusionrag")
    yield SelectorStage(engine, chunks)
    engine.index.close()


@dataclass(frozen=True)
class Given(Selector):
    """Scores written down by the test."""

    values: tuple[float, ...]
    needs = ("written",)

    def scores(self, p: PrefillContext) -> Tensor:
        return torch.tensor(self.values, dtype=torch.float32)


@pytest.fixture(scope="session")
def given() -> Callable[[Sequence[float]], Given]:
    return lambda values: Given(tuple(values))


@pytest.fixture(scope="session")
def bare(readers: Callable[[str], Reader]) -> Callable[..., PrefillContext]:
    """A pass over chunks of some lengths behind a prefix of two, without any KV in it."""
    reader = readers("llama")

    def build(
        lengths: Sequence[int], exact: Sequence[int] = (), extras: dict[int, Tensor] | None = None
    ) -> PrefillContext:
        chunks = [Segment((7,) * length, "x", f"c{n}") for n, length in enumerate(lengths)]
        prompt = Prompt((Segment((5, 6), "p"), *chunks, Segment((9,), "q"), Segment((1,), "s")), len(chunks) + 1)
        shifts = extras or {}
        placed = {
            n: ChunkKV((), 0, segment.token_ids, {"value_shift": shifts[n]} if n in shifts else {})
            for n, segment in enumerate(prompt.segments[:-2])
        }
        return PrefillContext(
            reader, prompt, reader.buffer(1), placed, frozenset({0, *exact}), FlopCounter(reader.dims)
        )

    return build


@pytest.fixture(scope="session")
def attended() -> Attention:
    """Stock eager attention from the question's rows: per layer (heads, rows, keys)."""

    @torch.no_grad()
    def attended(reader: Reader, prompt: Prompt, stitched: bool = False) -> list[Tensor]:
        start, end = prompt.slots[prompt.question], prompt.slots[prompt.question + 1]
        cache = DynamicCache()
        if stitched:  # each chunk read alone, by a stock forward at the positions where it stands
            parts = [
                stale_kv(reader, segment.token_ids, (), prompt.slots[i])
                for i, segment in enumerate(prompt.segments[: prompt.question])
            ]
            for layer in range(reader.layers):
                cache.update(*(torch.cat([part[layer][kv] for part in parts], 2) for kv in (0, 1)), layer)
        first = start if stitched else 0
        rows = torch.arange(first, end)
        mask = torch.arange(end)[None, :] <= rows[:, None]
        reader.model.set_attn_implementation("eager")
        try:
            output = reader.model(
                input_ids=torch.tensor([prompt.token_ids[first:end]]), position_ids=rows[None],
                attention_mask=torch.where(mask, 0.0, float("-inf"))[None, None], output_attentions=True,
                **cache_argument(reader.model, cache),
            )  # fmt: skip
        finally:
            reader.model.set_attn_implementation("sdpa")
        return [layer[0, :, start - first :] for layer in output.attentions]

    return attended
