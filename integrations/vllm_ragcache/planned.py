"""The server that vLLM's options describe, before it is started: what can be said of it from files alone."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ragcache.errors import InvalidArgument

_SHORT = {
    "-q": "--quantization",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
}
_DTYPES = {"float": "float32", "half": "float16"}  # vLLM's other names


def read_options(arguments: Sequence[str]) -> dict[str, str]:
    """Read vLLM's options as far as they are looked at here, by their long names with hyphens.

    Parameters
    ----------
    arguments : sequence of str
        As they stand in the command: `--name value` or `--name=value`, with hyphens or underscores.

    Returns
    -------
    dict of str to str
        The last of several counts; a switch has no value, which is "". Of `--name.entry value` only the name is kept.
    """
    found, name = dict[str, str](), ""
    for word in arguments:
        if word.startswith("-") and not word[1:].isdigit():
            name, _, value = word.partition("=")
            name = _SHORT.get(name, name.replace("_", "-")).partition(".")[0]
            found[name] = value
        elif name:
            found[name], name = word, ""
    return found


def plan_config(options: Mapping[str, str], worker: str) -> Any:
    """What of vLLM's own configuration the checks read, as it will be.

    Parameters
    ----------
    options : mapping of str to str
        vLLM's, from `read_options`; `--model` is among them.
    worker : str
        Class of the workers, unless the options name another.

    Returns
    -------
    VllmConfig
        An object with the same entries. A dtype that vLLM is to choose itself is None.

    Raises
    ------
    InvalidArgument
        If the model cannot be read.
    """
    checkpoint = options["--model"]
    config = _read_config(checkpoint, options.get("--revision"))
    text = config.get_text_config()
    quantised = (getattr(config, "quantization_config", None) or {}).get("quant_method")
    return SimpleNamespace(
        model_config=SimpleNamespace(
            model=checkpoint,
            tokenizer=options.get("--tokenizer", checkpoint),
            tokenizer_revision=options.get("--tokenizer-revision", options.get("--revision")),
            dtype=_read_dtype(options.get("--dtype", "auto")),
            quantization=options.get("--quantization", quantised),
            hf_overrides=options.get("--hf-overrides"),
            hf_config=config,
            hf_text_config=text,
            uses_mrope="mrope_section" in (getattr(text, "rope_parameters", None) or {}),
        ),
        load_config=SimpleNamespace(load_format=options.get("--load-format", "auto")),
        cache_config=SimpleNamespace(cache_dtype=options.get("--kv-cache-dtype", "auto")),
        parallel_config=SimpleNamespace(
            worker_cls=options.get("--worker-cls", worker),
            pipeline_parallel_size=_read_count(options, "--pipeline-parallel-size"),
            data_parallel_size=_read_count(options, "--data-parallel-size"),
        ),
        lora_config="--enable-lora" if "--enable-lora" in options else None,
    )


def _read_config(checkpoint: str, revision: str | None) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(checkpoint, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).partition("\n")[0]
        raise InvalidArgument(
            f"cannot read the configuration of the model {checkpoint!r}: {first} Name a hub id or a folder with --model"
        ) from error


def _read_dtype(name: str) -> str | None:
    return None if name == "auto" else f"torch.{_DTYPES.get(name, name)}"


def _read_count(options: Mapping[str, str], name: str) -> int:
    value = options.get(name, "1")
    if not value.isdigit():
        raise InvalidArgument(f"{name} is {value!r}; give a whole number")
    return int(value)
