"""A prompt of provisional chunks is prefilled while the final ones are searched for: kept, dropped, and never wrong."""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from staged import QUESTION, make

from ragcache import RagCache
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Reuse
from ragcache.engine.speculate import _Pipeline
from ragcache.errors import InvalidArgument, PromptTooLong
from ragcache.index.chunks import Chunk
from ragcache.model.architecture import find_layers
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.retrieve import TextEmbedder, Vectors

LONG = 20.0  # seconds that nothing here takes
SHORT = Sampling(max_new_tokens=4)


class Scripted:
    """Yields lists, each once what it waits for has happened; an exception among them is raised."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.asked: tuple[str, int] | None = None
        self.closed = threading.Event()
        self.thread = 0

    def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk | str]]:
        self.asked, self.thread = (question, count), threading.get_ident()
        try:
            for step in self.steps:
                if isinstance(step, threading.Event):
                    assert step.wait(LONG)
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
        finally:
            self.closed.set()


@pytest.fixture
def rag(tmp_path: Path, reader: Reader) -> Iterator[tuple[RagCache, list[Chunk]]]:
    engine, chunks = make(tmp_path, reader, "naive", "prophetkv")
    vectors, embedder = Vectors(tmp_path / "vectors", "chunks"), cast(TextEmbedder, None)  # nothing is embedded
    one = RagCache(engine.index, vectors, embedder, method="prophetkv", chunk_tokens=256, top_k=3)
    yield one, chunks
    one.close()


@pytest.fixture
def prefills(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], threading.Event]:
    """Gives an event for the end of the nth prefill (from 0)."""
    ends = [threading.Event() for _ in range(5)]
    real, count = Reuse.prefill, [0]

    def noted(self: Reuse, *given: Any) -> Any:
        try:
            return real(self, *given)
        finally:
            ends[count[0]].set()
            count[0] += 1

    monkeypatch.setattr(Reuse, "prefill", noted)
    return ends.__getitem__


def expected(engine: Engine, chunks: Sequence[Chunk]) -> tuple[int, ...]:
    return engine.answer(QUESTION, chunks, method="prophetkv", sampling=SHORT).token_ids


def test_a_provisional_list_that_turns_out_final_is_kept(rag: Any, prefills: Any) -> None:
    one, (a, b, c, _) = rag
    same = [a, b, c]
    search = Scripted(same, prefills(0), list(same))
    found = one.ask(QUESTION, retriever=search, sampling=SHORT)
    told = found.report.speculation
    assert (told.lists, told.started, told.dropped, told.kept_early) == (2, 1, 0, True)
    assert (told.wasted_ms, told.wasted_flops) == (0, 0)
    assert search.asked == (QUESTION, 3)
    assert search.thread != threading.get_ident()
    assert found.token_ids == expected(one.engine, same)


def test_a_document_s_chunks_in_another_rank_are_the_same_prompt(rag: Any, prefills: Any) -> None:
    one, chunks = rag
    first, second = (replace(chunk, document="one", ordinal=place) for place, chunk in enumerate(chunks[:2]))
    retriever = Scripted([second, first], prefills(0), [first, second])
    answer = one.ask(QUESTION, retriever=retriever, sampling=SHORT)
    told = answer.report.speculation
    assert (told.lists, told.dropped, told.kept_early) == (2, 0, True)
    assert [source.text for source in answer.sources] == [first.text, second.text]


def test_a_provisional_list_that_changes_is_dropped_and_the_report_says_what_it_took(rag: Any, prefills: Any) -> None:
    one, (a, b, c, d) = rag
    found = one.ask(QUESTION, retriever=Scripted([a, b], prefills(0), [d, c]), sampling=SHORT)
    told = found.report.speculation
    assert (told.lists, told.started, told.dropped) == (2, 2, 1)
    early = one.engine.prefill(QUESTION, [a, b], method="prophetkv").report
    whole = [one.engine.prefill(QUESTION, chunks, method="full").prompt for chunks in ([a, b], [d, c])]
    dims = one.reader.dims
    full = [sum(2 * dims.linear + 4 * dims.attention * (slot + 1) for slot in range(len(prompt))) for prompt in whole]
    full = [flops * dims.layers + 2 * dims.lm_head for flops in full]
    assert told.wasted_flops == pytest.approx(early.charged_flops * full[0] / full[1])
    assert told.wasted_ms > 0
    assert [source.id for source in found.sources] == [d.id, c.id]
    assert found.token_ids == expected(one.engine, [d, c])
    assert found.report.charged_flops == pytest.approx(
        one.engine.prefill(QUESTION, [d, c], method="prophetkv").report.charged_flops
    ), "what was thrown away is no part of what the answer took"
    assert found.report.as_dict()["speculation"]["dropped"] == 1


def test_what_is_begun_is_broken_off_before_its_next_stage(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, (a, b, c, d) = rag
    loading, changed, counted = threading.Event(), threading.Event(), list[str]()
    load = type(one.index).load

    def slow(self: Any, chunk: Chunk, *rest: Any) -> Any:
        counted.append(chunk.id)
        if chunk.id == a.id:
            loading.set()
            assert changed.wait(LONG)
        return load(self, chunk, *rest)

    class Search:
        def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk]]:
            yield [a, b]
            assert loading.wait(LONG)
            yield [c, d]
            changed.set()

    monkeypatch.setattr(type(one.index), "load", slow)
    told = one.ask(QUESTION, retriever=Search(), sampling=SHORT).report.speculation
    assert counted == [a.id, c.id, d.id], "b was never loaded"
    assert (told.started, told.dropped, told.wasted_flops) == (2, 1, 0)


def test_the_time_to_the_first_token_counts_from_the_question(rag: Any, prefills: Any) -> None:
    one, (a, b, *_) = rag
    waited = threading.Event()
    threading.Timer(0.5, waited.set).start()
    ms = one.ask(QUESTION, retriever=Scripted([a, b], prefills(0), waited, [a, b]), sampling=SHORT).report.ms
    assert ms.retrieve == 0
    assert 400 <= ms.first_token <= ms.total  # the timer runs from a little before the question
    assert ms.load + ms.place + ms.select + ms.prefill < ms.first_token


def test_what_the_retriever_raises_reaches_the_caller(rag: Any, prefills: Any) -> None:
    one, (a, b, *_) = rag
    for steps in ([ValueError("no connection")], [[a, b], prefills(0), ValueError("no connection")]):
        with pytest.raises(ValueError, match="no connection"):
            one.ask(QUESTION, retriever=Scripted(*steps), sampling=SHORT)


def test_no_context_is_held_beside_the_next_nor_behind_an_error(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the garbage collector: a prefilled buffer is large, and goes with its last use."""
    notes, chunks = rag
    alive, made = list[int](), list[weakref.ref[Any]]()
    begin = _Pipeline._begin

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        alive.append(sum(one() is not None for one in made))
        attempt = begin(self, *given, **options)
        made.append(weakref.ref(attempt.outcome))
        return attempt

    monkeypatch.setattr(_Pipeline, "_begin", counted)
    lists = [chunks[:1], chunks[1:2]]

    class Failing:
        def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk]]:
            for number, one in enumerate(lists):
                yield one
                while len(made) <= number:
                    time.sleep(0.001)
            raise ValueError("no more")

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no more"):
            notes.ask("Where?", retriever=Failing())
        held = [one() is not None for one in made]
    finally:
        gc.enable()
    assert alive == [0, 0]
    assert held == [False, False]


def test_a_provisional_list_that_is_refused_spoils_no_answer_and_a_final_one_is(rag: Any, prefills: Any) -> None:
    one, (a, b, *_) = rag
    long = ["word " * 3000]
    found = one.ask(QUESTION, retriever=Scripted(long, prefills(0), [a, b]), sampling=SHORT)
    assert found.token_ids == expected(one.engine, [a, b])
    with pytest.raises(PromptTooLong):
        one.ask(QUESTION, retriever=Scripted([a, b], long), sampling=SHORT)


def test_a_caller_that_gives_up_leaves_no_search_behind(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, (a, b, c, _) = rag
    gone = threading.Event()
    search = Scripted([a, b], gone, [a, c], [a], [b])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reuse, "prefill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.ask(QUESTION, retriever=search, sampling=SHORT)
    gone.set()
    assert search.closed.wait(LONG)


def test_a_stream_that_is_read_no_further_is_one_as_any_other(rag: Any) -> None:
    one, (a, b, *_) = rag
    search = Scripted([a], [a, b])
    stream = one.stream(QUESTION, retriever=search, sampling=SHORT)
    assert search.closed.wait(LONG)
    assert stream.report.speculation.lists == 2
    assert [chunk.id for chunk in stream.report.chunks] == [a.id, b.id]


def test_a_retriever_must_give_a_list(rag: Any) -> None:
    one, (a, *_) = rag
    for compare in (False, True):
        with pytest.raises(InvalidArgument, match="gave 0 lists"):
            one.ask(QUESTION, retriever=Scripted(), compare=compare)
    assert one.ask(QUESTION, retriever=Scripted([], [a]), sampling=SHORT).sources[0].id == a.id
    assert one.ask(QUESTION, retriever=Scripted([a], []), sampling=SHORT).sources == ()
    compared = one.ask(QUESTION, retriever=Scripted([], [a]), sampling=SHORT, compare=True)
    assert compared.comparison is not None
    assert [source.id for source in compared.sources] == [a.id]


def test_texts_of_no_document_are_taken_too_and_a_plain_question_says_nothing_of_it(rag: Any) -> None:
    one, (a, *_) = rag
    found = one.ask(QUESTION, retriever=Scripted(["Rye is milled here."], ["Rye is milled here.", a]), sampling=SHORT)
    assert [source.text for source in found.sources] == ["Rye is milled here.", a.text]
    assert one.engine.answer(QUESTION, [a], sampling=SHORT).report.speculation is None


@pytest.mark.parametrize("method", ["full", "naive", "prophetkv"])
def test_a_forward_ends_before_its_next_layer_once_its_list_is_old(
    rag: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, (a, b, c, d) = rag
    layers = find_layers(one.engine.reader.model)
    running, changed, began = threading.Event(), threading.Event(), list[int]()

    def note(number: int) -> Callable[..., None]:
        def enter(*_: object) -> None:
            began.append(number)
            if not running.is_set():
                running.set()
                assert changed.wait(LONG)

        return enter

    class Search:
        def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk]]:
            yield [a, b]
            assert running.wait(LONG)
            yield [c, d]
            changed.set()

    hooks = [layer.register_forward_pre_hook(note(number)) for number, layer in enumerate(layers)]
    try:
        found = one.ask(QUESTION, method=method, retriever=Search(), sampling=Sampling(max_new_tokens=1))
    finally:
        for hook in hooks:
            hook.remove()
    assert began[:2] == [0, 0], "the second layer never ran"
    told = found.report.speculation
    assert (told.started, told.dropped) == (2, 1)
    assert found.token_ids == one.engine.answer(QUESTION, [c, d], method=method, sampling=SHORT).token_ids[:1]
    whole = one.engine.prefill(QUESTION, [a, b], method=method).report.charged_flops
    assert told.wasted_flops > 0 if method == "full" else told.wasted_flops < whole / 2
    assert not any(layer._forward_pre_hooks for layer in layers)


def test_a_forward_of_another_thread_goes_on(reader: Reader) -> None:
    class Broken(Exception):
        pass

    def check() -> None:
        raise Broken

    with reader.checked(check), ThreadPoolExecutor(1) as pool:
        assert pool.submit(reader.stock, [5, 6]).result()[0].isfinite().all()
        with pytest.raises(Broken):
            reader.stock([5, 6])
    reader.stock([5, 6])
