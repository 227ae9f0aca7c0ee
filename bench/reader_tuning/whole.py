"""Tuning every matrix, for a model that is written as a whole: its gradients are computed for an adapter too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reader_tuning.adapter import TARGETS


@dataclass(frozen=True)
class Whole:
    """What is added to a model's matrices, and to the gains of its norms.

    Attributes
    ----------
    differences : dict of str to Tensor
        By the parameter's name, of its shape, fp32: a bf16 weight would lose the small steps.
    """

    differences: dict[str, Tensor]

    @classmethod
    def new(cls, weights: Mapping[str, Tensor]) -> "Whole":
        """Differences of 0, for the matrices and the gains; token vectors and biases stay."""
        ends = tuple(f"{target}.weight" for target in (*TARGETS, "norm", "layernorm"))
        return cls({
            name: torch.zeros(weight.shape, device=weight.device).requires_grad_()
            for name, weight in weights.items() if name.endswith(ends)
        })  # fmt: skip

    @property
    def names(self) -> Iterable[str]:
        """Of the parameters that are added to."""
        return self.differences

    def parameters(self) -> Iterable[Tensor]:
        """All differences."""
        return self.differences.values()

    def added(self, name: str) -> Tensor:
        """What is added to a parameter; differentiable."""
        return self.differences[name]

    def save(self, folder: Path, base: str) -> None:
        """Write nothing: the tuned model is written as a whole."""
