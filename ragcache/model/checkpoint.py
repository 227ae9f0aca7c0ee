"""What a checkpoint's name, dtype and device must be; read without torch, so that a wrong one is refused at once."""

import os
import re
from pathlib import Path

from ragcache.errors import InvalidArgument, MissingExtra, install
from ragcache.model import smollm2
from ragcache.model.hub import check_name

BUNDLED = "bundled"
SMOLLM2 = "smollm2"
SMOLLM2_TUNED = "smollm2-tuned"
MODEL_VARIABLE = "RAGCACHE_MODEL"
DTYPES = ("auto", "float32", "bfloat16", "float16")  # and float64, for studies
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|npu|hpu|mlu|musa)(:\d+)?")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "tekken.json")


def gguf_file(name: str) -> Path | None:
    """The GGUF file that a model's name is the path of; None where it is no such path."""
    return Path(name) if name.lower().endswith(".gguf") and Path(name).is_file() else None


def default_model() -> str:
    """Name of the model of a new index, where nobody names one.

    What the environment variable RAGCACHE_MODEL says; else the tuned SmolLM2, if what brings it is installed; else the
    built-in test model.
    """
    return os.environ.get(MODEL_VARIABLE) or (SMOLLM2_TUNED if smollm2.is_installed() else BUNDLED)


def check_model(name: str, what: str = "the model", option: str = "--model") -> None:
    """Refuse a name by which no model can be loaded.

    Parameters
    ----------
    name : str
        "bundled", "smollm2", "smollm2-tuned", a folder, a GGUF file, or a hub id.
    what, option : str
        What it names, and the option it was given with, for the message.

    Raises
    ------
    InvalidArgument
        If there is no such folder, if it holds no model or no tokenizer, if the file is not in GGUF, or if nothing of
        that name is on this machine and the hub may not be asked.
    MissingExtra
        If it is a GGUF file, and what reads it is not installed.
    """
    if name in (BUNDLED, SMOLLM2, SMOLLM2_TUNED):
        return
    if file := gguf_file(name):
        _check_gguf(file, what, option)
        return
    check_name(name, what, option)
    folder = Path(name)
    if not folder.is_dir():
        return
    if not (folder / "config.json").is_file():
        raise InvalidArgument(
            f"cannot load {what} {name!r}: the folder holds no config.json; name one that `save_pretrained` wrote, "
            f"or a hub id, with {option}"
        )
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise InvalidArgument(
            f"cannot load {what} {name!r}: the folder holds no tokenizer; copy tokenizer.json and "
            f"tokenizer_config.json into it from where the model came from, or name another with {option}"
        )


def _check_gguf(file: Path, what: str, option: str) -> None:
    with file.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise InvalidArgument(
            f"cannot load {what} {str(file)!r}: it begins with {magic!r}, not with b'GGUF'; fetch it again, or name "
            f"another with {option}"
        )
    for package in filter(smollm2.is_missing, smollm2.READS_GGUF):
        raise MissingExtra(
            f"cannot load {what} {str(file)!r}: the package {package} reads GGUF files, and is not installed; run "
            f"`{install('gguf')}`"
        )


def check_dtype(dtype: str) -> None:
    """Refuse what is no dtype that a model computes in.

    Raises
    ------
    InvalidArgument
        The message lists those that are.
    """
    if dtype not in (*DTYPES, "float64"):
        *most, last = DTYPES
        raise InvalidArgument(f"no dtype is called {dtype!r}; use {', '.join(most)} or {last}")


def check_device(device: str | None) -> None:
    """Refuse what can be no device; whether the machine has it, torch says when a model is loaded.

    Raises
    ------
    InvalidArgument
        The message gives examples.
    """
    if device is not None and not _DEVICE.fullmatch(device):
        raise InvalidArgument(f"no device is called {device!r}; use cpu, cuda, cuda:1, mps or xpu")
