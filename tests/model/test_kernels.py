"""Triton's kernels on a CPU: the interpreter is chosen when they are compiled, so it needs a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ragcache.errors import MissingExtra
from ragcache.model import kernels

HERE = Path(__file__).parent


def test_through_the_interpreter() -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(HERE / "interpreted_kernels.py")],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_triton_the_kernel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "triton", None)
    one = torch.zeros(1, 1, 1, 16)
    with pytest.raises(MissingExtra, match="triton"):
        kernels.gathered(one, one, one, torch.zeros(1, dtype=torch.int64), 1.0, None)
