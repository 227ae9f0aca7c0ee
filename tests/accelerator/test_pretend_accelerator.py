"""The pretend accelerator refuses what CUDA refuses, counts what CUDA waits for, and is gone afterwards."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from ragcache_bench.pretend_accelerator import Accelerator, DeviceTensor, pretend_accelerator

HERE = Path(__file__).parent


def uses(run: Callable[[], object]) -> Accelerator:
    """What was counted of an action."""
    with pretend_accelerator(HERE) as accelerator:
        run()
        return accelerator


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: torch.ones(2) + torch.ones(2, device="cuda"),
        lambda: torch.ones(2, device="cuda") @ torch.ones(2),
        lambda: torch.ones(2)[torch.ones(2, dtype=torch.int64, device="cuda")],
        lambda: torch.cat([torch.ones(2), torch.ones(2, device="cuda")]),
        lambda: torch.ones(2, device="cuda").index_copy_(0, torch.arange(2), torch.ones(2, device="cuda")),
        lambda: torch.nn.Linear(2, 2).to("cuda")(torch.ones(1, 2)),
    ],
)
def test_host_and_device_do_not_mix(mixed: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match="on the same device"):
        uses(mixed)


def test_numpy_and_another_device_s_generator_are_refused() -> None:
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        uses(lambda: torch.ones(2, device="cuda").numpy())
    with pytest.raises(RuntimeError, match="'cuda' device type for generator"):
        uses(lambda: torch.rand(2, device="cuda").multinomial(1, generator=torch.Generator()))
    uses(lambda: torch.rand(2, device="cuda").multinomial(1, generator=torch.Generator("cuda")))


@pytest.mark.parametrize(
    ("kind", "run"),
    [
        ("read", lambda x: x.sum().item()),
        ("read", lambda x: x.cpu()),
        ("read", lambda x: x.tolist()),
        ("read", lambda x: bool((x > 0).any())),
        ("size", lambda x: x.nonzero()),
        ("size", lambda x: x[x > 0]),
        ("upload", lambda x: torch.tensor([1, 2], device="cuda")),
        ("upload", lambda x: torch.ones(2).to("cuda")),
        ("upload", lambda x: x[torch.arange(2)]),
        ("synchronize", lambda x: torch.cuda.synchronize()),
    ],
)
def test_what_is_waited_for_is_counted_by_kind_and_line(kind: str, run: Callable[[torch.Tensor], object]) -> None:
    accelerator = uses(lambda: run(torch.ones(2, device="cuda")))
    [(wait, count)] = accelerator.waits.items()
    assert (wait.kind, count) == (kind, 1)
    assert wait.line.startswith(Path(__file__).name)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: torch.ones(2).to("cuda", non_blocking=True),
        lambda x: torch.arange(2, device="cuda") + 1,
        lambda x: x[torch.arange(2, device="cuda")],
        lambda x: torch.where(x > 0, x, 0),
        lambda x: torch.empty(0).to("cuda"),
    ],
)
def test_what_nobody_waits_for_is_not(run: Callable[[torch.Tensor], object]) -> None:
    assert not uses(lambda: run(torch.ones(2, device="cuda"))).waits


def test_pinned_memory_that_changes_before_it_is_there_is_a_hazard() -> None:
    def upload(change: bool) -> None:
        pinned = torch.zeros(2, pin_memory=True)
        there = pinned.to("cuda", non_blocking=True)
        pinned += change
        there.sum().item()

    assert len(uses(lambda: upload(True)).hazards) == 1
    assert uses(lambda: upload(False)).hazards == []


def test_threads_see_it_too() -> None:
    found: list[torch.Tensor] = []

    def run() -> None:
        thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="cuda") * 3))
        thread.start()
        thread.join()

    assert uses(run).operations == 2
    assert isinstance(found[0], DeviceTensor)


def test_it_is_gone_afterwards() -> None:
    before = torch.Generator
    uses(lambda: torch.ones(2, device="cuda"))
    assert torch.Generator is before
    assert not torch.cuda.is_available()
    with pytest.raises((AssertionError, NotImplementedError), match="CUDA"):  # the latter once it was there
        torch.ones(2, device="cuda")
