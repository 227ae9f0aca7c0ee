"""From which context length on reuse beats full prefill: a measurement of one machine, model, store and method."""

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Self

import torch

from ragcache.index import Index
from ragcache.methods import Method
from ragcache.model.reader import Reader

_SETTING = "break_even"  # by method
_PROCESSOR = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class BreakEven:
    """What `ragcache.calibrate` found.

    Attributes
    ----------
    method : str
        The row that was measured, at its own share.
    machine : str
        Where; another machine does not go by it.
    tokens : int
        Contexts of fewer tokens are sooner read by full prefill.
    """

    method: str
    machine: str
    tokens: int

    @classmethod
    def of(cls, index: Index, row: Method) -> Self | None:
        """What was measured of a row on this machine, if anything was."""
        known = index.catalog.setting(_SETTING, {}).get(row.name)
        found = None if known is None else cls(row.name, **known)
        return found if found is not None and found.machine == machine(index.reader) else None

    def keep(self, index: Index) -> None:
        """Have the index remember it, in the place of what it knew of the method."""
        known = index.catalog.setting(_SETTING, {})
        own = {name: value for name, value in asdict(self).items() if name != "method"}
        index.catalog.set_setting(_SETTING, {**known, self.method: own})

    def note(self, context: int) -> str:
        """What an answer says that went by it."""
        return (
            f"prefilled in full: from {self.tokens:,} tokens of context on reuse was faster on this machine, and this "
            f"context has {context:,}"
        )


def machine(reader: Reader) -> str:
    """What a time depends on beside the model: processor, threads or accelerator."""
    if reader.device.type == "cuda":
        return torch.cuda.get_device_name(reader.device)
    masked = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return " ".join([_processor(), f"{torch.get_num_threads()} threads", *([masked] if masked else [])])


@cache
def _processor() -> str:
    lines = _PROCESSOR.read_text(encoding="utf-8").splitlines() if _PROCESSOR.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
