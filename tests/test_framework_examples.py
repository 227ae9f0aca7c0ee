"""The examples for LangChain and LlamaIndex run as they stand, and so does the code of the pages about them."""

import asyncio
import importlib
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable
from difflib import ndiff
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ragcache import RagCache
from ragcache.bundled import questions
from ragcache.engine.engine import Engine
from ragcache.engine.stream import Stream

pytestmark = pytest.mark.slow

RunScript = Callable[[str], list[str]]
ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
#: Each with what it cannot do without, and what it prints.
SCRIPTS = {
    "langchain_minilm": ("langchain_core", "384 numbers"),
    "langchain_before": ("langchain_huggingface", "Julie Norxa"),
    "langchain_after": ("langchain_chroma", "Julie Norxa"),
    "langchain_streaming": ("langchain_chroma", "Julie Norxa"),
    "langchain_indexing": ("langchain_chroma", "0 chunks, 0 bytes of KV"),
    "adopt_chroma": ("langchain_chroma", "Julie Norxa"),
    "fastapi_endpoint": ("fastapi", "Julie Norxa"),
    "llama_index_minilm": ("llama_index.core", "384 numbers"),
    "llama_index_before": ("llama_index.llms.huggingface", "Julie Norxa"),
    "llama_index_after": ("llama_index.vector_stores.chroma", "Julie Norxa"),
    "llama_index_streaming": ("llama_index.vector_stores.chroma", "Julie Norxa"),
}
K = 6
ASKED = [one for one in questions() if one.kind == "one-hop" and one.sources[0].startswith("partners/")][:6]
QUESTION = "Who is the founder of Grefi Partners?"


@pytest.fixture(autouse=True)
def find_examples(monkeypatch: pytest.MonkeyPatch, opened: list[RagCache]) -> None:
    """The examples' folder where a script has it; what they open is closed behind them."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name: str) -> ModuleType:
    """An example as a module, where what it needs is installed."""
    pytest.importorskip(SCRIPTS[name][0])
    return importlib.import_module(name)


def all_hits(stream: Stream) -> bool:
    states = [chunk.cache for chunk in stream.report.chunks]
    return len(states) == K and set(states) <= {"hit", "exact"}


# -- as they stand


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunScript:
    """Runs an example as a short script, and gives the lines that it printed."""

    def run(name: str) -> list[str]:
        needed, said = SCRIPTS[name]
        assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 40
        pytest.importorskip(needed)
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        printed = capsys.readouterr().out
        assert said in printed
        assert not list(tmp_path.iterdir())  # nothing is left where it was called
        return printed.splitlines()

    return run


# Those that stream are run below, where more is asked of them.
@pytest.mark.parametrize("name", [name for name in SCRIPTS if not name.endswith("streaming")])
def test_an_example_is_a_short_script(name: str, run_script: RunScript) -> None:
    run_script(name)


def test_an_example_runs_from_anywhere(tmp_path: Path) -> None:
    needed, said = SCRIPTS["langchain_indexing"]
    pytest.importorskip(needed)
    script = [sys.executable, "-W", "ignore", str(EXAMPLES / "langchain_indexing.py")]
    done = subprocess.run(script, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert said in done.stdout


# -- before and after


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_two_lines_change(framework: str) -> None:
    before, after = ((EXAMPLES / f"{framework}_{when}.py").read_text().splitlines() for when in ("before", "after"))
    changes = [(line[0], line[2:].strip()) for line in ndiff(before, after) if line[0] in "+-"]
    removed, added = (
        [line for side, line in changes if side == sign and not line.startswith(("from ", "import "))] for sign in "-+"
    )
    assert added.pop(0) == 'rag = RagCache.open(f"{folder}/index", model=MODEL)'
    assert [line.partition(" = ")[0] for line in removed] == [line.partition(" = ")[0] for line in added]
    [(name, _, made), (model, _, _)] = (line.partition(" = ") for line in removed)
    assert added == [f"{name} = RagCacheVectorStore({made}, rag)", added[1]]
    assert (model, added[1]) in [("model", "model = ChatRagCache(rag)"), ("llm", "llm = RagCacheLLM(rag)")]


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_the_application_answers_as_before_and_from_the_cache(
    framework: str, tmp_path: Path, streams: list[Stream]
) -> None:
    before, after = (example(f"{framework}_{when}").main(tmp_path / when) for when in ("before", "after"))
    for one in ASKED:
        verb = "invoke" if framework == "langchain" else "query"
        said = [str(getattr(application, verb)(one.question)).strip() for application in (before, after)]
        assert said == [one.answer, one.answer]
        assert all_hits(streams[-1])
    assert len(streams) == len(ASKED)


# -- the other ways


def test_minilm_is_the_packaged_embedder() -> None:
    assert example("langchain_minilm").main("a text") == pytest.approx(example("llama_index_minilm").main("a text"))


def test_langchain_streams_and_says_what_happened(run_script: RunScript, streams: list[Stream]) -> None:
    answer, happened = run_script("langchain_streaming")
    assert answer == "Julie Norxa"
    report = streams[-1].report.as_dict()
    assert str(["hit"] * K) in happened
    assert f"'cache_read': {report['tokens']['reused']}" in happened
    assert happened.endswith(str(report["tokens"]))
    assert report["tokens"]["reused"] > 0


def test_llama_index_streams_and_says_what_happened(run_script: RunScript, streams: list[Stream]) -> None:
    answer, happened = run_script("llama_index_streaming")
    assert answer == "Julie Norxa"
    assert happened == str(streams[-1].report.as_dict())
    assert all_hits(streams[-1])


async def test_the_endpoint_streams_and_leaves_the_loop_alone(
    tmp_path: Path, streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await asyncio.to_thread(example("fastapi_endpoint").service, str(tmp_path))
    go, complete = threading.Event(), Engine.complete

    def waiting(self: Engine, *args: Any, **options: Any) -> Stream:
        assert go.wait(60)  # nobody but the event loop says when
        return complete(self, *args, **options)

    monkeypatch.setattr(Engine, "complete", waiting)
    asked = asyncio.create_task(_pieces(app, QUESTION))
    await asyncio.sleep(0.05)
    assert not asked.done()
    go.set()
    pieces = await asked
    assert len(pieces) > 1
    assert "".join(pieces) == "Julie Norxa"
    assert all_hits(streams[-1])


async def _pieces(app: Any, question: str) -> list[str]:
    """What a server would send, piece by piece."""
    sent: list[bytes] = []
    query = f"question={question.replace(' ', '%20')}".encode()
    scope = {"type": "http", "method": "GET", "path": "/ask", "query_string": query, "headers": []}

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(600)  # a client that stays
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message.get("body", b""))

    await app({**scope, "asgi": {"spec_version": "2.4"}}, receive, send)
    return [piece.decode() for piece in sent if piece]


def test_kv_follows_what_langchain_indexes(tmp_path: Path) -> None:
    steps = example("langchain_indexing").main(str(tmp_path))
    assert [(stored, chunks) for stored, chunks, _ in steps] == [(2, 2), (2, 2), (2, 2), (1, 1), (0, 0)]
    assert [bool(size) for *_, size in steps] == [True, True, True, True, False]
    assert steps[1] == steps[0]


def test_an_adopted_collection_answers_from_the_cache(tmp_path: Path, opened: list[RagCache]) -> None:
    said = example("adopt_chroma").main(str(tmp_path))
    assert said.text == "Julie Norxa"
    assert [chunk["cache"] for chunk in said.response_metadata["ragcache"]["chunks"]] == ["hit"] * K
    details = said.usage_metadata["input_token_details"]
    assert 0 < details["recomputed"] < 0.1 * details["cache_read"], "the default's small share"


# -- the pages


@pytest.mark.parametrize(
    ("page", "needed"),
    [
        ("langchain.md", ("langchain_chroma", "langchain_text_splitters", "langchain_community", "faiss", "fastapi")),
        ("llama-index.md", ("llama_index.vector_stores.chroma",)),
    ],
)
def test_the_page_runs_from_top_to_bottom_as_it_stands(page: str, needed: tuple[str, ...], tmp_path: Path) -> None:
    for package in needed:
        pytest.importorskip(package)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    script = [sys.executable, "-W", "ignore", "page.py"]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second, *rest = done.stdout.splitlines()
    assert first == "Julie Norxa"
    assert second.startswith("Julie Norxa")  # streamed, what is printed next stands on the same line
    assert sum("exact" in line or "hit" in line for line in (second, *rest)) >= 5
    assert "IngestReport(added=" in done.stdout
    assert not re.search(r"^\[0(, 0)*\]$", done.stdout, re.MULTILINE), (
        "the answers that are asked at once reuse what was ingested"
    )
