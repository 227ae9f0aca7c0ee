"""A document prefilled once: what its chunks' KV is, how far it is exact, and when it is forgotten."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from conftest import tiny_reader
from encode.contexts import MILL, TIDE, WINDOW, assert_same, dense, opened, put, stored
from hypothesis import given
from hypothesis import strategies as st

from ragcache.encode import InDocument, Prefixed
from ragcache.encode.in_document import nearest
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.index.on_demand import WITHOUT_DOCUMENT
from ragcache.method import Method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Segment

WHOLE, NEAR = InDocument(window=None), InDocument(window=WINDOW)
ARCHITECTURES = ("llama", "qwen2-hybrid", "qwen3", "mistral-sliding", "gemma3", "phi3-partial")
QUESTION = "Where is it based?"
ONE = Sampling(max_new_tokens=1)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_a_window_it_is_one_stock_prefill_sliced(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    index, *documents = opened(tmp_path, readers(architecture))
    list(index.encode(WHOLE))
    for names in documents:
        rows = index.catalog.chunks(names)
        ids = [*index.prefix_segment.token_ids, *(token for row in rows for token in row.token_ids)]
        count = torch.arange(len(ids))
        whole = dense(index.reader, ids, count, count[None, :] <= count[:, None])
        start = len(index.prefix_segment)
        for row in rows:
            end = start + len(row.token_ids)
            kv = stored(index, WHOLE, row.id)
            assert kv.start == start
            assert_same(index.reader, kv, [(k[:, start:end], v[:, start:end]) for k, v in whole], start)
            start = end


@pytest.mark.parametrize("architecture", ["llama", "mistral-sliding", "gemma3"])
def test_with_a_window_it_is_a_dense_forward_with_that_mask(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    """Every chunk's own copy of the prefix stands in front of what its window lets in; one mask says who sees whom."""
    index, names, _ = opened(tmp_path, readers(architecture))
    list(index.encode(NEAR))
    prefix = index.prefix_segment.token_ids
    chunks = [row.token_ids for row in index.catalog.chunks(names)]
    starts = [len(prefix) + sum(map(len, chunks[:n])) for n in range(len(chunks))]  # positions in the document
    windows = [_window(chunks, n) for n in range(len(chunks))]
    assert sorted({len(window) for window in windows}) == [0, 1, 2], "or the window is not tested"
    # (chunk, its copy of the prefix or not, token, position)
    rows = [
        (n, own, token, first + i)
        for n, window in enumerate(windows)
        for own, ids, first in (
            (False, prefix, starts[window[0] if window else n] - len(prefix)), (True, chunks[n], starts[n])
        )
        for i, token in enumerate(ids)
    ]  # fmt: skip
    sees = torch.tensor([[_sees(query, key, windows) for key in rows] for query in rows])
    found = dense(index.reader, [row[2] for row in rows], torch.tensor([row[3] for row in rows]), sees)
    for n, name in enumerate(names):
        own = [at for at, row in enumerate(rows) if row[:2] == (n, True)]
        kv = stored(index, NEAR, name)
        assert kv.start == len(prefix) + sum(len(chunks[other]) for other in windows[n])
        assert_same(index.reader, kv, [(k[:, own], v[:, own]) for k, v in found], starts[n])


def _window(chunks: Sequence[Sequence[int]], n: int) -> list[int]:
    """The nearest chunks before number n whose tokens fit, one after the other."""
    taken: list[int] = []
    for other in reversed(range(n)):
        if sum(len(chunks[one]) for one in [*taken, other]) > WINDOW:
            break
        taken.insert(0, other)
    return taken


def _sees(query: tuple[int, bool, int, int], key: tuple[int, bool, int, int], windows: Sequence[Sequence[int]]) -> bool:
    if key[0] == query[0]:
        return key[3] <= query[3]
    return query[1] and key[1] and key[0] in windows[query[0]]


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma3"])
def test_a_whole_document_in_reading_order_is_exact(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    index, tide, mill = opened(tmp_path, readers(architecture))
    list(index.encode(WHOLE))
    list(index.encode(NEAR))
    engine = Engine(index.reader, index)

    def asked(names: Sequence[str], encoder: InDocument = WHOLE) -> tuple[list[str], float]:
        chunks = index.chunks(names)
        found = engine.prefill(QUESTION, chunks, method=Method("in-document", encoder))
        full = engine.prefill(QUESTION, chunks, method="full").logits
        return [chunk.cache for chunk in found.report.chunks], float((found.logits - full).abs().max())

    states, off = asked(tide)
    assert states == ["exact"] * 4
    assert off <= 1e-4
    assert asked([*tide, *mill])[0] == ["exact"] * 4 + ["hit"] * 2
    assert asked([tide[0], tide[2]])[0] == ["exact", "hit"]
    states, off = asked(tide[1:])
    assert states == ["hit"] * 3
    assert off > 1e-3, "the header is in the KV and not in the prompt"
    assert asked(tide, NEAR)[0] == ["exact", "exact", "hit", "hit"], "exact as far as the window reaches"


def test_the_first_chunk_and_a_loose_one_stand_behind_the_prefix(reader: Reader, tmp_path: Path) -> None:
    index, tide, _ = opened(tmp_path, reader)
    list(index.encode(WHOLE))
    list(index.encode(Prefixed()))
    loose = index.make(index.uncached_chunk(TIDE[0]), WHOLE).kv
    for kv in (loose, stored(index, WHOLE, tide[0])):
        for ours, behind in zip(kv.layers, stored(index, Prefixed(), tide[0]).layers, strict=True):
            torch.testing.assert_close(ours, behind)


def test_every_token_is_computed_once_level_by_level(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, tide, mill = opened(tmp_path, reader)
    computed: list[int] = []
    real = reader.forward
    monkeypatch.setattr(reader, "forward", lambda ids, *rest: computed.append(len(ids)) or real(ids, *rest))  # type: ignore[func-returns-value]
    made = list(index.encode(WHOLE))
    assert {frozenset(made[:2]), frozenset(made[2:4])} == {frozenset(two) for two in zip(tide, mill, strict=False)}
    assert made[4:] == tide[2:]
    assert sum(computed) == len(index.prefix_segment) + sum(len(row.token_ids) for row in index.catalog.all_chunks())
    assert len(computed) == 1 + len(TIDE), "one forward a level, and the prefix"


def test_a_run_that_was_killed_goes_on_where_it_ended(reader: Reader, tmp_path: Path) -> None:
    index, *_ = opened(tmp_path / "one", reader)
    making = index.encode(WHOLE)
    done = [next(making) for _ in range(3)]
    making.close()
    left = [row.id for row in index.catalog.missing(WHOLE.recipe)]
    assert 0 < len(left) <= len(TIDE) + len(MILL) - len(done)
    assert sorted(index.encode(WHOLE)) == sorted(left)
    other, *_ = opened(tmp_path / "two", reader)
    list(other.encode(WHOLE))
    for row in index.catalog.all_chunks():
        for a, b in zip(stored(index, WHOLE, row.id).layers, stored(other, WHOLE, row.id).layers, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("encoder", [WHOLE, NEAR], ids=lambda e: e.recipe)
@pytest.mark.parametrize(
    "change",
    [
        ("New.", *TIDE),
        (TIDE[1], TIDE[0], *TIDE[2:]),
        TIDE[1:],
        ("# Ebb\n\nThis page is about Ebb.", *TIDE[1:]),
        (*TIDE, "More."),
        TIDE[:2],
    ],
    ids=["put before", "swapped", "header gone", "header changed", "put behind", "end gone"],
)
def test_a_changed_document_is_made_again_from_the_change_on(
    change: tuple[str, ...], encoder: InDocument, reader: Reader, tmp_path: Path
) -> None:
    index, tide, mill = opened(tmp_path / "changed", reader)
    for one in (Prefixed(), encoder):
        list(index.encode(one))
    before = {name: index.catalog.encodings(name, encoder.recipe)[0].key for name in (*tide, *mill)}
    plain = {name: index.catalog.encodings(name, "prefixed")[0].key for name in tide}
    names = put(index, "tide", change)
    same = next((n for n, (a, b) in enumerate(zip(change, TIDE, strict=False)) if a != b), min(len(change), len(TIDE)))
    stale = {before[name] for name in tide[same:]}
    assert not stale & set(index.store.list()), "what was made behind the old text is gone from the disk"
    assert {row.id for row in index.missing(encoder)} == set(names[same:])
    assert all(index.catalog.encodings(name, encoder.recipe)[0].key == before[name] for name in mill)
    for name in set(names) & set(tide):
        assert index.catalog.encodings(name, "prefixed")[0].key == plain[name], "what is made alone stays"
        assert stored(index, Prefixed(), name)
    list(index.encode(encoder))
    with Index(tmp_path / "fresh", reader) as fresh:
        put(fresh, "tide", change)
        list(fresh.encode(encoder))
        for name in names:
            for a, b in zip(stored(index, encoder, name).layers, stored(fresh, encoder, name).layers, strict=True):
                torch.testing.assert_close(a, b)


def test_a_twin_document_keeps_its_kv_when_the_other_changes(reader: Reader, tmp_path: Path) -> None:
    index, *_ = opened(tmp_path, reader)
    twin = put(index, "twin", TIDE)
    list(index.encode(WHOLE))
    put(index, "tide", ("New.", *TIDE))
    assert len(index.missing(WHOLE)) == 5
    assert [stored(index, WHOLE, name).token_ids for name in twin] == [
        index.uncached_chunk(text).segment.token_ids for text in TIDE
    ]


def test_a_removed_document_leaves_nothing_even_behind_a_window(reader: Reader, tmp_path: Path) -> None:
    index, tide, mill = opened(tmp_path, reader)
    list(index.encode(NEAR))
    kept = {index.catalog.encodings(name, NEAR.recipe)[0].key for name in mill}
    gone = {index.catalog.encodings(name, NEAR.recipe)[0].key for name in tide}
    index.remove("tide")
    assert set(index.store.list()) & (gone | kept) == kept


def test_a_miss_is_made_as_it_should_be_or_not_kept(reader: Reader, tmp_path: Path) -> None:
    index, tide, _ = opened(tmp_path, reader)
    engine = Engine(reader, index)
    row = Method("in-document", WHOLE)
    chunks = index.chunks(tide)
    made = index.make(chunks[2], WHOLE)  # nothing before it is stored
    assert made.kv.start == len(index.prefix_segment)
    assert made.notes == (WITHOUT_DOCUMENT,)
    assert index.catalog.encodings(tide[2], WHOLE.recipe) == []
    engine.prefill(QUESTION, chunks, method=row)  # in reading order each finds what stands before it
    again = engine.prefill(QUESTION, chunks, method=row)
    assert [chunk.cache for chunk in again.report.chunks] == ["exact"] * 4
    full = engine.prefill(QUESTION, chunks, method="full")
    assert (again.logits - full.logits).abs().max() <= 1e-4


def test_within_a_limit_a_chunk_is_kept_without_its_document(reader: Reader, tmp_path: Path) -> None:
    index, tide, _ = opened(tmp_path, reader)
    list(index.encode(WHOLE))
    size = max(row.nbytes for row in index.catalog.by_recipe(WHOLE.recipe))
    index.evict([row.key for row in index.catalog.by_recipe(WHOLE.recipe)])
    index.bound.set_limit(index.store.total_bytes() + size)
    engine, row, chunks = Engine(reader, index), Method("in-document", WHOLE), index.chunks(tide[2:3])
    first, again = (engine.answer(QUESTION, chunks, method=row, sampling=ONE) for _ in range(2))
    assert [one.report.chunks[0].cache for one in (first, again)] == ["miss", "exact"]
    assert all(WITHOUT_DOCUMENT in one.report.chunks[0].reason for one in (first, again))
    assert again.text == first.text
    index.bound.set_limit(1 << 30)
    assert set(index.encode(WHOLE)) >= set(tide), "it is made behind its document as soon as there is room"
    assert WITHOUT_DOCUMENT not in engine.answer(QUESTION, chunks, method=row, sampling=ONE).report.chunks[0].reason


def test_no_more_of_a_document_than_the_model_takes(tmp_path: Path) -> None:
    reader = tiny_reader("llama", max_position_embeddings=150)
    index = Index(tmp_path / "index", reader)
    names = put(index, "long", [f"Sentence number {n} of many." for n in range(12)])
    list(index.encode(WHOLE))
    assert index.missing(WHOLE) == []
    ends = [kv.start + len(kv) for kv in (stored(index, WHOLE, name) for name in names)]
    assert ends[-1] > 150 - len(stored(index, WHOLE, names[-1]))
    assert max(ends) <= 150


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(0, 40))
def test_the_nearest_that_fit(lengths: list[int], room: int) -> None:
    segments = [Segment(tuple(range(length))) for length in lengths]
    taken = nearest(segments, room)
    assert list(taken) == segments[len(segments) - len(taken) :]
    assert sum(map(len, taken)) <= room
    if len(taken) < len(segments):
        assert sum(map(len, segments[len(segments) - len(taken) - 1 :])) > room


def test_a_window_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="window is -1"):
        InDocument(window=-1)
