"""Milliseconds of what ends in a tensor."""

import time
from collections.abc import Callable

from torch import Tensor


def milliseconds(work: Callable[[], Tensor]) -> float:
    """How long something took, an accelerator's work included."""
    began = time.perf_counter()
    work().sum().item()  # waits for it
    return (time.perf_counter() - began) * 1e3
