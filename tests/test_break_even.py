"""Below the length from which reuse was measured to pay, the method that was measured gives way to full prefill."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_reader
from staged import QUESTION, make

from ragcache import breakeven, calibrate
from ragcache.breakeven import BreakEven, machine
from ragcache.chunks import Chunk
from ragcache.engine import Engine

Made = tuple[Engine, list[Chunk]]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    engine, chunks = make(tmp_path, tiny_reader(), "auto", "fusionrag")
    yield engine, chunks
    engine.index.close()


def known(engine: Engine, tokens: int, **changes: Any) -> None:
    found = BreakEven("auto", machine(engine.reader), tokens)
    replace(found, **changes).keep(engine.index)


def size(chunks: list[Chunk]) -> int:
    return sum(len(chunk.segment) for chunk in chunks)


def test_a_shorter_context_is_prefilled_and_says_so(made: Made) -> None:
    engine, chunks = made
    known(engine, size(chunks) + 1)
    ready = engine.prefill(QUESTION, chunks)
    expected = engine.prefill(QUESTION, chunks, method="full")
    assert torch.equal(ready.logits, expected.logits)
    assert ready.report.method == "full"
    assert {chunk.cache for chunk in ready.report.chunks} == {"miss"}
    (note,) = ready.report.notes
    assert f"{size(chunks) + 1:,}" in note
    assert f"{size(chunks):,}" in note


@pytest.mark.parametrize(
    ("tokens", "changes", "how"),
    [
        (0, {}, {}),  # as long as it must be
        (1, {"machine": "another"}, {}),
        (1, {"method": "fusionrag"}, {}),
        (1, {}, {"recompute": 0.0}),  # asked for by name
        (1, {}, {"method": "fusionrag"}),
    ],
)
def test_nothing_else_gives_way(made: Made, tokens: int, changes: dict[str, Any], how: dict[str, Any]) -> None:
    engine, chunks = made
    before = engine.prefill(QUESTION, chunks, **how)
    known(engine, size(chunks) + tokens, **changes)
    after = engine.prefill(QUESTION, chunks, **how)
    assert torch.equal(after.logits, before.logits)
    assert (after.report.method, after.report.notes) == (how.get("method", "auto"), ())
    assert all(chunk.cache != "miss" for chunk in after.report.chunks)


def test_a_prompt_that_somebody_else_wrote_is_prefilled_too(made: Made) -> None:
    engine, chunks = made
    prompt = "\n\n".join([*(chunk.text for chunk in chunks), QUESTION])
    assert engine.complete(prompt).report.method == "auto"
    known(engine, 10_000)
    assert engine.complete(prompt).report.method == "full"


@pytest.mark.parametrize(
    ("ratios", "counts", "lost"),
    [
        ([0.5, 0.9], [1, 2], 0),
        ([1.2, 0.9, 0.8], [1, 2, 4], 1),
        ([0.9, 1.1, 0.9], [1, 2, 4], 2),
        ([1.5, 1.4, 1.3], [1, 2, 4], 4),
    ],
)
def test_the_break_even_lies_above_the_longest_context_that_lost(
    made: Made, monkeypatch: pytest.MonkeyPatch, ratios: list[float], counts: list[int], lost: int
) -> None:
    engine, _ = made
    timed: list[list[Chunk]] = []

    def ratio(engine: Engine, row: object, chunks: list[Chunk], repeats: int) -> float:
        timed.append(chunks)
        return ratios[len(timed) - 1]

    monkeypatch.setattr(calibrate, "_ratio", ratio)
    steps: list[tuple[int, int]] = []
    found = calibrate.calibrate(engine, lambda stage, done, total: steps.append((done, total)))
    assert [len(chunks) for chunks in timed] == counts
    assert found == BreakEven("auto", machine(engine.reader), size(timed[counts.index(lost)]) + 1 if lost else 0)
    assert BreakEven.of(engine.index, engine.method) == found
    assert steps[-1] == (3, 3)


def test_it_is_measured_as_the_method_is_used(made: Made) -> None:
    engine, chunks = made
    known(engine, 10_000)  # an earlier measurement must not stand in the way of the next
    found = calibrate.calibrate(engine, repeats=1)
    assert found is not None
    assert 0 <= found.tokens <= size(chunks) + 1


def test_there_may_be_nothing_to_measure(made: Made) -> None:
    engine, chunks = made
    assert calibrate.calibrate(Engine(engine.reader, engine.index, "full")) is None
    for chunk in chunks:
        engine.index.remove(chunk.source)
    assert calibrate.calibrate(engine) is None


def test_a_machine_is_known_by_what_times_depend_on(monkeypatch: pytest.MonkeyPatch, made: Made) -> None:
    reader = made[0].reader
    before = machine(reader)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    masked = machine(reader)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    assert len({before, masked, machine(reader)}) == 3
    assert breakeven._processor() in before
