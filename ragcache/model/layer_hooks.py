"""What happens where a layer begins: rows that leave, states that are looked at, layers that do not run.

transformers' own loop over the layers runs as it is. Pre-hooks change what enters a layer, and a layer below the first
one hands on what it was given; both are there for one forward only, whatever happens in it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from ragcache.model.plan import ForwardPlan


@contextmanager
def layer_hooks(layers: Iterable[nn.Module], plan: ForwardPlan) -> Iterator[None]:
    """Do at every layer's beginning what the plan asks for."""
    with ExitStack() as undo:
        if plan.has_layer_hooks:
            hooks = _LayerHooks(plan)
            for number, layer in enumerate(layers):
                if number < plan.first:
                    undo.enter_context(replaced_forward(layer, _hand_on))
                    continue
                hook = layer.register_forward_pre_hook(hooks.at(number), with_kwargs=True)
                undo.callback(hook.remove)
        yield


@contextmanager
def checked_layers(layers: Iterable[nn.Module], check: Callable[[], None]) -> Iterator[None]:
    """Call `check` in front of every layer that this thread runs; it may raise, and the forward ends there."""
    own = get_ident()

    def enter(*_: Any) -> None:
        if get_ident() == own:  # other threads may use the model meanwhile
            check()

    with ExitStack() as undo:
        for layer in layers:
            undo.callback(layer.register_forward_pre_hook(enter).remove)
        yield


@contextmanager
def replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Have a module do something else; what it did is there again afterwards, another library's wrapper too."""
    before = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before


def _hand_on(hidden_states: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return hidden_states


class _LayerHooks:
    """One forward's rows as they pass from layer to layer."""

    def __init__(self, plan: ForwardPlan) -> None:
        self._plan = plan
        self._rows: Tensor | None = None  # those of the forward's rows that are left; None for all

    def at(self, layer: int) -> Any:
        """The hook of a layer."""

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            return self._enter(layer, args, kwargs)

        return enter

    def _enter(self, layer: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        plan = self._plan
        hidden: Tensor = args[0] if args else kwargs["hidden_states"]  # (1, rows, width)
        if layer == plan.first and plan.hidden is not None:
            hidden = plan.hidden[None].to(hidden.dtype)
        if plan.on_enter is not None:
            plan.on_enter(layer, hidden[0])
        keep = None if plan.prune is None else plan.prune(layer, plan.slots)
        if keep is not None:
            keep = plan.keep(keep)
            hidden = hidden[:, keep]
            self._rows = keep if self._rows is None else self._rows[keep]
        if self._rows is not None:
            # The model hands every layer what it made for all rows at the beginning.
            kwargs = {name: _of_rows(value, self._rows) if name in _BY_ROW else value for name, value in kwargs.items()}
            # So it is with what it hands them by place (Gemma 4: embeddings of the layer's own).
            args = args[:1] + tuple(_of_rows(value, self._rows) for value in args[1:])
        if args:
            return (hidden, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": hidden}


_BY_ROW = ("position_ids", "position_embeddings")


def _of_rows(value: Any, rows: Tensor) -> Any:
    """Some rows of a tensor (1, rows, …), or of each of a tuple of them."""
    if isinstance(value, torch.Tensor):
        return value.index_select(1, rows)
    return None if value is None else tuple(part.index_select(1, rows) for part in value)
