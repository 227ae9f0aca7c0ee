"""Below the length from which reuse was measured to pay, the method that was measured gives way to full prefill."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_reader
from staged import QUESTION, make

from ragcache.encode import InDocument, Prefixed
from ragcache.engine import break_even, calibrate
from ragcache.engine.break_even import BreakEven, machine
from ragcache.engine.chat import Message
from ragcache.engine.engine import Engine
from ragcache.engine.request import RequestOptions
from ragcache.index.chunks import Chunk
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache
from ragcache.report import CacheReport
from ragcache.store import LocalStore

Made = tuple[Engine, list[Chunk]]
SHORT = Sampling(max_new_tokens=2)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    engine, chunks = make(tmp_path, tiny_reader(), "auto", "fusionrag")
    yield engine, chunks
    engine.index.close()


def known(engine: Engine, tokens: int, method: str = "auto") -> None:
    BreakEven(tokens, 10_000).keep(engine.index, METHODS[method])


def size(chunks: list[Chunk]) -> int:
    return sum(len(chunk.segment) for chunk in chunks)


def test_a_short_context_is_prefilled_and_says_so(made: Made) -> None:
    engine, chunks = made
    known(engine, size(chunks))
    stream = engine.stream(QUESTION, chunks)
    assert torch.equal(stream.logits, engine.stream(QUESTION, chunks, method="full").logits)
    assert stream.report.method == "full"
    assert {chunk.cache for chunk in stream.report.chunks} == {"miss"}
    (note,) = stream.report.notes
    assert note.count(f"{size(chunks):,}") == 2
    compared = engine.answer(QUESTION, chunks, compare=True)
    assert (compared.report.method, compared.report.notes) == ("full", (note,))


@pytest.mark.parametrize(
    ("tokens", "method", "how"),
    [
        (-1, "auto", {}),  # longer than that
        (0, "fusionrag", {}),
        (0, "auto", {"recompute": 0.0}),  # named
        (0, "auto", {"method": "auto"}),
        (0, "auto", {"method": replace(METHODS["auto"], about="of my own")}),
    ],
)
def test_nothing_else_gives_way(made: Made, tokens: int, method: str, how: dict[str, Any]) -> None:
    engine, chunks = made
    before = engine.stream(QUESTION, chunks, **how)
    known(engine, size(chunks) + tokens, method)
    after = engine.stream(QUESTION, chunks, **how)
    assert torch.equal(after.logits, before.logits)
    assert (after.report.method, after.report.notes) == ("auto", ())
    assert all(chunk.cache != "miss" for chunk in after.report.chunks)


def test_another_machine_measures_for_itself(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = made
    known(engine, 10_000)
    monkeypatch.setattr(break_even, "machine", lambda reader: "another")
    assert engine.stream(QUESTION, chunks).report.method == "auto"
    known(engine, 0)
    monkeypatch.undo()
    assert engine.stream(QUESTION, chunks).report.method == "full"


def test_questions_at_once_keep_what_they_share(made: Made) -> None:
    engine, chunks = made
    known(engine, 10_000)
    for answer in engine.answers([(QUESTION, chunks), ("Why?", chunks)]):
        assert answer.report.method == "auto"


def test_a_prompt_that_somebody_else_wrote_is_prefilled_too(made: Made) -> None:
    engine, chunks = made
    prompt = "\n\n".join([*(chunk.text for chunk in chunks), QUESTION])
    earlier = [Message("user", "Hello."), Message("assistant", "Good morning.")]
    assert engine.complete(prompt).report.method == "auto"
    known(engine, 10_000)
    assert engine.complete(prompt).report.method == "full"
    assert engine.stream(QUESTION, chunks, history=earlier).report.method == "full"
    assert engine.complete("No chunk is in this one.").report.method == "auto"


def learnt_prompt(engine: Engine, words: int, *parts: str) -> str:
    """A prompt of learnt texts, and so many words that nobody knows."""
    for part in parts:
        engine.index.learn(part, InDocument())
    return "\n\n".join([*parts, "Nothing of this is known. " * words, QUESTION])


LEARNT = ("The weir was dredged in autumn by a crew from the coast, who left their nets behind. " * 3).strip()


def test_more_fresh_text_than_learnt_is_prefilled_and_says_so(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), second_sight_bytes=1 << 20) as rag:
        engine, prompt = rag.engine, learnt_prompt(rag.engine, 40, LEARNT)
        request = engine.requests.from_prompt(prompt)
        assert (request.method.name, request.instead_of) == ("full", METHODS["auto"])
        found = engine.complete(prompt, sampling=SHORT)
        assert torch.equal(found.logits, engine.complete(prompt, method="full", sampling=SHORT).logits)
        [note] = [note for note in found.report.notes if note.startswith("prefilled in full")]
        fresh, context = request.frame.fresh_tokens, size(list(request.chunks))
        assert f"{fresh:,} tokens of the prompt" in note
        assert f"the {context:,} that are" in note
        assert fresh + context == len(
            engine.requests.parser.parse(prompt).prompt([chunk.segment for chunk in request.chunks])
        )


@pytest.mark.parametrize("how", [{"method": "auto"}, {"recompute": 0.05}, {"at_once": True}])
def test_who_names_how_to_reuse_has_learnt_texts_reused_among_much_fresh_text(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), second_sight_bytes=1 << 20) as rag:
        prompt = learnt_prompt(rag.engine, 40, LEARNT)
        assert rag.engine.requests.from_prompt(prompt, RequestOptions(**how)).method.name == "auto"
        assert rag.engine.requests.from_prompt(prompt).method.name == "full"


def test_mostly_learnt_text_is_reused(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), second_sight_bytes=1 << 20) as rag:
        request = rag.engine.requests.from_prompt(learnt_prompt(rag.engine, 0, LEARNT))
        assert (request.method.name, request.instead_of) == ("auto", None)


def test_what_a_document_knows_outweighs_fresh_text(made: Made) -> None:
    engine, chunks = made
    prompt = "\n\n".join([*(chunk.text for chunk in chunks), "Nothing of this is known. " * 100, QUESTION])
    assert engine.requests.from_prompt(prompt).method.name == "auto"


def test_a_row_that_reads_fresh_text_once_gives_way_to_nothing(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), method="naive", second_sight_bytes=1 << 20) as rag:
        rag.engine.index.learn(LEARNT, Prefixed())
        request = rag.engine.requests.from_prompt(f"{LEARNT}\n\n{'Nothing of this is known. ' * 40}\n\n{QUESTION}")
        assert request.chunks
        assert request.method.name == "naive"


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

    def ratio(engine: Engine, chunks: list[Chunk], repeats: int) -> float:
        timed.append(chunks)
        return ratios[len(timed) - 1]

    monkeypatch.setattr(calibrate, "_ratio", ratio)
    steps: list[tuple[int, int]] = []
    found = calibrate.calibrate(engine, lambda stage, done, total: steps.append((done, total)))
    assert [len(chunks) for chunks in timed] == counts
    assert found == BreakEven(size(timed[counts.index(lost)]) if lost else 0, size(timed[-1]))
    assert found.reached == (lost < counts[-1])
    assert BreakEven.of(engine.index, engine.method) == found
    assert steps[-1] == (3, 3)


def test_chunks_are_drawn_as_a_search_finds_them_so_that_the_methods_own_recompute_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        text = " ".join(f"In year {year} the mill of village {n} ground rye and nothing else." for year in range(30))
        (tmp_path / f"mill{n}.txt").write_text(text)
    reports: list[CacheReport] = []
    prefill = Engine.prefill
    with RagCache.open(tmp_path / "index", model=tiny_reader()) as rag:
        rag.ingest([tmp_path / "mill0.txt", tmp_path / "mill1.txt"], chunk_tokens=64)
        monkeypatch.setattr(
            Engine, "prefill", lambda *args, **how: reports.append((ready := prefill(*args, **how)).report) or ready
        )
        calibrate.calibrate(rag.engine, repeats=1)
    own = [report for report in reports if report.method == "auto"]
    assert own
    assert all(report.tokens.recomputed for report in own)
    assert all(chunk.cache == "hit" for report in own for chunk in report.chunks)
    assert all(len({chunk.source for chunk in report.chunks[:2]}) == len(report.chunks[:2]) for report in own)


def test_a_context_is_longer_only_if_it_clearly_is(made: Made) -> None:
    engine, chunks = made
    assert not calibrate.offers_longer(engine, BreakEven(size(chunks), size(chunks)))
    assert calibrate.offers_longer(engine, BreakEven(size(chunks) // 2, size(chunks) // 2))


def test_it_is_measured_as_the_method_is_used(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = made
    known(engine, 10_000)  # an earlier measurement must not stand in the way of the next
    reports: list[CacheReport] = []
    read: list[str] = []
    prefill, get = Engine.prefill, LocalStore.get

    def watched(self: Engine, *args: Any, **options: Any) -> Any:
        ready = prefill(self, *args, **options)
        reports.append(ready.report)
        return ready

    monkeypatch.setattr(Engine, "prefill", watched)
    monkeypatch.setattr(LocalStore, "get", lambda self, key: read.append(key) or get(self, key))
    found = calibrate.calibrate(engine, repeats=1)
    assert found is not None
    assert 0 <= found.tokens <= found.measured <= size(chunks)
    assert [report.method for report in reports[:4]] == ["full", "auto", "auto", "full"]
    own = [report for report in reports if report.method == "auto"]
    assert {chunk.cache for report in own for chunk in report.chunks} <= {"hit", "exact"}
    assert len(read) >= sum(len(report.chunks) for report in own)  # from files, each time


def test_what_does_not_fit_the_model_is_not_timed(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = made
    timed: list[int] = []
    monkeypatch.setattr(calibrate, "_ratio", lambda engine, chunks, repeats: timed.append(len(chunks)) or 2.0)
    monkeypatch.setattr(engine.reader, "limit", size(chunks) - 1 + calibrate._ROOM)
    calibrate.calibrate(engine)
    assert timed == [1, 2, 3]
    monkeypatch.setattr(engine.reader, "limit", calibrate._ROOM)
    assert calibrate.calibrate(engine) is None


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
    assert break_even._processor() in before
