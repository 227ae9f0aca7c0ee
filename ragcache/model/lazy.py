"""torch, imported at its first use: the table of methods, settings and arguments are read without it.

Importing torch takes longer than printing a table or refusing a wrong argument. A module that only computes with it
inside functions takes it from here; one that needs it to be imported at all (a base class, a table of dtypes) does not.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:

    class _Lazy(ModuleType):
        """A module that is imported when something of it is asked for."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self.__name__), name)

    torch = _Lazy("torch")
    Tensor = Any  # annotations alone use it
