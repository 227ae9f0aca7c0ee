"""Ingestion on Ray, on this side of it: the keys of one process, whatever dies; `make ray-check` has the real one."""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from integrations.fake_ray import Death, FakeRay
from ray_ragcache import RayEncoding, RayPool
from ray_ragcache.messages import Job, Piece, Status, WorkerSpec
from ray_ragcache.worker import ChunkWorker, find_encoder

from ragcache.encode import Encoder, Fused, InDocument, Prefixed
from ragcache.errors import (
    DISTRIBUTION,
    IndexMismatch,
    InvalidArgument,
    MissingExtra,
    UnreachableStore,
    UnusableIndex,
    WorkerDied,
)
from ragcache.index.index import Index
from ragcache.index.publication import attach
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.store import TieredStore, unpack

SPEC = WorkerSpec("", "", None, b"", "", "raw", "", "auto", None, None, "", (), "")
PAGES = {f"page-{number}": [f"{number} {part} the otter crosses the sound" for part in range(5)] for number in range(4)}


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
    return fake


@pytest.fixture(scope="module")
def reader(checkpoint: Path) -> Reader:
    return load_reader(str(checkpoint))


@pytest.fixture
def index(tmp_path: Path, reader: Reader) -> Iterator[Index]:
    with filled(tmp_path / "index", reader) as index:
        yield index


def filled(path: Path, reader: Reader) -> Index:
    path.mkdir()
    (path / "secret").write_bytes(bytes(32))
    index = Index(path, reader, memory_bytes=0)
    index.catalog.set_setting("rag", {"name": reader.name, "method": "auto"})
    for source, texts in PAGES.items():
        index.put(source, "", [(text, 0, len(text)) for text in texts], {})
    return index


def keys_of(index: Index, encoder: Encoder) -> dict[str, str]:
    return {row.chunk: row.key for row in index.catalog.by_recipe(encoder.recipe)}


class Mortal(ChunkWorker):
    """Dies over its second job, having stored half of it; and over any chunk of a page, when it comes to that."""

    jobs = 0
    page = ""

    def encode(self, job: Job) -> list[Status]:
        Mortal.jobs += 1
        if (self.page and any(self.page in piece.text for piece in job.pieces if piece.id in job.todo)) or (
            not self.page and Mortal.jobs == 2
        ):
            super().encode(replace(job, todo=job.todo[: len(job.todo) // 2]))
            raise Death
        return super().encode(job)


@pytest.mark.parametrize("encoder", [Prefixed(), InDocument()], ids=["prefixed", "in-document"])
@pytest.mark.parametrize("worker", [ChunkWorker, Mortal], ids=["well", "a worker dies"])
def test_workers_make_the_keys_of_one_process(
    index: Index, tmp_path: Path, reader: Reader, ray: FakeRay, encoder: Encoder, worker: type[ChunkWorker]
) -> None:
    Mortal.jobs, Mortal.page = 0, ""
    with filled(tmp_path / "alone", reader) as alone:
        list(alone.encode(encoder))
        expected = keys_of(alone, encoder)
    encoding = RayEncoding(RayPool("local", 2, worker=worker))
    done = list(encoding.encode(index, encoder))
    assert keys_of(index, encoder) == expected
    assert Counter(done) == dict.fromkeys(expected, 1)
    assert encoding.failures == []
    assert encoding.pool.deaths == (worker is Mortal and isinstance(encoder, InDocument))
    assert encoding.stored + encoding.found == len(expected)
    assert encoding.found > 0 or worker is ChunkWorker or isinstance(encoder, Prefixed)
    for key in expected.values():
        unpack(index.store.get(key), key)
    assert list(encoding.encode(index, encoder)) == [], "all of it is there"
    assert list(index.encode(encoder)) == []


def test_a_page_that_kills_its_workers_is_named_and_the_rest_is_made(index: Index, ray: FakeRay) -> None:
    Mortal.page = "2 3 the otter"
    encoding = RayEncoding(RayPool("local", 2, worker=Mortal))
    done = list(encoding.encode(index, Prefixed()))
    assert len(done) == 19
    assert len(encoding.failures) == 1
    assert "page-2" in encoding.failures[0]
    assert "3 workers died over it" in encoding.failures[0]
    assert encoding.pool.deaths == 4, "once with others, and three times alone"


def test_what_stands_behind_such_a_chunk_in_its_document_is_named_too(index: Index, ray: FakeRay) -> None:
    Mortal.page = "2 3 the otter"
    encoding = RayEncoding(RayPool("local", 2, worker=Mortal))
    assert len(list(encoding.encode(index, InDocument()))) == 18
    assert [("died over it" in said, "stands before it" in said) for said in encoding.failures] == [
        (True, False),
        (False, True),
    ]


def test_an_object_store_that_refuses_one_question_stops_no_chunk_and_no_kv_lies_on_a_workers_disk(
    tmp_path: Path, reader: Reader, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    (tmp_path / "bucket").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    refused, head = list[str](), TieredStore.head

    def head_once_refused(self: TieredStore, key: str) -> int | None:
        if not refused:
            refused.append(key)
            raise UnreachableStore("503, once")
        return head(self, key)

    with filled(tmp_path / "index", reader) as local:
        attach(local.path, f"file://{tmp_path / 'bucket'}")
    with Index(tmp_path / "index", reader, memory_bytes=0) as index:
        monkeypatch.setattr(TieredStore, "head", head_once_refused)
        encoding = RayEncoding(RayPool("local", 2))
        assert len(list(encoding.encode(index, InDocument()))) == 20
        assert refused
        assert encoding.failures == []
    assert list((tmp_path / "temporary").rglob("*.safetensors")) == []


def test_what_was_made_before_the_end_of_a_run_is_there(index: Index, ray: FakeRay) -> None:
    class Ending(ChunkWorker):
        jobs = 0

        def encode(self, job: Job) -> list[Status]:
            Ending.jobs += 1
            if Ending.jobs == 3:
                raise MemoryError("of another kind than any that is expected")
            return super().encode(job)

    with pytest.raises(Exception, match="of another kind"):
        list(RayEncoding(RayPool("local", 1, worker=Ending)).encode(index, InDocument()))
    assert len(keys_of(index, InDocument())) == 10


def test_another_model_on_a_worker_ends_the_ingestion(index: Index, ray: FakeRay) -> None:
    class Other(ChunkWorker):
        def __init__(self, spec: WorkerSpec) -> None:
            super().__init__(replace(spec, reader="0" * 64))

    with pytest.raises(UnusableIndex, match="another one"):
        list(RayEncoding(RayPool("local", 2, worker=Other)).encode(index, Prefixed()))
    assert keys_of(index, Prefixed()) == {}


def test_a_worker_of_another_version_or_without_the_index_is_refused(tmp_path: Path) -> None:
    assert "install the same" in ChunkWorker(replace(SPEC, version="0.0.0")).ready()
    spec = replace(SPEC, path=str(tmp_path), version=version(DISTRIBUTION))
    assert "--remote" in ChunkWorker(spec).ready()


def test_a_limit_that_several_machines_cannot_keep_is_refused(index: Index, ray: FakeRay) -> None:
    index.bound.set_limit(1 << 30)
    with pytest.raises(InvalidArgument, match="--remote URL"):
        list(RayEncoding(RayPool("local")).encode(index, Prefixed()))


def test_the_cluster_says_how_many_workers_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for resources, workers in (({"CPU": 8.0}, 7), ({"CPU": 1.0}, 1), ({"CPU": 64.0, "GPU": 4.0}, 4)):
        monkeypatch.setitem(sys.modules, "ray", FakeRay(**resources))  # type: ignore[arg-type]
        assert RayPool("auto").workers == workers


def test_workers_that_never_come_up_end_it(ray: FakeRay) -> None:
    class Stillborn:
        def __init__(self, spec: WorkerSpec) -> None: ...

        def ready(self) -> str:
            raise Death

    job = Job("d", "page", "prefixed", (Piece("a", "x", (1,)),), ("a",))
    with pytest.raises(WorkerDied, match="before they were ready"):
        list(RayPool("local", 1, worker=Stillborn).run(SPEC, [job]))  # type: ignore[arg-type]
    assert ray.started == 3


def test_only_what_a_worker_can_make_alone_goes_to_one() -> None:
    encoding = RayEncoding.__new__(RayEncoding)
    assert encoding.takes(Prefixed())
    assert encoding.takes(InDocument())
    assert not encoding.takes(Fused())
    assert find_encoder(InDocument().recipe) == InDocument()
    with pytest.raises(IndexMismatch, match="no method"):
        find_encoder("of another package")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ragcache-kv\[ray\]'"):
        RayPool("local")


def test_ray_reports_nothing_and_restarts_nothing_by_itself(
    ray: FakeRay, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    pool: Any = RayPool("local", 1)
    list(RayEncoding(pool).encode(index, Prefixed()))
    assert ray.options["max_restarts"] == ray.options["max_task_retries"] == 0
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert ray.killed == ray.started
    pool.close()
    assert not ray.up
