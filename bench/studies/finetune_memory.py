"""What memory does training an adapter take, and does a killed run go on? LoRA on a published shape, random weights.

    python bench/studies/finetune_memory.py --out docs/benchmarks/finetune-memory.json

Every way of training runs in a process of its own, whose largest resident size the system tells. The first is killed at
its first checkpoint and started again; `resumed` says that it went on from there. Then an index is made with the base
model, and opened with its adapter: that has to be refused, since the two have other keys.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.markdown import table
from ragcache_bench.speed.shapes import random_texts

from ragcache import RagCache
from ragcache.errors import IndexMismatch
from ragcache.model.loading import load_reader

WAYS: dict[str, tuple[str, ...]] = {
    "float32": ("--dtype", "float32"),
    "bfloat16": ("--dtype", "bfloat16"),
    "bfloat16, layers computed twice": ("--dtype", "bfloat16", "--gradient-checkpointing"),
}
MIB = 2**20


@dataclass(frozen=True)
class Trained:
    """One way of training.

    Attributes
    ----------
    way : str
        Of `WAYS`.
    weights_mib, peak_mib : float
        Of the model's own weights, and of the process at its largest.
    adapter_mib : float
        Of the adapter's file.
    seconds : float
        Of the whole process, loading and the look at ordinary prompts among them.
    killed_at, resumed_at : int or None
        Steps that were done when the first process was killed, and the first step of the second one.
    """

    way: str
    weights_mib: float
    peak_mib: float
    adapter_mib: float
    seconds: float
    killed_at: int | None = None
    resumed_at: int | None = None


def write_contexts(file: Path, contexts: int, chunks: int, words: int) -> None:
    """Questions over chunks of random words; no chunk stands in two contexts."""
    texts = iter(random_texts(contexts * chunks, words))
    rows = [
        {"question": f"w{number} w1 w2", "answers": ["w3 w4 w5"], "chunks": [next(texts) for _ in range(chunks)]}
        for number in range(contexts)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def train(model: Path, data: Path, out: Path, steps: int, flags: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Begin training in a process of its own, with a checkpoint behind each step."""
    given = ["--recipe", "turborag", "--model", model, "--data", data, "--out", out, "--steps", steps, "--batch", 1]
    given += ["--every", 1, "--held-out", 1, "--threads", 1, *flags]
    return subprocess.Popen([sys.executable, "-m", "ragcache_finetune", *map(str, given)], stdout=subprocess.DEVNULL)


def wait(process: "subprocess.Popen[bytes]") -> tuple[int, float]:
    """Its exit status, and the largest resident size in MiB."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss / 1024  # KiB on Linux


def kill_behind_first_checkpoint(process: "subprocess.Popen[bytes]", out: Path) -> int:
    """Kill it as soon as it has a whole checkpoint; how many steps were done."""
    while not (done := [file.parent for file in out.glob("checkpoints/checkpoint-*/trainer_state.json")]):
        if process.poll() is not None:
            raise RuntimeError(f"training ended with status {process.returncode} before its first checkpoint")
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    wait(process)
    return max(int(folder.name.rpartition("-")[2]) for folder in done)


def measure(model: Path, data: Path, folder: Path, steps: int) -> Iterator[Trained]:
    """Train in every way, the first in two goes."""
    weights = sum(file.stat().st_size for file in model.glob("*.safetensors")) / MIB
    for number, (way, flags) in enumerate(WAYS.items()):
        out = folder / f"run-{number}"
        killed = kill_behind_first_checkpoint(train(model, data, out, steps, flags), out) if number == 0 else None
        start = time.perf_counter()
        status, peak = wait(train(model, data, out, steps, flags))
        if status:
            raise RuntimeError(f"training by {way} ended with status {status}")
        seconds = time.perf_counter() - start
        states = [json.loads(line) for line in (out / "curve.jsonl").read_text(encoding="utf-8").splitlines()]
        resumed = _first_resumed(states, killed)
        adapter = (out / "adapter_model.safetensors").stat().st_size / MIB
        yield Trained(way, weights if way == "float32" else weights / 2, peak, adapter, seconds, killed, resumed)


def _first_resumed(curve: Sequence[dict[str, Any]], killed: int | None) -> int | None:
    """The step behind the last one that the killed process had noted; no step may be there twice."""
    if killed is None:
        return None
    steps = [line["step"] for line in curve if "answered" in line]
    if sorted(set(steps)) != steps:
        raise RuntimeError(f"steps were done twice: {steps}")
    return int(next(step for step in steps if step > killed))


def compare_keys(model: Path, adapter: Path, folder: Path) -> dict[str, Any]:
    """Fingerprints of the base and of the tuned model, and what opening the base's index with the adapter says."""
    base, tuned = load_reader(str(model)), load_reader(str(model), adapter=str(adapter))
    folder.mkdir()
    page = folder / "page.txt"
    page.write_text(random_texts(1, 64)[0], encoding="utf-8")
    with RagCache.open(folder / "index", model=base) as rag:
        rag.ingest(page)
    try:
        RagCache.open(folder / "index", model=tuned).close()
    except IndexMismatch as error:
        return {"base": base.fingerprint, "tuned": tuned.fingerprint, "refused": type(error).__name__}
    raise RuntimeError("an index of the base model was opened with its adapter")


def main(
    shape: Annotated[str, typer.Option(metavar="SHAPE", help="Published sizes, random weights.")] = "qwen2.5-0.5b",
    steps: Annotated[int, typer.Option(min=3, help="Of one context each.")] = 3,
    chunks: Annotated[int, typer.Option(min=2, help="In a context.")] = 4,
    words: Annotated[int, typer.Option(min=8, help="In a chunk; each is a token.")] = 256,
    out: Annotated[Path, typer.Option(help="JSON to write; a table goes beside it.")] = Path("finetune-memory.json"),
) -> None:
    """Train in every way, and write the table."""
    use_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model, data = Path(folder) / "model", Path(folder) / "contexts.jsonl"
        reader = shaped(shape, "float32", "cpu", 1)
        reader.model.save_pretrained(model)
        reader.tokenizer.save_pretrained(model)
        about = report.meta(
            device=torch.device("cpu"), reader=reader.name, shape=shape, steps=steps, tokens=chunks * words, rank=8
        )
        del reader
        write_contexts(data, steps + 1, chunks, words)
        rows = list(measure(model, data, Path(folder), steps))
        keys = compare_keys(model, Path(folder) / "run-0", Path(folder) / "keys")
    write(out, {"meta": about, "rows": [asdict(row) for row in rows], "keys": keys})
    heads = ("way", "weights MiB", "largest MiB", "adapter MiB", "seconds", "killed at step", "went on with step")
    body = [
        tuple(round(value) if isinstance(value, float) else value for value in asdict(row).values()) for row in rows
    ]
    out.with_suffix(".md").write_text(table(heads, body), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
