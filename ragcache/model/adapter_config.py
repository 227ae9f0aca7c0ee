"""What an adapter's folder says of itself, read without torch: whether its matrices can be added, and by how much."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeVar

from ragcache.errors import UnusableAdapter

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."  # of every tensor's name
_PICKLED = "adapter_model.bin"
_Number = TypeVar("_Number", int, float)
#: What to do with an adapter that is no plain LoRA.
CURE = (
    "merge it with PEFT, by `PeftModel.from_pretrained(model, DIR).merge_and_unload().save_pretrained(NEW)`, save the "
    "tokenizer into NEW too, and name NEW with --model"
)
_ANOTHER = "name a folder that PEFT's `save_pretrained` wrote with --adapter"
#: Kinds that stand in front of the prompt or between layers: no matrix of the model takes them up.
_APART = ("ADAPTION_PROMPT", "CPT", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "PROMPT_TUNING")
#: Entries that say how it was trained, or where matrices stand, which their names say too.
_HARMLESS = frozenset(
    "alpha_pattern auto_mapping base_model_name_or_path bias corda_config eva_config exclude_modules fan_in_fan_out "
    "inference_mode init_lora_weights layers_pattern layers_to_transform loftq_config lora_alpha lora_dropout "
    "lora_ga_config megatron_core peft_type peft_version qalora_group_size r rank_pattern revision runtime_config "
    "target_modules task_type use_rslora".split()
)
#: Beginnings that leave the model's own matrices as they are; the others (PiSSA, OLoRA, …) take a part of them away.
_BEGINNINGS = (True, False, None, "gaussian", "orthogonal", "eva")
_NAMES = {"smollm2": "SmolLM2-135M-Instruct"}  # what a model is called elsewhere


@dataclass(frozen=True)
class LoraConfig:
    """Rank and scale of every matrix of a LoRA adapter.

    Attributes
    ----------
    folder : Path
        Where it lies.
    base : str
        The model that it was trained on, as its files call it; may be empty.
    rank, alpha : int and float
        Of matrices that no pattern names.
    ranks, alphas : mapping of str to int and float
        The same by pattern, a regular expression that a module's name ends with.
    stabilised : bool
        Whether the scale is alpha / sqrt(rank) (rsLoRA, 2312.03732) and not alpha / rank (LoRA, 2106.09685).
    """

    folder: Path
    base: str
    rank: int
    alpha: float
    ranks: Mapping[str, int]
    alphas: Mapping[str, float]
    stabilised: bool

    def rank_of(self, module: str) -> int:
        """Rank of a module's matrices."""
        return _matching(self.ranks, module, self.rank)

    def scale_of(self, module: str) -> float:
        """What the product of a module's matrices is multiplied by."""
        rank, alpha = self.rank_of(module), _matching(self.alphas, module, self.alpha)
        return alpha / math.sqrt(rank) if self.stabilised else alpha / rank

    @property
    def identity(self) -> str:
        """Everything that decides what is added, as text; names and paths do not."""
        parts = (self.rank, self.alpha, [*self.ranks.items()], [*self.alphas.items()], self.stabilised)
        return json.dumps(parts)


def read_config(folder: str | Path) -> LoraConfig:
    """Read an adapter's settings; refuse what cannot be merged.

    Parameters
    ----------
    folder : str or Path
        Holds `adapter_config.json` and `adapter_model.safetensors`, as PEFT writes them.

    Raises
    ------
    UnusableAdapter
        If a file is missing, pickled or damaged, or the adapter is no plain LoRA on linear layers.
    """
    folder = Path(folder)
    _check_files(folder)
    config = _read(folder)
    _check_kind(folder, config)
    return _parse(folder, config)


def note_base(folder: str | Path, model: str) -> str:
    """A note where an adapter's files call its model otherwise than `model`; paths differ, so last names count."""
    base = read_config(folder).base
    if not base or _last(base) == _last(_NAMES.get(model, model)):
        return ""
    return f"the adapter {folder} fits the model {model}, but says that it was trained on {base}"


def _last(name: str) -> str:
    return PurePath(name).name.lower()


def _check_files(folder: Path) -> None:
    if not folder.is_dir():
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: it is no folder; {_ANOTHER}; for one on the "
            "hub, that is what `hf download ID` prints"
        )
    if not (folder / CONFIG).is_file():
        raise UnusableAdapter(f"cannot load the adapter {str(folder)!r}: the folder holds no {CONFIG}; {_ANOTHER}")
    if (folder / WEIGHTS).is_file():
        return
    if (folder / _PICKLED).is_file():
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: its {_PICKLED} is pickled, and unpickling runs whatever code is "
            f"in it; have whoever made it save it as {WEIGHTS}, as PEFT's `save_pretrained` does"
        )
    raise UnusableAdapter(f"cannot load the adapter {str(folder)!r}: the folder holds no {WEIGHTS}; {_ANOTHER}")


def _read(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    if not isinstance(config, dict):
        raise _damaged(folder, "no object stands in it")
    return config


def _check_kind(folder: Path, config: dict[str, Any]) -> None:
    """Refuse whatever a plain sum of products would leave out."""
    kind = config.get("peft_type")
    if kind in _APART:
        raise UnusableAdapter(
            f"cannot merge the adapter {str(folder)!r}: it is of the kind {kind}, which stands beside the weights and "
            "cannot be merged into them; name a LoRA adapter with --adapter"
        )
    strange = {name: value for name, value in config.items() if name not in _HARMLESS and value}
    if kind != "LORA":
        strange = {"peft_type": kind}
    elif config.get("bias", "none") != "none":
        strange |= {"bias": config["bias"]}
    elif config.get("init_lora_weights", True) not in _BEGINNINGS:
        strange |= {"init_lora_weights": config["init_lora_weights"]}
    for name, value in strange.items():
        raise UnusableAdapter(
            f"cannot merge the adapter {str(folder)!r}: its {CONFIG} says {name}={value!r}, and only plain LoRA on "
            f"linear layers is merged here; {CURE}"
        )


def _parse(folder: Path, config: dict[str, Any]) -> LoraConfig:
    try:
        found = LoraConfig(
            folder=folder,
            base=str(config.get("base_model_name_or_path") or ""),
            rank=int(config.get("r", 8)),  # PEFT's own default, as is that of alpha
            alpha=float(config.get("lora_alpha", 8)),
            ranks={key: int(value) for key, value in (config.get("rank_pattern") or {}).items()},
            alphas={key: float(value) for key, value in (config.get("alpha_pattern") or {}).items()},
            stabilised=bool(config.get("use_rslora")),
        )
        for pattern in (*found.ranks, *found.alphas):
            re.compile(pattern)
        whole = [math.isfinite(alpha) for alpha in (found.alpha, *found.alphas.values())]
    except (TypeError, ValueError, AttributeError, re.error) as error:
        raise _damaged(folder, str(error)) from error
    if min([found.rank, *found.ranks.values()]) < 1 or not all(whole):
        raise _damaged(folder, "a rank is below 1, or an alpha is no number")
    return found


def _matching(patterns: Mapping[str, _Number], module: str, otherwise: _Number) -> _Number:
    """The value of the first pattern that a name is, or ends with behind a dot, as PEFT looks it up."""
    return next((value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", module)), otherwise)


def _damaged(folder: Path, why: str) -> UnusableAdapter:
    return UnusableAdapter(f"cannot load the adapter {str(folder)!r}: its {CONFIG} is damaged ({why}); {_ANOTHER}")
