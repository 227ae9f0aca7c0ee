"""Which architectures of the installed transformers are served: `docs/models.md`, from every decoder class.

    python bench/studies/models.py --out docs/benchmarks/models.json --page docs/models.md

Each class is built as a reduced copy of its default configuration (`ragcache.model.reduced`): random weights, every
kind of layer, windows and chunks of 12 tokens. Making a reader of it accepts or refuses it. What is accepted reads 48
tokens, three times with other weights, all of them anew and with two reused chunks, and is held against the stock
model: chunk KV comes from the stock model at the chunks' own positions and is put together by hand, so nothing of ours
moves or places it.
"""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.spliced_cache import SplicedCache
from torch import Tensor
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ragcache.errors import UnsupportedModel
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader
from ragcache.model.reduced import build_reduced, reduce_config

TOLERANCE = 1e-4  # of a logit, fp32
TOKENS, SEEDS = 48, (0, 1, 2)
CUTS = (0, 4, 21, 40, TOKENS)  # a prefix, two chunks, and the question
_SSM = {"hidden_size": 64, "mamba_n_heads": 8, "mamba_d_head": 16}
_ROPE = {"rope_type": "default", "rope_theta": 1e4}
#: What a class's default configuration lacks, or names in a way of its own.
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "bamba": _SSM | {"num_hidden_layers": 4, "attn_layer_indices": [1, 3]},
    "granitemoehybrid": _SSM | {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}},
    "dbrx": {
        "attn_config": {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 96},
    },
    "deepseek_v2": {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "gemma4_assistant": {
        "text_config": {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    },
    "lfm2": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"hidden_size": 64, "expand": 1, "num_heads": 4, "head_dim": 16},
    "nemotron": {"num_key_value_heads": 2},
    "reformer": {"is_decoder": True, "axial_pos_embds": False},
    "xlm": {"emb_dim": 64, "n_words": 512},
    "xlnet": {"d_model": 64, "n_head": 4, "d_head": 16},
}
MEANINGS = {
    "works": "its logits are the stock model's",
    "refused": "one sentence says why; `--method full` answers all the same",
    "wrong": "accepted, and its logits are others",
    "error": "a traceback",
    "not tried": "no small model of it can be built",
}


@dataclass(frozen=True)
class Row:
    """What became of one architecture.

    Attributes
    ----------
    architecture, model : str
        The configuration's `model_type`, and the class.
    verdict : str
        One of `MEANINGS`.
    why : str
        The refusal's reason, or the error.
    recomputed, reused : float or None
        Largest |difference of a logit| over all seeds, with everything recomputed and with two reused chunks.
    """

    architecture: str
    model: str
    verdict: str
    why: str = ""
    recomputed: float | None = None
    reused: float | None = None


def main(
    only: Annotated[str, typer.Option(help="Model types, between commas; all otherwise.")] = "",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("models.json"),
    page: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
) -> None:
    """Try every decoder class."""
    use_threads(threads)
    kinds = only.split(",") if only else sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    rows = []
    for kind in kinds:
        rows.append(asdict(try_architecture(kind)))
        typer.echo(" ".join(f"{value}" for value in rows[-1].values()), err=True)
    versions = {name: version(name) for name in ("transformers", "torch")}
    meta = {"versions": versions, "tokens": TOKENS, "seeds": SEEDS, "tolerance": TOLERANCE}
    write(out, {"meta": meta, "rows": rows})
    if page is not None:
        page.write_text(markdown(rows, meta), encoding="utf-8")


def try_architecture(kind: str, seeds: Sequence[int] = SEEDS) -> Row:
    """Build, load, and compare."""
    name = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]
    name = name if isinstance(name, str) else name[0]
    try:
        config = default_config(kind)
        model = build_reduced(config)
    except Exception as error:  # a class may refuse a configuration in any way, its own default one too
        return Row(kind, name, "not tried", _first_line(error))
    try:
        compared = [_compare(model if not seed else build_reduced(config, seed=seed), seed) for seed in seeds]
    except UnsupportedModel as error:
        return Row(kind, name, "refused", error.reason.partition("cannot reuse chunk KV: ")[2])
    except Exception as error:  # what this study is there to find
        return Row(kind, name, "error", f"{_first_line(error)} {traceback.extract_tb(error.__traceback__)[-1]}")
    recomputed, reused = (max(figures) for figures in zip(*compared, strict=True))
    verdict = "works" if max(recomputed, reused) <= TOLERANCE else "wrong"
    return Row(kind, name, verdict, "", recomputed, reused)


def default_config(kind: str) -> PreTrainedConfig:
    """A reduced default configuration, its windows switched on where there is a switch."""
    given = GIVEN.get(kind, {})
    config = CONFIG_MAPPING[kind](**given)
    depth = getattr(config, "num_hidden_layers", 0)
    windows = {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": depth // 2}
    off = {name: windows[name] for name in windows if hasattr(config, name)}
    if not getattr(config, "use_sliding_window", True) or getattr(config, "sliding_window", 0) is None:
        config = CONFIG_MAPPING[kind](**given, **off)
    return reduce_config(config)


def _compare(model: Any, seed: int) -> tuple[float, float]:
    """Largest differences of logits, with everything recomputed and with two reused chunks."""
    reader = Reader(model, lambda text, **_: {"input_ids": [5, 7]})
    ids = torch.randint(8, 250, (TOKENS,), generator=torch.Generator().manual_seed(seed)).tolist()
    stock, _ = reader.stock(ids)
    slots = Slots(torch.arange(TOKENS))
    whole = reader.logits(ids, Positions(slots), reader.buffer(TOKENS), ForwardPlan(slots, TOKENS))
    buffer, question = reader.buffer(TOKENS), Slots(slots[CUTS[-2] :])
    for start, stop in pairwise(CUTS[:-1]):
        reader.place(buffer, reader.encode(ids[start:stop]), start, start)
    reused = reader.logits(ids[CUTS[-2] :], Positions(question), buffer, ForwardPlan(question, TOKENS))
    return float((whole - stock).abs().max()), float((reused - spliced(model, ids)).abs().max())


def spliced(model: Any, ids: Sequence[int]) -> Tensor:
    """Logits of the stock model, (vocabulary,), where each chunk's KV was made alone at the chunk's own positions."""
    cache = SplicedCache(model)
    for start, stop in pairwise(CUTS[:-1]):
        cache.place(ids[start:stop], start)
    return cache.read(ids[CUTS[-2] :], CUTS[-2])


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"


def markdown(rows: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    """The page."""
    by: dict[str, list[Mapping[str, Any]]] = {name: [] for name in MEANINGS}
    for row in rows:
        by[row["verdict"]].append(row)
    counts = ", ".join(f"{len(by[name])} {name}" for name in MEANINGS if by[name] or name in ("wrong", "error"))
    return "\n".join([*_head(meta), "", f"{len(rows)} architectures: {counts}.", "", *_works(by), *_refused(by), ""])


def _head(meta: Mapping[str, Any]) -> list[str]:
    versions = " and ".join(f"{name} {number}" for name, number in meta["versions"].items())
    return [
        "# Models",
        "",
        "<!-- Generated by `make bench/models`; a test compares it with docs/benchmarks/models.json. -->",
        "",
        f"Every decoder class of {versions}, tried as a small model with random weights",
        "and every kind of its layers. A class works if its logits are the stock model's within "
        f"{meta['tolerance']:g} in fp32, over",
        f"{meta['tokens']} tokens that outgrow each window, with {len(meta['seeds'])} sets of weights: once with "
        "everything recomputed, and once with two",
        "reused chunks, against the stock model on KV that was put together by hand. What is refused is refused by",
        "name when it is loaded, and answers by full prefill with `--method full`. `ragcache doctor --model NAME` says",
        "the same of a checkpoint, and with `--config-only` before anything but its configuration is fetched.",
        "[Quantised weights](hooks.md#quantised-weights) change nothing about it.",
    ]


def _works(by: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    lines = ["## Works", "", "| architecture | class | recomputed | reused |", "|---|---|---|---|"]
    for row in (*by["works"], *by["wrong"]):
        figures = " | ".join(f"{row[name]:.0e}" if row[name] else "0" for name in ("recomputed", "reused"))
        lines.append(f"| {row['architecture']} | `{row['model']}` | {figures} |")
    return lines


def _refused(by: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    lines = []
    for verdict, title in (("refused", "Refused"), ("error", "Errors"), ("not tried", "Not tried")):
        if not by[verdict]:
            continue
        lines += ["", f"## {title}", "", "| why | architectures |", "|---|---|"]
        reasons: dict[str, list[str]] = {}
        for row in by[verdict]:
            reasons.setdefault(row["why"].replace("|", "/"), []).append(row["architecture"])
        lines += [f"| {why} | {', '.join(names)} |" for why, names in sorted(reasons.items())]
    return lines


if __name__ == "__main__":
    typer.run(main)
