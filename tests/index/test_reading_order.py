"""The order in which retrieved chunks are read: a document's together, as they stand in it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache import Chunk, RagCache, Sampling
from ragcache.index.chunks import order_by_document
from ragcache.prompt import Segment

SHORT = Sampling(max_new_tokens=1)
FERRY = (
    "# The ferry\n\nIt leaves at nine.\n\n# The price\n\nIt costs four crowns.\n\n# The way back\n\nIt takes an hour.\n"
)
MILL = "# The mill\n\nIt grinds oats.\n\n# The miller\n\nHe sleeps at noon.\n"


def chunk(document: str, ordinal: int) -> Chunk:
    text = f"{document} {ordinal}"
    return Chunk(text, document, text, Segment((1,), text), document=document, ordinal=ordinal)


def test_the_best_document_comes_first_and_its_chunks_as_they_stand_in_it() -> None:
    ranked = [chunk("b", 3), chunk("a", 1), chunk("b", 0), chunk("a", 0)]
    assert [one.text for one in order_by_document(ranked)] == ["b 0", "b 3", "a 0", "a 1"]


def test_texts_of_no_document_keep_their_rank() -> None:
    ranked = ["first", chunk("a", 2), "second", chunk("a", 1), "first"]
    read = [one if isinstance(one, str) else one.text for one in order_by_document(ranked)]
    assert read == ["first", "a 1", "a 2", "second", "first"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), unique=True))
def test_nothing_is_lost_and_ordering_again_changes_nothing(places: list[tuple[str, int]]) -> None:
    ranked = [chunk(*place) for place in places]
    read = order_by_document(ranked)
    assert sorted(one.text for one in read) == sorted(one.text for one in ranked)
    assert order_by_document(read) == read
    documents = [one.document for one in read]
    assert list(dict.fromkeys(documents)) == list(dict.fromkeys(one.document for one in ranked))
    for name in set(documents):
        own = [one.ordinal for one in read if one.document == name]
        start = documents.index(name)
        assert documents[start : start + len(own)] == [name] * len(own), "a document's chunks stand together"
        assert own == sorted(own)


class Backwards:
    """Finds every chunk of the index, the last one of a document first."""

    def __init__(self, rag: RagCache) -> None:
        self.rag = rag

    def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk]]:
        found = sorted(self.rag.retrieve(question, top_k=count), key=lambda one: (one.source, -one.ordinal))
        yield found[:1]
        yield found


@pytest.fixture
def rag(tmp_path: Path, checkpoint: Path) -> Iterator[RagCache]:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "ferry.md").write_text(FERRY, encoding="utf-8")
    (tmp_path / "pages" / "mill.md").write_text(MILL, encoding="utf-8")
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive") as rag:
        rag.ingest(tmp_path / "pages", titles="none", chunk_tokens=40)
        yield rag


def texts(rag: RagCache, document: str) -> list[str]:
    found = [one for one in rag.retrieve("What?", top_k=100) if one.source.endswith(document)]
    return [one.text for one in sorted(found, key=lambda one: one.ordinal)]


@pytest.mark.parametrize("verb", ["ask", "stream"])
def test_a_question_is_answered_from_documents_in_their_own_order(rag: RagCache, verb: str) -> None:
    ferry, mill = texts(rag, "ferry.md"), texts(rag, "mill.md")
    assert len(ferry) > 1 < len(mill)
    answer = getattr(rag, verb)("What?", top_k=100, sampling=SHORT, retriever=Backwards(rag))
    read = answer if verb == "ask" else answer.answer
    assert [one.text for one in read.sources] == [*ferry, *mill]


def test_what_is_retrieved_comes_best_first(rag: RagCache) -> None:
    [best, *_] = rag.retrieve("It takes an hour.", top_k=100)
    assert "It takes an hour." in best.text
    assert best.ordinal > 0
