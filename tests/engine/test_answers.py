"""Several questions at once: each gets what it gets alone; what they have in common is made once."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_reader
from staged import make

from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled, choose_strategy
from ragcache.engine.request import RequestOptions
from ragcache.errors import PromptTooLong
from ragcache.index.chunks import Chunk, Loaded
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.decode import Sampling
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.select import ValueShift
from ragcache.store.memory import MemoryTier

ALL = [(name, None) for name in METHODS] + [("prophetkv", 0.5), ("cacheblend", 1.0), ("random", 0.3)]
QUESTIONS = ("What colour is the bridge?", "Why?", "Who counts the boats, and how often does he do so?")
SHORT = Sampling(max_new_tokens=5)


def prefill_shared(
    engine: Engine,
    shared: dict[Any, Any],
    question: str,
    chunks: Any,
    method: Any = None,
    recompute: float | None = None,
) -> Prefilled:
    """As `Engine.prefill`, over contexts that questions share."""
    options = RequestOptions(method or engine.method, recompute, shared=shared, check=False)
    request = engine.requests.from_question(question, chunks, options)
    return choose_strategy(request.method).prefill(request, engine.index)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[Chunk]]]:
    encoded = [row.name for row in METHODS.values() if row.encode]
    engine, chunks = make(tmp_path_factory.mktemp("stage"), tiny_reader(), *encoded)
    yield engine, chunks
    engine.index.close()


@pytest.mark.parametrize(("name", "recompute"), ALL)
def test_questions_over_one_context_get_what_they_get_alone(stage: Any, name: str, recompute: float | None) -> None:
    engine, chunks = stage
    how = {"method": name, "recompute": recompute}
    alone = [engine.stream(question, chunks, sampling=SHORT, **how) for question in QUESTIONS]
    expected = [stream.answer for stream in alone]
    found = engine.answers([(question, chunks) for question in QUESTIONS], sampling=SHORT, **how)
    settled = METHODS[name].shares_recompute(METHODS[name].budget(recompute))
    for number, (answer, before) in enumerate(zip(found, expected, strict=True)):
        assert (answer.question, answer.text, answer.token_ids) == (before.question, before.text, before.token_ids)
        shared = settled and number > 0  # what is recomputed for all is charged to the first
        charged = 0 if shared else before.report.tokens.charged
        assert answer.report.tokens == replace(before.report.tokens, charged=charged)
        assert answer.report.charged == (0 if shared else before.report.charged)
        assert [(one.cache, one.recomputed) for one in answer.report.chunks] == [
            (one.cache, one.recomputed) for one in before.report.chunks
        ]
    shared: dict[Any, Any] = {}
    ready = [partial(prefill_shared, engine, shared, question, chunks, **how) for question in QUESTIONS]
    for prefilled, stream in zip(engine.reader.run_batch(ready), alone, strict=True):
        assert (prefilled.logits - stream.logits).abs().max() <= 1e-4


def test_what_does_not_depend_on_the_question_is_recomputed_once(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = stage
    ran: list[int] = []
    forward = PrefillContext.forward

    def watched(self: PrefillContext, rows: Slots, **how: Any) -> None:
        ran.append(len(rows))
        assert int(rows[-1]) < self.context_end, "the question is each one's own"
        forward(self, rows, **how)

    monkeypatch.setattr(PrefillContext, "forward", watched)
    pairs = [(question, chunks) for question in QUESTIONS]
    tokens = sum(len(chunk.segment) for chunk in chunks)
    for method, forwards in (("epic", 1), ("cacheblend", 2), ("naive", 0)):  # cacheblend looks first
        ran.clear()
        answers = engine.answers(pairs, method=method, sampling=SHORT)
        assert len(ran) == forwards
        share = METHODS[method].recompute or 0
        assert [answer.report.tokens.recomputed for answer in answers] == 3 * [round(share * tokens)]
    both = [(question, order) for question in QUESTIONS for order in (chunks, chunks[::-1])]
    engine.answers(both, method="epic", sampling=SHORT)
    assert len(ran) == 2  # another order is another context


def test_where_nothing_is_reused_nothing_is_chosen_from(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = stage
    monkeypatch.setattr(PrefillContext, "forward", lambda *given, **how: pytest.fail("a forward for no choice"))
    assert engine.answer("Why?", [], method="prophetkv", sampling=SHORT).report.tokens.reused == 0


def test_a_share_of_nothing_needs_no_forward(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = stage
    monkeypatch.setattr(PrefillContext, "forward", lambda *given, **how: pytest.fail("a forward of nothing"))
    for answer in engine.answers([(question, chunks) for question in QUESTIONS], method="epic", recompute=1e-6):
        assert answer.report.tokens.recomputed == 0


def test_a_context_that_nobody_shares_is_neither_settled_nor_copied(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = stage
    monkeypatch.setattr(PrefillContext, "forward", lambda *given, **how: pytest.fail("its rows run with the others'"))
    monkeypatch.setattr(KVBuffer, "beginning", lambda *given: pytest.fail("a copy"))
    pairs = [("Why?", chunks), ("Who?", chunks[::-1]), ("When?", chunks[:2])]
    answers = engine.answers(pairs, method="epic", sampling=SHORT)
    assert all(answer.report.tokens.recomputed for answer in answers)


@pytest.mark.parametrize(
    ("first", "also"),
    [
        *((("epic", 0.15), also) for also in (("cacheblend", 0.15), ("epic", 0.5), ("naive", None), ("epic", 1.0))),
        (("naive", None), ("sel", None)),
    ],
)
def test_methods_that_share_a_dictionary_share_no_context(
    stage: Any, first: tuple[str, float | None], also: tuple[str, float | None]
) -> None:
    engine, chunks = stage
    shared: dict[Any, Any] = {}
    for method, recompute in (first, also):
        ready = prefill_shared(engine, shared, "Why?", chunks, method=method, recompute=recompute)
        alone = engine.prefill("Why?", chunks, method=method, recompute=recompute)
        assert (ready.logits - alone.logits).abs().max() <= 1e-4
        assert torch.equal(ready.recomputed, alone.recomputed)
        assert torch.equal(ready.context.stale, alone.context.stale)
    assert len(shared) == 2


def test_one_that_fails_while_it_settles_leaves_nothing(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = stage
    shared: dict[Any, Any] = {}
    with monkeypatch.context() as patch:
        patch.setattr(PrefillContext, "forward", lambda *given, **how: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            prefill_shared(engine, shared, "Why?", chunks, method="epic")
    assert not shared
    ready = prefill_shared(engine, shared, "Why?", chunks, method="epic")
    assert (ready.logits - engine.prefill("Why?", chunks, method="epic").logits).abs().max() <= 1e-4


def test_a_loose_chunk_is_settled_with_the_others(stage: Any) -> None:
    engine, chunks = stage
    mixed = [*chunks[:2], "The ferry runs on Sundays, but not in winter, when nobody asks for it."]
    alone = [engine.answer(question, mixed, method="cacheblend", sampling=SHORT) for question in QUESTIONS]
    found = engine.answers([(question, mixed) for question in QUESTIONS], method="cacheblend", sampling=SHORT)
    assert [answer.token_ids for answer in found] == [answer.token_ids for answer in alone]
    assert [answer.report.tokens.recomputed for answer in found] == [
        answer.report.tokens.recomputed for answer in alone
    ]


def test_one_context_is_loaded_and_placed_once(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = stage
    loaded: list[str] = []
    placed: list[int] = []
    load, place = Index.load, Reader.place_all
    monkeypatch.setattr(Index, "load", lambda self, chunk, *rest: loaded.append(chunk.id) or load(self, chunk, *rest))
    monkeypatch.setattr(Reader, "place_all", lambda self, *rest: placed.append(1) or place(self, *rest))
    engine.answers([(question, chunks) for question in QUESTIONS], method="prophetkv", sampling=SHORT)
    assert sorted(loaded) == sorted(chunk.id for chunk in chunks)
    assert len(placed) == 1
    loaded.clear()
    engine.answers([("What?", chunks), ("What?", chunks[::-1])], method="prophetkv", sampling=SHORT)
    assert sorted(loaded) == sorted(2 * [chunk.id for chunk in chunks])  # another order is another context


def test_a_loose_chunk_is_made_once_and_said_to_be_missing_by_all(stage: Any) -> None:
    engine, chunks = stage
    pairs = [(question, [*chunks[:2], "The ferry runs on Sundays."]) for question in QUESTIONS]
    for answer in engine.answers(pairs, method="naive", sampling=SHORT):
        assert [chunk.cache for chunk in answer.report.chunks] == ["hit", "hit", "miss"]


def test_nothing_to_reuse_and_nothing_to_ask(stage: Any) -> None:
    engine, _ = stage
    assert engine.answers([]) == []
    first, second = engine.answers([("Why?", []), ("How?", [])], method="naive", sampling=SHORT)
    assert first.text == engine.answer("Why?", [], method="naive", sampling=SHORT).text
    assert second.question == "How?"


def test_one_that_cannot_be_answered_is_said_once_the_others_are(stage: Any) -> None:
    engine, chunks = stage
    with pytest.raises(PromptTooLong):
        engine.answers([("Why?", chunks), ("why " * 5000, chunks)], method="naive", sampling=SHORT)


def test_a_context_is_a_copy_and_stays_as_it_was(tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tiny_reader(), "prophetkv")
    shared: dict[Any, Any] = {}
    prefill_shared(engine, shared, "Why?", chunks, method="prophetkv", recompute=1.0)
    [held] = shared.values()
    before = [tensor.clone() for tensor in held.buffer.read(0, held.buffer.length)]
    prefill_shared(engine, shared, "What?", chunks, method="prophetkv", recompute=1.0)
    assert len(shared) == 1
    assert all(map(torch.equal, before, held.buffer.read(0, held.buffer.length)))
    engine.index.close()


def test_the_same_words_in_two_documents_are_two_chunks(tmp_path: Path) -> None:
    with Index(tmp_path / "index", tiny_reader()) as index:
        for name, head in (("a", "The bridge."), ("b", "The harbour, which is older than anything else here.")):
            index.put(name, "", [(head, 0, len(head)), ("It is green.", 0, 12)], {})
        list(index.encode(METHODS["auto"].encode))  # type: ignore[arg-type]
        engine = Engine(index.reader, index)
        chunks = index.chunks([row.id for row in index.catalog.all_chunks() if row.text == "It is green."])
        expected = [engine.prefill("Which?", [chunk], method="auto").logits for chunk in chunks]
        assert not torch.allclose(*expected)
        shared: dict[Any, Any] = {}
        for chunk, logits in zip(chunks, expected, strict=True):
            assert torch.equal(prefill_shared(engine, shared, "Which?", [chunk], method="auto").logits, logits)


@pytest.fixture
def buffers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[KVBuffer]]]:
    """Every buffer that is made, with the garbage collector off."""
    made: list[weakref.ref[KVBuffer]] = []
    start = KVBuffer.__init__
    monkeypatch.setattr(KVBuffer, "__init__", lambda self, *size: made.append(weakref.ref(self)) or start(self, *size))
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("name", "recompute"), ALL)
def test_memory_goes_with_the_answer(
    stage: Any, name: str, recompute: float | None, at_once: bool, buffers: list[weakref.ref[KVBuffer]]
) -> None:
    """Hundreds of megabytes may not wait for the garbage collector."""
    engine, chunks = stage
    how = {"method": name, "recompute": recompute, "sampling": SHORT}
    if at_once:
        engine.answers([("Why?", chunks), ("How?", chunks)], **how)
    else:
        engine.answer("Why?", chunks, **how)
    assert buffers or name == "full"
    assert [ref for ref in buffers if ref() is not None] == []


@pytest.mark.parametrize("name", ["naive", "fusionrag", "cacheblend-v"])
def test_a_chunk_is_let_go_before_the_next_is_loaded(stage: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a context would be in memory twice while it is assembled."""
    engine, chunks = stage
    loaded: list[weakref.ref[ChunkKV]] = []
    living: list[int] = []
    load = Index.load

    def watched(self: Index, *args: Any) -> Loaded:
        living.append(sum(ref() is not None for ref in loaded))
        found = load(self, *args)
        assert found.kv is not None
        loaded.append(weakref.ref(found.kv))
        return found

    monkeypatch.setattr(Index, "load", watched)
    monkeypatch.setattr(engine.index, "_memory", MemoryTier(0))
    ready = engine.prefill("Why?", chunks, method=name)
    assert living == [0] * len(chunks)
    assert [ref for ref in loaded if ref() is not None] == []
    assert ready.context is not None
    placed = ready.context.placed.values()
    assert all(kv.layers == () and len(kv) for kv in placed)
    assert not any(kv.extras for kv in placed)  # nothing reads them


def test_extras_that_are_read_hold_on_to_no_more_than_themselves(stage: Any) -> None:
    engine, chunks = stage
    row = replace(METHODS["fusionrag"], select=ValueShift())
    ready = engine.prefill("Why?", chunks, method=row)
    assert ready.context is not None
    kept = [kv.extras["value_shift"] for kv in ready.context.placed.values() if kv.extras]
    assert kept
    assert all(extra.untyped_storage().nbytes() == extra.nbytes for extra in kept)  # no view of the blob


def test_a_layout_that_looks_first_looks_once_at_a_context_that_is_shared(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = stage
    loads, load = list[str](), Index.load

    def noted(self: Index, chunk: Any, *rest: Any) -> Any:
        loads.append(chunk.id)
        return load(self, chunk, *rest)

    monkeypatch.setattr(Index, "load", noted)
    engine.answers([(question, chunks) for question in QUESTIONS], method="infoflow", sampling=SHORT)
    looked = loads.count(chunks[0].id)
    loads.clear()
    engine.answer(QUESTIONS[0], chunks, method="infoflow", sampling=SHORT)
    assert loads.count(chunks[0].id) == 2  # to look at, and to answer from
    assert looked <= 1 + len(QUESTIONS)  # looked at once; each question may lay the chunks out in another order
