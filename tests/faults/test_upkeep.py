"""`ragcache store gc`: what nothing names any more goes, and everything else stays."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import tiny_reader
from faults.small import Letters, write_pages
from typer.testing import CliRunner

from ragcache import RagCache
from ragcache.errors import EmptyIndex
from ragcache.index.upkeep import collect_garbage


def test_garbage_is_collected_and_the_index_answers_as_before(tmp_path: Path) -> None:
    from ragcache_cli.main import app

    reader, path = tiny_reader(), tmp_path / "index"
    with RagCache.open(path, model=reader, embedder=Letters()) as rag:
        rag.ingest(write_pages(tmp_path / "files"))
        rag.forget(tmp_path / "files" / "mill.md")
        found = [chunk.id for chunk in rag.retrieve("When was the bridge built?", top_k=9)]
        kept = set(rag.index.store.list())
        orphan = "ab" * 32
        rag.index.store.put_if_absent(orphan, [bytes(1 << 20)])
    done = CliRunner().invoke(app, ["store", "gc", "--index", str(path)])
    assert done.exit_code == 0, done.output
    assert "freed" in done.stdout
    with RagCache.open(path, model=reader, embedder=Letters()) as rag:
        assert set(rag.index.store.list()) == kept
        assert [chunk.id for chunk in rag.retrieve("When was the bridge built?", top_k=9)] == found
    with pytest.raises(EmptyIndex, match="there is no index"):
        collect_garbage(tmp_path / "nowhere")


def test_no_file_has_a_byte_of_a_removed_document(tmp_path: Path) -> None:
    """Its words, name and tokens, its vector, and a token's keys, searched for before and after."""
    files, path = write_pages(tmp_path / "files"), tmp_path / "index"
    with RagCache.open(path, model=tiny_reader(), embedder=Letters()) as rag:
        rag.ingest(files)
        (chunk,) = (one for one in rag.index.catalog.all_chunks() if "Mondays" in one.text)
        (recipe,) = rag.index.catalog.recipes()
        (row,) = rag.index.catalog.encodings(chunk.id, recipe)
        sought = {word: word.encode() for word in ("mondays", "remembers", "mill.md")}
        sought["tokens"] = ",".join(map(str, chunk.token_ids[:8])).encode()
        sought["vector"] = rag._vectors.embeddings([chunk.id]).tobytes()
        sought["kv"] = (path / "kv" / row.key[:2] / f"{row.key}.safetensors").read_bytes()[-600:-500]

    def found() -> set[str]:
        whole = [file.read_bytes() for file in path.rglob("*") if file.is_file()]
        return {name for name, data in sought.items() if any(data in one or data in one.lower() for one in whole)}

    assert found() == set(sought)
    work = "import sys; from ragcache_cli.main import app; app()"
    for line in (["documents", "remove", "--yes", str(files / "mill.md")], ["store", "gc"]):
        subprocess.run([sys.executable, "-c", work, *line, "--index", str(path)], check=True, capture_output=True)
    assert found() == set()
    assert len(list(path.glob("kv/??/*"))) == 3
