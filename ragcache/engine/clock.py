"""The clock of one answer: milliseconds per stage, to the first token, and in all, however it was asked for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import torch

from ragcache.report import Timings


class Clock:
    """Starts when it is made, in front of retrieval where an answer begins with one.

    Parameters
    ----------
    device : torch.device
        Where the model computes: an accelerator is waited for, which would otherwise still be computing.

    Attributes
    ----------
    ms : Timings
        What was measured so far.
    check : callable or None
        Called before each stage; may raise, to break off.
    """

    def __init__(self, device: torch.device) -> None:
        self.ms = Timings()
        self.check: Callable[[], None] | None = None
        self._device = device
        self._began = self.now(waits=False)

    def restarted(self) -> Self:
        """Another that starts now."""
        return type(self)(self._device)

    def branch(self, check: Callable[[], None]) -> Self:
        """Another that began when this one did, with stages of its own, before each of which `check` is called."""
        other = self.restarted()
        other.check, other._began = check, self._began
        return other

    def now(self, *, waits: bool = True) -> float:
        """Milliseconds, from no time in particular."""
        if waits and self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter() * 1e3

    @contextmanager
    def stage(self, name: str, *, waits: bool = True) -> Iterator[None]:
        """Add what happens inside to a stage of `ms`; an accelerator need not be done with it if nobody waits.

        What the stages before have left it to do counts here, which is nothing if they have waited.
        """
        if self.check is not None:
            self.check()
        began = self.now(waits=False)
        yield
        setattr(self.ms, name, getattr(self.ms, name) + self.now(waits=waits) - began)

    def note_first_token(self) -> None:
        """Enter the first token's logits, which a stage has waited for: everything up to here but retrieval."""
        self.ms.total = self.now(waits=False) - self._began
        self.ms.first_token = self.ms.total - self.ms.retrieve

    def note_end(self) -> None:
        """Enter the end of the answer."""
        self.ms.total = self.now(waits=False) - self._began
