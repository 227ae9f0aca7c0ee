"""`make gpu-check`: is it right, and how fast is it, on an accelerator; smoke sizes where there is none.

Needs torch, transformers, safetensors, xxhash and numpy, and ends within ten minutes: a part that no longer fits is
skipped by name, and what is known so far is written after every part. Where less time is lent,
`python -m ragcache_bench.gpu_check --seconds 120 --only latency` takes some of the parts.
"""

import argparse
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ragcache.bundled import reader_path
from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.index.index import Index
from ragcache.model import kernels
from ragcache.model.attention import blocked
from ragcache.model.plan import ForwardPlan, Slots
from ragcache.model.reader import Reader
from ragcache_bench import gpu_parts
from ragcache_bench.contenders import contenders
from ragcache_bench.report import hardware, meta
from ragcache_bench.speed.latency import measure
from ragcache_bench.speed.shapes import SHAPES, random_reader, random_texts

SECONDS = 540.0  # for everything
METHODS = ("naive", "cacheblend", "fusionrag")

FP32_TOLERANCE, NOISE_FACTOR = 1e-4, 2.0
ROUNDED = 0.02  # of bf16 attention's norm

_TINY: dict[str, Any] = {
    "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096,
    "initializer_range": 0.12,  # at the usual 0.02 attention is uniform, and a wrong mask hardly shows
}  # fmt: skip
_GEMMA = {
    "sliding_window": 48, "layer_types": ["sliding_attention", "full_attention"] * 2, "query_pre_attn_scalar": 16,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}  # fmt: skip
#: Name to model type and what differs from the common tiny sizes.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "mistral-sliding": ("mistral", {"sliding_window": 48}),
    "gemma3": ("gemma3_text", _GEMMA),
    "phi3": ("phi3", {}),
}


@dataclass(frozen=True)
class Part:
    """One thing to find out: `work` returns rows for the report; it is started if `seconds` are left."""

    name: str
    seconds: float
    work: Callable[[], Sequence[dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every part that fits, write one JSON file, and return 1 if something is wrong.

    Parameters
    ----------
    arguments : sequence of str, optional
        Of the command line; else this process's own.
    """
    parser = argparse.ArgumentParser(prog="python -m ragcache_bench.gpu_check", description="Check an accelerator.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for everything")
    parser.add_argument("--only", action="append", default=[], help="parts whose names begin so; repeatable")
    given = parser.parse_args(arguments)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    name = hardware(torch.device(device)).lower().replace(" ", "-") if cuda else "cpu"
    out = Path(os.environ.get("OUT") or "docs/benchmarks") / f"gpu-check-{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    parts = [part for part in _parts(device) if not given.only or part.name.startswith(tuple(given.only))]
    if not parts:
        parser.error(
            f"no part begins with {' or '.join(given.only)}; there are " + "; ".join(p.name for p in _parts(device))
        )
    return run(parts, out, device, given.seconds)


def run(parts: Sequence[Part], out: Path, device: str, seconds: float = SECONDS) -> int:
    """Run parts one by one and write what they found; 1 if a check failed or a part broke.

    Parameters
    ----------
    parts : sequence of Part
        In order of importance.
    out : Path
        JSON file, rewritten after every part.
    device : str
        For the report.
    seconds : float
        For all parts together.
    """
    end = time.monotonic() + seconds
    found: dict[str, Any] = {}
    for part in parts:
        found[part.name] = _result(part, end - time.monotonic())
        out.write_text(json.dumps({"meta": meta(device=torch.device(device)), "parts": found}, indent=1) + "\n")
        print(f"{part.name}: {_line(found[part.name])}", flush=True)
    return int(any(_failed(result) for result in found.values()))


def _result(part: Part, left: float) -> dict[str, Any]:
    if left < part.seconds:
        return {"skipped": f"it takes about {part.seconds:.0f} s, and {max(left, 0):.0f} s were left"}
    began = time.monotonic()
    try:
        return {"rows": list(part.work()), "seconds": round(time.monotonic() - began, 1)}
    except Exception as error:  # out of memory, a kernel that a compiler refuses: go on with the rest
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        torch.cuda.empty_cache()  # the next part has all of it


def _failed(result: dict[str, Any]) -> bool:
    return "error" in result or any(not row.get("passed", True) for row in result.get("rows", ()))


def _line(result: dict[str, Any]) -> str:
    if "rows" not in result:
        return f"{result}"
    rows = result["rows"]
    passed = [row["passed"] for row in rows if "passed" in row]
    shown = f"{sum(passed)} of {len(passed)} passed" if passed else ", ".join(map(_speed, rows))
    return f"{shown} ({result['seconds']} s)"


def _speed(row: dict[str, Any]) -> str:
    if "cudnn" in row:
        switched = "on" if row["cudnn"] else "off"
        return f"{row['method']}, cuDNN {switched}: {row['prefill_ms']:.1f} ms, then {row['step_ms']:.1f} a token"
    if "tokens_per_s" in row:
        return f"{row['tokens_per_s']:,.0f} tokens/s"
    if "kernel" in row:
        return f"{row['kernel']} {row['keys']} {row['ms']}"
    return f"{row['method']} {row['ttft_ms']:.1f} ms ({row['speedup']:.1f}x)"


# -- parts


def _parts(device: str) -> list[Part]:
    dtypes = (torch.float32, torch.bfloat16)
    right = [
        Part(f"r = 1, {name}, {_short(dtype)}", 5, partial(_exact, name, dtype, device))
        for name in ARCHITECTURES
        for dtype in dtypes
    ]
    if (reader_path() / "config.json").exists():
        right += [Part(f"r = 1, bundled reader, {_short(d)}", 5, partial(_exact_bundled, d, device)) for d in dtypes]
    right = [
        Part("all rows at .15, against the CPU", 20, partial(gpu_parts.rows_against_cpu, device)),
        Part("streams, batches, drafts, draws, against the CPU", 5, partial(gpu_parts.ways_against_cpu, device)),
        Part("KV in fewer bytes, against the CPU", 5, partial(gpu_parts.codecs_against_cpu, device)),
        Part("bf16 from ingestion on, against fp32", 8, partial(gpu_parts.narrow_against_fp32, device)),
        *right,
    ]
    if device == "cpu":
        tiny = ("qwen2", _TINY)
        return [
            *right,
            Part("latency, tiny", 20, partial(_latency, *tiny, 1024, device, store="warm", repeats=2)),
            Part("cuDNN on and off, tiny", 20, partial(gpu_parts.cudnn_on_and_off, *tiny, 1024, device, repeats=1)),
            Part("ingestion, tiny", 20, partial(gpu_parts.ingestion, *tiny, 2, device)),
        ]
    sizes = [("qwen2.5-0.5b", 4096, 8), ("llama-3.1-8b", 4096, 40), ("qwen2.5-0.5b", 8192, 25),
             ("llama-3.1-8b", 8192, 50), ("qwen2.5-0.5b", 32768, 50), ("llama-3.1-8b", 32768, 120)]  # fmt: skip
    turns = [(*size, store) for part in (sizes[:4], sizes[4:]) for store in ("memory", "warm") for size in part]
    masked = Part("attention of 256 masked rows, 32/8 heads of 128", 30, partial(_kernels, device, (8192, 32768)))
    gathered = Part("sparse-query attention, 32/8 heads of 128", 12, partial(_sparse_queries, device, (8192, 32768)))
    cudnn = [
        Part(
            f"cuDNN on and off, {shape}, 4,096 tokens",
            40,
            partial(gpu_parts.cudnn_on_and_off, *SHAPES[shape], 4096, device),
        )
        for shape in ("qwen2.5-0.5b", "llama-3.1-8b")
    ]
    ingestion = Part("ingestion, llama-3.1-8b", 40, partial(gpu_parts.ingestion, *SHAPES["llama-3.1-8b"], 16, device))
    return [*right, masked, gathered, *cudnn, ingestion] + [
        Part(
            f"latency, {shape}, {context:,} tokens, KV {'in memory' if store == 'memory' else 'from files'}",
            seconds,
            partial(_latency, *SHAPES[shape], context, device, store=store, repeats=5 if context < 32768 else 3),
        )
        for shape, context, seconds, store in turns
    ]


def _exact(name: str, dtype: torch.dtype, device: str) -> list[dict[str, Any]]:
    kind, more = ARCHITECTURES[name]
    return [_row(random_reader(kind, {**_TINY, **more}, dtype=dtype, device=device))]


def _exact_bundled(dtype: torch.dtype, device: str) -> list[dict[str, Any]]:
    return [_row(Reader.load(str(reader_path()), dtype=_short(dtype), device=device))]


def _row(reader: Reader) -> dict[str, Any]:
    """Everything recomputed against stock full prefill of the same ids; the untouched reuse beside it differs.

    In fp32 both agree to 1e-4. In narrower dtypes neither is the truth, so both are held against the same weights in
    fp32: ours may be twice as far off as stock is.
    """
    ours, naive = _answers(reader)
    ids = ours.prompt.token_ids
    stock = reader.stock(ids)[0]
    if reader.model.dtype == torch.float32:
        truth, tolerance = stock, FP32_TOLERANCE
    else:
        truth = _in_fp32(reader, ids)
        tolerance = NOISE_FACTOR * _distance(stock, truth)
    difference = _distance(ours.logits, truth)
    return {
        "difference": difference,
        "tolerance": tolerance,
        "naive_difference": _distance(naive.logits, truth),
        "passed": difference <= tolerance,
    }


def _answers(reader: Reader) -> tuple[Prefilled, Prefilled]:
    """Five chunks of random words: with all of their tokens recomputed, and with none."""
    with tempfile.TemporaryDirectory() as folder, Index(folder, reader) as index:
        index.put("random words", "", [(text, 0, len(text)) for text in random_texts(5, 60)], {})
        chunks = index.chunks(list(index.encode(Alone())))
        engine = Engine(reader, index)
        question = "w1 w2 w3"
        return (
            engine.prefill(question, chunks, method="epic", recompute=1.0),
            engine.prefill(question, chunks, method="naive"),
        )


@torch.no_grad()
def _in_fp32(reader: Reader, ids: Sequence[int]) -> Tensor:
    """Logits of the last token, (vocabulary,), from the same weights in fp32."""
    model = copy.deepcopy(reader.model).float()
    logits: Tensor = model(torch.tensor([list(ids)], device=reader.device), logits_to_keep=1).logits[0, -1]
    return logits


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def _latency(
    kind: str, sizes: dict[str, Any], context: int, device: str, *, store: str, repeats: int
) -> list[dict[str, Any]]:
    reader = random_reader(kind, sizes, device=device)
    field = contenders(METHODS, (0.15,), controls=("full",))
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    rows = [asdict(row) for row in measure(reader, field, context, repeats=repeats, store=store)]
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return [{**row, "peak_device_bytes": peak} for row in rows]  # of all rows together, the weights among them


def _kernels(device: str, lengths: Sequence[int]) -> list[dict[str, Any]]:
    """Milliseconds of each attention kernel on the shape that selective recompute asks for; None where it refuses."""
    rows = []
    for keys in lengths:
        query, key, value = (torch.randn(1, heads, n, 128, device=device, dtype=torch.bfloat16)
                             for heads, n in ((32, 256), (8, keys), (8, keys)))  # fmt: skip
        mask = torch.arange(keys, device=device) <= torch.arange(256, device=device)[:, None] * keys // 256
        for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
            rows.append({"keys": keys, "kernel": name, "ms": _kernel_ms(name, query, key, value, mask)})
    return rows


def _kernel_ms(name: str, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> float | None:
    kernel = getattr(SDPBackend, name)
    times = []
    for _ in range(10):
        began = time.perf_counter()
        try:
            with sdpa_kernel(kernel):
                F.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True).sum().item()
        except RuntimeError:  # "No available kernel"
            return None
        times.append((time.perf_counter() - began) * 1e3)
    return min(times)


def _sparse_queries(
    device: str, lengths: Sequence[int], shares: Sequence[float] = (0.05, 0.15)
) -> list[dict[str, Any]]:
    """Our kernel and our blocks on the rows of a selective recompute, and the useful FLOP/s of each over flash's.

    Flash attention's are those of full causal attention at the same length: what stock full prefill has.
    """
    rows = []
    for keys in lengths:
        query, key, value = (
            torch.randn(1, heads, keys, 128, device=device, dtype=torch.bfloat16) for heads in (32, 8, 8)
        )
        flash = _best_ms(lambda q=query, k=key, v=value: F.scaled_dot_product_attention(  # type: ignore[misc]
            q, k, v, is_causal=True, enable_gqa=True
        ))  # fmt: skip
        for share in shares:
            slots = torch.randperm(keys, device=device)[: int(share * keys)].sort().values
            plan, exact = (ForwardPlan(Slots(slots), keys) for _ in range(2))
            own = query[:, :, slots]
            work = {
                "blocks": partial(blocked, own, key, value, plan, 128**-0.5, None),
                "kernel": partial(kernels.attend_sparse_queries, own, key, value, slots, 128**-0.5, None),
            }
            expected = blocked(own.float(), key.float(), value.float(), exact, 128**-0.5, None)
            useful = float((slots + 1).double().sum()) / (keys * (keys + 1) / 2)  # of full attention's FLOPs
            for name, run in work.items():
                ms = _best_ms(run)
                difference = float((run().float() - expected).norm() / expected.norm())
                rows.append({
                    "kernel": f"{name}, {share:.0%} of the rows, {useful * flash / ms:.0%} of flash's FLOP/s",
                    "keys": keys, "ms": ms, "flash_ms": flash,
                    "useful_flops_over_flash": useful * flash / ms,
                    "serves": (name == "kernel") == kernels.serves(own, key, blocked),
                    "difference": difference, "passed": difference <= ROUNDED,
                })  # fmt: skip
    return rows


def _best_ms(run: Callable[[], Tensor], repeats: int = 10) -> float:
    """The least of some repeats, the first of which compiles."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        run().sum().item()
        times.append((time.perf_counter() - began) * 1e3)
    return min(times[1:])


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    sys.exit(main())
