"""The house keeps its shape: imports point downwards, the public face is what it says, files stay small."""

import ast
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from conftest import tiny_reader
from numpy.typing import NDArray

import ragcache
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ragcache"
#: Every package of the wheel, and those that train, by import name.
PACKAGES = {
    "ragcache": PACKAGE,
    "ragcache_cli": ROOT / "cli" / "ragcache_cli",
    "ragcache_bench": ROOT / "bench" / "ragcache_bench",
    "reader_training": ROOT / "bench" / "reader_training",
    "reader_tuning": ROOT / "bench" / "reader_tuning",
    "auxiliary_tuning": ROOT / "bench" / "auxiliary_tuning",
    "langchain_ragcache": ROOT / "integrations" / "langchain_ragcache",
    "llama_index_ragcache": ROOT / "integrations" / "llama_index_ragcache",
    "openai_ragcache": ROOT / "integrations" / "openai_ragcache",
    "ragcache_finetune": ROOT / "integrations" / "ragcache_finetune",
    "vllm_ragcache": ROOT / "integrations" / "vllm_ragcache",
    "ray_ragcache": ROOT / "integrations" / "ray_ragcache",
}
# Lower rooms first; a module may import from its own room and from lower ones.
FLOORS = [
    ["errors", "bundled", "checks"],
    ["prompt", "report"],
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


class Letters:
    """An embedder that counts letters."""

    name, max_tokens = "letters", 256

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text."""
        rows = np.array([[text.lower().count(letter) for letter in "aeiorst"] for text in texts], np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


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


def sources() -> dict[str, Path]:
    """Every module of every package, by the name it is imported by."""
    found = {}
    for name, root in PACKAGES.items():
        for path in sorted(root.rglob("*.py")):
            parts = (name, *path.relative_to(root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph() -> dict[str, set[str]]:
    """What each module imports of ours, wherever in the file; the public face hands on, and counts for nothing."""
    known = sources()
    graph = {}
    for module, path in known.items():
        names = {name if name in known else name.rpartition(".")[0] for name in imported(path)}
        graph[module] = (names & set(known)) - {module, "ragcache"} if module != "ragcache" else set()
    return graph


def find_circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other."""
    reached: dict[str, set[str]] = {node: set() for node in graph}
    for node in graph:
        waiting = [node]
        while waiting:
            new = graph.get(waiting.pop(), set()) - reached[node]
            reached[node] |= new
            waiting += new
    groups = {tuple(sorted(a for a in reached[node] if node in reached[a])) for node in graph if node in reached[node]}
    return [list(group) for group in sorted(groups)]


def folders_of(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same graph between folders: a package's own, or a package without any."""

    def folder(module: str) -> str:
        parts = module.split(".")
        return ".".join(parts[:2]) if parts[0] in ("ragcache", "ragcache_bench") else parts[0]

    folders: dict[str, set[str]] = {folder(module): set() for module in graph}
    for module, targets in graph.items():
        folders[folder(module)] |= {folder(target) for target in targets} - {folder(module)}
    return folders


def test_no_module_and_no_folder_imports_one_that_imports_it() -> None:
    graph = import_graph()
    assert len(graph) > 200
    assert find_circles(graph) == []
    assert find_circles(folders_of(graph)) == []


def test_a_circle_is_found_on_one_floor_too() -> None:
    graph = {**import_graph()}
    graph["ragcache.select.mass"] = graph["ragcache.select.mass"] | {"ragcache.schedule.flat"}
    graph["ragcache.schedule.flat"] = graph["ragcache.schedule.flat"] | {"ragcache.select.mass"}
    assert find_circles(graph) == [["ragcache.schedule.flat", "ragcache.select.mass"]]
    assert ["ragcache.schedule", "ragcache.select"] in find_circles(folders_of(graph))


def test_the_library_knows_neither_its_benchmarks_nor_its_commands() -> None:
    bench, doors, servers = (
        ("ragcache_bench", "reader_training", "reader_tuning", "auxiliary_tuning"),
        ("langchain_ragcache", "llama_index_ragcache", "ragcache_finetune"),
        ("openai_ragcache", "vllm_ragcache"),  # which `ragcache serve` starts
    )
    may_not = {
        "ragcache.": (*bench, "ragcache_cli", *doors, *servers, "ray_ragcache"),
        "openai_ragcache": (*bench, "ragcache_cli", *doors, "vllm_ragcache", "ray_ragcache"),
        "vllm_ragcache": (*bench, "ragcache_cli", *doors, "openai_ragcache", "ray_ragcache"),
        "ray_ragcache": (*bench, "ragcache_cli", *doors, *servers),
        "ragcache_cli": (*bench, *doors),
        "ragcache_bench": ("reader_training", "reader_tuning", "auxiliary_tuning", *doors, *servers),
        "reader_training": ("reader_tuning", "auxiliary_tuning", *doors, *servers),
        "reader_tuning": ("auxiliary_tuning", *doors, *servers),
    }
    for module, targets in import_graph().items():
        for package, above in may_not.items():
            if module.startswith(package):
                assert not [target for target in targets if target.startswith(above)], module


@pytest.mark.parametrize("path", sorted(sources().values()), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    long = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and body(node) > 60]
    assert long == []


def test_a_function_of_the_library_is_short() -> None:
    nodes = [node for path in modules() for node in ast.walk(ast.parse(path.read_text()))]
    assert median(body(node) for node in nodes if isinstance(node, ast.FunctionDef)) <= 12


def test_the_engine_is_one_short_path() -> None:
    ours = {
        name.rpartition(".")[0] for name in imported(PACKAGE / "engine" / "engine.py") if name.startswith("ragcache")
    }
    assert len(ours) <= 9
    for step in ("request", "plan", "load", "select", "prefill", "stream"):
        assert (PACKAGE / "engine" / f"{step}.py").is_file()


def test_a_question_reaches_the_model_in_six_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, depths = tiny_reader(), list[int]()
    forward = reader.model.forward

    def count(*given: Any, **how: Any) -> Any:
        frame, depth = sys._getframe(1), 0
        while frame is not None and frame.f_code is not test_a_question_reaches_the_model_in_six_calls.__code__:
            depth += str(PACKAGE) in frame.f_code.co_filename
            frame = frame.f_back
        depths.append(depth)
        return forward(*given, **how)

    (tmp_path / "note.txt").write_text("The Tide project is led by Mara Voss. It is based in Kelmar.")
    with RagCache.open(tmp_path / "index", model=reader, embedder=Letters()) as rag:
        rag.ingest([tmp_path / "note.txt"])
        monkeypatch.setattr(reader.model, "forward", count)
        rag.ask("Who leads it?", recompute=0.5, sampling=Sampling(max_new_tokens=1))
    assert 0 < max(depths) <= 6, depths


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
    [
        ("langchain_ragcache", "langchain_core", "langchain"),
        ("llama_index_ragcache", "llama_index", "llama-index"),
        ("openai_ragcache", "fastapi", "serve"),
    ],
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
        frameworks |= {"fastapi", "uvicorn", "starlette"}
        assert not {name.partition(".")[0] for name in imported(path)} & frameworks, path


def test_nothing_unpickles() -> None:
    for path in modules():
        text = path.read_text()
        assert "pickle" not in imported(path)
        assert "torch.load" not in text, path
