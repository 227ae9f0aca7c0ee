"""Whether a checkpoint's KV can be reused, asked of its configuration alone: no weight is read, nor fetched."""

from dataclasses import dataclass
from typing import Any

from ragcache.errors import UnsupportedModel
from ragcache.model import compatibility
from ragcache.model.checkpoint import gguf_file
from ragcache.model.cost import kv_bytes_per_token
from ragcache.model.hub import check_name
from ragcache.model.pretrained import auto_class, load_config, quantization
from ragcache.model.reader import ReducedReader
from ragcache.model.reduced import build_reduced, reduce_config

_PROBE_TOKENS = [5, 7]


@dataclass(frozen=True)
class ConfigCheck:
    """What a configuration says of a model that works.

    Attributes
    ----------
    architecture : str
        The class that loads it.
    dtype : str
        The checkpoint's own; bfloat16 where it names none.
    quantization : str
        How its weights are quantised; empty where they are not.
    limit : int
        Most tokens of a prompt and its answer together.
    bytes_per_token : int
        Bytes of KV of one token over all layers.
    """

    architecture: str
    dtype: str
    quantization: str
    limit: int
    bytes_per_token: int


def check_config_alone(name: str, revision: str | None = None) -> ConfigCheck:
    """Hold a reduced copy of a model, with random weights, against its own full prefill, as is done when it is loaded.

    Parameters
    ----------
    name : str
        Hub id, a folder that holds a config.json, or a GGUF file.
    revision : str, optional
        Hub revision.

    Raises
    ------
    InvalidArgument
        If there is no configuration of that name.
    UnsupportedModel
        If the model's KV cannot be reused; or nothing can be said of its class before it is loaded.
    """
    if gguf_file(name) is None:
        check_name(name, "the model", "--model")
    config = load_config(name, revision)
    try:
        model = build_reduced(reduce_config(config), auto_class(config))
    except Exception as error:  # a class may refuse sizes in any way
        raise UnsupportedModel(
            f"no reduced copy of {name} ({config.model_type}) can be built ({type(error).__name__}: {error}), so its "
            "configuration alone says nothing",
            f"Load it: run `ragcache doctor --model {name}`",
        ) from error
    try:
        ReducedReader(model, _tokenise)
    except UnsupportedModel as error:
        raise compatibility.refusal(model, error.reason, name) from error
    kind = getattr(config.get_text_config(), "dtype", None)
    return ConfigCheck(
        architecture=type(model).__name__,
        dtype=str(kind or "bfloat16").removeprefix("torch."),
        quantization=quantization(config),
        limit=compatibility.length_limit(model),
        bytes_per_token=kv_bytes_per_token(config),
    )


def _tokenise(text: str, **_: Any) -> dict[str, list[int]]:
    """Stands in for the tokenizer, of which the check takes two tokens."""
    return {"input_ids": _PROBE_TOKENS}
