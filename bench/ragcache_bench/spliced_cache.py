"""Prompts put together by hand on the stock model: a second derivation of naive reuse, for every kind of layer.

Nothing of ours moves, places or composes anything here. A chunk is read by the stock model at its own positions. Its
keys and values go into a stock cache as they are; a layer that carries a state is given, once more, what entered it
then, behind the state that stands in front of the chunk now.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from ragcache.model.architecture import cache_argument, find_layers
from ragcache.model.linear_attention import find_mixers, find_state_layers


class SplicedCache:
    """A stock cache that chunks are put into one behind the other.

    Parameters
    ----------
    model : PreTrainedModel
        With transformers' own attention.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._mixers = find_mixers(find_layers(model), find_state_layers(model.config.get_text_config()))
        self.cache = self._empty()
        self._begun = False

    @torch.no_grad()
    def read(self, ids: Sequence[int], start: int) -> Tensor:
        """Logits after tokens that see everything in front of them, (vocabulary,); their first position is `start`."""
        self._begun = True
        return self._forward(ids, start, self.cache)

    @torch.no_grad()
    def place(self, ids: Sequence[int], start: int, left: Sequence[int] = ()) -> None:
        """Put tokens there as they are behind `left` alone, of which nothing else is kept."""
        alone, count = self._empty(), len(left)
        entered: dict[int, Tensor] = {}
        hooks = [
            mixer.register_forward_pre_hook(
                lambda _, args, kwargs, number=number: entered.__setitem__(
                    number, args[0] if args else kwargs["hidden_states"]
                ),
                with_kwargs=True,
            )
            for number, mixer in self._mixers.items()
        ]
        self._forward([*left, *ids], start - count, alone)
        for hook in hooks:
            hook.remove()
        for number, layer in enumerate(alone.layers):
            if number not in self._mixers:
                self.cache.update(layer.keys[:, :, count:], layer.values[:, :, count:], number)
            elif self._begun or count:
                self._pass_on(number, entered[number], count, layer)
            else:
                self.cache.layers[number] = layer
        self._begun = True

    def _pass_on(self, number: int, hidden: Tensor, left: int, alone: Any) -> None:
        """Have a layer read what entered it, behind its own left context's seam and the state that stands here now."""
        mixer, aside, here = self._mixers[number], self._empty(), self.cache.layers[number]
        if left:
            mixer(hidden_states=hidden[:, :left], cache=aside)
        layer = aside.layers[number]
        if not left:
            layer.lazy_initialization(conv_states=alone.conv_states[0])  # zeros
        if alone.recurrent_states[0] is not None:
            layer.lazy_initialization(recurrent_states=alone.recurrent_states[0])  # the same
            if self._begun:
                layer.recurrent_states[0].copy_(here.recurrent_states[0])
        layer.has_previous_state[0] = True
        mixer(hidden_states=hidden[:, left:], cache=aside)
        if self._begun:  # fewer tokens than the convolution looks back at leave some of what stands in front
            own = layer.conv_states[0][..., -(hidden.shape[1] - left) :]
            layer.conv_states[0] = torch.cat([here.conv_states[0], own], -1)[..., -layer.conv_states[0].shape[-1] :]
        self.cache.layers[number] = layer

    def _empty(self) -> DynamicCache:
        return DynamicCache(config=self._model.config if self._mixers else None)

    def _forward(self, ids: Sequence[int], start: int, cache: DynamicCache) -> Tensor:
        positions = torch.arange(start, start + len(ids))[None]
        given = {"input_ids": torch.tensor([list(ids)]), "position_ids": positions}
        logits: Tensor = self._model(**given, use_cache=True, **cache_argument(self._model, cache)).logits
        return logits[0, -1]
