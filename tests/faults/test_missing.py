"""What is gone from an index's folder is named by whoever meets it, and made again where it can be."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.small import Letters

from ragcache import RagCache
from ragcache.encode import Alone
from ragcache.errors import IndexFormat, UnusableIndex
from ragcache.index.index import Index
from ragcache.index.settings import stats
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

QUESTION, SHORT = "When was the bridge built?", Sampling(max_new_tokens=2)
RECIPE = "in-document(window=2048)"


@pytest.mark.parametrize("what", ["blobs", "folder"])
def test_deleted_kv_is_named_and_made_again(rag: RagCache, tmp_path: Path, what: str) -> None:
    before = stats(rag.index.path)
    assert (before["missing_kv"], before["missing"]) == (0, [])
    if what == "folder":
        shutil.rmtree(rag.index.store.root)
    else:
        for blob in rag.index.store.root.glob("??/*"):
            blob.unlink()
    said = stats(rag.index.path)
    assert (said["missing_kv"], said["bytes"]) == (3, 0)
    assert said["missing"] == [
        f"3 KV files are gone; run `ragcache ingest --index {rag.index.path}`, which makes them anew"
    ]
    report = rag.ingest(tmp_path / "files")
    assert report.encoded == {RECIPE: 3}
    assert any("3 KV files were gone" in note for note in report.notes)
    after = stats(rag.index.path)
    assert {**after, "free_bytes": 0} == {**before, "free_bytes": 0}
    rag.index.release()
    assert "miss" not in {chunk.cache for chunk in rag.ask(QUESTION, sampling=SHORT, top_k=3).report.chunks}


def test_kv_that_another_process_writes_meanwhile_is_not_gone(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index(tmp_path / "index", reader) as one, Index(tmp_path / "index", reader) as other:
        for number in range(3):
            one.put(f"doc{number}", "", [(f"{number} The harbour master is Mara.", 0, 0)], {})
        [first, *_] = other.encode_chunks(Alone(), [[one.catalog.all_chunks()[0]]])
        listed = one.store.list

        def list_while_others_write() -> Iterator[str]:
            yield from list(listed())
            list(other.encode(Alone()))

        monkeypatch.setattr(one.store, "list", list_while_others_write)
        assert one.drop_missing() == 0
        assert len(one.catalog.by_recipe(Alone.recipe)) == 3
        monkeypatch.undo()
        [row] = one.catalog.encodings(first, Alone.recipe)
        one.store.delete(row.key)
        assert one.drop_missing() == 1


@pytest.mark.parametrize("reopened", [True, False])
def test_deleted_vectors_are_named_and_made_again(rag: RagCache, reader: Reader, reopened: bool) -> None:
    found = [chunk.id for chunk in rag.retrieve(QUESTION, top_k=3)]
    shutil.rmtree(rag.index.path / "vectors")
    assert stats(rag.index.path)["missing"][0].startswith("the vectors are gone; run `ragcache ingest")
    if reopened:
        rag.close()
        rag = RagCache.open(rag.index.path, model=reader, embedder=Letters())
    with pytest.raises(UnusableIndex, match=r"3 chunks and no vectors of them; run `ragcache ingest --index"):
        rag.ask(QUESTION)
    rag.ingest()
    assert [chunk.id for chunk in rag.retrieve(QUESTION, top_k=3)] == found
    rag.close()


@pytest.mark.parametrize("how", ["gone", "another one"])
@pytest.mark.parametrize("older", [True, False])
def test_a_lost_secret_is_an_error_and_none_is_made_silently(
    rag: RagCache, reader: Reader, how: str, older: bool
) -> None:
    path = rag.index.path
    if older:
        with rag.index.catalog.transaction() as connection:
            connection.execute("DELETE FROM settings WHERE name = 'secret_digest'")
    rag.close()
    secret = (path / "secret").read_bytes()
    (path / "secret").unlink()
    if how == "another one":
        (path / "secret").write_bytes(bytes(32))
    else:
        assert "the secret is gone" in " ".join(stats(path)["missing"])
    if older and how == "another one":  # an index of before remembers none
        RagCache.open(path, model=reader, embedder=Letters()).close()
        return
    with pytest.raises(IndexFormat, match=rf"the secret {path}/secret is {how}, .* restore it from a backup"):
        RagCache.open(path, model=reader, embedder=Letters())
    (path / "secret").write_bytes(secret)
    with RagCache.open(path, model=reader, embedder=Letters()) as again:
        assert "miss" not in {chunk.cache for chunk in again.ask(QUESTION, sampling=SHORT, top_k=3).report.chunks}
