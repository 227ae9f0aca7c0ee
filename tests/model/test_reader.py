"""A reader's manners with the caller's model, and its queue."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model

from ragcache.errors import UnsupportedModel
from ragcache.model import attention
from ragcache.model.lock import FairLock
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

IDS = list(range(30, 50))


@pytest.mark.parametrize(("declared", "wanted"), [(7, {1, 7}), ([7, 8], {1, 7, 8}), (1, {1}), (None, {1})])
def test_stop_ids_are_the_models_and_the_tokenizers(declared: Any, wanted: set[int]) -> None:
    model = tiny_model("llama")
    model.generation_config.eos_token_id = declared
    assert Reader(model, byte_tokenizer()).stop_ids == wanted


def test_bytes_per_token_are_those_of_keys_and_values(reader: Reader) -> None:
    assert reader.bytes_per_token == 2 * 4 * 2 * 16 * 4  # K and V, layers, kv heads, head_dim, fp32


@pytest.mark.parametrize("own", ["sdpa", "eager"])
def test_the_callers_model_keeps_its_attention(own: str) -> None:
    model = tiny_model("llama")
    model.set_attn_implementation(own)
    slots = Slots(torch.arange(len(IDS)))

    def fail(*_: object) -> None:
        assert model.config._attn_implementation == "ragcache"
        raise InterruptedError

    reader = Reader(model, byte_tokenizer())
    assert model.config._attn_implementation == own
    before = model(torch.tensor([IDS])).logits
    for call in (
        lambda: reader.stock(IDS),
        lambda: reader.encode(IDS),
        lambda: reader.logits(IDS, Positions(slots), reader.buffer(20), ForwardPlan(slots, 20)),
        lambda: reader.forward(IDS, Positions(slots), reader.buffer(20), ForwardPlan(slots, 20, scores={1: fail})),
    ):
        with suppress(InterruptedError):
            call()
        assert model.config._attn_implementation == own
        assert {layer.self_attn.config._attn_implementation for layer in model.model.layers} == {own}
    assert torch.equal(model(torch.tensor([IDS])).logits, before)


def test_a_refused_model_keeps_its_attention_too() -> None:
    model = tiny_model("llama")
    model.model.layers[3].self_attn.layer_idx = 2  # layer 3 never reports: the probe must refuse
    with pytest.raises(UnsupportedModel):
        Reader(model, byte_tokenizer())
    assert model.config._attn_implementation == "sdpa"


def test_a_forward_that_stops_early_has_run_the_scored_layers_only(reader: Reader) -> None:
    ran: list[int] = []
    slots = Slots(torch.arange(len(IDS)))
    plan = ForwardPlan(slots, 20, {0: lambda _: None, 1: lambda _: None}, True, lambda layer, *_: ran.append(layer))
    reader.forward(IDS, Positions(slots), reader.buffer(20), plan)
    assert ran == [0, 1]


def test_encoding_attends_in_every_layer_but_the_last(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    attended = attention.attended
    monkeypatch.setattr(attention, "attended", lambda *given: ran.append(given[4]) or attended(*given))
    kv = reader.encode(IDS)
    assert ran == list(range(reader.layers - 1))
    assert kv.layers[-1].shape == kv.layers[0].shape


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.002)
    raise TimeoutError


def test_the_lock_serves_in_order_of_arrival_even_after_errors() -> None:
    lock, served = FairLock(), []

    def enter(n: int) -> None:
        try:
            with lock:
                served.append(n)
                if n % 3 == 0:
                    raise RuntimeError
        except RuntimeError:
            pass

    threads = []
    with lock:
        for n in range(12):
            threads.append(in_thread(lambda n=n: enter(n)))
            until(lambda n=n: len(lock._waiting) == n + 2)
        assert served == []
    for thread in threads:
        thread.join(10)
    assert served == list(range(12))
    assert not lock._waiting


def test_an_interrupt_while_waiting_gives_the_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    lock = FairLock()
    with lock:
        monkeypatch.setattr(threading, "Event", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            lock.__enter__()
        monkeypatch.undo()
        assert len(lock._waiting) == 1
    with lock:
        assert len(lock._waiting) == 1


def test_threads_get_the_sequential_answers(reader: Reader) -> None:
    prompts = [list(range(20 + n, 60 + 2 * n)) for n in range(6)]
    wanted = [reader.encode(prompt).layers[3] for prompt in prompts]
    seen: dict[int, torch.Tensor] = {}
    threads = [
        in_thread(lambda n=n: seen.update({n: reader.encode(prompts[n]).layers[3]})) for n in range(len(prompts))
    ]
    for thread in threads:
        thread.join(30)
    assert all(torch.equal(seen[n], wanted[n]) for n in range(len(prompts)))
