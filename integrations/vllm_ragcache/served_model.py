"""Whether the model that vLLM serves is the one that made an index's KV."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcache.errors import IndexFormat, IndexMismatch, UnsupportedModel, ingest
from ragcache.index.binding import MADE_BY
from ragcache.model.fingerprint import digest_tokenizer
from ragcache.model.rope import RopeLayout
from ragcache.model.weight_files import weights_of_files
from ragcache.prompt import SYSTEM, Template
from ragcache.store import Catalog
from vllm_ragcache.wanted import WORKER

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheConfig

# Entries of a configuration that say how a model is written down or generates, and that libraries fill in differently.
_UNIMPORTANT = frozenset(
    "architectures dtype torch_dtype transformers_version _name_or_path name_or_path attn_implementation "
    "_attn_implementation use_cache output_attentions output_hidden_states return_dict bos_token_id eos_token_id "
    "pad_token_id id2label label2id".split()
)


def read_layouts(catalog: Catalog, path: Path) -> list[RopeLayout]:
    """How each layer of the index's model rotates its keys.

    Raises
    ------
    IndexFormat
        If an older version made the index, which did not write that down.
    """
    return [
        RopeLayout(one["pairing"], tuple(one["inv_freq"]), one["offset"]) for one in _made_by(catalog, path)["rope"]
    ]


def check_served_model(catalog: Catalog, path: Path, config: "VllmConfig") -> None:
    """Refuse to serve an index's KV to another model than the one that made it.

    Compared are weights (as files), tokenizer with its chat template, dtype, and the configuration, with rope and its
    scaling; and nothing may be quantised on the way.

    Raises
    ------
    IndexMismatch
        The message names what differs, as the index has it and as it is served.
    IndexFormat
        If an older version made the index.
    """
    differences = find_differences(catalog, path, config)
    if differences:
        raise IndexMismatch(describe_mismatch(catalog, path, config.model_config.model, differences))


def find_differences(catalog: Catalog, path: Path, config: "VllmConfig") -> dict[str, list[str]]:
    """What differs between the model that made an index and the one that is served, by part.

    Returns
    -------
    dict of str to list of str
        "weights", "tokenizer", "dtype", "rope", "configuration" and "quantisation", those that differ only; a
        dtype that vLLM is to choose by itself (None, before it has started) is not compared.

    Raises
    ------
    IndexFormat
        If an older version made the index.
    """
    made_by, served = _made_by(catalog, path), describe_served(config.model_config)
    found = {
        part: [f"{part} {_short(made_by[part])} in the index and {_short(served[part])} served"]
        for part in ("weights", "tokenizer", "dtype")
        if made_by[part] != served[part] and not (part == "dtype" and served[part] is None)
    }
    for name, words in _different_entries(made_by["config"], served["config"]):
        found.setdefault("rope" if _is_of_rope(name) else "configuration", []).append(words)
    if lossy := [f"{what} {value!r} served, and none in the index" for what, value in _lossy(config)]:
        found["quantisation"] = lossy
    return found


def describe_mismatch(catalog: Catalog, path: Path, name: str, differences: Mapping[str, Sequence[str]]) -> str:
    """The message of an index whose model is another than the served one of that name."""
    return (
        f"the index {path} was made by {catalog.setting('model')}, and vLLM serves {name}, which is another model: "
        f"{'; '.join(words for part in differences.values() for words in part)}. Serve the model that made it, or "
        "ingest into another --index with this one"
    )


def why_not_recompute(config: "VllmConfig") -> str:
    """Why a server as it was started cannot compute tokens within a load; empty where it can."""
    parallel = config.parallel_config
    reasons = {
        f"it was started without --worker-cls {WORKER}": parallel.worker_cls != WORKER,
        "its layers are spread by --pipeline-parallel-size": parallel.pipeline_parallel_size > 1,
        "its requests are spread by --data-parallel-size": parallel.data_parallel_size > 1,
        "it serves adapters by --enable-lora": config.lora_config is not None,
        "the model caps its attention logits": _is_capped(config),
        "the model's positions have several dimensions": config.model_config.uses_mrope,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _is_capped(config: "VllmConfig") -> bool:
    """Whether attention does more than a softmax (Gemma 2); sinks come with windows, which `check_layers` refuses."""
    return getattr(config.model_config.hf_text_config, "attn_logit_softcapping", None) is not None


def check_layers(kv_cache_config: "KVCacheConfig") -> None:
    """Refuse a model of which vLLM keeps more than one kind of KV, or not all of it.

    Raises
    ------
    UnsupportedModel
        The message names the kinds.
    """
    kinds = [type(group.kv_cache_spec).__name__ for group in kv_cache_config.kv_cache_groups]
    if kinds != ["FullAttentionSpec"]:
        raise UnsupportedModel(
            f"vLLM keeps the model's KV as {' and '.join(kinds) or 'none'}, and only full attention's is loaded",
            "Serve the model without --kv-transfer-config, or answer by `ragcache ask`",
        )


def describe_served(model: "ModelConfig") -> dict[str, Any]:
    """What `ragcache.model.fingerprint.describe_model` says of a model, of one that vLLM loads."""
    folder = Path(model.model)
    commit = getattr(model.hf_config, "_commit_hash", None)
    return {
        "weights": weights_of_files(folder) if folder.is_dir() else commit,
        "tokenizer": digest_tokenizer(_load_tokenizer(model)),
        "dtype": None if model.dtype is None else str(model.dtype),
        "config": model.hf_config.to_dict(),
    }


def read_suffix(catalog: Catalog, model: "ModelConfig") -> tuple[int, ...]:
    """The tokens that the chat template writes behind a question, where the model is to answer."""
    template = Template(_load_tokenizer(model), catalog.setting("system", SYSTEM))
    return template.question("?")[1].token_ids


def _load_tokenizer(model: "ModelConfig") -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model.tokenizer, revision=model.tokenizer_revision)


def _made_by(catalog: Catalog, path: Path) -> dict[str, Any]:
    made_by: dict[str, Any] | None = catalog.setting(MADE_BY)
    if made_by is None:
        raise IndexFormat(
            f"the index {path} does not say what its model is made of, for an older version made it; run "
            f"`{ingest(path)}` once"
        )
    return made_by


def _different_entries(ours: Mapping[str, Any], served: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Entries that both configurations have, with different values: their names, and words for both values."""
    shared = sorted((set(ours) & set(served)) - _UNIMPORTANT)
    return [
        (name, f"{name}={ours[name]!r} in the index and {served[name]!r} served")
        for name in shared
        if _plain(ours[name]) != _plain(served[name])
    ]


def _is_of_rope(name: str) -> bool:
    return name.startswith("rope_") or name in ("partial_rotary_factor", "rotary_pct", "rotary_dim")


def _plain(value: Any) -> Any:
    """The value as JSON would bring it back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _lossy(config: "VllmConfig") -> list[tuple[str, object]]:
    """What vLLM is told to do to weights or KV that the index's model was not."""
    load, cache = config.load_config.load_format, config.cache_config.cache_dtype
    found = {
        "quantization": config.model_config.quantization,
        "load_format": load if str(load) == "dummy" else None,
        "kv_cache_dtype": None if cache in ("auto", str(config.model_config.dtype).removeprefix("torch.")) else cache,
        "hf_overrides": config.model_config.hf_overrides or None,
    }
    return [(name, value) for name, value in found.items() if value is not None]


def _short(value: object) -> str:
    return str(value)[:24]
