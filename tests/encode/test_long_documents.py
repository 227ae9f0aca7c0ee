"""What a chunk's encoding costs does not depend on how long its document is: counted, not timed."""

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from encode.contexts import put

from ragcache.encode import Encoder, Fused, InDocument
from ragcache.index.index import Index
from ragcache.model.reader import Reader

SHORT, LONG, FIRST = 40, 400, 30
STRUCTURAL = [InDocument(window=60), InDocument(window=None), Fused(2, by="structure")]


@pytest.fixture
def tight(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """One chunk a forward, or few, and a model that takes six chunks."""
    monkeypatch.setattr(reader, "limit", 120)
    monkeypatch.setattr("ragcache.index.index.capacity", lambda _: 16)
    return reader


def count(path: Path, reader: Reader, encoder: Encoder, chunks: int) -> tuple[Counter[str], int]:
    """What happens while the second to the `FIRST` chunk of a document is made, and blobs that are read for it."""
    with Index(path, reader, memory_bytes=0) as index:
        put(index, "long", [f"Number {n:04d}." for n in range(chunks)])
        if encoder.base_encoding is not None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("ragcache.index.index.capacity", lambda _: 4096)
                list(index.encode(encoder.base_encoding))
        making, happened = index.encode(encoder), Counter[str]()
        next(making)
        index.catalog._connection.set_trace_callback(lambda statement: happened.update(["statement"]))
        real = index.store.get
        index.store.get = lambda key: happened.update(["read"]) or real(key)  # type: ignore[method-assign,func-returns-value]
        return happened, _calls(islice(making, FIRST - 1))


def _calls(work: Iterator[object]) -> int:
    """Python functions that are called while something is worked through."""
    calls = 0

    def notice(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(notice)
    try:
        for _ in work:
            pass
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("encoder", STRUCTURAL, ids=lambda encoder: encoder.recipe)
def test_a_chunk_costs_the_same_in_a_long_document_as_in_a_short_one(
    encoder: Encoder, tight: Reader, tmp_path: Path
) -> None:
    (short, few), (long, many) = (count(tmp_path / str(n), tight, encoder, n) for n in (SHORT, LONG))
    assert long == short, "statements of the catalogue, and blobs that are read"
    assert many <= 1.05 * few
    assert short["statement"] <= 16 * FIRST


def test_a_left_context_is_read_once_though_the_memory_tier_holds_nothing(tight: Reader, tmp_path: Path) -> None:
    happened, _ = count(tmp_path, tight, InDocument(window=60), SHORT)
    assert happened["read"] <= FIRST, "each chunk once, for the first that stands behind it"


def test_a_document_is_read_from_the_catalogue_a_few_times_at_most(
    tight: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index(tmp_path, tight) as index:
        put(index, "long", [f"Number {n:04d}." for n in range(SHORT)])
        listed: list[str] = []
        real = index.catalog.chunks_of
        monkeypatch.setattr(index.catalog, "chunks_of", lambda name: listed.append(name) or real(name))  # type: ignore[func-returns-value]
        assert len(list(index.encode(InDocument()))) == SHORT
        assert len(listed) <= 2, "with its first chunk, and with its last, which is asked again once it may be made"
