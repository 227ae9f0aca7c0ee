"""A pretend accelerator: tensors that say `cuda:0`, hold their numbers on the CPU, and refuse what CUDA refuses.

`with pretend_accelerator(folder) as gpu:` makes `device="cuda"` work on a CPU build of PyTorch, in threads too. It
computes on the CPU, but as on a GPU

- tensors of the host and of the device do not mix; numbers of no dimension do, and a device's tensor may be indexed
  from the host;
- a generator serves its own device's tensors only, and `numpy()` refuses;
- whatever makes the host wait for the device is counted, by kind and by the line of ours that caused it (`Wait`);
- what is uploaded out of pinned memory, without waiting, must not change before the host has waited.

It knows nothing of time, streams, memory limits, other rounding, Triton and gradients. A tensor must not outlive it.
"""

import ctypes
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, NamedTuple
from unittest.mock import patch
from weakref import WeakSet

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_aten = torch.ops.aten
_READ = {_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default}
_SIZED = {
    _aten.nonzero.default, _aten.masked_select.default, _aten._unique2.default, _aten.unique_dim.default,
    _aten.unique_consecutive.default, _aten.bincount.default, _aten.repeat_interleave.Tensor,
}  # fmt: skip
_INDEXED = {
    _aten.index.Tensor, _aten._unsafe_index.Tensor, _aten.index_put.default, _aten.index_put_.default,
    _aten._index_put_impl_.default, _aten._unsafe_index_put.default,
}  # fmt: skip


class Wait(NamedTuple):
    """Why the host waited for the device, and the line that made it.

    Attributes
    ----------
    kind : {"read", "size", "upload", "synchronize"}
        A number or tensor was read; the size of a result was (nonzero, boolean masks); something was copied to the
        device by a copy that blocks; or the wait was asked for.
    line : str
        File and line.
    """

    kind: Literal["read", "size", "upload", "synchronize"]
    line: str


class DeviceTensor(Tensor):
    """A CPU tensor that says it is on the accelerator."""

    held: Tensor
    accelerator: ClassVar["Accelerator | None"] = None
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> "DeviceTensor":
        """Wrap a CPU tensor."""
        made: DeviceTensor = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=CUDA, requires_grad=held.requires_grad,
        )  # fmt: skip
        made.held = held.detach() if held.requires_grad else held
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        assert cls.accelerator is not None, "a tensor has outlived its pretend accelerator"
        return cls.accelerator.run(func, args, dict(kwargs or {}))

    def numpy(self, *, force: bool = False) -> Any:
        """Refused, unless forced."""
        if force:
            return self.cpu().numpy()
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def __array__(self, *args: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        """The numbers, for which the host waits."""
        return self.cpu().tolist()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"DeviceTensor({self.held!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied: Tensor = DeviceTensor(self.held.clone())
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied


class _Generator(torch._C.Generator):
    """A generator that says where it is."""

    _where: torch.device
    _live: ClassVar[WeakSet["_Generator"]] = WeakSet()

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        made: _Generator = super().__new__(cls, device="cpu")  # type: ignore[call-arg]
        made._where = torch.device(device)
        cls._live.add(made)
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA if self._where.type == "cuda" else self._where

    @classmethod
    def on_device(cls, generator: torch._C.Generator) -> bool:
        """Whether it is the device's: operations are handed another Python object, with the same state."""
        state = generator.get_state()
        return any(one.device.type == "cuda" and torch.equal(one.get_state(), state) for one in list(cls._live))


class Accelerator:
    """What was done on the pretended device, and what the host waited for.

    Parameters
    ----------
    watched : Path
        Folder of the files whose lines `waits` names.

    Attributes
    ----------
    waits : Counter of Wait
        How often, and where.
    hazards : list of str
        What a real device might have read after it was changed, or the host before it was there.
    operations : int
        Operations on the device.
    """

    def __init__(self, watched: Path) -> None:
        self.waits: Counter[Wait] = Counter()
        self.hazards: list[str] = []
        self.operations = 0
        self._watched = f"{watched.resolve()}/"
        self._pinned: dict[int, Tensor] = {}  # by address of the storage; never freed, so never mistaken
        self._in_flight: list[tuple[Tensor, Tensor, str]] = []

    def restart(self) -> None:
        """Count from here on."""
        self.waits.clear()
        self.operations = 0

    def synchronize(self, device: Any = None) -> None:
        """As `torch.cuda.synchronize`."""
        self._wait("synchronize")

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """One operation, on the device if it takes a tensor of it, or makes one there."""
        target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        tensors = list(_tensors((*args, *kwargs.values())))
        if func in (_aten._to_copy.default, _aten.copy_.default):
            return self._copy(func, args, kwargs, target)
        if not any(isinstance(one, DeviceTensor) for one in tensors) and (target is None or target.type != "cuda"):
            return self._run_on_host(func, args, kwargs)
        self.operations += 1
        self._check(func, args, kwargs, tensors)
        if func in _READ:
            self._wait("read")
        elif func in _SIZED or (func in _INDEXED and any(map(_is_mask, args[1]))):
            self._wait("size")
        out = func(*_held(args), **_on_cpu(kwargs))
        return _wrapped(func, args, kwargs, out)

    def _run_on_host(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        pinned = kwargs.pop("pin_memory", None)  # which a CPU build refuses
        out = func(*args, **kwargs)
        if pinned:
            self._pinned[out.untyped_storage().data_ptr()] = out
        return out

    def _check(self, func: Any, args: Any, kwargs: dict[str, Any], tensors: list[Tensor]) -> None:
        strangers = [one for one in tensors if not isinstance(one, DeviceTensor) and one.dim() > 0]
        if func in _INDEXED and isinstance(args[0], DeviceTensor):
            on_host = [index for index in args[1] if index is not None and not isinstance(index, DeviceTensor)]
            strangers = [one for one in strangers if not any(one is index for index in on_host)]
            for _ in on_host:
                self._wait("upload")
        if strangers:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                f"({func} at {self._line()})"
            )
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch._C.Generator) and not _Generator.on_device(value):
                raise RuntimeError(f"Expected a 'cuda' device type for generator but found 'cpu' (at {self._line()})")

    def _copy(self, func: Any, args: Any, kwargs: dict[str, Any], target: torch.device | None) -> Any:
        if func is _aten.copy_.default:
            into, source = args[:2]
            to_device, free = isinstance(into, DeviceTensor), args[2] if len(args) > 2 else kwargs.get("non_blocking")
        else:
            into, source, free = None, args[0], kwargs.get("non_blocking")
            to_device = isinstance(source, DeviceTensor) if target is None else target.type == "cuda"
        if isinstance(source, DeviceTensor) != to_device:
            self._cross(source, to_device=to_device, free=bool(free))
        self.operations += to_device or isinstance(source, DeviceTensor)
        out = func(*_held(args), **_on_cpu(kwargs))
        if into is not None:
            return into
        return DeviceTensor(out) if to_device else out

    def _cross(self, source: Tensor, *, to_device: bool, free: bool) -> None:
        """Note a copy between host and device."""
        if not source.numel():
            return
        if not free:
            self._wait("upload" if to_device else "read")
        elif not to_device:
            self.hazards.append(f"a copy to the host that nobody waits for, at {self._line()}")
        elif source.untyped_storage().data_ptr() in self._pinned:
            self._in_flight.append((source, source.clone(), self._line()))
        # Pageable memory is copied to a buffer of the driver's before the call returns; the device is not waited for.

    def _wait(self, kind: Literal["read", "size", "upload", "synchronize"]) -> None:
        self.waits[Wait(kind, self._line())] += 1
        for source, before, line in self._in_flight:
            if not torch.equal(source, before):
                self.hazards.append(f"what was uploaded at {line} was changed before it was there")
        self._in_flight.clear()

    def _line(self) -> str:
        """The innermost line of a watched file."""
        frame = sys._getframe(1)
        while not frame.f_code.co_filename.startswith(self._watched):
            if frame.f_back is None:
                return "elsewhere"
            frame = frame.f_back
        return f"{frame.f_code.co_filename.removeprefix(self._watched)}:{frame.f_lineno}"


class _Everywhere(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees what no tensor of the device takes part in: what is made there, and copies to it."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._accelerator = accelerator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled, and to say so at every operation takes as long as most operations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._accelerator.run(func, args, dict(kwargs or {}))


@contextmanager
def pretend_accelerator(watched: Path) -> Iterator[Accelerator]:
    """Have a CUDA device, in this thread and in those that are started meanwhile.

    Parameters
    ----------
    watched : Path
        Folder of the files whose lines are named where the host waits.
    """
    accelerator = Accelerator(watched)
    run_thread = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with _lifting_to_cpu(), _Everywhere(accelerator):  # each thread has modes of its own
            run_thread(thread)

    with ExitStack() as undo:
        for name, function in _cuda(accelerator).items():
            undo.enter_context(patch.object(torch.cuda, name, function))
        undo.enter_context(patch.object(torch.accelerator, "is_available", lambda: True))
        undo.enter_context(patch.object(torch.accelerator, "synchronize", accelerator.synchronize))
        undo.enter_context(patch.object(torch, "Generator", _Generator))
        undo.enter_context(patch.object(threading.Thread, "run", run))
        undo.enter_context(patch.object(DeviceTensor, "accelerator", accelerator))
        undo.enter_context(_guard())
        future = torch.__future__  # `module.to` must not pour a tensor of the device into a parameter of the host
        undo.callback(
            future.set_overwrite_module_params_on_conversion, future.get_overwrite_module_params_on_conversion()
        )
        future.set_overwrite_module_params_on_conversion(True)
        undo.enter_context(_lifting_to_cpu())
        undo.enter_context(_Everywhere(accelerator))
        yield accelerator


def _cuda(accelerator: Accelerator) -> dict[str, Callable[..., Any]]:
    """What stands for functions of `torch.cuda`."""
    properties = SimpleNamespace(name="Pretend", major=9, minor=0, total_memory=80 << 30, multi_processor_count=132)
    fixed = {
        "_lazy_init": None, "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "set_device": None, "empty_cache": None, "get_device_name": "Pretend", "get_device_properties": properties,
        "get_device_capability": (9, 0), "mem_get_info": (70 << 30, 80 << 30), "memory_allocated": 0,
        "max_memory_allocated": 0, "reset_peak_memory_stats": None, "is_bf16_supported": True, "manual_seed": None,
        "manual_seed_all": None,
    }  # fmt: skip
    return {name: lambda *_, given=value, **__: given for name, value in fixed.items()} | {
        "synchronize": accelerator.synchronize
    }


@contextmanager
def _guard() -> Iterator[None]:
    """Have PyTorch make nothing of a switch to a CUDA device, as of one to the CPU: a CPU build has no guard for it.

    A guard is a C++ object, which is its table of functions. Ours is the CPU's, but says that the device is `cuda:0`.
    """
    library = ctypes.CDLL(str(next((Path(torch.__file__).parent / "lib").glob("libc10.*"))))
    guards = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")  # by DeviceType
    before = guards[1]
    functions = (ctypes.c_void_p * _FUNCTIONS).from_address(ctypes.c_void_p.from_address(guards[0] or 0).value or 0)
    if _GetDevice(functions[_GET_DEVICE] or 0)(guards[0]) != _NO_CPU:
        raise RuntimeError(f"PyTorch {torch.__version__} orders its device guards' functions in another way")
    own = (ctypes.c_void_p * _FUNCTIONS)(*functions)
    own[_GET_DEVICE] = ctypes.cast(_get_device, ctypes.c_void_p)
    guard = ctypes.c_void_p(ctypes.addressof(own))
    guards[1] = before or ctypes.addressof(guard)
    try:
        yield
    finally:
        guards[1] = before


# c10::Device is two bytes: its type (CPU is 0, CUDA is 1) and its number.
_FUNCTIONS, _GET_DEVICE, _NO_CPU = 24, 2, 0xFF00
_GetDevice = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p)
_get_device = _GetDevice(lambda _: 0x0001)


@contextmanager
def _lifting_to_cpu() -> Iterator[None]:
    """Have `torch.tensor(…, device="cuda")` make a CPU tensor first, whose copy to the device is seen."""
    private: Any = torch._C
    before = private._only_lift_cpu_tensors()
    private._set_only_lift_cpu_tensors(True)
    try:
        yield
    finally:
        private._set_only_lift_cpu_tensors(before)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Those among an operation's arguments."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _held(value: Any) -> Any:
    """An argument with the host's tensors in the place of the device's."""
    if isinstance(value, DeviceTensor):
        return value.held
    return type(value)(map(_held, value)) if isinstance(value, (list, tuple)) else value


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    named = {"device": _CPU} if kwargs.get("device") is not None else {}
    return {name: _held(value) for name, value in kwargs.items() if name != "pin_memory"} | named


def _is_mask(index: Tensor | None) -> bool:
    return isinstance(index, DeviceTensor) and index.dtype in (torch.bool, torch.uint8)


def _wrapped(func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> Any:
    """What an operation gives: the very arguments that it changed in place, or new tensors of the device."""
    changed = _changed(func)
    if not changed:
        return _on_device(out)
    given = [args[number] if number < len(args) else kwargs[name] for number, name in changed]
    if any(isinstance(one, DeviceTensor) and one.shape != one.held.shape for one in given):
        raise NotImplementedError(f"{func} changes a tensor's shape in place, which is not pretended")
    return given[0] if len(given) == 1 else tuple(given)


@cache
def _changed(func: Any) -> tuple[tuple[int, str], ...]:
    """Which arguments an operation gives back, changed in place: their places and names."""
    written = [one.alias_info for one in func._schema.returns if one.alias_info is not None and one.alias_info.is_write]
    return tuple(
        (number, argument.name)
        for alias in written
        for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.before_set == alias.before_set
    )


def _on_device(value: Any) -> Any:
    if isinstance(value, Tensor):
        return DeviceTensor(value)
    return type(value)(map(_on_device, value)) if isinstance(value, (list, tuple)) else value
