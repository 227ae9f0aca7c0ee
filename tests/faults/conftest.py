"""A small index of three pages, opened with a tiny model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import tiny_reader
from faults.small import Letters, write_pages

from ragcache import RagCache
from ragcache.model.reader import Reader


@pytest.fixture(scope="module")
def reader() -> Reader:
    """The model."""
    return tiny_reader()


@pytest.fixture
def rag(tmp_path: Path, reader: Reader) -> Iterator[RagCache]:
    """The index; its pages lie in `files`."""
    with RagCache.open(tmp_path / "index", model=reader, embedder=Letters()) as rag:
        rag.ingest(write_pages(tmp_path / "files"))
        yield rag
