"""transformers' Trainer, with link tokens in place; everything else of a run is its own."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Trainer

from ragcache_finetune.contexts import Context
from ragcache_finetune.layout import Sample, SampleLayout
from ragcache_finetune.links import NAME, embed, load_links, save_links


class Course(Dataset[Sample]):
    """Contexts in the order of training: pass after pass, each in an order of its own.

    Every recipe reads the same contexts in the same order. Under "alternating" attention a context that is read in full
    in one pass is read chunk by chunk in the next.

    Parameters
    ----------
    contexts : sequence of Context
        What is read.
    layout : SampleLayout
        How, and by which recipe.
    count : int
        Samples in all.
    seed : int
        Of the order.
    """

    def __init__(self, contexts: Sequence[Context], layout: SampleLayout, count: int, seed: int) -> None:
        self._contexts, self._layout, self._count, self._seed = contexts, layout, count, seed
        self._orders: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Sample:
        turn, place = divmod(number, len(self._contexts))
        which = self._order(turn)[place]
        attention = self._layout.recipe.attention
        independent = (which + turn) % 2 == 1 if attention == "alternating" else attention == "independent"
        return self._layout.sample(self._contexts[which], independent=independent)

    @property
    def most_chunks(self) -> int:
        """Chunks of the longest context that is read at all."""
        return max(len(self._contexts[which].chunks) for which in self._order(0)[: self._count])

    def _order(self, turn: int) -> list[int]:
        """The contexts of a pass."""
        if turn not in self._orders:
            size = len(self._contexts)
            self._orders = {turn: Random(f"{self._seed} {turn}").sample(range(size), size)}
        return self._orders[turn]


class LinkTrainer(Trainer):
    """Trainer over samples of one context each, whose checkpoints hold the link tokens' embeddings too.

    A checkpoint's weights are safetensors. What else a resumed run reads (optimizer, schedule, random states) the
    Trainer loads by `torch.load(weights_only=True)`, which makes tensors and plain containers and runs no code; nothing
    else of a checkpoint is unpickled.
    """

    def compute_loss(self, model: Any, inputs: dict[str, Any], *given: Any, **options: Any) -> Any:
        """The Trainer's, over embeddings where there are link tokens."""
        return super().compute_loss(model, embed(_base(model), inputs), *given, **options)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        if not hasattr(self.model, "peft_config"):  # the links have a file of their own
            state_dict = {name: value for name, value in self.model.state_dict().items() if name != NAME}
        super()._save(output_dir, state_dict)
        save_links(_base(self.model), Path(output_dir or self.args.output_dir))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        load_links(_base(self.model), Path(resume_from_checkpoint))


def answer_loss(output: Any, labels: Tensor, num_items_in_batch: Tensor) -> Tensor:
    """Cross-entropy of the answers' tokens, over how many of them a step has.

    Parameters
    ----------
    output : CausalLMOutputWithPast
        Its logits are those that predict an answer's token, (1, n, vocabulary).
    labels : Tensor
        (1, n + 1), the first ignored.
    num_items_in_batch : Tensor
        Tokens to predict in all contexts of a step.
    """
    total = F.cross_entropy(output.logits[0].float(), labels[0, 1:], reduction="sum")
    return total / num_items_in_batch


def _base(model: Any) -> Any:
    """The model below PEFT's, whose embeddings are looked up."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model
