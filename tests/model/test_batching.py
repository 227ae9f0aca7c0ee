"""Requests that run together give what they give alone, whatever becomes of one of them."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from conftest import tiny_reader
from staged import QUESTION, make

from ragcache.engine.engine import Engine
from ragcache.errors import PromptTooLong
from ragcache.methods import METHODS
from ragcache.model.batching import BatchScheduler, ForwardRequest
from ragcache.model.decode import Sampling
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

ALL = [(name, None) for name in METHODS] + [("prophetkv", 0.5), ("cacheblend", 1.0), ("random", 0.3)]


def asked(engine: Engine, chunks: list, name: str, recompute: float | None, tokens: int = 6, **how: Any) -> Any:
    sampling = Sampling(max_new_tokens=tokens)
    stream = engine.stream(QUESTION, chunks, method=name, recompute=recompute, sampling=sampling, **how)
    return stream.answer, stream.logits


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma3", "mistral-sliding", "phi3-partial"])
def test_every_row_answers_as_it_does_alone(tmp_path: Path, architecture: str) -> None:
    encoded = [row.name for row in METHODS.values() if row.encode]
    engine, chunks = make(tmp_path, tiny_reader(architecture), *encoded)
    # Prompts and answers of several lengths, so that some end while others go on.
    todo = [
        partial(asked, engine, chunks[: 1 + number % len(chunks)], *row, 2 + number % 6)
        for number, row in enumerate(ALL)
    ]
    alone = [one() for one in todo]
    for (answer, logits), (own, before) in zip(engine.reader.run_batch(todo), alone, strict=True):
        assert (logits - before).abs().max() <= 1e-4
        assert (answer.text, answer.token_ids) == (own.text, own.token_ids)
        assert answer.report.charged == own.report.charged
        assert answer.report.charged_flops == own.report.charged_flops
        assert answer.report.tokens == own.report.tokens
    engine.index.close()


@pytest.fixture
def ready(tmp_path: Path) -> Any:
    engine, chunks = make(tmp_path, tiny_reader(), "naive", "prophetkv")
    yield engine, chunks
    engine.index.close()


def test_their_forwards_are_joined(ready: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = ready
    rows: list[int] = []
    model = type(engine.reader.model)
    forward = model.forward

    @wraps(forward)
    def noted(self: Any, *args: Any, **options: Any) -> Any:
        rows.append(options["input_ids"].shape[1])
        return forward(self, *args, **options)

    monkeypatch.setattr(model, "forward", noted)
    one = partial(asked, engine, chunks, "naive", None, 5)
    one()
    alone, rows[:] = rows[:], []
    engine.reader.run_batch([one] * 4)
    assert rows == [4 * count for count in alone]


def test_a_forward_that_ends_early_by_itself_runs_alone(ready: Any) -> None:
    buffer, slots = ready[0].reader.buffer(4), Slots(torch.arange(2))
    for keep in (None, 0, 1):
        for last, kind in ((None, "logits" if keep is not None else 2), (3, None)):
            plan = ForwardPlan(slots, 2, scores={2: lambda _: None}, stop_after_scores=keep is None, last=last)
            assert ForwardRequest([5, 6], Positions(slots), buffer, plan, keep).kind == kind


def test_drafts_are_followed_together(ready: Any) -> None:
    engine, chunks = ready
    said, _ = asked(engine, chunks, "naive", None)
    drafts = [said.token_ids]
    for answer, _ in engine.reader.run_batch([partial(asked, engine, chunks, "naive", None, drafts=drafts)] * 3):
        assert answer.token_ids == said.token_ids


def test_what_one_raises_is_raised_once_the_others_are_done(ready: Any) -> None:
    engine, chunks = ready
    done: list[str] = []

    def fine() -> None:
        asked(engine, chunks, "prophetkv", 0.5)
        done.append("fine")

    with pytest.raises(PromptTooLong):
        engine.reader.run_batch([fine, partial(asked, engine, chunks, "naive", None, 10**6), fine])
    assert done == ["fine", "fine"]
    assert engine.reader.run_batch([]) == []
    assert engine.reader.run_batch([lambda: 1, lambda: 2]) == [1, 2]
    asked(engine, chunks, "naive", None)  # and the reader serves as before


@pytest.mark.parametrize("error", [ValueError("of the model"), KeyboardInterrupt()])
def test_a_forward_that_fails_fails_those_that_waited_for_it(
    ready: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    engine, chunks = ready
    joint: Callable[..., Any] = Reader._forward_batch

    def failing(self: Reader, calls: Any) -> Any:
        raise error

    monkeypatch.setattr(Reader, "_forward_batch", failing)
    with pytest.raises(type(error)):
        engine.reader.run_batch([partial(asked, engine, chunks, "naive", None)] * 3)
    monkeypatch.setattr(Reader, "_forward_batch", joint)
    assert len(engine.reader.run_batch([partial(asked, engine, chunks, "naive", None)] * 2)) == 2


def test_requests_that_are_given_up_do_not_go_on_alone(ready: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = ready
    asked(engine, chunks, "naive", None)  # the system prefix's KV is made alone, once
    alone: list[object] = []
    following = BatchScheduler._next

    def interrupted(self: BatchScheduler) -> Any:
        monkeypatch.setattr(BatchScheduler, "_next", following)
        raise KeyboardInterrupt  # while they are still loading

    monkeypatch.setattr(BatchScheduler, "_next", interrupted)
    monkeypatch.setattr(Reader, "_ready", lambda self, *call: alone.append(call) or nullcontext())
    with pytest.raises(KeyboardInterrupt):
        engine.reader.run_batch([partial(asked, engine, chunks, "naive", None)] * 3)
    assert not alone


def run_waiting(scheduler: BatchScheduler, error: type[BaseException]) -> bool:
    """Run requests that wait for a forward, until that error; whether it ends."""

    def run() -> None:
        def wait() -> torch.Tensor | None:
            return scheduler.wait(cast(ForwardRequest, SimpleNamespace(done=False, error=None, kind="logits")))

        with pytest.raises(error):
            scheduler.run([wait] * 3)

    thread = threading.Thread(target=run, name="caller", daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()


def test_a_second_interrupt_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: BatchScheduler) -> Any:
        while not self._waiting:
            time.sleep(0.001)
        raise KeyboardInterrupt  # whenever it waits for them

    monkeypatch.setattr(BatchScheduler, "_next", interrupted)
    assert run_waiting(BatchScheduler(lambda calls: [None] * len(calls)), KeyboardInterrupt)


def test_a_thread_that_cannot_be_started_ends_those_that_were(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if self.name.endswith("_2"):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert run_waiting(BatchScheduler(lambda calls: [None] * len(calls)), RuntimeError)


def test_they_take_turns() -> None:
    running, most = [0], []

    def request() -> None:
        running[0] += 1
        time.sleep(0.01)  # long enough for another thread to come in between
        most.append(running[0])
        running[0] -= 1

    BatchScheduler(lambda calls: [None] * len(calls)).run([request] * 4)
    assert most == [1] * 4


def test_another_reader_inside_a_request_is_left_alone(ready: Any, tmp_path: Path) -> None:
    engine, chunks = ready
    other, own = make(tmp_path / "other", tiny_reader("qwen3"), "naive")

    def both() -> tuple[torch.Tensor, torch.Tensor]:
        return asked(engine, chunks, "naive", None)[1], asked(other, own, "naive", None)[1]

    expected = both()
    for found in engine.reader.run_batch([both, both]):
        assert all((one - two).abs().max() <= 1e-4 for one, two in zip(found, expected, strict=True))
    other.index.close()
