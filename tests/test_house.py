"""The house keeps its shape: imports point downwards, the public face is what it says, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ragcache

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ragcache"
# Lower rooms first; a module may import from its own room and from lower ones.
FLOORS = [
    ["errors", "bundled", "prompt", "report"],
    ["model", "store"],
    ["encode", "select", "schedule"],
    ["attend", "layout"],
    ["method"],
    ["methods"],
    ["retrieve"],
    ["index"],
    ["engine"],
    ["rag"],
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
HEAVY = (
    *("chromadb", "sentence_transformers", "typer"),
    *("bs4", "docx", "pypdf", "pptx", "openpyxl", "pathspec", "markdown_it"),
)


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__")


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def body(function: ast.FunctionDef) -> int:
    """Lines behind a function's docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    return (function.end_lineno or 0) - ((first.end_lineno or 0) if documented else first.lineno - 1)


def imported(path: Path, *, top_level: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = FLOOR[room(path)]
    targets = {name.split(".")[1] for name in imported(path) if name.startswith("ragcache.")}
    above = {target for target in targets & set(FLOOR) if FLOOR[target] > own}
    assert not above, f"{path} imports from above: {above}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_optional_packages_are_imported_where_they_are_used(path: Path) -> None:
    heavy = {name.partition(".")[0] for name in imported(path, top_level=True)} & set(HEAVY)
    assert not heavy


@pytest.mark.parametrize(
    "path", [*modules(), *sorted((ROOT / "cli").rglob("*.py")), *sorted((ROOT / "integrations").rglob("*.py"))], ids=str
)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    long = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and body(node) > 60]
    assert long == []


def test_the_public_face_is_sorted_small_and_loads() -> None:
    assert ragcache.__all__ == sorted(ragcache.__all__, key=lambda name: (not name.isupper(), name))
    assert len(ragcache.__all__) <= 15
    assert all(getattr(ragcache, name) is not None for name in ragcache.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ragcache.nothing


def test_the_engine_needs_torch_and_transformers_only() -> None:
    script = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY!r}))  # importing one of them now fails as if it were not installed
import ragcache.rag
from ragcache import Engine, Index, Reader, METHODS
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


@pytest.mark.parametrize(
    ("package", "framework", "extra"),
    [("langchain_ragcache", "langchain_core", "langchain"), ("llama_index_ragcache", "llama_index", "llama-index")],
)
def test_an_integration_without_its_framework_names_the_extra(package: str, framework: str, extra: str) -> None:
    script = f"""
import sys
sys.modules[{framework!r}] = None  # importing it now fails as if it were not installed
try:
    import {package}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("MissingExtra")
    assert f"pip install 'ragcache-kv[{extra}]'" in done.stdout


def test_the_core_knows_no_framework() -> None:
    for path in [*modules(), *sorted((ROOT / "cli").rglob("*.py"))]:
        frameworks = {"langchain", "langchain_core", "llama_index", "langchain_ragcache", "llama_index_ragcache"}
        assert not {name.partition(".")[0] for name in imported(path)} & frameworks, path


def test_nothing_unpickles() -> None:
    for path in modules():
        text = path.read_text()
        assert "pickle" not in imported(path)
        assert "torch.load" not in text, path
