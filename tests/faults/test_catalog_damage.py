"""Text in the catalogue is checked where it is read: a damaged one is never shown, and ingestion reads it anew."""

import random
import sqlite3
from pathlib import Path

import pytest
from faults.small import Letters

from ragcache import RagCache
from ragcache.errors import IndexFormat
from ragcache.index.verify import verify
from ragcache.model.reader import Reader
from ragcache.store import Catalog
from ragcache.store import schema as schema_module


def damage(rag: RagCache, statement: str) -> None:
    """Change the file behind the catalogue's back, as far as SQLite lets one."""
    damage_file(rag.index.path, statement)


def damage_file(path: Path, statement: str) -> None:
    with sqlite3.connect(path / "catalog.sqlite", timeout=5) as file:
        for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {trigger}")
        assert file.execute(statement).rowcount == 1
    file.close()


CHANGES = {
    "a letter of a text": "UPDATE chunks SET text = replace(text, '1931', '1937') WHERE text LIKE '%1931%'",
    "no text any more": "UPDATE chunks SET text = CAST(x'ff' || CAST(text AS BLOB) AS TEXT) WHERE text LIKE '%1931%'",
    "tokens": "UPDATE chunks SET token_ids = x'01000000' || substr(token_ids, 5) WHERE text LIKE '%1931%'",
    "a place": "UPDATE chunks SET start = start + 1 WHERE text LIKE '%1931%'",
    "who may read it": "UPDATE chunks SET access = '[\"her\"]' WHERE text LIKE '%1931%'",
    "a source": "UPDATE documents SET source = replace(source, 'bridge', 'fridge') WHERE source LIKE '%bridge%'",
    "a title": "UPDATE documents SET metadata = replace(metadata, 'bridge', 'fridge') WHERE source LIKE '%bridge%'",
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_text_is_refused_where_it_is_read_and_read_anew(rag: RagCache, tmp_path: Path, what: str) -> None:
    before = {row.id: row.text for row in rag.index.catalog.all_chunks()}
    damage(rag, CHANGES[what])
    with pytest.raises(IndexFormat, match=r"fails its checksum .*run `ragcache ingest --index"):
        rag.retrieve("When was the bridge built?", top_k=9)
    report = rag.ingest(tmp_path / "files")
    assert (report.added, report.unchanged) == (1, 2)
    assert {row.id: row.text for row in rag.index.catalog.all_chunks()} == before
    assert any("1931" in chunk.text for chunk in rag.retrieve("When was the bridge built?", top_k=9))
    assert rag._vectors.ids() == sorted(before)
    assert set(rag.index.store.list()) - {rag.index.prefix_key} == {
        key for (key,) in rag.index.catalog.read("SELECT key FROM encodings")
    }


def test_the_command_that_is_named_reads_damaged_documents_anew(rag: RagCache) -> None:
    damage(rag, CHANGES["a letter of a text"])
    report = rag.ingest()
    assert report.added == 1
    assert "bridge.md" in " ".join(report.notes)
    assert any("1931" in chunk.text for chunk in rag.retrieve("When was the bridge built?", top_k=9))
    assert rag.ingest().notes == ()


def test_chunks_whose_document_is_gone_are_found_and_read_anew(rag: RagCache, tmp_path: Path) -> None:
    before, keys = [row.id for row in rag.index.catalog.all_chunks()], set(rag.index.store.list())
    lost = [row.id for row in rag.index.catalog.all_chunks() if "1931" in row.text]
    damage(rag, "DELETE FROM documents WHERE source LIKE '%bridge%'")  # foreign keys are off there, so chunks stay
    assert {f"the chunk {id}" for id in lost} <= set(verify(rag.index.path).damaged_rows)
    assert rag.ingest(tmp_path / "files").added == 1
    assert [row.id for row in rag.index.catalog.all_chunks()] == before
    assert set(rag.index.store.list()) == keys
    assert verify(rag.index.path).sound


def test_kv_whose_chunk_is_gone_is_found_and_dropped(rag: RagCache) -> None:
    chunk = rag.index.catalog.all_chunks()[0].id
    damage(rag, f"DELETE FROM chunks WHERE id = '{chunk}'")
    assert verify(rag.index.path).damaged_rows == (f"the KV of the chunk {chunk}",)
    rag.ingest()
    assert rag.index.catalog.find_damaged() == []
    assert set(rag.index.store.list()) - {rag.index.prefix_key} == {
        key for (key,) in rag.index.catalog.read("SELECT key FROM encodings")
    }


def test_a_flipped_bit_anywhere_in_a_row_is_found(rag: RagCache) -> None:
    """Every bit of a chunk's row that SQLite hands out, a seeded sample of them."""
    catalog, chance = rag.index.catalog, random.Random(0)
    [values] = catalog.read(f"SELECT {schema_module.CHUNK}, checksum FROM chunks WHERE text LIKE '%1931%'")
    for _ in range(200):
        place = chance.choice([0, 1, 3, 4])  # id, document, text, tokens
        old = values[place]
        raw = bytearray(old if isinstance(old, bytes) else old.encode())
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        new = bytes(raw) if isinstance(old, bytes) else raw.decode("utf-8", "surrogateescape")
        with pytest.raises(schema_module.DamagedRow):
            schema_module.chunk_row(*[new if n == place else value for n, value in enumerate(values)])


def test_an_older_catalogue_gets_checksums(rag: RagCache, reader: Reader, tmp_path: Path) -> None:
    texts = [row.text for row in rag.index.catalog.all_chunks()]
    path = rag.index.path / "catalog.sqlite"
    rag.close()
    with sqlite3.connect(path) as older:
        older.execute("DELETE FROM migrations WHERE name = 'm008_checksums'")
        for table in ("chunks", "documents"):
            older.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    older.close()
    catalog = Catalog(path)
    assert [row.text for row in catalog.all_chunks()] == texts
    assert len(catalog.documents()) == 3
    catalog.close()
    with RagCache.open(rag.index.path, model=reader, embedder=Letters()) as again:
        damage(again, CHANGES["a letter of a text"])
        with pytest.raises(IndexFormat, match="fails its checksum"):
            again.index.catalog.all_chunks()


ABOUT_KV = {
    "what stood in front": """UPDATE encodings SET "left" = '[]' WHERE rowid = 1""",
    "its key": "UPDATE encodings SET key = 'x' || substr(key, 2) WHERE rowid = 1",
    "its recipe": "UPDATE encodings SET recipe = recipe || ' ' WHERE rowid = 1",
    "no JSON any more": 'UPDATE encodings SET "left" = 5 WHERE rowid = 1',
}


@pytest.mark.parametrize("what", ABOUT_KV)
def test_what_is_changed_about_a_kv_is_a_miss_until_it_is_made_anew(rag: RagCache, what: str) -> None:
    keys, (chunk,) = set(rag.index.store.list()), rag.index.catalog.read("SELECT chunk FROM encodings WHERE rowid = 1")
    damage(rag, ABOUT_KV[what])
    encoder = rag.engine.method.encode
    [found] = [rag.index.load(one, encoder, None) for one in rag.index.chunks([chunk[0]])]
    assert found.kv is None
    assert "fails its checksum" in found.reason
    rag.ingest()
    assert set(rag.index.store.list()) == keys
    assert rag.index.catalog.find_damaged() == []
    [found] = [rag.index.load(one, encoder, None) for one in rag.index.chunks([chunk[0]])]
    assert found.kv is not None


def test_a_changed_setting_is_an_error(rag: RagCache) -> None:
    damage(rag, "UPDATE settings SET value = '[1, 2]' WHERE name = 'prefix_ids'")
    with pytest.raises(IndexFormat, match=r"prefix_ids fails its checksum.*restore it from a backup"):
        _ = rag.index.prefix_segment


def test_a_changed_entry_of_a_vector_store_is_an_error_until_it_is_dropped(rag: RagCache) -> None:
    from ragcache.index.collection import Entry

    store = rag.collection("theirs")
    store.add([Entry("one", "The otter sleeps.", "animals"), Entry("two", "The badger digs.", "animals")])
    damage(rag, "UPDATE entries SET access = '[\"her\"]' WHERE name = 'one'")
    with pytest.raises(IndexFormat, match=r"entry one fails its checksum.*lets go of it"):
        store.names()
    rag.ingest()
    assert store.names() == ["two"]
    store.add([Entry("one", "The otter sleeps.", "animals")])
    assert store.names() == ["two", "one"]


def test_a_listing_of_documents_is_checked(rag: RagCache) -> None:
    damage(rag, CHANGES["a source"])
    with pytest.raises(IndexFormat, match=r"the document .* fails its checksum"):
        rag.documents()


def test_what_is_to_be_forgotten_may_be_damaged_too(rag: RagCache) -> None:
    with sqlite3.connect(rag.index.path / "catalog.sqlite") as file:
        file.execute("INSERT INTO forgotten VALUES ('../../no key')")
    file.close()
    rag.index.forgotten.delete()
    assert rag.index.catalog.read("SELECT * FROM forgotten") == []
