"""What is found in any decoder: its layers, its cache argument, the switch between attention implementations."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache

from ragcache.errors import UnsupportedModel
from ragcache.model.linear_attention import find_state_layers


class AttentionSwitch:
    """Has a model run with another attention implementation for a while.

    Parameters
    ----------
    model : PreTrainedModel
        Any decoder.
    """

    def __init__(self, model: Any) -> None:
        # The model's own switch walks through all modules and checks each; far too slow for twice a forward.
        parts = (part for part in model.modules() if isinstance(part, PreTrainedModel))
        self._configs: list[PreTrainedConfig] = list({id(part.config): part.config for part in parts}.values())

    @contextmanager
    def use(self, name: str) -> Iterator[None]:
        """Run with an implementation of that name; the caller's model is left as it was."""
        before = [config._attn_implementation for config in self._configs]
        for config in self._configs:
            config._attn_implementation = name
        try:
            yield
        finally:
            for config, own in zip(self._configs, before, strict=True):
                config._attn_implementation = own


def find_decoder(model: Any) -> Any:
    """The part of a model that text passes through: its language model where it has an encoder for images beside it."""
    return model.get_decoder() if model.config.get_text_config() is not model.config else model


def find_layers(model: Any) -> nn.ModuleList:
    """The decoder layers that hidden states pass through.

    Raises
    ------
    UnsupportedModel
        If the model holds no list of as many layers as its configuration says.
    """
    depth = model.config.get_text_config().num_hidden_layers
    stacks = (m for m in find_decoder(model).modules() if isinstance(m, nn.ModuleList) and len(m) == depth)
    found = next(stacks, None)
    if found is None:
        raise UnsupportedModel(f"it holds no list of the {depth} decoder layers that its configuration speaks of")
    return found


def find_kv_owners(config: PreTrainedConfig) -> list[int]:
    """For each decoder layer, the layer whose K and V it reads: its own but where a model's last ones share (Gemma 4).

    One that carries a state reads none; it counts with the next one above that does, or the last one.

    Parameters
    ----------
    config : PreTrainedConfig
        The decoder's.
    """
    depth, kinds = int(config.num_hidden_layers), getattr(config, "layer_types", None)
    own = depth - int(getattr(config, "num_kv_shared_layers", 0) or 0)
    kinds = kinds or ["full_attention"] * depth
    shared = (
        max((one for one in range(own) if kinds[one] == kinds[layer]), default=layer) for layer in range(own, depth)
    )
    owners, states = [*range(own), *shared], set(find_state_layers(config))
    readers = [layer for layer in range(depth) if layer not in states]
    if not states or not readers:
        return owners
    return [owners[next((one for one in readers if one >= layer), readers[-1])] for layer in range(depth)]


def caches_latents(config: PreTrainedConfig) -> bool:
    """Whether what a model caches is latents (MLA), of which its layers make all heads' K and V in every forward."""
    return bool(getattr(config.get_text_config(), "kv_lora_rank", None))


def cache_argument(model: nn.Module, cache: Cache) -> dict[str, Cache]:
    """The cache as the keyword argument that a model's forward takes it by.

    That is `cache` from transformers 5.24 on; `past_key_values` before, and in code that comes with a checkpoint.
    """
    name = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
    return {name: cache}
