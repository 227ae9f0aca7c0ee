"""Some answers are repeated by full prefill: when the engine is idle, or at once where a request asks for it."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import httpx
import pytest
import torch
from openai import OpenAI
from openai_ragcache import ServerSettings, Tenants
from openai_ragcache.agreement import Agreement, Case
from openai_ragcache.engine_queue import EngineQueue, Job
from serve.served import MODEL, ask, serve

from ragcache import Answer, Message, RagCache
from ragcache.bundled import corpus_path
from ragcache.engine.request import RequestOptions
from ragcache.engine.verify import Given, Verification, divergence, verify_by_full_prefill, verify_by_reuse
from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling

pytestmark = pytest.mark.slow

NAMES = ("Amber Raven", "Cold Raven", "Delquil", "Dunlo")
QUESTIONS = [f"What is the budget of {name}?" for name in NAMES]


@dataclass(frozen=True)
class Asked:
    """A prompt, and the answers to it, one by one."""

    messages: list[dict[str, str]]
    reuse: Answer
    full: Answer

    @property
    def same(self) -> bool:
        return self.reuse.token_ids == self.full.token_ids


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    """An index whose method recomputes nothing over chunks without titles, so that reuse is wrong now and then."""
    with RagCache.open(tmp_path_factory.mktemp("naive") / "index", model=MODEL, method="naive", dtype="float32") as rag:
        pages = [corpus_path() / "projects" / f"{name.lower().replace(' ', '-')}.md" for name in NAMES]
        rag.ingest(pages, titles="none")
        yield rag


@pytest.fixture(scope="module")
def asked(rag: RagCache) -> list[Asked]:
    found, chunks = [], sorted(rag.retrieve("Who leads it?", top_k=100), key=lambda chunk: chunk.text)
    for seed, question in enumerate(QUESTIONS):
        messages = ask(random.Random(seed).sample(chunks, 12), question)
        turns = [Message(**one) for one in messages]
        answers = [rag.engine.complete(turns, method=method).answer for method in (None, "full")]
        found.append(Asked(messages, *answers))
    assert {one.same for one in found} == {True, False}, "a comparison that can fail"
    return found


def wait_for(true: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.01)


def test_the_server_s_agreement_is_that_of_an_offline_comparison(rag: RagCache, asked: list[Asked]) -> None:
    right = sum(one.same for one in asked)
    with serve(Tenants.of_one(rag), verify=1.0, max_tokens=128) as url, httpx.Client(base_url=url) as client:
        for one in asked:
            body = {"model": MODEL, "messages": one.messages}
            assert client.post("/chat/completions", json=body, timeout=60).status_code == 200
        wait_for(lambda: f"ragcache_first_token_kl_count {len(asked)}.0" in client.get("../metrics").text)
        counts, found = client.get("../metrics").text, client.get("/ragcache/agreement").json()
    assert f'ragcache_verified_answers_total{{confirmed="yes"}} {right}.0' in counts
    assert f'ragcache_verified_answers_total{{confirmed="no"}} {len(asked) - right}.0' in counts
    assert "ragcache_agreement_below_bound 0.0" in counts
    assert (found["verified"], found["confirmed"]) == (len(asked), right)
    worst = found["worst"][: len(asked) - right]
    assert {one["answer"] for one in worst} == {one.reuse.text for one in asked if not one.same}
    assert all(any(one["question"].endswith(asks) for asks in QUESTIONS) for one in worst)


def test_one_forward_says_what_full_prefill_would_say_token_by_token(rag: RagCache, asked: list[Asked]) -> None:
    for one in asked:
        request = rag.engine.requests.from_prompt([Message(**turn) for turn in one.messages])
        stream = rag.engine.start(request)
        full = rag.engine.start(request.repeated_in_full(stream.prompt))
        found = verify_by_full_prefill(Given.of(request, stream), rag.index)
        own, theirs = one.reuse.token_ids, one.full.token_ids
        pairs = enumerate(zip(own, theirs, strict=False))
        common = next((i for i, (a, b) in pairs if a != b), min(len(own), len(theirs)))
        assert (found.confirmed, found.agreed) == (one.same, common)
        assert found.instead == rag.reader.tokenizer.decode(theirs[common : common + 1])
        assert found.first_token_kl == pytest.approx(divergence(full.logits, stream.logits), rel=1e-3, abs=1e-6)
        if one is asked[0] or not one.same:
            backwards = verify_by_reuse(Given.of(request.by_full_prefill(), full), request, rag.index)
            assert (backwards.confirmed, backwards.agreed) == (one.same, common)
            assert backwards.first_token_kl == pytest.approx(found.first_token_kl, rel=1e-3, abs=1e-6)


def test_an_answer_that_was_cut_or_stopped_is_confirmed_as_far_as_it_goes(rag: RagCache, asked: list[Asked]) -> None:
    turns, word = [Message(**turn) for turn in asked[0].messages], asked[0].full.text[:2]
    for sampling in (Sampling(max_new_tokens=2), Sampling(stop=(word,))):
        request = rag.engine.requests.from_prompt(turns, RequestOptions("full", sampling=sampling))
        given = Given.of(request, rag.engine.start(request))
        assert not given.ended
        assert verify_by_full_prefill(given, rag.index).confirmed
        assert not verify_by_full_prefill(replace(given, ended=True), rag.index).confirmed


@pytest.mark.parametrize("stream", [True, False])
def test_a_request_has_its_answer_verified_at_once(rag: RagCache, asked: list[Asked], stream: bool) -> None:
    with serve(Tenants.of_one(rag)) as url, OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for one in {case.same: case for case in asked}.values():
            how = {"model": MODEL, "messages": one.messages, "extra_body": {"ragcache": {"verify": True}}}
            if stream:
                with client.chat.completions.create(**how, stream=True) as events:
                    *pieces, last = list(events)
                text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
            else:
                last = client.chat.completions.create(**how)
                text = last.choices[0].message.content
            found = last.model_extra["ragcache"]["verification"]
            assert text == one.reuse.text
            assert (found["confirmed"], found["answer"]) == (one.same, None if one.same else one.full.text)
            assert found["ms"] > 0
        counted = httpx.get(f"{url}/ragcache/agreement").json()
        plain = [{"role": "user", "content": "Nothing that is known."}]
        body = {"model": MODEL, "messages": plain, "max_tokens": 2, "ragcache": {"verify": True}}
        assert httpx.post(f"{url}/chat/completions", json=body).json()["ragcache"]["verification"]["confirmed"]
        assert httpx.get(f"{url}/ragcache/agreement").json() == counted, "nothing was reused that could be wrong"
        sampled = {"model": MODEL, "messages": asked[0].messages, "temperature": 1, "ragcache": {"verify": True}}
        refused = httpx.post(f"{url}/chat/completions", json=sampled)
        assert refused.json()["error"]["param"] == "ragcache.verify"


def test_below_the_bound_answers_say_so_or_full_prefill_gives_them(
    rag: RagCache, asked: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai_ragcache.agreement._LEAST", 3)
    monkeypatch.setattr("openai_ragcache.agreement._RECENT", 4)
    bad, good = (next(one.messages for one in asked if one.same == same) for same in (False, True))
    for fall_back in (False, True):
        settings = {"verify": 1.0, "least_agreement": 0.7, "fall_back": fall_back}
        with serve(Tenants.of_one(rag), **settings) as url, httpx.Client(base_url=url, timeout=60) as client:

            def about(messages: list[dict[str, str]], client: httpx.Client = client) -> dict:
                count = client.get("/ragcache/agreement").json()["verified"]
                answer = client.post("/chat/completions", json={"model": MODEL, "messages": messages}).json()
                wait_for(lambda: client.get("/ragcache/agreement").json()["verified"] == count + 1)
                return answer["ragcache"]

            assert [about(bad)["method"] for _ in range(3)] == ["naive"] * 3
            assert client.get("/ragcache/agreement").json()["below"]
            below = about(good)
            assert below["method"] == ("full" if fall_back else "naive")
            assert any("full prefill confirmed 0% of the last verified answers" in note for note in below["notes"])
            for _ in range(2):
                about(good)
            assert about(good)["method"] == "naive", "reuse agrees again"


def test_the_bound_is_missed_where_the_interval_lies_below_it() -> None:
    agreement = Agreement(0.9)
    right, wrong = (Case(f"q {same}", "a", Verification(same, 1, 0.1), 0.0) for same in (True, False))
    for number in range(40):
        agreement.add(wrong if number % 10 == 0 else right)
    assert not agreement.is_below
    low, high = agreement.interval
    assert low < 0.9 < high
    for _ in range(10):
        agreement.add(wrong)
    assert agreement.is_below
    for _ in range(200):
        agreement.add(right)
    assert not agreement.is_below
    assert agreement.worst == (wrong, right), "a question's last case, once"
    for number in range(20):
        agreement.add(replace(wrong, question=str(number)))
    assert len(agreement.worst) == 10


def test_divergence_is_none_of_equal_logits() -> None:
    logits = torch.tensor([0.5, 2.0, -1.0])
    assert divergence(logits, logits) == 0
    assert divergence(logits, -logits) > 0.1
    assert divergence(logits, logits * float("nan")) == float("inf")


def test_divergence_is_infinite_of_logits_that_are_no_numbers() -> None:
    logits, unknown = torch.tensor([0.5, 2.0, -1.0]), torch.tensor([0.5, torch.nan, -1.0])
    assert divergence(logits, unknown) == divergence(unknown, logits) == divergence(unknown, unknown) == torch.inf
    never = torch.tensor([0.5, 2.0, -torch.inf])
    assert divergence(never, never) == 0
    agreement = Agreement(0.9)
    agreement.add(Case("q", "a", Verification(False, 1, divergence(logits, unknown)), 0.0))
    told = json.loads(json.dumps(agreement.as_dict(), allow_nan=False))
    assert told["first_token_kl"] is None
    assert told["worst"][0]["first_token_kl"] is None


async def test_work_in_idle_time_gives_way_and_begins_anew() -> None:
    queue, begun, done = EngineQueue(5), list[int](), threading.Event()

    def long(give_way: Callable[[], None]) -> None:
        begun.append(1)
        while len(begun) == 1:
            time.sleep(0.001)
            give_way()
        done.set()

    def job(job: Job[str]) -> Iterator[str]:
        assert not done.is_set()
        yield "answered"

    assert queue.when_idle(long)
    while not begun:
        await asyncio.sleep(0.001)
    assert [one async for one in queue.submit(job)] == ["answered"]
    assert await asyncio.to_thread(done.wait, 10)
    assert len(begun) == 2
    assert all(queue.when_idle(lambda _: time.sleep(0.2)) for _ in range(64))
    assert not queue.when_idle(lambda _: None) or not queue.when_idle(lambda _: None)
    queue.close()
    assert not queue.when_idle(lambda _: None)


def test_wrong_shares_are_refused() -> None:
    for wrong, said_ in (({"verify": 2}, "verify is 2"), ({"fall_back": True}, "--verify")):
        with pytest.raises(InvalidArgument, match=said_):
            ServerSettings(**wrong)
