"""What is known of a model's name before anything is imported that could load it."""

import re
from pathlib import Path

from ragcache.errors import InvalidArgument

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def check_name(name: str, what: str, option: str) -> None:
    """Refuse a name that nothing can be loaded by.

    Parameters
    ----------
    name : str
        A folder, or a hub id.
    what, option : str
        What it names, and the option it was given with, for the message.

    Raises
    ------
    InvalidArgument
        If there is no such folder, it can be no hub id, or it is one that is not on this machine while the hub may not
        be asked.
    """
    folder = Path(name)
    if name and folder.is_dir():
        return
    if folder.exists() or folder.is_absolute() or name[:1] in ("", ".", "~") or not _HUB_ID.fullmatch(name):
        seen = "is a file, not a folder" if folder.is_file() else "is no folder"
        raise InvalidArgument(
            f"cannot load {what} {name!r}: it {seen}; name a folder that holds one, or a hub id such as "
            f"{_example(what)}, with {option}"
        )
    if _is_offline() and not _is_cached(name):
        raise InvalidArgument(
            f"cannot load {what} {name!r}: it is not on this machine, and HF_HUB_OFFLINE keeps it from being fetched; "
            f"run `HF_HUB_OFFLINE=0 hf download {name}` where there is a network, or name a folder with {option}"
        )


def _is_offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _is_cached(name: str) -> bool:
    """Whether anything of a hub's model lies in its cache."""
    from huggingface_hub import constants

    return (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots").is_dir()


def explain_loading(error: Exception) -> str:
    """Why a library could not load a model, in its first line, or in ours where it asks to run a model's own code."""
    said = str(error).strip().partition("\n")[0]
    return "it brings code of its own, which is never run." if "trust_remote_code" in str(error) else said


def find_snapshot(name: str) -> Path | None:
    """The folder in the hub's cache that a model's name leads to now; None where it is not there."""
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(name, file) for file in ("modules.json", "config.json")]
    return next((Path(one).parent for one in found if isinstance(one, str)), None)


def _example(what: str) -> str:
    if what == "the auxiliary model":
        return "Qwen/Qwen2.5-0.5B-Instruct"
    return "Qwen/Qwen2.5-7B-Instruct" if what == "the model" else "sentence-transformers/all-MiniLM-L6-v2"
