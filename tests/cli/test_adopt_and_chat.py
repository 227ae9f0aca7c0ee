"""`ragcache adopt` on real Chroma folders of several makers, and `ragcache chat` through a pipe."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import chromadb
import pytest
from cli.conftest import PAGES
from ragcache_cli.chat import _lines
from typer.testing import Result

from ragcache import RagCache
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument

Run = Callable[..., Result]
NODE = {"_node_content": json.dumps({"start_char_idx": 9}), "ref_doc_id": "d1", "file_name": "tide.txt"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Chroma folder with a collection as LangChain leaves it, and one as LlamaIndex does."""
    client = chromadb.PersistentClient(tmp_path / "chroma")
    texts = list(PAGES.values())
    client.create_collection("notes").add(
        ids=["a", "b", "c"], documents=texts, embeddings=[[1.0, 0.0]] * 3, metadatas=[{"source": "x.txt"}] * 3
    )
    nodes = [{**NODE, "_node_content": json.dumps({"start_char_idx": start})} for start in (40, 7)]
    client.create_collection("nodes").add(ids=["n", "m"], documents=texts[:2], embeddings=[[1.0]] * 2, metadatas=nodes)
    client.close()
    return tmp_path / "chroma"


def test_what_somebody_embedded_is_prefilled_and_asked(
    run: Run, tmp_path: Path, folder: Path, checkpoint: Path
) -> None:
    where = ("--collection", "notes", "--index", tmp_path / "index", "--model", checkpoint)
    done = run("adopt", folder, *where)
    assert done.exit_code == 0, done.output
    assert "entries: 3 added, 0 changed, 0 removed, 0 unchanged" in done.stdout
    asked = run("ask", "When does the mill grind?", "--index", tmp_path / "index", "--json", "--max-new-tokens", 4)
    chunks = json.loads(asked.stdout)["chunks"]
    assert {chunk["source"] for chunk in chunks} == {"x.txt"}
    assert {chunk["cache"] for chunk in chunks} <= {"hit", "exact"}
    client = chromadb.PersistentClient(folder)
    client.get_collection("notes").delete(ids=["b"])
    client.close()
    again = json.loads(run("adopt", folder, *where, "--json").stdout)
    assert (again["removed"], again["unchanged"], again["chunks"]) == (1, 2, 2)
    client = chromadb.PersistentClient(folder)
    client.get_collection("notes").update(ids=["a"], documents=["Written anew."], embeddings=[[1.0, 0.0]])
    client.close()
    again = json.loads(run("adopt", folder, *where, "--json").stdout)
    assert (again["changed"], again["unchanged"], again["chunks"]) == (1, 1, 2)
    shutil.copytree(folder, tmp_path / "copy")
    other = run("adopt", tmp_path / "copy", *where)
    assert other.exit_code == 2
    assert "keeps the collection 'notes' of" in other.stderr
    folder.rename(tmp_path / "moved")
    assert json.loads(run("adopt", tmp_path / "moved", *where, "--json").stdout)["unchanged"] == 2


def test_a_collection_that_was_emptied_takes_nothing_with_it_and_is_said_so(
    run: Run, tmp_path: Path, folder: Path, checkpoint: Path
) -> None:
    where = ("--collection", "notes", "--index", tmp_path / "index", "--model", checkpoint)
    assert run("adopt", folder, *where).exit_code == 0
    client = chromadb.PersistentClient(folder)
    client.get_collection("notes").delete(ids=["a", "b", "c"])
    client.close()
    again = run("adopt", folder, *where)
    assert "entries: 0 added, 0 changed, 0 removed, 0 unchanged" in again.stdout
    assert "lists none of the 3 ids that are known of it, so nothing was forgotten" in " ".join(again.stderr.split())


def test_nodes_stand_in_the_order_of_their_document(tmp_path: Path, folder: Path, checkpoint: Path) -> None:
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive") as rag:
        assert rag.adopt(folder, "nodes").added == 2
        [document] = rag.index.catalog.documents()
        texts = [chunk.text for chunk in rag.index.catalog.chunks_of(document.id)]
        assert texts == list(PAGES.values())[1::-1]
        assert rag.index.chunks([rag.index.catalog.texts()[0][0]])[0].source == "tide.txt"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("chroma", (), "has 2 collections; name one of nodes, notes with --collection"),
        ("chroma", ("--collection", "x"), "has no collection 'x'; name one of nodes, notes"),
        ("elsewhere", (), "is no Chroma folder"),
    ],
)
def test_what_cannot_be_adopted_is_named(
    run: Run, tmp_path: Path, folder: Path, checkpoint: Path, name: str, arguments: tuple, message: str
) -> None:
    done = run("adopt", tmp_path / name, *arguments, "--index", tmp_path / "index", "--model", checkpoint)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_folder_that_is_open_with_other_settings_is_refused(tmp_path: Path, folder: Path, checkpoint: Path) -> None:
    client = chromadb.PersistentClient(folder)
    with RagCache.open(tmp_path / "index", model=str(checkpoint)) as rag, pytest.raises(InvalidArgument, match="open"):
        rag.adopt(folder, "notes")
    client.close()


def test_a_conversation_is_read_line_by_line(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts: list[int] = []
    start = Engine.start

    def noted(self: Engine, *arguments: object, **options: object) -> object:
        made = start(self, *arguments, **options)  # type: ignore[arg-type]
        prompts.append(len(made.prompt))
        return made

    monkeypatch.setattr(Engine, "start", noted)
    monkeypatch.setattr("sys.stdin", io.StringIO("Who leads it?\nWhere is it based?\n\nnever read\n"))
    from ragcache_cli.chat import chat

    chat(index, max_new_tokens=4, as_json=True)
    turns = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [turn["question"] for turn in turns] == ["Who leads it?", "Where is it based?"]
    assert all(chunk["cache"] != "miss" for turn in turns for chunk in turn["chunks"])
    assert prompts[1] > prompts[0]  # the first turn stands in front of the second
    monkeypatch.setattr("sys.stdin", io.StringIO("Who leads it?\n"))
    chat(index, max_new_tokens=4)
    captured = capsys.readouterr()
    assert captured.out.strip()
    assert "3/3 chunks cached" in captured.err


def test_an_interrupt_ends_a_conversation_and_promises_no_return(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "start", interrupted)
    monkeypatch.setattr("ragcache_cli.chat._lines", lambda: iter(["Who leads it?"]))
    ended = run("chat", "--index", index)
    assert ended.exit_code == 130
    assert "resume" not in ended.stderr
    assert "not kept" in ended.stderr


def test_a_conversation_that_no_longer_fits_loses_its_oldest_turns(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ragcache_cli.chat import chat

    long = "Tell me more, please, about everything that there is to know of it. " * 12  # bytes are tokens here
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{long}\n{long}\n{long * 9}\nWho leads it?\n"))
    chat(index, top_k=1, max_new_tokens=4, as_json=True)
    captured = capsys.readouterr()
    turns = [json.loads(line) for line in captured.out.splitlines()]
    assert len(turns) == 3
    assert "takes 2,048" in captured.err  # the question that is too long by itself
    assert turns[2]["tokens"]["question"] < 2048


def test_a_byte_that_is_not_utf_8_ends_no_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"Who l\xffads it?\nAnd where?\n"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", typed)
    assert list(_lines()) == ["Who l\ufffdads it?", "And where?"]
