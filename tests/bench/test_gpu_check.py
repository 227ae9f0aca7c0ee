import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ragcache_bench import gpu_check, gpu_parts
from ragcache_bench.gpu_check import Part
from ragcache_bench.pretend_accelerator import pretend_accelerator

from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.store import CODECS

pytestmark = pytest.mark.slow


def parts_of(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text())["parts"])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "check.json"


def test_a_part_that_no_longer_fits_is_skipped_by_name(out: Path) -> None:
    parts = [Part("long", 1e6, lambda: [{"passed": False}]), Part("short", 1, lambda: [{"passed": True}])]
    assert gpu_check.run(parts, out, "cpu") == 0
    found = parts_of(out)
    assert "1000000 s" in found["long"]["skipped"]
    assert found["short"]["rows"] == [{"passed": True}]


def test_a_failed_check_and_a_broken_part_fail_the_run_but_not_the_parts_after_them(out: Path) -> None:
    def broken() -> list[dict[str, Any]]:
        raise torch.OutOfMemoryError("no room")

    parts = [Part("broken", 1, broken), Part("fine", 1, lambda: [{"passed": True}])]
    assert gpu_check.run(parts, out, "cpu") == 1
    assert parts_of(out)["broken"]["error"] == "OutOfMemoryError: no room"
    assert parts_of(out)["fine"]["rows"]
    assert gpu_check.run([Part("wrong", 1, lambda: [{"passed": False}])], out, "cpu") == 1


def test_some_of_the_parts_can_be_asked_for(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []
    parts = [Part(name, 1, lambda name=name: ran.append(name) or []) for name in ("latency, a", "kernel", "latency, b")]
    monkeypatch.setattr(gpu_check, "_parts", lambda device: parts)
    monkeypatch.setenv("OUT", str(tmp_path))
    assert gpu_check.main(["--only", "latency", "--seconds", "60"]) == 0
    assert ran == ["latency, a", "latency, b"]
    with pytest.raises(SystemExit):
        gpu_check.main(["--only", "decoding"])
    assert "no part begins with decoding; there are latency, a; kernel; latency, b" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", gpu_check.ARCHITECTURES)
def test_recomputing_everything_is_full_prefill_and_reusing_everything_is_not(name: str, dtype: torch.dtype) -> None:
    row = gpu_check._exact(name, dtype, "cpu")[0]
    assert row["passed"]
    assert row["naive_difference"] > 10 * row["tolerance"]


def test_the_check_fails_where_keys_are_not_moved(
    readers: Callable[[str], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = readers("qwen3")
    original = Reader.place_all
    assert gpu_check._row(reader)["passed"]
    # At r = 1 every chunk is recomputed, so what is placed wrongly must be what is not: the system prefix.
    monkeypatch.setattr(
        Reader, "place_all", lambda self, buffer, all_: original(self, buffer, [(kv, n, at + 1) for kv, n, at in all_])
    )
    assert not gpu_check._row(reader)["passed"]


@pytest.mark.filterwarnings("ignore")  # torch says why each kernel refuses
def test_kernels_are_timed_and_those_that_refuse_say_none() -> None:
    rows = {row["kernel"]: row["ms"] for row in gpu_check._kernels("cpu", (300,))}
    assert rows["MATH"] > 0
    assert rows["CUDNN_ATTENTION"] is None


def test_every_part_of_the_check_runs_at_smoke_sizes_on_a_cpu(out: Path) -> None:
    parts = [part for part in gpu_check._parts("cpu") if not part.name.startswith(("r = 1", "latency"))]
    assert gpu_check.run(parts, out, "cpu") == 0
    found = {name: part["rows"] for name, part in parts_of(out).items()}
    rows = found["all rows at .15, against the CPU"]
    assert {(row["method"], row["kv_made_on"]) for row in rows} == {
        (n, one) for n in METHODS for one in ("cpu", "device")
    }
    assert len(found["streams, batches, drafts, draws, against the CPU"]) == len(gpu_parts.WAYS)
    assert {row["codec"] for row in found["KV in fewer bytes, against the CPU"]} == set(CODECS)
    assert all(0 < row["difference"] <= row["tolerance"] for row in found["bf16 from ingestion on, against fp32"])
    timed = found["cuDNN on and off, tiny"]
    assert {(row["method"], row["cudnn"]) for row in timed} == {
        (m, on) for m in ("full", "naive") for on in (True, False)
    }
    assert all(row["prefill_ms"] > 0 < row["step_ms"] for row in timed)
    assert found["ingestion, tiny"][0]["tokens_per_s"] > 0


@pytest.mark.filterwarnings("ignore")  # torch says why no kernel of cuDNN's is there
def test_latency_says_what_the_device_held_at_most_and_nothing_of_a_cpu(out: Path) -> None:
    [part] = [part for part in gpu_check._parts("cpu") if part.name.startswith("latency")]
    assert gpu_check.run([part], out, "cpu") == 0
    assert [row["peak_device_bytes"] for row in parts_of(out)[part.name]["rows"]] == [None] * 4


def test_the_parts_against_the_cpu_hold_on_a_pretend_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_parts, "METHODS", {name: METHODS[name] for name in ("cacheblend", "auto", "naive")})
    with pretend_accelerator(Path(__file__).parent) as accelerator:
        rows = [*gpu_parts.rows_against_cpu("cuda"), *gpu_parts.ways_against_cpu("cuda")]
        rows += gpu_parts.codecs_against_cpu("cuda")
    assert len(rows) == 6 + len(gpu_parts.WAYS) + 8
    assert all(row["passed"] for row in rows), rows
    assert accelerator.operations > 10_000


def test_a_device_that_computes_something_else_fails_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sound = [], gpu_parts.tiny_reader

    def tiny_reader(*how: Any) -> Reader:
        reader = sound(*how)
        made.append(reader)
        if len(made) == 3:  # behind the two on the CPU
            reader.model.model.layers[0].self_attn.v_proj.weight.data.mul_(1.01)
        return reader

    monkeypatch.setattr(gpu_parts, "METHODS", {name: METHODS[name] for name in ("naive", "cacheblend", "auto")})
    monkeypatch.setattr(gpu_parts, "tiny_reader", tiny_reader)
    rows = gpu_parts.rows_against_cpu("cpu")
    assert len(rows) == 6
    assert not any(row["passed"] for row in rows)


def test_it_imports_nothing_that_a_bare_machine_lacks() -> None:
    heavy = "chromadb sentence_transformers matplotlib pypdf bs4 docx".split()
    code = f"import sys, ragcache_bench.gpu_check; sys.exit(', '.join(set({heavy}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
