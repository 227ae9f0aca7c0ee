"""Start without what no answer runs: most of what a command imports on its way to a model is of no use to it.

transformers imports a compiler (`torch._dynamo`, and sympy with it), sharded tensors and scipy's optimisers before it
loads any model. A command that reads documents and answers questions uses none of them. So, while it starts:

- transformers is told that this process has no scipy and no `torch.distributed`, as is true of many installations; it
  asks once and remembers;
- a placeholder stands for each module of `_LATER`. What is imported from it is a stand-in, which imports the real thing
  once it is called, subclassed or looked into; nothing can be an instance of what was never imported. A few functions
  are known well enough to be answered for: what they do to functions that nobody compiles, and to plain numbers.

Afterwards the placeholders are gone: whoever imports such a module gets it. A program that uses ragcache as a library
never comes by here.
"""

import gc
import operator
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Union


def _unmarked(function: Callable[..., Any] | None = None, *values: Any, **options: Any) -> Callable[..., Any]:
    """The function as it is, or a decorator that leaves it so: there is nothing to mark it for."""
    return (lambda marked: marked) if function is None else function


#: Modules that have placeholders, and what of each can be answered without it while nothing is compiled.
_LATER: dict[str, dict[str, Callable[..., Any]]] = {
    "torch._dynamo": dict.fromkeys(("allow_in_graph", "assume_constant_result", "disable"), _unmarked),
    "torch._dynamo._trace_wrapped_higher_order_op": {},
    "torch.nn.attention.flex_attention": {},
    "torch.fx.experimental.symbolic_shapes": {
        **dict.fromkeys(("expect_true", "guard_or_false", "guard_or_true", "statically_known_true"), bool),
        "is_nested_int": lambda size: False,
        "sym_eq": operator.eq,
        "sym_and": lambda *conditions: all(conditions),
        "sym_or": lambda *conditions: any(conditions),
    },
    "sympy": {},
}


@contextmanager
def lean_start() -> Iterator[None]:
    """Import torch and transformers; inside the block, what loads a model or opens an index stays as lean."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait leave the processor to others
    collecting = gc.isenabled()
    gc.disable()  # what is imported is no garbage, and would be walked again and again
    later = _Later()
    try:
        if "transformers" not in sys.modules:
            _import_transformers(later)
            gc.freeze()
        yield
    finally:
        later.end()
        if collecting:
            gc.enable()


def _import_transformers(later: "_Later") -> None:
    import torch.distributed

    later.begin()
    has_distributed = torch.distributed.is_available
    hides_scipy = "scipy" not in sys.modules
    torch.distributed.is_available = lambda: False
    if hides_scipy:
        sys.modules["scipy"] = None  # type: ignore[assignment]  # the import system's own sign for "not installed"
    try:
        import_module("transformers.modeling_utils")
        import_module("transformers.masking_utils")
    except Exception:  # another release may ask a placeholder for what it cannot give; then the start is a long one
        later.end()
    finally:
        torch.distributed.is_available = has_distributed
        if hides_scipy:
            del sys.modules["scipy"]


class _Later(MetaPathFinder):
    """The placeholders in `sys.modules`, from `begin` on until one of them is needed, or until `end`."""

    def __init__(self) -> None:
        self._placeholders: dict[str, _Placeholder] = {}

    def begin(self) -> None:
        self._placeholders = {name: _Placeholder(name, self) for name in _LATER if name not in sys.modules}
        sys.modules.update(self._placeholders)
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        for name, placeholder in self._placeholders.items():
            if sys.modules.get(name) is placeholder:
                del sys.modules[name]
        self._placeholders = {}
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A module inside a package whose placeholder stands there: the package comes first, and may bring it."""
        package = name.rpartition(".")[0]
        if package not in self._placeholders:
            return None
        self.end()
        import_module(package)
        return ModuleSpec(name, _Imported(sys.modules[name])) if name in sys.modules else None


class _Imported(Loader):
    """Gives a module that was imported meanwhile, so that there are never two of it."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Placeholder(ModuleType):
    """Stands for a module that nothing is asked of yet."""

    def __init__(self, name: str, later: _Later) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._later = later

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(self, name)

    def answer(self, name: str) -> Callable[..., Any] | None:
        """What of it can be called without it, as long as it stands here."""
        return _LATER[self.__name__].get(name) if sys.modules.get(self.__name__) is self else None

    def real(self) -> ModuleType:
        """The module itself, imported by now."""
        self._later.end()
        return import_module(self.__name__)


class _StandIn:
    """What was imported from a placeholder: the real thing from its first use on."""

    def __init__(self, placeholder: _Placeholder, name: str) -> None:
        self._placeholder, self._name = placeholder, name

    def _real(self) -> Any:
        return getattr(self._placeholder.real(), self._name)

    def __call__(self, *values: Any, **options: Any) -> Any:
        return (self._placeholder.answer(self._name) or self._real())(*values, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        return (self._real(),)

    def __instancecheck__(self, value: object) -> bool:
        return self.__subclasscheck__(type(value))

    def __subclasscheck__(self, kind: type) -> bool:
        module = sys.modules.get(self._placeholder.__name__)
        return module not in (None, self._placeholder) and issubclass(kind, getattr(module, self._name))

    def __or__(self, other: Any) -> Any:  # in annotations
        return Union[self, other]  # noqa: UP007

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007
