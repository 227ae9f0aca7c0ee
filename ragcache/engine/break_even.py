"""Up to which context length full prefill beats reuse: a measurement of one machine, model, store and method."""

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Self

import torch

from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.reader import Reader

_SETTING = "break_even"  # by machine and method
_PROCESSOR = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class BreakEven:
    """What `ragcache.engine.calibrate` found.

    Attributes
    ----------
    tokens : int
        The longest context that full prefill read sooner; 0 where reuse always won.
    measured : int
        The longest context that was timed.
    """

    tokens: int
    measured: int

    @classmethod
    def of(cls, index: Index, row: Method) -> Self | None:
        """What was measured of a method on this machine, if anything was."""
        known = index.catalog.setting(_SETTING, {})
        found = known.get(_key(index, row)) if known else None
        return None if found is None else cls(**found)

    def keep(self, index: Index, row: Method) -> None:
        """Have the index remember it, in the place of what it knew of the method on this machine."""
        known = index.catalog.setting(_SETTING, {})
        index.catalog.set_setting(_SETTING, {**known, _key(index, row): asdict(self)})

    @property
    def reached(self) -> bool:
        """Whether the longest context that was timed was long enough for reuse to win."""
        return self.tokens < self.measured

    def note(self, context: int) -> str:
        """What an answer says that went by it."""
        return (
            f"prefilled in full: on this machine reuse was slower with up to {self.tokens:,} tokens of context, and "
            f"this one has {context:,}"
        )


def machine(reader: Reader) -> str:
    """What a time depends on beside the model: processor and threads, or accelerator."""
    device = reader.device
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    masked = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return " ".join([device.type, _processor(), f"{torch.get_num_threads()} threads", *([masked] if masked else [])])


@cache
def _processor() -> str:
    lines = _PROCESSOR.read_text(encoding="utf-8").splitlines() if _PROCESSOR.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _key(index: Index, row: Method) -> str:
    return f"{machine(index.reader)}: {row!r}"  # not its name, which a method of one's own may share
