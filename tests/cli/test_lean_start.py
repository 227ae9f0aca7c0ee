"""A command starts without what no answer runs, and whoever asks for it afterwards gets it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LEFT_OUT = ("torch._dynamo", "torch.distributed.tensor", "sympy", "scipy.optimize", "sentence_transformers", "triton")
LEAN = f"""
import sys
from ragcache_cli.lean_start import lean_start
with lean_start():
    from ragcache.model.loading import load_reader
    from ragcache.retrieve import Embedder
    reader, embedder = load_reader("bundled", device="cpu"), Embedder()
    vector = embedder.embed(["a question"])
def imported():
    return sorted(set({LEFT_OUT!r}) & set(sys.modules))
"""


def python(script: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_runs_without_a_compiler_and_what_was_left_out_is_there_for_whoever_asks() -> None:
    script = """
import torch
logits, cache = reader.stock([5, 7, 9])
assert torch.isfinite(logits).all()
assert imported() == [], f"another release imports {imported()} by another way: see lean_start"
import transformers.masking_utils as masks
block = masks.BlockMask
assert not isinstance(reader, block)
with masks.TransformGetItemToIndex():  # a stand-in, from its first use on the real thing
    pass
import torch, torch._dynamo, torch._dynamo.config
assert torch._dynamo.config is sys.modules["torch._dynamo.config"]
assert callable(torch._dynamo.optimize) and not torch._dynamo.is_compiling()
from torch.nn.attention.flex_attention import create_block_mask
mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 128, 128, device="cpu")
assert isinstance(mask, block) and not isinstance(reader, block)
from scipy.optimize import linear_sum_assignment
assert linear_sum_assignment([[1, 2], [2, 1]])[1].tolist() == [0, 1]
"""
    python(LEAN + script)


def test_a_question_is_asked_without_what_was_left_out(tmp_path: Path) -> None:
    page = tmp_path / "mill.md"
    page.write_text("The mill on the Aire grinds rye. It was built in 1931.")
    run = "import sys; from ragcache_cli.main import app; app({command} + {where}, standalone_mode=False); "
    where = ["--index", str(tmp_path / "index"), "--model", "bundled"]
    python(run.format(command=["ingest", str(page)], where=where))
    ask = run.format(command=["ask", "When was the mill built?"], where=where)
    imported = python(f"{ask} print('left out:', *set({LEFT_OUT!r}) & set(sys.modules))")
    assert imported.splitlines()[-1].split() == ["left", "out:"]


def test_a_module_that_is_needed_meanwhile_is_imported_once() -> None:
    script = """
import sys
from ragcache_cli.lean_start import lean_start
with lean_start():
    placeholder = sys.modules["torch._dynamo"]
    import torch._dynamo.config as config
    assert sys.modules["torch._dynamo"] is not placeholder
    assert sys.modules["torch._dynamo.config"] is config is sys.modules["torch._dynamo"].config
    assert config.__spec__.origin.endswith("config.py")
    import torch._dynamo.utils
"""
    python(script)


def test_a_release_that_asks_a_placeholder_too_much_starts_the_long_way() -> None:
    script = """
import sys
from ragcache_cli import lean_start
own = lean_start._Placeholder.__getattr__
def refuse(self, name):
    if not name.startswith("__"):
        raise RuntimeError(name)
    return own(self, name)
lean_start._Placeholder.__getattr__ = refuse
with lean_start.lean_start():
    from ragcache.model.loading import load_reader
    reader = load_reader("bundled", device="cpu")
assert reader.stock([5, 7])[0].isfinite().all()
assert "torch._dynamo" in sys.modules
"""
    python(script)


def test_a_process_that_has_its_models_already_is_left_as_it_is() -> None:
    script = """
import gc, sys
import transformers.modeling_utils
before = dict(sys.modules), list(sys.meta_path)
from ragcache_cli.lean_start import lean_start
with lean_start():
    assert sys.meta_path == before[1]
    assert {name: module for name, module in sys.modules.items() if name in before[0]} == before[0]
assert gc.isenabled() and not gc.get_freeze_count()
"""
    python(script)
