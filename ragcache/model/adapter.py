"""Low-rank adapters (LoRA, 2106.09685; rsLoRA, 2312.03732) in PEFT's files, added to a model's matrices for good."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from ragcache.errors import UnusableAdapter
from ragcache.model.adapter_config import CONFIG, CURE, PREFIX, WEIGHTS, LoraConfig, read_config

_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"
_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter in memory.

    Attributes
    ----------
    config : LoraConfig
        Its ranks and scales.
    pairs : mapping of str to (Tensor, Tensor)
        A (r, in) and B (out, r) by the name of the module that they belong to.
    digest : str
        SHA-256 of the weights' bytes, as they were read, and of everything else that decides what is added. It is
        made anew at each load, and remembered nowhere.
    """

    config: LoraConfig
    pairs: Mapping[str, tuple[Tensor, Tensor]]
    digest: str

    @torch.no_grad()
    def merge_into(self, model: Any, name: str = "") -> None:
        """Add the products to a model's matrices: `weight += B A * alpha / r`, or `alpha / sqrt(r)` (rsLoRA).

        The product is made in fp32 and rounded to the weight's dtype once, after the sum. PEFT's `merge_and_unload`
        does the same operations in the same order, so on a CPU, with the same torch, the weights are equal bit by bit,
        in fp32 and in bf16; tests hold it to that. Where PEFT merges on a GPU, or on another machine, its matrix
        product may differ in the last bit, and such a merged model counts as another one.

        Parameters
        ----------
        model : PreTrainedModel
            The model that the adapter was trained on. It is left as it is unless everything fits.
        name : str
            What errors call it.

        Raises
        ------
        UnusableAdapter
            If a module is not there, has another shape, or is quantised; the message names it.
        """
        weights = {module: self._find_weight(model, module, name) for module in self.pairs}
        for module, weight in weights.items():
            kind = torch.promote_types(torch.float32, weight.dtype)
            down, up = (matrix.to(weight.device, kind, copy=True) for matrix in self.pairs[module])
            weight += up @ down * self.config.scale_of(module)

    def _find_weight(self, model: Any, module: str, name: str) -> Tensor:
        """The matrix that a product is added to, (out, in)."""
        down, up = self.pairs[module]
        try:
            found = model.get_submodule(module)
        except AttributeError as error:
            raise self._misfit(name, f"the model has no module {module}") from error
        plain = not hasattr(
            getattr(found, "weight", None), "__tensor_flatten__"
        )  # as torchao has them, of a float dtype
        if not isinstance(found, torch.nn.Linear) or found.weight.dtype not in _FLOATS or not plain:
            kind = "quantised" if isinstance(found, torch.nn.Linear) else f"a {type(found).__name__}"
            raise UnusableAdapter(
                f"cannot merge the adapter {str(self.config.folder)!r} into {name or 'the model'}: {module} is {kind}, "
                f"not an ordinary linear layer; {CURE}"
            )
        if found.weight is model.get_input_embeddings().weight:
            raise UnusableAdapter(
                f"cannot merge the adapter {str(self.config.folder)!r} into {name or 'the model'}: {module} shares its "
                "matrix with the embeddings, which would change too; train without it, or on a copy with "
                "tie_word_embeddings=False"
            )
        wanted, has = (up.shape[0], down.shape[1]), tuple(found.weight.shape)
        if wanted != has:
            raise self._misfit(name, f"it changes {module} as {_by(wanted)}, which is {_by(has)} here")
        return found.weight

    def _misfit(self, name: str, why: str) -> UnusableAdapter:
        base = self.config.base
        return UnusableAdapter(
            f"the adapter {str(self.config.folder)!r} does not fit {name or 'the model'}: {why}; it was trained on "
            f"{base or 'another model'}, so name that with --model, or another folder with --adapter"
        )


def load_adapter(folder: str | Path) -> Adapter:
    """Read an adapter's files.

    Parameters
    ----------
    folder : str or Path
        As in `read_config`.

    Raises
    ------
    UnusableAdapter
        If a file is missing, pickled or damaged, or the adapter is no plain LoRA on linear layers.
    """
    config = read_config(folder)
    try:
        data = (config.folder / WEIGHTS).read_bytes()  # once, so that what is hashed is what is merged
        tensors = load(data)
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise _damaged(config, str(error).partition("\n")[0]) from error
    digest = hashlib.sha256(data)
    digest.update(config.identity.encode())
    return Adapter(config, _pair(config, tensors), digest.hexdigest())


def merge_adapter(model: Any, folder: Path) -> None:
    """Add an adapter's products to a model's matrices, as `Adapter.merge_into` describes it.

    Parameters
    ----------
    model : PreTrainedModel
        The model that the adapter was trained on.
    folder : Path
        As in `read_config`.

    Raises
    ------
    UnusableAdapter
        As `load_adapter` and `Adapter.merge_into`.
    """
    load_adapter(folder).merge_into(model)


def _pair(config: LoraConfig, tensors: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B by module; refuses any tensor that is neither."""
    for name in tensors:
        if not (name.startswith(PREFIX) and name.endswith((_DOWN, _UP))):
            raise UnusableAdapter(
                f"cannot merge the adapter {str(config.folder)!r}: it holds {name}, and only LoRA's two matrices of "
                f"linear layers, {PREFIX}…{_DOWN} and …{_UP}, are merged here; {CURE}"
            )
    names = sorted({name.removesuffix(_DOWN).removesuffix(_UP) for name in tensors})
    if not names:
        raise _damaged(config, "it holds no matrices")
    return {name.removeprefix(PREFIX): _matrices(config, tensors, name) for name in names}


def _matrices(config: LoraConfig, tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    rank = config.rank_of(name.removeprefix(PREFIX))
    for end in (_DOWN, _UP):
        if name + end not in tensors:
            raise _damaged(config, f"it holds no {name}{end}")
    down, up = tensors[name + _DOWN], tensors[name + _UP]
    if (down.ndim, up.ndim) != (2, 2) or not down.shape[0] == up.shape[1] == rank:
        shapes = f"{_by(down.shape)} and {_by(up.shape)}"
        raise _damaged(config, f"the matrices of {name} are {shapes}, but {CONFIG} says rank {rank}")
    return down, up


def _by(shape: Any) -> str:
    return "\u00d7".join(map(str, shape))


def _damaged(config: LoraConfig, why: str) -> UnusableAdapter:
    return UnusableAdapter(
        f"cannot load the adapter {str(config.folder)!r}: its {WEIGHTS} is damaged ({why}); copy it anew from where it "
        "came from, or name another folder with --adapter"
    )


def digest_weights(weights: str | None, adapter: Adapter | None) -> str | None:
    """Digest of weights that an adapter was merged into; None, as without one, where memory has to be hashed."""
    return f"{weights}+{adapter.digest}" if weights and adapter else weights
