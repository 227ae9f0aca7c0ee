"""One request at a time; a bounded number waits; whoever leaves is dropped; stopping lets answers end."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import openai
import pytest
from openai import OpenAI
from openai_ragcache import Tenants
from openai_ragcache.engine_queue import EngineQueue, Job, NobodyWaits, QueueClosed, QueueFull
from serve.served import MODEL, serve

from ragcache import RagCache

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "Who leads it?"}]}


def wait_for(true: Callable[[], object], seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.005)


class Held:
    """An engine that does not answer until it is let go; counts how many it answers at once."""

    def __init__(self, rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun, self.most, self.now = threading.Event(), 0, 0, 0
        start = rag.engine.start

        def held(request: object) -> object:
            self.begun, self.now = self.begun + 1, self.now + 1
            self.most = max(self.most, self.now)
            while not self.go.wait(0.005):
                request.clock.check()  # type: ignore[attr-defined]
            self.now -= 1
            return start(request)  # type: ignore[arg-type]

        monkeypatch.setattr(rag.engine, "start", held)


@pytest.fixture
def held(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held(rag, monkeypatch)
    yield held
    held.go.set()


def test_requests_run_one_at_a_time_and_too_many_are_told_when_to_come_back(rag: RagCache, held: Held) -> None:
    with serve(Tenants.of_one(rag), queue=2) as url, httpx.Client(base_url=url) as client:
        answers: list[httpx.Response] = []
        ask = lambda: answers.append(client.post("/chat/completions", json={**ASKED, "max_tokens": 2}, timeout=60))  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(3)]
        threads[0].start()
        wait_for(lambda: held.begun == 1)
        for thread in threads[1:]:
            thread.start()
        wait_for(lambda: client.get(url.removesuffix("/v1") + "/ready").json()["waiting"] == 2)
        refused = client.post("/chat/completions", json=ASKED)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.json()["error"]["code"] == "queue_full"
        with OpenAI(base_url=url, api_key="none", max_retries=0) as official, pytest.raises(openai.RateLimitError):
            official.chat.completions.create(**ASKED)
        held.go.set()
        for thread in threads:
            thread.join()
    assert [answer.status_code for answer in answers] == [200] * 3
    assert held.most == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_whose_client_leaves_ends(rag: RagCache, held: Held, stream: bool) -> None:
    with serve(Tenants.of_one(rag)) as url, httpx.Client(base_url=url) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/chat/completions", json={**ASKED, "stream": stream}, timeout=0.3)
        wait_for(lambda: held.begun == 1)
        held_again = client.post  # the engine is free again, though nothing was let go
        wait_for(lambda: _is_idle(held))
        held.go.set()
        assert held_again("/chat/completions", json={**ASKED, "max_tokens": 2}, timeout=60).status_code == 200


def _is_idle(held: Held) -> bool:
    """Whether the thread that was held has been broken off."""
    return all("held" not in str(frame) for frame in _frames("ragcache-engine"))


def _frames(name: str) -> list[object]:
    import sys
    import traceback

    threads = {thread.ident for thread in threading.enumerate() if thread.name == name}
    frames = [frame for ident, frame in sys._current_frames().items() if ident in threads]
    return [entry.name for frame in frames for entry in traceback.extract_stack(frame)]


def test_a_stream_that_nobody_reads_to_its_end_ends(rag: RagCache) -> None:
    with serve(Tenants.of_one(rag)) as url, httpx.Client(base_url=url) as client:
        long = {**ASKED, "messages": [{"role": "user", "content": "Go on and on."}], "stream": True}
        with client.stream("POST", "/chat/completions", json={**long, "temperature": 2, "max_tokens": 3000}) as answer:
            next(answer.iter_lines())
        began = time.monotonic()
        assert client.post("/chat/completions", json={**ASKED, "max_tokens": 1}, timeout=60).status_code == 200
        assert time.monotonic() - began < 10  # 3,000 tokens would take a minute


def test_a_server_that_is_told_to_stop_ends_what_it_began(rag: RagCache, held: Held) -> None:
    answers: list[httpx.Response] = []
    with serve(Tenants.of_one(rag)) as url:
        ask = {"json": {**ASKED, "max_tokens": 2}, "timeout": 60}
        thread = threading.Thread(target=lambda: answers.append(httpx.post(f"{url}/chat/completions", **ask)))
        thread.start()
        wait_for(lambda: held.begun == 1)
        threading.Timer(0.3, held.go.set).start()
    thread.join()
    assert answers[0].status_code == 200


async def test_work_in_the_background_waits_until_nothing_else_does() -> None:
    queue, order, go = EngineQueue(5), list[str](), threading.Event()

    def work(name: str) -> Callable[[Job[str]], Iterator[str]]:
        def run(job: Job[str]) -> Iterator[str]:
            go.wait(10)
            order.append(name)
            yield name

        return run

    jobs = [queue.submit(work("first"))]
    await asyncio.sleep(0.05)
    jobs += [*queue.submit_background([work("behind")]), queue.submit(work("second"))]
    go.set()
    assert [[one async for one in job] for job in jobs] == [["first"], ["behind"], ["second"]]
    assert order == ["first", "second", "behind"]
    queue.close()


async def test_others_run_between_the_steps_of_background_work_but_for_those_that_must_be_alone() -> None:
    queue, order, begun, go = EngineQueue(5), list[str](), threading.Event(), threading.Event()

    def say(name: str) -> Callable[[Job[str]], Iterator[str]]:
        def run(job: Job[str]) -> Iterator[str]:
            order.append(name)
            yield name

        return run

    def long(job: Job[str]) -> Iterator[str]:
        order.append("first step")
        begun.set()
        go.wait(10)
        queue.run_waiting()
        job.check()
        order.append("second step")
        yield "done"

    jobs = queue.submit_background([long])
    await asyncio.to_thread(begun.wait, 10)
    jobs += [queue.submit(say("one")), queue.submit(say("two"))]
    jobs += [queue.submit(say("alone"), alone=True), queue.submit(say("behind it"))]
    go.set()
    assert [[one async for one in job] for job in jobs] == [["done"], ["one"], ["two"], ["alone"], ["behind it"]]
    assert order == ["first step", "one", "two", "second step", "alone", "behind it"]
    queue.close()


async def test_closing_ends_background_work_and_what_runs_between_its_steps() -> None:
    queue, begun = EngineQueue(5), threading.Event()

    def between(job: Job[str]) -> Iterator[str]:
        begun.set()
        while True:
            time.sleep(0.005)
            job.check()
            yield "piece"

    def long(job: Job[str]) -> Iterator[str]:
        while True:
            queue.run_waiting()
            job.check()
            time.sleep(0.005)
        yield ""

    jobs = [*queue.submit_background([long]), queue.submit(between)]
    await asyncio.to_thread(begun.wait, 10)
    queue.close()
    assert not queue.is_open
    for job in jobs:
        with pytest.raises(NobodyWaits):
            [one async for one in job]


async def test_background_work_is_accepted_as_a_whole_and_first_is_called_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("openai_ragcache.engine_queue._BACKGROUND", 2)
    queue, done, go = EngineQueue(5), list[str](), threading.Event()

    def work(name: str) -> Callable[[Job[str]], Iterator[str]]:
        def run(job: Job[str]) -> Iterator[str]:
            go.wait(10)
            done.append(name)
            yield name

        return run

    def fail() -> None:
        raise ValueError("the disk is full")

    running = queue.submit(work("running"))
    await asyncio.sleep(0.05)
    [waiting] = queue.submit_background([work("waiting")])
    with pytest.raises(QueueFull):
        queue.submit_background([work("one"), work("too many")], lambda: done.append("first of what is refused"))
    with pytest.raises(ValueError, match="disk"):
        queue.submit_background([work("failed")], fail)
    [last] = queue.submit_background([work("last")], lambda: done.append("first"))
    go.set()
    assert [[one async for one in job] for job in (running, waiting, last)] == [["running"], ["waiting"], ["last"]]
    assert done == ["first", "running", "waiting", "last"]
    queue.close()
    with pytest.raises(QueueClosed):
        queue.submit_background([], lambda: done.append("first of what comes too late"))
    assert len(done) == 4


async def test_a_closed_queue_takes_nothing_and_breaks_off_what_runs() -> None:
    queue = EngineQueue(5)

    def endless(job: Job[int]) -> Iterator[int]:
        while True:
            time.sleep(0.001)
            yield 1

    running, waiting = queue.submit(endless), queue.submit(endless)
    results = aiter(running)
    await anext(results)
    queue.close()
    assert not queue.is_open
    with pytest.raises(QueueClosed):
        queue.submit(endless)
    for job in (results, aiter(waiting)):
        with pytest.raises(NobodyWaits):
            async for _ in job:
                pass


async def test_those_who_left_make_room() -> None:
    queue, go = EngineQueue(1), threading.Event()

    def held(job: Job[int]) -> Iterator[int]:
        go.wait(10)
        yield 1

    first = queue.submit(held)
    await asyncio.sleep(0.05)
    second = queue.submit(held)
    with pytest.raises(QueueFull):
        queue.submit(held)
    second.cancel()
    third = queue.submit(held)
    go.set()
    assert [[one async for one in job] for job in (first, third)] == [[1], [1]]
    queue.close()


async def test_what_goes_wrong_in_the_engine_s_thread_is_raised_where_it_is_waited_for() -> None:
    queue = EngineQueue(1)

    def broken(job: Job[int]) -> Iterator[int]:
        yield 1
        raise ZeroDivisionError("a bug")

    results = aiter(queue.submit(broken))
    assert await anext(results) == 1
    with pytest.raises(ZeroDivisionError):
        await anext(results)
    assert queue.is_open
    queue.close()
