"""Many requests at once, with little room: prefilled in parts, preempted, aborted. None gets another's KV."""

import random
from collections import Counter
from typing import Any

import pytest
import torch
from vllm_asking import QUESTION, Chosen, distance, expected, generate

from ragcache.engine.engine import Engine
from ragcache.model.decode import Sampling

pytestmark = pytest.mark.vllm
ROWS = {"full": None, "naive": None, "auto": 0.05, "prophetkv": 0.15, "epic": 0.3}
PROMPTS, REQUESTS, TOKENS = 5, 200, 64


def asked_params(method: str, tokens: int) -> Any:
    from vllm import SamplingParams

    share = {} if ROWS[method] is None else {"recompute": ROWS[method]}
    asked = {"kv_transfer_params": {"ragcache": {"method": method, **share}}}
    logprobs = -1 if tokens == 1 else None
    return SamplingParams(temperature=0, max_tokens=tokens, logprobs=logprobs, ignore_eos=True, extra_args=asked)


def run_under_pressure(llm: Any, requests: list[tuple[str, Any, Any]], aborted: set[str]) -> dict[str, Any]:
    """Add requests little by little, abort some of them at any stage, and give what the others answered."""
    engine, rng, finished = llm.llm_engine, random.Random(1), dict[str, Any]()
    waiting = list(requests)
    while waiting or engine.has_unfinished_requests():
        for name, ids, params in waiting[:8]:
            engine.add_request(name, {"prompt_token_ids": ids}, params)
            if name in aborted and rng.random() < 0.3:
                engine.abort_request([name])  # before it was looked at
        waiting = waiting[8:]
        for _ in range(rng.randrange(2, 12)):
            for output in engine.step():
                if output.finished and output.outputs[0].finish_reason != "abort":
                    finished[output.request_id] = output
        engine.abort_request([name for name in aborted if rng.random() < 0.5])
    return finished


def test_exact_and_composed_answers_stay_what_they_are_under_pressure(
    llm: Any, engine: Engine, chunks: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.core.sched.scheduler import Scheduler

    seen, preempt, schedule = Counter[str](), Scheduler._preempt_request, Scheduler.schedule

    def count_preempted(self: Any, *given: Any, **named: Any) -> Any:
        seen["preempted"] += 1
        return preempt(self, *given, **named)

    def count_parts(self: Any, *given: Any, **named: Any) -> Any:
        step = schedule(self, *given, **named)
        done = {new.req_id: new.num_computed_tokens for new in step.scheduled_new_reqs}
        for name, count in done.items():
            seen["in parts"] += count + step.num_scheduled_tokens[name] < self.requests[name].num_prompt_tokens
        return step

    monkeypatch.setattr(Scheduler, "_preempt_request", count_preempted)
    monkeypatch.setattr(Scheduler, "schedule", count_parts)
    wanted, texts = dict[tuple[int, str], Any](), dict[tuple[int, str], Any]()
    for seed in range(70, 70 + PROMPTS):
        for method, share in ROWS.items():
            chosen = chunks(seed, 7)
            wanted[seed, method] = expected(engine, chosen, method, share)
            sampling = Sampling(max_new_tokens=TOKENS)
            answer = engine.answer(QUESTION, chosen, method=method, recompute=share, sampling=sampling)
            texts[seed, method] = list(answer.token_ids)
    rng = random.Random(7)
    asked = [(rng.choice(list(wanted)), rng.choice([1, TOKENS])) for _ in range(REQUESTS)]
    requests = [
        (f"{number}", wanted[one][0], asked_params(one[1], tokens)) for number, (one, tokens) in enumerate(asked)
    ]
    aborted = {f"{number}" for number, (_, tokens) in enumerate(asked) if tokens > 1 and rng.random() < 0.3}
    finished = run_under_pressure(llm, requests, aborted)
    assert len(finished) >= REQUESTS - len(aborted)
    assert seen["preempted"] >= 5, seen
    assert seen["in parts"] >= 3, seen
    assert len(aborted) >= 20
    wrong = list[Any]()
    for name, output in finished.items():
        one, tokens = asked[int(name)]
        if tokens == 1 and distance(output, wanted[one][1]) > 5e-4:
            wrong.append((one, distance(output, wanted[one][1])))
        if tokens > 1 and list(output.outputs[0].token_ids)[: len(texts[one])] != texts[one]:
            wrong.append((one, output.outputs[0].token_ids, texts[one]))
    assert wrong == []
    for seed in range(70, 70 + PROMPTS):
        [output] = generate(llm, wanted[seed, "full"][0], ragcache=False)
        assert distance(output, wanted[seed, "full"][1]) < 1e-4
        reuse = torch.stack([wanted[seed, method][1] for method in ROWS if method != "full"])
        assert float((reuse - wanted[seed, "full"][1]).abs().amax(1).min()) > 1e-3, "or nothing could be contaminated"
