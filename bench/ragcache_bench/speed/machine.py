"""What of the machine a time depends on: the processor's instructions, and memory."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

_WIDER = ("avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
_INFO, _STATUS = Path("/proc/cpuinfo"), Path("/proc/self/status")


def instructions() -> list[str]:
    """PyTorch's own word for the processor's vector width, and the wider instructions that the processor names.

    Its matrix instructions (AMX) are left out where they are masked.
    """
    flags = set(_INFO.read_text(encoding="utf-8").split()) if _INFO.exists() else set()
    wider = [flag for flag in _WIDER if flag in flags and not (masked() and flag.startswith("amx"))]
    return [torch.backends.cpu.get_cpu_capability(), *wider]


def masked() -> bool:
    """Whether `ONEDNN_MAX_CPU_ISA` keeps PyTorch from matrix instructions (AMX)."""
    most = os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL").upper()
    return not ("AMX" in most or most in ("ALL", "DEFAULT"))


def give_back() -> None:
    """Have the allocator return to the system what is no longer in use, where it can."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def added() -> Iterator[list[int]]:
    """Fill the list, once the block is done, with the most bytes that it added to those in memory; where that is known.

    Linux keeps the most ever; writing 5 to `clear_refs` has it begin anew (proc(5)).
    """
    found: list[int] = []
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    yield found
    most = _status("VmHWM")
    if most is not None and before is not None:
        found.append(most - before)


def _status(name: str) -> int | None:
    if not _STATUS.exists():
        return None
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="ascii").splitlines())
    return int(lines[name].split()[0]) * 1024 if name in lines else None
