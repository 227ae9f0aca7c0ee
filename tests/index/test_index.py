"""The life of a chunk's KV: restart, change, damage, deletion. Never a wrong KV; at worst a miss with its reason."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, tiny_reader
from staged import QUESTION, TEXTS, make

from ragcache.encode import Alone, Fused, Prefixed
from ragcache.engine.engine import Engine
from ragcache.errors import IndexMismatch, InvalidArgument
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.store import BFloat16, Codec, Int8, Int8Int4, LocalStore, Raw


def states(engine: Engine, ids: list[str], method: str = "naive") -> list[str]:
    return [c.cache for c in engine.prefill(QUESTION, engine.index.chunks(ids), method=method).report.chunks]


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tiny_reader(), "fusionrag")
    before = engine.prefill(QUESTION, chunks, method="fusionrag").logits
    engine.index.close()
    with Index(tmp_path / "index", tiny_reader()) as index:
        again = Engine(index.reader, index)
        found = again.index.chunks([chunk.id for chunk in chunks])
        after = again.prefill(QUESTION, found, method="fusionrag")
    assert torch.equal(before, after.logits)
    assert after.report.cached == len(chunks)


@pytest.mark.parametrize("change", ["weights", "dtype", "template", "rope"])
def test_another_reader_never_loads_old_kv(tmp_path: Path, change: str) -> None:
    engine, _ = make(tmp_path, tiny_reader(), "naive")
    engine.index.close()
    model = tiny_model("llama-linear" if change == "rope" else "llama")
    if change == "weights":
        with torch.no_grad():
            next(model.parameters())[0, 0] += 1e-3
    if change == "dtype":
        model = tiny_model("llama", dtype=torch.bfloat16)
    tokenizer = byte_tokenizer("{{ messages[0]['content'] }}") if change == "template" else byte_tokenizer()
    with pytest.raises(IndexMismatch, match="ingest into another --index"):
        Index(tmp_path / "index", Reader(model, tokenizer, name="other"))


def test_a_corrupt_blob_is_a_miss_with_its_reason_and_is_made_again(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    engine.index.close()
    row = engine.index.store
    with Index(tmp_path / "index", reader, memory_bytes=0) as index:
        engine = Engine(reader, index)
        expected = engine.prefill(QUESTION, chunks, method="naive").logits
        key = index.catalog.encodings(chunks[1].id, "alone")[0].key
        path = next(Path(row.root).rglob(f"{key}*"))
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)
        damaged = engine.prefill(QUESTION, chunks, method="naive")
        assert [c.cache for c in damaged.report.chunks] == ["hit", "miss", "hit", "hit"]
        assert "unusable" in damaged.report.chunks[1].reason
        torch.testing.assert_close(damaged.logits, expected)
        assert states(engine, [c.id for c in chunks]) == ["hit"] * 4, "the miss was saved"


def test_a_blob_under_another_chunks_key_is_refused(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    keys = [engine.index.catalog.encodings(chunk.id, "alone")[0].key for chunk in chunks]
    paths = [next(engine.index.store.root.rglob(f"{key}*")) for key in keys]
    paths[0].write_bytes(paths[1].read_bytes())
    with Index(tmp_path / "index", reader) as index:
        assert states(Engine(reader, index), [c.id for c in chunks])[0] == "miss"


def test_a_changed_document_replaces_its_chunks_and_kv(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    index = engine.index
    before = set(index.store.list())
    index.put("doc0", "new", [("A new text.", 0, 11)], {})
    list(index.encode(Alone()))
    assert index.chunks([chunks[0].id]) == []
    gone = before - set(index.store.list())
    assert len(gone) == 1
    index.put("doc1", "same", [(chunks[1].text, 0, 1)], {})
    assert index.catalog.missing("alone") == [], "an unchanged chunk keeps its KV"


def test_a_deleted_documents_content_leaves_with_it(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "fusionrag")
    index = engine.index
    key = index.catalog.encodings(chunks[0].id, "prefixed")[0].key
    carriers = {row.key for row in index.catalog.made_with([key])}
    assert carriers, "other chunks were fused with this one"
    index.remove("doc0")
    left = set(index.store.list())
    assert key not in left
    assert not carriers & left
    assert states(engine, [chunks[1].id, chunks[2].id], "fusionrag") == ["exact", "hit"], "the base encoding serves"
    assert "prefixed" in engine.prefill(QUESTION, chunks[1:3][::-1], method="fusionrag").report.chunks[1].reason


def test_a_shared_text_keeps_its_kv_until_the_last_copy_goes(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "index", reader) as index:
        for name in ("a", "b"):
            index.put(name, name, [("The same words.", 0, 15)], {})
        list(index.encode(Alone()))
        assert len(list(index.store.list())) == 2, "the system prefix is stored too"
        index.remove("a")
        assert len(list(index.store.list())) == 2
        index.remove("b")
        assert list(index.store.list()) == [index.prefix_key]


def test_the_same_text_in_two_indexes_has_two_keys(tmp_path: Path, reader: Reader) -> None:
    keys = []
    for name in ("one", "two"):
        with Index(tmp_path / name, reader) as index:
            index.put("a", "a", [("The same words.", 0, 15)], {})
            list(index.encode(Alone()))
            keys.append(list(index.store.list()))
            assert (tmp_path / name / "secret").stat().st_mode & 0o077 == 0
    assert keys[0] != keys[1]


def test_encoding_resumes_where_it_was_killed(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcache.index.index.capacity", lambda _: 1)
    with Index(tmp_path / "index", reader) as index:
        for n in range(5):
            index.put(f"d{n}", "x", [(f"Text number {n}.", 0, 14)], {})
        making = index.encode(Alone())
        done = [next(making), next(making)]
        making.close()
        assert {*index.encode(Alone())} == {row.id for row in index.catalog.all_chunks()} - set(done)


def test_an_ingestion_killed_in_a_process_is_finished_by_the_next(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        import ragcache.index.index
        from conftest import tiny_reader
        from ragcache.encode import Alone
        from ragcache.index.index import Index
        ragcache.index.index.capacity = lambda device: 1
        index = Index({str(tmp_path / "index")!r}, tiny_reader())
        for n in range(6):
            index.put(f"d{{n}}", "x", [(f"Text number {{n}}.", 0, 14)], {{}})
        for made, _ in enumerate(index.encode(Alone())):
            if made == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=False).returncode == -9
    with Index(tmp_path / "index", tiny_reader()) as index:
        assert len(index.catalog.missing("alone")) == 3
        list(index.encode(Alone()))
        ids = [row.id for row in index.catalog.all_chunks()]
        assert states(Engine(index.reader, index), ids) == ["hit"] * 6


@pytest.mark.parametrize(
    ("codec", "most"), [(BFloat16(), 0.01), (Int8(), 0.05), (Int8Int4(), 0.2)], ids=["bf16", "int8", "k8v4"]
)
def test_smaller_storage_stays_close(tmp_path: Path, reader: Reader, codec: Codec, most: float) -> None:
    engine, chunks = make(tmp_path / "raw", reader, "naive")
    exact = engine.prefill(QUESTION, chunks, method="naive").logits
    with Index(tmp_path / "small", reader, codec=codec) as index:
        for chunk in chunks:
            index.put(chunk.source, "x", [(chunk.text, 0, 1)], {})
        list(index.encode(Alone()))
        names = sorted(index.chunks([row.id for row in index.catalog.all_chunks()]), key=lambda c: c.source)
        found = Engine(reader, index).prefill(QUESTION, names, method="naive")
        small = sum(index.store.head(key) or 0 for key in index.store.list())
        held = sum(index.held().values())
        decoded = sum(kv.nbytes for kv in (reader.encode(chunk.segment.token_ids) for chunk in chunks))
    large = sum(engine.index.store.head(key) or 0 for key in engine.index.store.list())
    assert small < large
    assert 0 < held < 0.8 * decoded, "memory keeps them as small as the disk does"
    assert 0 < (found.logits - exact).norm() < most * exact.norm()


@pytest.mark.parametrize("codec", [Raw(), Int8(), Int8Int4()], ids=lambda codec: codec.name)
def test_recomputing_all_is_full_prefill_but_for_what_a_codec_loses(
    tmp_path: Path, reader: Reader, codec: Codec
) -> None:
    with Index(tmp_path / "index", reader, codec=codec) as index:
        index.put("doc", "x", [(TEXTS[0], 0, 1)], {})
        method = METHODS["in-document"]
        assert method.encode is not None
        list(index.encode(method.encode))
        engine, chunks = Engine(reader, index), index.chunks([row.id for row in index.catalog.all_chunks()])
        full = engine.prefill(QUESTION, chunks, method="full").logits
        found = engine.prefill(QUESTION, chunks, method=method, recompute=1.0)
        assert [chunk.cache for chunk in found.report.chunks] == ["exact"]
        off = (found.logits - full).norm() / full.norm()
        assert off < 1e-5 if codec.name == "raw" else 1e-4 < off < 0.2


def test_no_kv_is_read_by_another_codec(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path / "raw", reader, "naive")
    encoder = Alone()
    raw = engine.index.make_key(encoder, (), chunks[0].segment)
    engine.index.close()
    with pytest.raises(IndexMismatch, match=r"written as raw, not as int8.*--kv int8"):
        Index(tmp_path / "raw" / "index", reader, codec=Int8())
    with Index(tmp_path / "small", reader, codec=Int8()) as index:
        assert index.make_key(encoder, (), chunks[0].segment) != raw
    with Index(tmp_path / "small", reader) as index:
        assert index.codec.name == "int8", "an index remembers"


def test_fusing_needs_neighbours(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "index", reader) as index:
        index.put("a", "a", [("Some words.", 0, 11)], {})
        with pytest.raises(InvalidArgument, match="ingest through RagCache"):
            list(index.encode(Fused(neighbours=2)))
        assert index.catalog.missing(Prefixed().recipe) == [], "the base encoding was made and stays"


def test_a_blank_chunk_is_refused(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "index", reader) as index, pytest.raises(InvalidArgument, match="white space"):
        index.put("a", "a", [(" \n ", 0, 3)], {})


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 0)])
def test_the_catalogue_is_as_durable_as_the_store(tmp_path: Path, durable: bool, level: int) -> None:
    with Index(tmp_path / "index", tiny_reader(), store=LocalStore(tmp_path / "kv", durable=durable)) as index:
        assert index.catalog.read("PRAGMA synchronous")[0][0] == level
