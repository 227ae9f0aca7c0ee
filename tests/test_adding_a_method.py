"""The example of docs/adding-a-method.md, installed as a package of its own: a row like any other, without a test."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache.rag import RagCache

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "adding-a-method.md").read_text()
RAGCACHE = [sys.executable, "-c", "from ragcache_cli.main import app; app()"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process in which the package is installed, as pip would leave it."""
    site, code = tmp_path_factory.mktemp("site"), blocks("python")[1]
    (project,) = (tomllib.loads(block)["project"] for block in blocks("toml"))
    assert len([line for line in code.splitlines() if line.strip()]) < 40
    (points,) = project["entry-points"].items()
    entries = "\n".join(f"{name} = {target}" for name, target in points[1].items())
    (module,) = {target.partition(":")[0] for target in points[1].values()}
    (site / f"{module}.py").write_text(code)
    folder = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    folder.mkdir()
    named = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
    (folder / "entry_points.txt").write_text(f"[{points[0]}]\n{entries}\n")
    path = os.pathsep.join(part for part in (str(site), os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, "PYTHONPATH": path}


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_table_lists_it(installed: dict[str, str]) -> None:
    rows = {row["name"]: row for row in json.loads(run([*RAGCACHE, "methods", "--json"], installed))}
    assert rows["last"]["select"] == "LastTokens()"
    assert set(rows) > {"full", "naive", "fusionrag"}


def test_it_answers(installed: dict[str, str], tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "notes.txt").write_text("The Tide project is led by Mara Voss.")
    with RagCache.open(tmp_path / "index", model=str(tmp_path / "model")) as rag:
        rag.ingest(tmp_path / "notes.txt", methods=["naive"])
    options = ["--index", str(tmp_path / "index"), "--method", "last", "--max-new-tokens", "2", "--json"]
    answer = json.loads(run([*RAGCACHE, "ask", "Who leads it?", *options], installed))
    assert (answer["method"], answer["recompute"]) == ("last", 0.15)
    (chunk,) = answer["chunks"]
    assert chunk["cache"] == "hit"
    assert chunk["recomputed"] == round(0.15 * chunk["tokens"]) > 0


def test_the_tests_of_every_row_hold_it_to_everything(installed: dict[str, str]) -> None:
    files = ["tests/test_rows.py", "tests/engine/test_charging.py"]
    options = ["-p", "no:cacheprovider", "-k", "last-"]
    shown = run([sys.executable, "-m", "pytest", *options, *files], installed)
    (passed,) = re.findall(r"(\d+) passed", shown)
    assert int(passed) == 4 * 3 + 2 * 2, "prompts x architectures, and twice two for what is charged"
    assert "failed" not in shown
