"""vLLM's model as methods run one: some tokens of a prompt, through some layers, against a buffer of ours.

The model's own layers compute; its attention is exchanged for the engine's meanwhile, so no backend's metadata, blocks
or layout are touched, and scores, deviations and early ends are those of the engine.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ragcache.model.attention import attended
from ragcache.model.buffer import KVBuffer
from ragcache.model.layer_hooks import replaced_forward
from ragcache.model.plan import ForwardPlan, Positions, ScoreSink, StopForward
from vllm_ragcache.loading import HeadShare

if TYPE_CHECKING:
    from vllm.config import VllmConfig


class ServedReader:
    """A model that vLLM serves, of which this process may have some of the heads.

    Parameters
    ----------
    model : Module
        As the model runner holds it.
    attention : mapping of int to Attention
        vLLM's attention layers, by number.
    config : VllmConfig
        Of the server.
    kv_heads : int
        Of the whole model.
    share : HeadShare
        Which heads are this process's.

    Attributes
    ----------
    layers, kv_layers, restartable : int
        Decoder layers: all, those that make K and V, and those that a forward may begin at. None shares another's here.
    device : torch.device
        Where the model computes.
    name : str
        What errors call it.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        attention: Mapping[int, Any],
        config: "VllmConfig",
        *,
        kv_heads: int,
        share: HeadShare,
    ) -> None:
        self._model = model
        self._attention = dict(attention)
        self._config = config
        self._kv_heads = kv_heads
        self._share = share
        self.layers = self.kv_layers = self.restartable = len(self._attention)
        self.device: torch.device = next(iter(self._attention.values())).kv_cache.device
        self.name: str = config.model_config.model

    def forward(self, token_ids: Sequence[int], positions: Positions, buffer: KVBuffer, plan: ForwardPlan) -> None:
        """Run the plan's tokens against the buffer, which has the KV of all heads, and write theirs there."""
        from vllm.forward_context import set_forward_context

        scores: dict[int, ScoreSink] = {layer: partial(self._score, sink) for layer, sink in plan.scores.items()}
        own = replace(plan, scores=scores)
        with ExitStack() as stack:
            stack.enter_context(set_forward_context(None, self._config, num_tokens=len(token_ids), skip_compiled=True))
            stack.enter_context(buffer.writing(plan))
            for number, layer in self._attention.items():
                attend = partial(self._attend, number, layer, buffer, own)
                stack.enter_context(replaced_forward(layer, attend))
            with suppress(StopForward):
                self._model(input_ids=torch.tensor(token_ids, device=self.device), positions=positions)

    def readers_of(self, layer: int) -> list[int]:
        """The layers that read a layer's K and V: itself."""
        return [layer]

    def _attend(
        self,
        number: int,
        layer: Any,
        buffer: KVBuffer,
        plan: ForwardPlan,
        query: Tensor,  # (tokens, heads * head_dim)
        key: Tensor,  # (tokens, kv_heads * head_dim)
        value: Tensor,
        *_: Any,
        **__: Any,
    ) -> Tensor:
        """What an attention layer gives in place of its own, (tokens, heads * head_dim)."""
        size = layer.head_size
        keys, values = buffer.layers[number].update(self._gather(key, size)[None], self._gather(value, size)[None])
        if number == plan.last:
            raise StopForward
        heads = self._share.own(layer.num_kv_heads, self._kv_heads)
        mixed = attended(
            _by_head(query, size)[None], keys[:, heads], values[:, heads], plan, number, layer.impl.scale, None
        )
        if plan.stop_after_scores and number == plan.last_scored:
            raise StopForward
        return mixed[0].transpose(0, 1).reshape(len(query), -1)

    def _gather(self, tensor: Tensor, size: int) -> Tensor:
        """K or V of all heads, (kv_heads, tokens, head_dim)."""
        if self._share.ranks == 1:
            return _by_head(tensor, size)
        from vllm.distributed import tensor_model_parallel_all_gather

        parts = _by_head(tensor_model_parallel_all_gather(tensor.contiguous(), dim=-1), size)
        return parts[:: len(parts) // self._kv_heads]  # where ranks outnumber heads, several have the same one

    def _score(self, sink: ScoreSink, probabilities: Tensor) -> None:
        """Hand on the attention probabilities of all heads."""
        if self._share.ranks == 1:
            return sink(probabilities)
        from vllm.distributed import tensor_model_parallel_all_gather

        return sink(tensor_model_parallel_all_gather(probabilities.contiguous(), dim=0))


def _by_head(tensor: Tensor, size: int) -> Tensor:
    """(heads, tokens, head_dim) of (tokens, heads * head_dim)."""
    return tensor.view(len(tensor), -1, size).transpose(0, 1)
