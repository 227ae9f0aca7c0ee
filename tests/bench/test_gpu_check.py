import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ragcache_bench import gpu_check
from ragcache_bench.gpu_check import Part

from ragcache.model.reader import Reader


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


def test_it_imports_nothing_that_a_bare_machine_lacks() -> None:
    heavy = "chromadb sentence_transformers matplotlib pypdf bs4 docx".split()
    code = f"import sys, ragcache_bench.gpu_check; sys.exit(', '.join(set({heavy}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
