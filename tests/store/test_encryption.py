"""An encrypted index: nothing of its documents in its files, the right key or a clear error, and never a wrong KV."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import tiny_reader
from faults.small import PAGES, Letters, write_pages

from ragcache import Message, RagCache, Sampling
from ragcache.engine.certificate import Certificate
from ragcache.errors import CorruptBlob, IndexFormat, InvalidArgument, KeyMismatch, MissingExtra
from ragcache.index.documents import Documents
from ragcache.index.settings import stats
from ragcache.index.verify import verify
from ragcache.store import LocalStore
from ragcache.store.catalog import Catalog
from ragcache.store.encryption import KEY, KEY_FILE, MARK, OVERHEAD, find_key

pytest.importorskip("cryptography")
pytest.importorskip("sqlcipher3")

THE_KEY, ANOTHER = "0f" * 32, "f0" * 32
QUESTION = "Who designed the bridge?"
SHORT = Sampling(max_new_tokens=2)
NAME, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, THE_KEY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted index, and its files."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, THE_KEY)
        with open_index(folder) as rag:
            rag.ingest(write_pages(folder / "files"))
    return folder


@pytest.fixture
def path(made: Path, tmp_path: Path, key: None) -> Path:
    """An encrypted index that nobody has open, to be harmed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "index"


def open_index(folder: Path) -> RagCache:
    return RagCache.open(folder / "index", model=tiny_reader(), embedder=Letters())


def live(rag: RagCache) -> Path:
    """Everything that leaves traces: a question, KV of its prompt, a changed document, and a removed one."""
    folder = rag.index.path.parent / "files"
    rag.ask(QUESTION, method="cachecraft", sampling=SHORT)
    (folder / "mill.md").write_text("The mill has ground spelt since Wednesday.")
    rag.ingest(folder)
    rag.forget(folder / "harbour.txt")
    history = [Message("user", "Is there a lighthouse?"), Message("assistant", "No.")]
    rag.ask("Which town has a mill?", history=history, sampling=SHORT)
    return rag.index.path


def traces(folder: Path, token_ids: list[tuple[int, ...]]) -> set[str]:
    """What of the documents stands in any file of a folder, in whichever way somebody may have written it."""
    words = {word.strip(".,#").lower() for text in PAGES.values() for word in text.split()} | {"spelt", "wednesday"}
    words -= {"number"}  # in Chroma's own tables
    sought = {word: word.encode() for word in words if len(word) > 4} | {"file": b"bridge.md", "prompt": b"You answer"}
    sought |= {f"{word} in 16 bits": word.encode("utf-16-le") for word in words if len(word) > 4}
    for ids in token_ids:
        some = list(ids[:6])
        sought |= {f"{some} as {form}": np.asarray(some, form).tobytes() for form in ("<i4", "<i8", "<i2")}
        sought |= {f"{some} as text": ", ".join(map(str, some)).encode(), f"{some} in short": str(some)[1:-1].encode()}
        sought |= {f"{some} packed": ",".join(map(str, some)).encode()}
    files = [file.read_bytes().lower() for file in folder.rglob("*") if file.is_file()]
    return {name for name, data in sought.items() if any(data.lower() in file for file in files)}


def test_no_file_has_a_word_of_the_documents(tmp_path: Path, key: None) -> None:
    rag = open_index(tmp_path)
    rag.ingest(write_pages(tmp_path / "files"))
    ids = [chunk.token_ids for chunk in rag.index.catalog.all_chunks()]
    path = live(rag)
    assert (path / "catalog.sqlite-wal").stat().st_size, "or the log was not looked at"
    assert len(list(path.glob("kv/??/*"))) > 2
    assert traces(path, ids) == set()
    rag.close()
    assert traces(path, ids) == set()


def test_the_same_search_finds_them_where_nothing_is_encrypted(tmp_path: Path) -> None:
    with open_index(tmp_path) as rag:
        rag.ingest(write_pages(tmp_path / "files"))
        ids = [chunk.token_ids for chunk in rag.index.catalog.all_chunks() if "bridge" in chunk.text]  # it stays
        found = traces(live(rag), ids)
    assert {"bridge", "file", "prompt", f"{list(ids[0][:6])} as <i4", f"{list(ids[0][:6])} packed"} <= found


def test_answers_are_those_of_an_index_that_is_not_encrypted(path: Path, tmp_path: Path, monkeypatch) -> None:
    with open_index(tmp_path) as rag:
        found = rag.ask(QUESTION, sampling=SHORT)
    monkeypatch.delenv(KEY)
    with RagCache.open(tmp_path / "plain", model=tiny_reader(), embedder=Letters()) as plain:
        plain.ingest(tmp_path / "files")
        expected = plain.ask(QUESTION, sampling=SHORT)
    assert found.text == expected.text
    seen = [[(one.text, one.score) for one in answer.sources] for answer in (found, expected)]
    assert seen[0] == seen[1]
    assert {use.cache for use in found.report.chunks} <= {"hit", "exact"}


def test_it_is_found_again_by_a_key_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY)
    (tmp_path / "key").write_text(THE_KEY + "\n")
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key"))
    assert stats(path)["documents"] == len(PAGES)
    assert verify(path).sound
    with Documents.opened(path) as documents:
        documents.clean()
    with open_index(tmp_path) as rag:
        assert {use.cache for use in rag.ask(QUESTION, sampling=SHORT).report.chunks} <= {"hit", "exact"}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "is encrypted, and neither RAGCACHE_KEY_FILE nor RAGCACHE_KEY is set"),
        ({KEY: ANOTHER}, "is encrypted by another key than the one that RAGCACHE_KEY names"),
    ],
)
def test_without_the_key_nothing_is_opened_or_harmed(path: Path, tmp_path, monkeypatch, named, message: str) -> None:
    monkeypatch.delenv(KEY)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    for attempt in (lambda: open_index(tmp_path), lambda: stats(path), lambda: verify(path)):
        with pytest.raises(KeyMismatch, match=message):
            attempt()
    with pytest.raises(KeyMismatch, match=message):
        LocalStore(path / "kv").get(next(LocalStore.list_keys(path / "kv")))
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_a_key_for_an_index_that_is_not_encrypted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_index(tmp_path).close()
    monkeypatch.setenv(KEY, THE_KEY)
    with pytest.raises(KeyMismatch, match="is not encrypted, but RAGCACHE_KEY names a key"):
        open_index(tmp_path)
    assert not (tmp_path / "index" / MARK).exists()


@pytest.mark.parametrize("text", ["0f", "0f" * 33, "no key at all", "zz" * 32])
def test_what_is_no_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(KEY, text)
    with pytest.raises(InvalidArgument, match=f"has {len(text)} characters; make one with `openssl rand -hex 32`"):
        open_index(tmp_path)
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "none"))
    with pytest.raises(InvalidArgument, match="both RAGCACHE_KEY_FILE and RAGCACHE_KEY are set"):
        find_key()
    monkeypatch.delenv(KEY)
    with pytest.raises(InvalidArgument, match="none cannot be read"):
        find_key()


@pytest.fixture
def store(tmp_path: Path, key: None) -> LocalStore:
    """A store of an encrypted folder, with a blob."""
    Catalog(tmp_path / "catalog.sqlite").close()
    store = LocalStore(tmp_path / "kv")
    parts = [bytes(range(256)), memoryview(bytes(1000))]
    store.put_if_absent(NAME, parts)
    assert store.head(NAME) == store.size_of(parts) == 1256 + OVERHEAD
    return store


def test_ranges_are_of_what_was_sealed(store: LocalStore) -> None:
    assert store.get(NAME).numpy().tobytes() == bytes(range(256)) + bytes(1000)
    assert [part.tolist() for part in store.get_ranges(NAME, [(3, 5), (255, 257)])] == [[3, 4], [255, 0]]
    with pytest.raises(CorruptBlob, match="it has only 1,256 bytes"):
        store.get_ranges(NAME, [(0, 1257)])


def test_equal_blobs_are_sealed_differently(store: LocalStore) -> None:
    store.put_if_absent(OTHER, [bytes(range(256)), memoryview(bytes(1000))])
    one, other = (store.path_of(name).read_bytes() for name in (NAME, OTHER))
    assert one[:16] == other[:16]
    assert one[16:28] != other[16:28]
    assert one[28:60] != other[28:60]


def flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flipped(0), "not encrypted as the others are"),
        (flipped(20), "it was changed"),
        (flipped(500), "it was changed"),
        (flipped(1256 + OVERHEAD - 1), "it was changed"),
        (lambda data: data[:-1], "it was changed"),
        (lambda data: data + b"\0", "it was changed"),
        (lambda data: data[: OVERHEAD - 1], "not encrypted as the others are"),
        (lambda data: b"", "not encrypted as the others are"),
        (lambda data: bytes(range(256)) + bytes(1000), "not encrypted as the others are"),
    ],
)
def test_a_changed_blob_is_a_miss_with_its_reason(store: LocalStore, change, message: str) -> None:
    file = store.path_of(NAME)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(CorruptBlob, match=message):
        store.get(NAME)


def test_a_blob_under_another_name_is_refused(store: LocalStore) -> None:
    other = store.path_of(OTHER)
    other.parent.mkdir()
    other.write_bytes(store.path_of(NAME).read_bytes())
    with pytest.raises(CorruptBlob, match="under another name"):
        store.get(OTHER)


def test_changed_files_are_made_anew_and_answers_stay_the_same(path: Path, tmp_path: Path) -> None:
    with open_index(tmp_path) as rag:
        expected = rag.ask(QUESTION, sampling=SHORT).text
        named = [path / "kv" / key[:2] / f"{key}.safetensors" for key in sorted(rag.index.catalog.keys())]
    one, other = named[:2]
    one_data = flipped(1000)(one.read_bytes())
    other.write_bytes(named[2].read_bytes())
    one.write_bytes(one_data)
    with open_index(tmp_path) as rag:
        answer = rag.ask(QUESTION, recompute=0, sampling=SHORT)
        reasons = [use.reason for use in answer.report.chunks if use.cache not in ("hit", "exact")]
        assert len(reasons) == 2
        assert all("it was changed" in reason for reason in reasons)
        assert rag.ask(QUESTION, sampling=SHORT).text == expected


def test_a_changed_page_of_the_catalogue_is_found(path: Path) -> None:
    file = path / "catalog.sqlite"
    file.write_bytes(flipped(5000)(file.read_bytes()))
    with pytest.raises(IndexFormat, match="is damaged or no catalogue"):
        verify(path)


def test_a_changed_secret_or_mark_is_named(path: Path, tmp_path: Path) -> None:
    secret, mark = path / "secret", path / MARK
    kept = secret.read_bytes()
    secret.write_bytes(flipped(40)(kept))
    with pytest.raises(IndexFormat, match=r"the secret .* cannot be decrypted"):
        open_index(tmp_path)
    secret.write_bytes(kept)
    mark.write_text("{}")
    with pytest.raises(IndexFormat, match="without it the index cannot be decrypted"):
        open_index(tmp_path)
    mark.unlink()
    with pytest.raises(KeyMismatch, match="is not encrypted"):
        open_index(tmp_path)


def test_a_certificate_beside_it_has_no_questions(tmp_path: Path, key: None) -> None:
    Catalog(tmp_path / "catalog.sqlite").close()
    worst = [{"question": "Who designed the bridge?"}]
    found = Certificate("m", "f", "float32", "auto", 0.05, "r", "raw", 3, 1, 2, 1, 0.1, 0.9, 0.0, worst, 0.0)
    assert "bridge" not in found.write(tmp_path).read_text()
    assert list(Certificate.read_all(tmp_path)) == [replace(found, worst=[])]


def test_uploads_beside_it_are_refused(tmp_path: Path, key: None) -> None:
    pytest.importorskip("fastapi")
    from openai_ragcache.uploads import Uploads

    Catalog(tmp_path / "catalog.sqlite").close()
    uploads = Uploads(tmp_path / "uploads")
    assert uploads.files() == []
    with pytest.raises(InvalidArgument, match="the index is encrypted, and uploads would lie beside it"):
        uploads.add_file("bridge.md", b"The bridge", "assistants")
    assert not (tmp_path / "uploads").exists()


WITHOUT_CIPHERS = """
import sys
sys.modules["cryptography"] = sys.modules["sqlcipher3"] = None
from pathlib import Path
from ragcache.store import Catalog
Catalog(Path(sys.argv[1]) / "catalog.sqlite").close()
"""


def test_without_the_ciphers_only_encrypted_indexes_are_refused(tmp_path: Path) -> None:
    def run(**named: str) -> subprocess.CompletedProcess[str]:
        plain = {name: value for name, value in os.environ.items() if name not in (KEY, KEY_FILE)}
        command = [sys.executable, "-c", WITHOUT_CIPHERS, str(tmp_path)]
        return subprocess.run(command, env=plain | named, capture_output=True, text=True, check=False)

    refused = run(**{KEY: THE_KEY})
    assert MissingExtra.__name__ in refused.stderr
    assert "run `pip install 'ragcache-kv[encryption]'`" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    assert run().returncode == 0


def test_the_mark_holds_no_key(path: Path) -> None:
    about = json.loads((path / MARK).read_text())
    assert set(about) == {"cipher", "salt", "check"}
    assert THE_KEY not in json.dumps(about)


def test_an_encrypted_index_is_not_published(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, THE_KEY)
    bucket = tmp_path / "bucket"
    for index in (path, tmp_path / "new"):
        with pytest.raises(InvalidArgument, match=r"is encrypted, or would be .* leave --remote out"):
            RagCache.open(index, model=tiny_reader(), embedder=Letters(), remote=bucket.as_uri())
    assert not bucket.exists()
