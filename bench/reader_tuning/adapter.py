"""Low-rank adapters (LoRA, 2106.09685): the pairs of matrices that are trained, and the files that PEFT reads."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from ragcache.model.adapter_config import CONFIG, PREFIX, WEIGHTS

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
Factors = tuple[Tensor, Tensor]
"""`down` (rank, in) and `up` (out, rank)."""


@dataclass(frozen=True)
class Adapter:
    """What is added to a model's matrices: `scale` times `down` (rank, in), then `up` (out, rank).

    Attributes
    ----------
    pairs : dict of str to (Tensor, Tensor)
        By the parameter's name: `down` and `up`, fp32.
    rank : int
        Of each product.
    alpha : float
        Numerator of the scale, `alpha / rank`.
    """

    pairs: dict[str, Factors]
    rank: int
    alpha: float

    @classmethod
    def new(cls, weights: Mapping[str, Tensor], rank: int, alpha: float, seed: int = 0) -> "Adapter":
        """Pairs for every matrix of `TARGETS`; their products are 0 at first."""
        made = torch.Generator().manual_seed(seed)
        pairs: dict[str, Factors] = {}
        for name, weight in weights.items():
            if name.endswith(tuple(f"{target}.weight" for target in TARGETS)):
                down = torch.randn(rank, weight.shape[1], generator=made) / math.sqrt(weight.shape[1])
                up = torch.zeros(weight.shape[0], rank)
                pairs[name] = (down.to(weight.device).requires_grad_(), up.to(weight.device).requires_grad_())
        return cls(pairs, rank, alpha)

    @classmethod
    def between(cls, before: Mapping[str, Tensor], after: Mapping[str, Tensor], rank: int) -> "Adapter":
        """What leads from one model to another, as well as a rank allows: the largest singular values of every matrix.

        Parameters
        ----------
        before, after : mapping of str to Tensor
            Parameters of two models of one shape, by name.
        rank : int
            Of each product.
        """
        pairs: dict[str, Factors] = {}
        for name in cls.new(before, rank, rank).pairs:
            difference = after[name].detach().float() - before[name].detach().float()  # (out, in)
            left, sizes, right = torch.linalg.svd(difference, full_matrices=False)
            root = sizes[:rank].sqrt()
            pairs[name] = (root[:, None] * right[:rank], left[:, :rank] * root)
        return cls(pairs, rank, rank)

    @property
    def scale(self) -> float:
        """Of the products."""
        return self.alpha / self.rank

    def parameters(self) -> Iterable[Tensor]:
        """All matrices."""
        return (matrix for pair in self.pairs.values() for matrix in pair)

    def added(self, name: str) -> Tensor:
        """What is added to a parameter, (out, in); differentiable."""
        down, up = self.pairs[name]
        return (up * self.scale) @ down

    def factors(self) -> dict[str, Factors]:
        """Copies of the pairs to compute gradients for: their products are what is added, the scale included."""
        return {
            name: (down.detach().clone().requires_grad_(), (up.detach() * self.scale).requires_grad_())
            for name, (down, up) in self.pairs.items()
        }

    def gradients(self, factors: Mapping[str, Factors]) -> list[Tensor]:
        """The gradients of `parameters()`, in their order, from those that copies have."""
        found = [(down.grad, up.grad) for down, up in factors.values()]
        return [grad for down, up in found if down is not None and up is not None for grad in (down, up * self.scale)]

    def save(self, folder: Path, base: str) -> None:
        """Write the files that PEFT reads, in bf16.

        Parameters
        ----------
        folder : Path
            Made if it does not exist.
        base : str
            Hub id of the model that is added to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for name, (down, up) in self.pairs.items():
            module = PREFIX + name.removesuffix(".weight")
            tensors[f"{module}.lora_A.weight"] = down.detach().bfloat16().contiguous()
            tensors[f"{module}.lora_B.weight"] = up.detach().bfloat16().contiguous()
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        config = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "r": self.rank,
            "lora_alpha": self.alpha, "lora_dropout": 0.0, "bias": "none", "target_modules": list(TARGETS),
            "fan_in_fan_out": False, "inference_mode": True,
        }  # fmt: skip
        (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
