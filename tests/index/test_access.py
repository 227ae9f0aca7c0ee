"""Access labels: no chunk's KV is made behind what one of its readers may not read, whatever changes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from conftest import tiny_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_ragcache import RagCacheVectorStore
from numpy.typing import NDArray

from ragcache import RagCache
from ragcache.encode import Fused, InDocument
from ragcache.index.collection import Collection, Entry
from ragcache.index.index import Index
from ragcache.index.neighbours import SimilarChunks
from ragcache.retrieve import Vectors
from ragcache.store import Access, ChunkRow, EncodingRow, join_access, may_precede, parse_access

READER = tiny_reader()
TEXTS = ("# The merger of Tide", "It was begun in May.", "It costs nine million.", "It is a secret.", "It ends well.")
NOBODY = frozenset[str]()
LABELS: tuple[Access, ...] = (None, frozenset("a"), frozenset("b"), frozenset("ab"), NOBODY)
ENCODERS = (InDocument(), Fused(3))


def readers_of(label: Access) -> frozenset[str]:
    """Everybody whom a label lets in, of three people; one who is never named stands for all others."""
    return frozenset("abz") if label is None else label


def may_see(own: Access, left: Access) -> bool:
    """By its definition: nobody may read the chunk without being able to read what stands before it."""
    return readers_of(own) <= readers_of(left) and (bool(own) or left is None)


class Hashed:
    """Vectors that a text alone decides; in the place of the index's vectors."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def stored(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        rows = self._index.catalog.chunks(names)
        made = [torch.randn(4, generator=torch.Generator().manual_seed(sum(row.token_ids))) for row in rows]
        unit = torch.nn.functional.normalize(torch.stack(made), dim=-1).numpy()
        return {row.id: one for row, one in zip(rows, unit, strict=True)}


def encode_all(index: Index) -> dict[str, int]:
    near = SimilarChunks(index, cast(Vectors, Hashed(index)))
    return {encoder.recipe: len(list(index.encode(encoder, neighbours=near))) for encoder in ENCODERS}


def behind(index: Index, row: EncodingRow) -> list[list[ChunkRow]]:
    """Of each KV in a left context, the chunks whose KV it is."""
    every = index.catalog.all_chunks()
    recipes = index.catalog.recipes()
    keys = {one.id: {row.key for name in recipes for row in index.catalog.encodings(one.id, name)} for one in every}
    return [
        [one for one in every if key in keys[one.id]] for key in row.left if len(key) == 64 and key != index.prefix_key
    ]


def assert_nothing_leaks(index: Index) -> None:
    for chunk in index.catalog.all_chunks():
        for encoder in ENCODERS:
            for row in index.catalog.encodings(chunk.id, encoder.recipe):
                for sources in behind(index, row):
                    assert any(may_see(chunk.access, one.access) for one in sources), (chunk, sources)


entries = st.builds(
    Entry,
    st.sampled_from("pqrstu"),
    st.sampled_from(TEXTS),
    st.sampled_from(["one", "two"]),
    st.tuples(st.integers(0, 3)),
    access=st.sampled_from(LABELS),
)
steps = st.lists(
    st.one_of(st.lists(entries, min_size=1, max_size=4), st.sampled_from("pqrstu")), min_size=1, max_size=5
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_whatever_is_relabelled_no_kv_is_made_behind_what_a_reader_may_not_read(
    tmp_path_factory: pytest.TempPathFactory, todo: list
) -> None:
    with Index(tmp_path_factory.mktemp("access") / "index", READER) as index:
        notes = Collection(index, "notes", lambda: encode_all(index))
        for step in todo:
            notes.discard([step]) if isinstance(step, str) else notes.add(step)
            assert_nothing_leaks(index)
        encode_all(index)
        for document in index.catalog.documents():
            rows = index.catalog.chunks_of(document.id)
            for place, row in enumerate(rows):
                [made] = index.catalog.encodings(row.id, InDocument().recipe)
                seen = [one.text for one in rows[:place] if may_see(row.access, one.access)]
                assert len(made.left) == 1 + len(seen), "all that its readers may read, and nothing else"


@given(st.sampled_from(LABELS), st.sampled_from(LABELS), st.sampled_from(LABELS))
def test_what_may_precede_a_chunk_is_a_chain(one: Access, two: Access, three: Access) -> None:
    """A chunk's KV carries what its left context was made behind in its turn."""
    assert may_precede(one, two) == may_see(two, one)
    if may_precede(one, two) and may_precede(two, three):
        assert may_precede(one, three)


@pytest.mark.parametrize(
    ("given", "read"),
    [(None, None), ("hr", {"hr"}), ("hr, legal", {"hr", "legal"}), (["hr", 7], {"hr", "7"}), ("", NOBODY), ([], NOBODY),
     ({"hr": True}, NOBODY), (5, NOBODY), ([["hr"]], NOBODY)],
)  # fmt: skip
def test_what_is_no_label_lets_nobody_in(given: object, read: object) -> None:
    assert parse_access(given) == read


def test_a_text_in_two_places_may_be_read_by_the_readers_of_either() -> None:
    assert join_access([frozenset("a"), frozenset("b")]) == frozenset("ab")
    assert join_access([frozenset("a"), None]) is None


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "index", READER) as index:
        yield index


def put(index: Index, *labels: Access, source: str = "deal") -> list[str]:
    index.put(source, "", [(text, 0, len(text)) for text in TEXTS], {}, labels)
    document = index.catalog.document_by_source(source)
    return [row.id for row in index.catalog.chunks_of(document.id)] if document else []


def test_kv_is_bit_for_bit_what_it_would_be_without_the_restricted_chunks(index: Index, tmp_path: Path) -> None:
    names = put(index, frozenset("a"), None, frozenset("a"), None)
    list(index.encode(InDocument()))
    with Index(tmp_path / "other", READER) as other:
        other.put("deal", "", [(TEXTS[place], 0, 1) for place in (1, 3, 4)], {})
        list(other.encode(InDocument()))
        public = [row.id for row in other.catalog.all_chunks()]
        for name, same in zip((names[1], names[3], names[4]), public, strict=True):
            [chunk], [alone] = index.chunks([name]), other.chunks([same])
            ours, theirs = index.load(chunk, InDocument(), None).kv, other.load(alone, InDocument(), None).kv
            assert ours
            assert theirs
            assert ours.start == theirs.start
            assert all(torch.equal(*pair) for pair in zip(ours.layers, theirs.layers, strict=True))


def test_a_narrower_label_takes_the_kv_of_what_stood_behind_along(index: Index) -> None:
    names = put(index)
    list(index.encode(InDocument()))
    blobs = set(index.store.list())
    put(index, None, frozenset("a"))
    assert {row.id for row in index.missing(InDocument())} == set(names[1:])
    assert not blobs & set(index.store.list()) - {
        index.prefix_key,
        index.catalog.encodings(names[0], InDocument().recipe)[0].key,
    }
    list(index.encode(InDocument()))
    assert_nothing_leaks(index)


@pytest.mark.parametrize("how", ["removed", "replaced", "relabelled"])
def test_when_the_copy_for_everybody_goes_what_was_made_with_it_goes_too(index: Index, how: str) -> None:
    """The text has the same key elsewhere, where few may read it, so nothing else would tell that it has to go."""
    for name, text, label in (("open", 0, None), ("few", 0, frozenset("a")), ("other", 1, frozenset("b"))):
        index.put(name, "", [(TEXTS[text], 0, 1)], {}, [label])
    encode_all(index)
    [other] = [row for row in index.catalog.all_chunks() if row.text == TEXTS[1]]
    assert len(index.catalog.encodings(other.id, Fused(3).recipe)[0].left) > 1, "or nothing is fused with it"
    match how:
        case "removed":
            index.remove("open")
        case "replaced":
            index.put("open", "", [(TEXTS[2], 0, 1)], {})
        case _:
            index.put("open", "", [(TEXTS[0], 0, 1)], {}, [frozenset("a")])
    assert not index.catalog.encodings(other.id, Fused(3).recipe)
    encode_all(index)
    assert_nothing_leaks(index)


def test_equal_labels_leave_everything_as_it_was(index: Index) -> None:
    put(index, frozenset("ab"), None)
    list(index.encode(InDocument()))
    put(index, frozenset("ba"), None)
    assert not index.missing(InDocument())


def add_through_langchain(rag: RagCache, documents: list[Document]) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    RagCacheVectorStore(store, rag, collection="notes", methods=["in-document"]).add_documents(documents)


def add_through_llama_index(rag: RagCache, documents: list[Document]) -> None:
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index_ragcache import RagCacheVectorStore as NodeStore

    parent = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="deal")}
    nodes = [TextNode(id_=one.id, text=one.page_content, metadata=one.metadata, relationships=parent, embedding=[1.0])
             for one in documents]  # fmt: skip
    NodeStore(SimpleVectorStore(), rag, collection="notes", methods=["in-document"]).add(nodes)


@pytest.mark.parametrize("add", [add_through_langchain, add_through_llama_index])
def test_frameworks_bring_labels_in_the_metadata(
    add: Callable[[RagCache, list[Document]], None], tmp_path: Path
) -> None:
    labels = ["board, legal", None, ["legal"]]
    documents = [
        Document(text, id=f"n{place}", metadata={"source": "deal", **({"access": label} if label else {})})
        for place, (text, label) in enumerate(zip(TEXTS, labels, strict=False))
    ]
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        add(rag, documents)
        rows = rag.index.catalog.all_chunks()
        assert [row.access for row in rows] == [frozenset({"board", "legal"}), None, frozenset({"legal"})]
        left = [rag.index.catalog.encodings(row.id, InDocument().recipe)[0].left for row in rows]
        assert [len(keys) for keys in left] == [1, 1, 3]
