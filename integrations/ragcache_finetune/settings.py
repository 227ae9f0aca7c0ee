"""What a run is given."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument

DTYPES = ("auto", "float32", "bfloat16")  # not float16, whose gradients vanish unless the loss is scaled


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run makes; a run that goes on has the same.

    Attributes
    ----------
    recipe : str
        Of `RECIPES`.
    model : str
        "bundled", "smollm2", "smollm2-tuned", a hub id or a folder.
    data : str
        JSONL file, folder of an index, or "worlds".
    out : Path
        Folder of the adapter.
    questions : Path, optional
        Questions to an index.
    validation : Path, optional
        JSONL file to examine by; else some contexts are held out.
    links : int, optional
        Link tokens a document; else the recipe's own.
    steps, batch : int
        Optimiser steps, and contexts a step.
    rate : float
        Learning rate at its height; it rises over a tenth of the steps, and falls to 0 as a cosine.
    seed : int
        Of the weights that are added, and of the order of contexts.
    rank : int
        Of LoRA's matrices; alpha is twice that.
    full_weights : bool
        Train all weights instead.
    dtype : str
        What the model computes in, of `DTYPES`; "auto" is bfloat16 where the processor multiplies it, else float32.
    gradient_checkpointing : bool
        Compute each layer twice, and keep one layer's activations only.
    every : int
        Steps between two checkpoints, each with a look at what is held out.
    held_out : int
        Contexts to hold out, at most; where there are none, nothing is examined.
    top_k : int, optional
        Chunks to retrieve; else the index's own number.
    """

    recipe: str
    model: str
    data: str
    out: Path
    questions: Path | None = None
    validation: Path | None = None
    links: int | None = None
    steps: int = 300
    batch: int = 4
    rate: float = 5e-4
    seed: int = 0
    rank: int = 8
    full_weights: bool = False
    dtype: str = "auto"
    gradient_checkpointing: bool = False
    every: int = 50
    held_out: int = 12
    top_k: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "rank", "every"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"--{name} is {getattr(self, name)}; give 1 or more")
        if self.held_out < 0:
            raise InvalidArgument(f"--held-out is {self.held_out}; give 0 or more")
        if self.dtype not in DTYPES:
            raise InvalidArgument(f"--dtype is {self.dtype!r}; give {', '.join(DTYPES[:-1])} or {DTYPES[-1]}")
        if not 0 < self.rate < 1:
            raise InvalidArgument(f"--rate is {self.rate:g}; give a learning rate such as 5e-4")

    def as_dict(self) -> dict[str, Any]:
        """For a record; where files lie on this machine is left out."""
        values = asdict(self)
        del values["out"]
        for name in ("data", "questions", "validation"):
            values[name] = Path(values[name]).name if values[name] is not None else None
        return values | {"model": self.base}

    @property
    def base(self) -> str:
        """What a record calls the model; of a folder its last name, since paths differ."""
        return Path(self.model).name if Path(self.model).is_dir() else self.model
