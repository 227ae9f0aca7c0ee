import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from ragcache.errors import IndexFormat, IndexMismatch, InvalidArgument
from ragcache.retrieve import Embedder, Vectors


def unit(rows: int, dim: int = 16, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def names(rows: int) -> list[str]:
    return [f"c{row:04}" for row in range(rows)]


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[Vectors]:
    opened = Vectors(tmp_path / "chroma", "chunks")
    yield opened
    opened.close()


def test_query_gives_cosine_similarities_best_first(vectors: Vectors) -> None:
    stored = unit(200)
    vectors.upsert(names(200), stored)
    question = unit(1, seed=1)[0]
    exact = stored @ question
    best = np.argsort(-exact)[:7]
    found = vectors.query(question, 7)
    assert [name for name, _ in found] == [f"c{row:04}" for row in best]
    np.testing.assert_allclose([score for _, score in found], exact[best], atol=1e-5)


def test_a_question_finds_its_text(vectors: Vectors, embedder: Embedder) -> None:
    texts = ["The Tide project is led by Ada.", "The canteen opens at noon.", "Invoices are paid monthly."]
    vectors.upsert(["lead", "food", "money"], embedder.embed(texts))
    assert vectors.query(embedder.embed(["When can I have lunch?"])[0], 1)[0][0] == "food"


def test_equal_vectors_come_by_id(vectors: Vectors) -> None:
    vectors.upsert(["b", "c", "a"], np.repeat(unit(1), 3, axis=0))
    assert [name for name, _ in vectors.query(unit(1)[0], 3)] == ["a", "b", "c"]


def test_everything_is_found_again_after_a_restart(tmp_path: Path) -> None:
    first = Vectors(tmp_path, "chunks")
    first.upsert(names(5), unit(5))
    first.close()
    again = Vectors(tmp_path, "chunks")
    assert again.ids() == names(5)
    np.testing.assert_allclose(again.embeddings(["c0003", "c0001"]), unit(5)[[3, 1]], atol=1e-7)
    assert again.query(unit(5)[2], 1)[0][0] == "c0002"
    again.close()


def test_upsert_replaces_and_delete_removes(vectors: Vectors) -> None:
    vectors.upsert(names(4), unit(4))
    vectors.upsert(["c0001"], unit(4)[:1])
    vectors.delete(["c0000", "never-there"])
    assert vectors.count() == 3
    assert vectors.query(unit(4)[0], 1) == [("c0001", pytest.approx(1, abs=1e-5))]


def test_search_still_fills_k_after_most_vectors_were_deleted(vectors: Vectors) -> None:
    vectors.upsert(names(500), unit(500))
    vectors.delete(names(490))
    assert sorted(name for name, _ in vectors.query(unit(1)[0], 20)) == names(500)[490:]


def test_more_than_one_of_chromas_batches_goes_in_and_out(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors._client, "get_max_batch_size", lambda: 7)
    vectors.upsert(names(20), unit(20))
    np.testing.assert_allclose(vectors.embeddings(names(20)[::-1]), unit(20)[::-1], atol=1e-7)
    vectors.delete(names(15))
    assert vectors.ids() == names(20)[15:]


def test_nothing_in_nothing_out(vectors: Vectors) -> None:
    vectors.upsert([], unit(0))
    vectors.delete([])
    assert vectors.query(unit(1)[0], 3) == []
    vectors.upsert(["a"], unit(1))
    assert vectors.query(unit(1)[0], 0) == []
    assert len(vectors.query(unit(1)[0], 5)) == 1
    vectors.delete(["a"])
    assert vectors.embeddings([]).shape[0] == 0
    assert (vectors.ids(), vectors.count()) == ([], 0)


def test_nothing_of_the_processs_memory_is_in_the_files(tmp_path: Path) -> None:
    """The C library fills what is allocated and freed, so memory that Chroma writes as it found it shows."""
    script = f"""
        import numpy as np
        from pathlib import Path
        from ragcache.retrieve import Vectors
        from ragcache.retrieve.reading import copy_collection
        vectors = Vectors(Path({str(tmp_path / "vectors")!r}), "chunks")
        vectors.upsert(["a", "b"], np.eye(2, 16, dtype=np.float32))
        copy_collection(vectors.path, vectors.path.with_name("copy"))
        vectors.close()
    """
    filled = {**os.environ, "MALLOC_PERTURB_": str(0xFF ^ ord("#")), "PYTHONMALLOC": "malloc"}
    subprocess.run([sys.executable, "-c", dedent(script)], check=True, env=filled)
    for folder in ("vectors", "copy"):
        (file,) = (tmp_path / folder).glob("*/data_level0.bin")
        assert not any(file.read_bytes() + file.with_name("length.bin").read_bytes())
    again = Vectors(tmp_path / "copy", "chunks")
    assert again.query(np.eye(2, 16, dtype=np.float32)[1], 1) == [("b", pytest.approx(1))]
    again.close()


def test_vectors_are_counted_once_until_somebody_writes(vectors: Vectors) -> None:
    vectors.upsert(names(2), unit(2))
    assert vectors.count() == 2
    assert vectors._reading is not None
    bindings, asked = vectors._reading._bindings, list[object]()
    vectors._reading._bindings = SimpleNamespace(count=lambda *given: asked.append(given) or 0, query=bindings.query)
    assert vectors.count() == 2
    assert vectors.query(unit(2)[1], 1)[0][0] == "c0001"
    assert not asked
    other = Vectors(vectors.path, "chunks")
    other.upsert(["new"], unit(1))
    other.close()
    assert vectors.count() == 3


def test_a_program_killed_while_it_asks_does_not_leave_wrong_checksums(tmp_path: Path) -> None:
    """Chroma writes the memory that it has reserved at each question, and the process may end there."""
    script = f"""
        import os
        import numpy as np
        from pathlib import Path
        from ragcache.retrieve import Vectors, vectors as module
        vectors = Vectors(Path({str(tmp_path)!r}), "chunks")
        vectors.upsert(["a", "b"], np.eye(2, 16, dtype=np.float32))
        vectors.close()
        again = Vectors(Path({str(tmp_path)!r}), "chunks")
        module.clear_unused = lambda path: os._exit(9)
        again.count()
    """
    filled = {**os.environ, "MALLOC_PERTURB_": str(0xFF ^ ord("#")), "PYTHONMALLOC": "malloc"}
    done = subprocess.run([sys.executable, "-c", dedent(script)], check=False, env=filled)
    assert done.returncode == 9
    (file,) = tmp_path.glob("*/data_level0.bin")
    assert any(file.read_bytes())
    again = Vectors(tmp_path, "chunks")
    assert again.query(np.eye(2, 16, dtype=np.float32)[1], 1) == [("b", pytest.approx(1))]
    again.close()
    assert not any(file.read_bytes())


def test_a_missing_vector_is_an_error_that_names_it(vectors: Vectors) -> None:
    vectors.upsert(names(2), unit(2))
    with pytest.raises(IndexFormat, match="no vector for 1 of 2 chunks, gone first"):
        vectors.embeddings(["c0000", "gone"])


def test_vectors_of_another_embedder_are_refused(vectors: Vectors) -> None:
    vectors.upsert(names(2), unit(2))
    with pytest.raises(IndexMismatch, match="another size than 3"):
        vectors.upsert(["x"], unit(1, 3))
    with pytest.raises(IndexMismatch, match="another size than 3"):
        vectors.query(unit(1, 3)[0], 1)


def test_a_bad_collection_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"'x!'.*3 to 512"):
        Vectors(tmp_path, "x!")


def test_a_folder_that_is_no_vector_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    with pytest.raises(IndexFormat, match="can't be read as a vector store"):
        Vectors(tmp_path, "chunks")


def test_a_closed_and_deleted_folder_can_be_made_again(tmp_path: Path) -> None:
    import shutil

    for _ in range(2):
        vectors = Vectors(tmp_path / "chroma", "chunks")
        assert vectors.count() == 0
        vectors.upsert(["a"], unit(1))
        vectors.close()
        shutil.rmtree(tmp_path / "chroma")


READ_ONLY = """
import sys
from pathlib import Path
import numpy as np
from ragcache.retrieve import Vectors
vectors = Vectors(Path(sys.argv[1]), "chunks")
question = np.load(sys.argv[2])
before = vectors.count(), vectors.query(question, 5)
assert "chromadb" not in sys.modules
vectors.upsert(["new"], question[None])
assert "chromadb" in sys.modules
assert vectors.query(question, 1)[0][0] == "new" and vectors.count() == before[0] + 1
print(before)
"""


def test_a_process_that_only_reads_does_not_import_the_client(vectors: Vectors, tmp_path: Path) -> None:
    vectors.upsert(names(300), unit(300))
    question = unit(1, seed=1)[0]
    np.save(tmp_path / "question.npy", question)
    expected = (vectors.count(), vectors.query(question, 5))
    vectors.close()
    command = [sys.executable, "-c", READ_ONLY, str(tmp_path / "chroma"), str(tmp_path / "question.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(expected)


def test_a_wrong_size_is_refused_without_the_client_too(vectors: Vectors, tmp_path: Path) -> None:
    vectors.upsert(names(2), unit(2))
    vectors.close()
    script = READ_ONLY.replace("question = np.load(sys.argv[2])", "question = np.ones(3, dtype=np.float32)")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "chroma")], capture_output=True, text=True)
    assert "IndexMismatch" in done.stderr
    assert "another size than 3" in done.stderr
