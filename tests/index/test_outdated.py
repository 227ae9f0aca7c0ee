"""Fused neighbours that others have displaced since: counted, named, and made anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import tiny_reader
from test_house import Letters

from ragcache import RagCache
from ragcache.encode import Fused
from ragcache.errors import EmptyIndex
from ragcache.index.collection import Entry
from ragcache.index.neighbours import SimilarChunks
from ragcache.method import Method
from ragcache.model.decode import Sampling

RECIPE = Fused(neighbours=10).recipe
PAGES = ("The mill grinds rye.", "A bridge of green stone.", "Boats come in spring.", "Nobody is at home.")
SHORT = Sampling(max_new_tokens=2)


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), embedder=Letters(), method="fusionrag") as rag:
        rag.titles = "none"  # chunks are told by their texts
        yield rag


@pytest.fixture
def pages(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"page{number}.txt" for number in range(len(PAGES))]
    for path, text in zip(paths, PAGES, strict=True):
        path.write_text(text)
    return paths


def neighbours(rag: RagCache, recipe: str = RECIPE) -> dict[str, list[int]]:
    """How many chunks each chunk's KV was fused with, by its text."""
    rows = rag.index.catalog.all_chunks()
    prefix = 2  # its key, and what says that something stitched stands behind it
    return {
        row.text: [max(0, len(one.left) - prefix) for one in rag.index.catalog.encodings(row.id, recipe)]
        for row in rows
    }


def test_pages_that_come_one_by_one_are_counted_and_fused_anew(rag: RagCache, pages: list[Path]) -> None:
    reports = [rag.ingest([path]) for path in pages]
    assert neighbours(rag) == {text: [number] for number, text in enumerate(PAGES)}
    assert [report.outdated for report in reports] == [{}, {RECIPE: 1}, {RECIPE: 2}, {RECIPE: 3}]
    assert rag.stats()["outdated"] == {RECIPE: 3}
    done = rag.refresh()
    assert (done.encoded, done.outdated, rag.stats()["outdated"]) == ({RECIPE: 3}, {}, {})
    assert neighbours(rag) == {text: [3] for text in PAGES}
    assert rag.refresh().encoded == {}


def test_what_is_fused_anew_is_what_one_ingestion_makes(rag: RagCache, pages: list[Path], tmp_path: Path) -> None:
    for path in pages:
        rag.ingest([path])
    rag.refresh()
    with RagCache.open(tmp_path / "other", model=rag.reader, embedder=Letters(), method="fusionrag") as whole:
        assert whole.ingest(pages, titles="none").outdated == {}
        both = [rag.ask("Who grinds rye?", top_k=3, sampling=SHORT) for rag in (rag, whole)]
        kept = [{row.recipe: row.nbytes for row in rag.index.catalog.encodings(chunk.id, RECIPE)}
                for rag in (rag, whole) for chunk in rag.index.catalog.all_chunks()]  # fmt: skip
    assert both[0].token_ids == both[1].token_ids
    assert len(set(map(str, kept))) <= len(PAGES), "nothing is left of what was there before"


def test_the_old_kv_is_deleted_and_no_other_is(rag: RagCache, pages: list[Path]) -> None:
    for path in pages:
        rag.ingest([path])
    before, base = set(rag.index.store.list()), neighbours(rag, "prefixed")
    old = {row.key for chunk in rag.index.catalog.all_chunks() if chunk.text != PAGES[-1]
           for row in rag.index.catalog.encodings(chunk.id, RECIPE)}  # fmt: skip
    rag.refresh()
    after = set(rag.index.store.list())
    assert before - after == old
    assert len(after - before) == len(old) == 3
    assert neighbours(rag, "prefixed") == base


def test_a_run_that_is_stopped_goes_on(rag: RagCache, pages: list[Path]) -> None:
    for path in pages:
        rag.ingest([path])

    def stop(stage: str, done: int, total: int) -> None:
        if stage == f"encode {RECIPE}":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rag.refresh(progress=stop)
    assert rag.ask("Who grinds rye?", sampling=SHORT).report.cached == len(PAGES), "old or new, all of it serves"
    rag.refresh()
    assert neighbours(rag) == {text: [3] for text in PAGES}


def test_a_full_index_is_fused_anew_in_place(rag: RagCache, pages: list[Path]) -> None:
    for path in pages:
        rag.ingest([path])
    rag.index.bound.set_limit(rag.index.store.total_bytes() + 1000)
    assert rag.index.bound.fitting([64]) == 0, "there is no room for one more"
    done = rag.refresh()
    assert (done.encoded, done.outdated) == ({RECIPE: 3}, {})
    assert neighbours(rag) == {text: [3] for text in PAGES}, "none is lost"
    assert rag.index.store.total_bytes() <= (rag.index.bound.limit or 0)


def test_chunks_of_another_programs_store_are_fused_anew_too(rag: RagCache) -> None:
    store = rag.collection("notes", methods=["fusionrag"])
    for number, text in enumerate(PAGES):
        store.add([Entry.of(str(number), text, None)])
    assert rag.stats()["outdated"] == {RECIPE: 3}
    assert rag.refresh().encoded == {RECIPE: 3}
    assert neighbours(rag) == {text: [3] for text in PAGES}


def test_a_removed_neighbour_takes_kv_along_and_leaves_nothing_outdated(rag: RagCache, pages: list[Path]) -> None:
    rag.ingest(pages)
    rag.forget(pages[0])
    assert rag.refresh().encoded == {RECIPE: 3}, "made with text that is gone, so it is missing"
    assert neighbours(rag) == {text: [2] for text in PAGES[1:]}


def test_a_row_of_ones_own_is_fused_anew_where_it_is_named(rag: RagCache, pages: list[Path]) -> None:
    both = Method("both", Fused(neighbours=4, by="both"))
    rag.ingest(pages[:2])
    assert rag.refresh(methods=[both]).encoded == {Fused(4, by="both").recipe: 2}, "it was missing"
    rag.ingest([pages[2]])
    assert rag.refresh(methods=[both]).encoded == {Fused(4, by="both").recipe: 3}
    assert neighbours(rag, Fused(4, by="both").recipe) == {text: [2] for text in PAGES[:3]}


def test_nothing_that_is_not_fused_grows_old(pages: list[Path], tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "plain", model=tiny_reader(), embedder=Letters(), method="auto") as rag:
        assert [rag.ingest([path]).outdated for path in pages] == [{}] * len(pages)
        assert rag.refresh().encoded == {}


def test_a_chunk_that_another_process_brings_meanwhile_is_no_neighbour_yet(rag: RagCache, pages: list[Path]) -> None:
    rag.ingest(pages[:2])
    known = {row.text: row.id for row in rag.index.catalog.all_chunks()}
    rag.index.put("other", "", [(PAGES[2], 0, len(PAGES[2]))], {})
    alike = SimilarChunks(rag.index, rag._vectors)
    assert [list(alike(known[text], 10)) for text in PAGES[:2]] == [[known[PAGES[1]]], [known[PAGES[0]]]]


def test_an_empty_index_has_nothing_to_refresh(rag: RagCache) -> None:
    with pytest.raises(EmptyIndex, match="ragcache ingest"):
        rag.refresh()


def test_numbers_are_looked_at_when_documents_have_changed_only(
    rag: RagCache, pages: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rag.ingest(pages)
    monkeypatch.setattr("ragcache.index.ingestion.find_outdated", lambda *given: pytest.fail("nothing has changed"))
    rag.ingest(pages)
