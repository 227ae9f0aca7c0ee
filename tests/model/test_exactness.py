"""r = 1 is full prefill, and what is exact stays exact, on every supported architecture."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import ARCHITECTURES, byte_tokenizer, tiny_model, tiny_reader
from staged import QUESTION, make
from transformers import DynamicCache

from ragcache.encode import Fused
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.layout import Overlapped
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.select import QuestionAttention

#: Rows that recompute a share; at positions of their own they are compared in test_rows.py.
DIAL = [name for name, row in METHODS.items() if row.recompute is not None and row.layout != Overlapped()]


@pytest.fixture(params=sorted(ARCHITECTURES))
def architecture(request: pytest.FixtureRequest, readers: Callable[[str], Reader]) -> Reader:
    return readers(request.param)


def test_recomputing_everything_is_full_prefill(architecture: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, architecture, "naive")
    full = engine.prefill(QUESTION, chunks, method="full")
    ours = engine.prefill(QUESTION, chunks, method="random", recompute=1.0)
    naive = engine.prefill(QUESTION, chunks, method="naive")
    assert ours.prompt.token_ids == full.prompt.token_ids
    assert (ours.logits - full.logits).abs().max() <= 1e-4
    assert (naive.logits - full.logits).abs().max() > 1e-2, "reuse without recompute must show, or this proves nothing"
    assert [c.cache for c in ours.report.chunks] == ["hit"] * len(chunks)


def test_the_greedy_answer_is_the_same_text(architecture: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, architecture, "naive")
    sampling = Sampling(max_new_tokens=24)
    full = engine.answer(QUESTION, chunks, method="full", sampling=sampling)
    ours = engine.answer(QUESTION, chunks, method="random", recompute=1.0, sampling=sampling)
    assert ours.token_ids == full.token_ids
    assert ours.text == full.text


@pytest.mark.parametrize("name", DIAL)
def test_every_row_with_a_dial_reaches_full_prefill_at_one(name: str, reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader, name)
    at_zero, nearly, at_one = (
        engine.prefill(QUESTION, chunks[::-1], method=name, recompute=share) for share in (0.0, 0.99, 1.0)
    )
    full, _ = reader.stock(at_one.prompt.token_ids)  # in the row's own order
    assert (at_one.logits - full).abs().max() <= 1e-4
    assert (nearly.logits - full).norm() < 0.5 * (at_zero.logits - full).norm()


def test_the_prefix_row_is_full_prefill(architecture: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, architecture, "prefix")
    full = engine.prefill(QUESTION, chunks, method="full")
    ours = engine.prefill(QUESTION, chunks, method="prefix")
    assert (ours.logits - full.logits).abs().max() <= 1e-4
    assert [c.cache for c in ours.report.chunks] == ["exact", "miss", "miss", "miss"]


def test_fused_prompts_take_the_exact_first_chunk_from_pass_a(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader, "fusionrag")
    only = engine.prefill(QUESTION, chunks[:1], method="fusionrag", recompute=0.0)
    full = engine.prefill(QUESTION, chunks[:1], method="full")
    assert only.report.chunks[0].cache == "exact"
    assert only.report.charged == 0
    assert (only.logits - full.logits).abs().max() <= 1e-4
    two = engine.prefill(QUESTION, chunks[:2], method="fusionrag", recompute=0.5)
    assert [c.cache for c in two.report.chunks] == ["exact", "hit"]
    assert two.report.chunks[0].recomputed == 0


def test_a_fused_chunk_with_its_own_neighbour_in_place_is_not_exact(reader: Reader, tmp_path: Path) -> None:
    one = Method("one", Fused(neighbours=1), QuestionAttention(), 0.15)
    with Index(tmp_path / "index", reader) as index:
        for name in ("a", "b"):
            index.put(name, name, [(f"The {name} of it.", 0, 1)], {})
        names = [row.id for row in index.catalog.all_chunks()]
        list(index.encode(Fused(neighbours=1), neighbours=lambda chunk, count: [n for n in names if n != chunk]))
        report = Engine(reader, index).prefill(QUESTION, index.chunks(names), method=one, recompute=0.0).report
    assert [c.cache for c in report.chunks] == ["exact", "hit"]
    assert "1 neighbours" in report.chunks[1].left


def test_bf16_stays_within_the_models_own_noise(tmp_path: Path) -> None:
    reader = Reader(tiny_model("llama", dtype=torch.bfloat16), byte_tokenizer(), name="bf16")
    engine, chunks = make(tmp_path, reader, "naive")
    full = engine.prefill(QUESTION, chunks, method="full")
    ours = engine.prefill(QUESTION, chunks, method="random", recompute=1.0)
    ids = full.prompt.token_ids
    two_steps = reader.stock(ids[40:], reader.stock(ids[:40], DynamicCache())[1])[0]
    noise = _kl(full.logits, two_steps)
    assert _kl(full.logits, ours.logits) <= 5 * noise + 1e-4


def test_sliding_windows_are_seen_only_by_prompts_longer_than_them(tmp_path: Path) -> None:
    # The architectures above slide over 48 tokens and the prompt has more: a mask without window must fail there.
    wide = tiny_reader("mistral-sliding", sliding_window=4096)
    narrow = tiny_reader("mistral-sliding")
    ids = list(range(5, 205))
    assert (wide.stock(ids)[0] - narrow.stock(ids)[0]).abs().max() > 1e-2


def _kl(p: torch.Tensor, q: torch.Tensor) -> float:
    return float((p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum())
