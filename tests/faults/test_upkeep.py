"""`ragcache store gc`: what nothing names any more goes, and everything else stays."""

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
