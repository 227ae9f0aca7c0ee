from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from ragcache_bench.contenders import Contender
from ragcache_bench.speed import latency, runners
from ragcache_bench.speed.latency import measure
from ragcache_bench.speed.shapes import CHUNK, PREFIX, QUESTION, SHAPES, random_reader

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.reader import Reader

TINY = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 1000,
}  # fmt: skip


@pytest.fixture(scope="module")
def reader() -> Reader:
    return random_reader("qwen2", TINY, device="cpu")


def field(*names: str, recompute: float = 0.15) -> list[Contender]:
    return [Contender(METHODS[name], None if METHODS[name].recompute is None else recompute) for name in names]


def test_prompts_have_the_sizes_they_say(reader: Reader, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts: list[list[int]] = []
    original = Engine.prefill

    def watch(self: Engine, *args: object, **options: object) -> object:
        ready = original(self, *args, **options)  # type: ignore[arg-type]
        prompts.append([len(segment) for segment in ready.prompt.segments])
        return ready

    monkeypatch.setattr(Engine, "prefill", watch)
    measure(reader, [], 2 * CHUNK, repeats=1)
    prefix, *chunks, question, suffix = prompts[0]
    assert (prefix, chunks, question + suffix) == (PREFIX, [CHUNK, CHUNK], QUESTION)


def test_every_method_is_measured_against_full_prefill(reader: Reader) -> None:
    rows = {row.method: row for row in measure(reader, field("naive", "cacheblend", "fusionrag"), 2 * CHUNK, repeats=2)}
    assert list(rows) == ["full", "naive", "cacheblend", "fusionrag"]
    assert (rows["full"].speedup, rows["full"].charged, rows["full"].charged_flops) == (1.0, None, 1.0)
    assert rows["naive"].charged == 0.0
    assert rows["fusionrag"].charged == pytest.approx(0.15, abs=0.01)
    assert rows["cacheblend"].charged == pytest.approx(2 / 3 + 0.15 / 3, abs=0.01)
    for row in rows.values():
        assert row.ttft_low_ms <= row.ttft_ms <= row.ttft_high_ms
        assert row.speedup_low <= row.speedup <= row.speedup_high
        assert row.load_ms + row.place_ms + row.select_ms + row.prefill_ms <= 1.05 * row.ttft_high_ms
    assert rows["naive"].load_ms > 0
    assert rows["full"].load_ms == 0
    assert rows["fusionrag"].select_ms > rows["naive"].select_ms


def test_memory_is_that_of_the_first_answer(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[None] = []
    monkeypatch.setattr(latency, "give_back", lambda: given_back.append(None))
    peaks = iter(range(1 << 20, 1 << 30, 1 << 20))

    @contextmanager
    def added() -> Iterator[list[int]]:
        yield [next(peaks)]

    monkeypatch.setattr(runners, "added", added)
    rows = measure(reader, field("naive"), CHUNK, repeats=2)
    assert sorted(row.memory_mib for row in rows) == [1, 2]  # of the first turn, whoever began
    assert len(given_back) == 2


def test_prefix_caching_reuses_the_first_chunk_exactly(reader: Reader) -> None:
    row = measure(reader, field("prefix"), 2 * CHUNK, repeats=1)[-1]
    assert row.charged is None
    assert 0.5 < row.charged_flops < 0.8


def test_the_memory_tier_spares_reading_the_files(reader: Reader) -> None:
    def read(store: str) -> float:
        return measure(reader, field("naive"), 8 * CHUNK, repeats=5, store=store)[-1].load_ms

    assert read("memory") < read("warm")


@pytest.mark.parametrize("context", [0, CHUNK - 1, CHUNK + 1])
def test_a_context_that_is_no_multiple_of_the_chunk_is_refused(reader: Reader, context: int) -> None:
    with pytest.raises(InvalidArgument, match=str(CHUNK)):
        measure(reader, [], context)


@pytest.mark.parametrize(
    ("name", "parameters"), [("qwen2.5-0.5b", 494e6), ("qwen2.5-1.5b", 1544e6), ("llama-3.1-8b", 8030e6),
                             ("qwen3-8b", 8191e6)]
)  # fmt: skip
def test_shapes_have_as_many_parameters_as_published(name: str, parameters: float) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, sizes = SHAPES[name]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, pad_token_id=None))
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(parameters, rel=0.002)
