"""Triton's kernels on a CPU: the interpreter is chosen when they are compiled, so it needs a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ragcache.errors import MissingExtra
from ragcache.model import kernels
from ragcache.model.attention import attended, blocked
from ragcache.model.plan import ForwardPlan, Slots, visible

HERE = Path(__file__).parent


@pytest.mark.slow
def test_through_the_interpreter() -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(HERE / "interpreted_kernels.py")],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_triton_the_kernel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)  # which is how Python says that it is not there
    one = torch.zeros(1, 1, 1, 16)
    with pytest.raises(MissingExtra, match="triton"):
        kernels.attend_sparse_queries(one, one, one, torch.zeros(1, dtype=torch.int64), 1.0, None)


@pytest.fixture
def untried() -> Iterator[None]:
    kernels.tried.cache_clear()
    yield
    kernels.tried.cache_clear()


def _broken(*args: object) -> NoReturn:
    raise RuntimeError("no C compiler")


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize(
    ("agrees", "faster", "serves"),
    [(True, True, True), (False, True, False), (True, False, False), (_broken, True, False), (True, _broken, False)],
)
def test_it_serves_where_it_is_right_and_faster(
    agrees: object, faster: object, serves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("agrees", agrees), ("faster", faster)):
        monkeypatch.setattr(kernels._Trial, name, value if callable(value) else lambda *_, value=value: value)
    assert kernels.tried(torch.device("cpu"), torch.bfloat16, 4, 2, 64, blocked) is serves
    assert not kernels.tried(torch.device("cpu"), torch.float32, 4, 2, 64, blocked)  # for checking, not for speed
    assert not kernels.tried(torch.device("cpu"), torch.bfloat16, 4, 2, 256, blocked)


def test_a_cpu_does_not_try_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "tried", lambda *given: pytest.fail("it was tried"))
    one = torch.zeros(1, 1, 1, 16, dtype=torch.bfloat16)
    assert not kernels.serves(one, one, blocked)


def test_where_it_serves_sparse_queries_go_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in that gathers from the dense answer: rows, keys and slots must be those of the blocks."""
    calls: list[int] = []

    def dense(query: Tensor, key: Tensor, value: Tensor, slots: Tensor, scale: float, window: int | None) -> Tensor:
        calls.append(len(slots))
        mask = visible(slots, 0, key.shape[2], window)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=True)

    slots = torch.tensor([0, 3, 4, 9, 10, 11])
    query, key, value = (torch.randn(1, heads, n, 16) for heads, n in ((4, 6), (2, 12), (2, 12)))
    for window in (None, 5):
        plan = ForwardPlan(Slots(slots), 12)
        expected = attended(query, key, value, plan, 0, 0.25, window)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "serves", lambda *given: True)
            patch.setattr(kernels, "attend_sparse_queries", dense)
            found = attended(query, key, value, plan, 0, 0.25, window)
        assert torch.allclose(found, expected, atol=1e-5)
    assert calls == [6, 6]
