"""Which documents the benchmark's chunks come from, and what an encoder that looks at documents sees of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.contenders import Contender
from ragcache_bench.runs import looks_at_documents
from ragcache_bench.tasks import DOCUMENT_TASKS, TASKS, Binding, Corpus, Example, Sections
from ragcache_bench.tasks.example import paged

from ragcache.bundled import corpus_path
from ragcache.encode import Activations, Alone, Encoder, EncodingContext, Fused, InDocument, LeftContext
from ragcache.encode.protocol import BaseEncoder
from ragcache.errors import InvalidArgument
from ragcache.index.encoding_context import STRUCTURAL
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import ignore_progress

BOUND = [name for name in TASKS if name.startswith(("sections", "pronouns", "labels", "units"))]
WHOLE = InDocument(window=None)
PAGES = (("# A", "It is big.", "It is red."), ("# B", "It is small."))
ASKED = Example("t-0", "t", ("# B", "It is red.", "Loose."), "Which?", ("red",), (1,), pages=PAGES)
OTHER = Example("t-1", "t", ("It is big.", "Also loose.", "Loose."), "Which?", ("big",), (0,), pages=PAGES[:1])


class Letters:
    """Stands in for the sentence embedder: letter frequencies."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.lower().count(chr(c)) + 0.01 for c in range(97, 123)] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


LETTERS: Any = Letters()


@pytest.mark.parametrize("name", BOUND)
def test_pages_cut_the_prompt_at_introductions(name: str) -> None:
    cut = 0
    for example in TASKS[name].examples(12, 5):
        assert len(example.pages) != 1
        told = [text for page in example.pages for text in page]
        assert tuple(told) == example.chunks[len(example.chunks) - len(told) :], "consecutive, to the end"
        if not example.pages:
            continue
        cut += 1
        fact = example.chunks[example.gold[-1]]
        (own,) = [page for page in example.pages if fact in page]
        assert len(own) < len(example.chunks)
        if not name.endswith("-twin"):
            assert example.chunks[example.gold[0]] in own, "a fact stands on the page of its introduction"
            assert own.index(fact) - own.index(example.chunks[example.gold[0]]) == example.gap
        if "interleaved" not in name and not name.endswith("-twin"):
            assert own[0] == example.chunks[example.gold[0]]
    assert cut


@pytest.mark.parametrize("name", [name for name in BOUND if f"{name}-twin" in BOUND])
def test_twins_have_the_same_pages(name: str) -> None:
    for a, b in zip(TASKS[name].examples(8, 2), TASKS[f"{name}-twin"].examples(8, 2), strict=True):
        assert list(map(len, a.pages)) == list(map(len, b.pages))
        assert [page[0] for page in a.pages] == [page[0] for page in b.pages]


def test_where_kinds_take_turns_no_fact_is_cut_off() -> None:
    """Every fact of every subject: with a header of another kind in between it is still on its own header's page."""
    task = Binding("labels", interleaved=1.0)
    names = [f"{letter}{n}" for letter in "PQRTXZ" for n in range(1, 10)]
    for example in task.examples(12, 3):
        for page in example.pages:
            told = set[str]()
            for text in page:
                used = {name for name in names if f"{name} " in text or f"{name}." in text or f"{name}'" in text}
                if any(mark in text for mark in ("stands for", "From here on", "is short for")):
                    told |= used
                assert used <= told


def test_one_page_alone_is_none() -> None:
    assert paged(["a", "b", "c"], [0]) == ()
    assert paged(["a", "b", "c"], [1]) == ()
    assert paged(["a", "b", "c"], []) == ()
    assert paged(["a", "b", "c"], [2, 1]) == (("b",), ("c",))


@pytest.mark.parametrize("name", ["facts", "twohop", "trace"])
def test_what_stands_alone_has_no_pages(name: str) -> None:
    assert all(example.pages == () for example in TASKS[name].examples(4))


@pytest.mark.parametrize("name", ["corpus-one-hop", "corpus-two-hop", "corpus-section"])
def test_the_corpus_pages_are_its_files_whole(name: str) -> None:
    files = {file.read_text().strip() for file in corpus_path().rglob("*.*")}
    for example in TASKS[name].examples(10):
        assert {"\n\n".join(page) for page in example.pages} <= files
        assert set(example.chunks) <= {text for page in example.pages for text in page}
        assert all(set(page) & set(example.chunks) for page in example.pages)


@pytest.mark.parametrize(
    ("plain", "bare", "name"),
    [
        (Sections(), Sections(header=False), "sections-bare"),
        (Corpus("section"), Corpus("section", header=False), "corpus-section-bare"),
    ],
)
def test_without_its_header_a_fact_has_it_on_its_page_only(
    plain: Sections | Corpus, bare: Sections | Corpus, name: str
) -> None:
    assert bare.needs
    for a, b in zip(plain.examples(20, 4), bare.examples(20, 4), strict=True):
        assert (a.question, a.answers) == (b.question, b.answers)
        assert (b.task, b.gap) == (name, None)
        header, fact = (a.chunks[i] for i in a.gold)
        assert [b.chunks[i] for i in b.gold] == [fact]
        assert header not in b.chunks
        (own,) = [page for page in b.pages if fact in page]
        assert own.index(header) < own.index(fact)
        assert set(b.chunks) <= {text for page in b.pages for text in page} | set(a.chunks)


def test_bare_sections_show_no_header_and_a_bare_corpus_page_shows_a_distractor() -> None:
    for a, b in zip(Sections().examples(10), Sections(header=False).examples(10), strict=True):
        heads = {page[0] for page in a.pages}
        assert b.chunks == tuple(text for text in a.chunks if text not in heads)
        assert a.pages == b.pages
    section = Corpus("section").examples(20), Corpus("section", header=False).examples(20)
    for a, b in zip(*section, strict=True):
        (changed,) = [i for i, (x, y) in enumerate(zip(a.chunks, b.chunks, strict=True)) if x != y]
        assert changed == a.gold[0]
        assert not b.chunks[changed].startswith("# ")
        assert b.chunks[changed] not in {text for page in a.pages for text in page}
    with pytest.raises(InvalidArgument, match="one-hop"):
        Corpus("one-hop", header=False)


def test_an_example_is_written_without_its_pages() -> None:
    """Answers are kept under a digest of this; encoders that don't look at documents answer as before."""
    assert "pages" not in repr(ASKED)


def test_it_is_known_which_encoders_look_at_documents(reader: Reader) -> None:
    of_rows = [row.encode for row in METHODS.values() if row.encode]
    fused, deep = [Fused(2, by=by) for by in ("similarity", "structure", "both")], Activations(of=InDocument(512))
    encoders = {encoder.recipe: encoder for encoder in (*of_rows, *fused, InDocument(512), deep)}
    with filled(job(*encoders.values()), reader, LETTERS, ignore_progress) as (index, _):
        asked = set(index.catalog.setting(STRUCTURAL, []))
    assert {recipe for recipe, encoder in encoders.items() if looks_at_documents(encoder)} == asked


def test_of_an_encoder_that_is_not_ours_nobody_knows() -> None:
    class Another(BaseEncoder):
        """Somebody's own."""

        recipe = "another"

        def left(self, chunk: str, context: EncodingContext) -> LeftContext:
            return LeftContext()

    assert looks_at_documents(Another())
    assert not looks_at_documents(None)


def job(*encoders: Encoder) -> Job:
    turns = tuple((encoder.recipe, Contender(Method(encoder.recipe, encoder))) for encoder in encoders)
    return Job("t", (ASKED, OTHER), (Asked(ASKED, turns),), Sampling())


def test_a_page_is_one_document_and_what_is_on_none_is_its_own(reader: Reader) -> None:
    with filled(job(Alone()), reader, LETTERS, ignore_progress) as (index, ids):
        found = sorted(tuple(row.text for row in index.catalog.chunks_of(one.id)) for one in index.catalog.documents())
        assert found == sorted([*PAGES, ("Loose.",), ("Also loose.",)])
        assert list(ids) == list(dict.fromkeys((*ASKED.chunks, *OTHER.chunks))), "those in prompts only"
        assert [chunk.text for chunk in index.chunks(list(ids.values()))] == list(ids)


def test_in_document_sees_true_pages_and_never_the_prompts_neighbours(reader: Reader) -> None:
    with filled(job(WHOLE), reader, LETTERS, ignore_progress) as (index, ids):
        prefix = reader.encode(index.prefix_segment.token_ids)
        segments = {
            text: index.uncached_chunk(text).segment.token_ids for page in (*PAGES, ("Loose.",)) for text in page
        }
        for text, before in {"It is red.": PAGES[0][:2], "# B": (), "Loose.": ()}.items():
            (chunk,) = index.chunks([ids[text]])
            kv = index.load(chunk, WHOLE, None).kv
            assert kv is not None
            ids_before = [token for one in before for token in segments[one]]
            together = reader.encode([*ids_before, *segments[text]], (prefix,))
            assert kv.start == len(prefix) + len(ids_before)
            for ours, whole in zip(kv.layers, together.layers, strict=True):
                torch.testing.assert_close(ours, whole[:, :, len(ids_before) :], rtol=1e-4, atol=1e-4)


def test_fusing_by_similarity_knows_the_prompts_chunks_only(reader: Reader) -> None:
    with filled(job(Fused(9), Fused(1, by="structure")), reader, LETTERS, ignore_progress) as (index, ids):
        lengths = {text: len(index.uncached_chunk(text).segment) for page in PAGES for text in page}
        (chunk,) = index.chunks([ids["It is red."]])
        shown = [index.uncached_chunk(text) for text in ids if text != chunk.text]
        fused = index.load(chunk, Fused(9), None).kv
        assert fused is not None
        assert fused.start == len(index.prefix_segment) + sum(len(one.segment) for one in shown)
        behind = index.load(chunk, Fused(1, by="structure"), None).kv
        assert behind is not None
        assert behind.start == len(index.prefix_segment) + lengths["It is big."]


def test_misled_sections_stand_behind_another_header_on_their_page_only() -> None:
    for plain, misled in zip(Sections().examples(5), Sections(misled=True).examples(5), strict=True):
        assert (plain.chunks, plain.question, plain.answers) == (misled.chunks, misled.question, misled.answers)
        headers = [page[0] for page in plain.pages]
        assert [page[0] for page in misled.pages] == [*headers[1:], headers[0]]
        assert [page[1:] for page in misled.pages] == [page[1:] for page in plain.pages]


def test_document_tasks_are_known_by_their_own_names_and_asked_for_only() -> None:
    assert not DOCUMENT_TASKS.keys() & TASKS.keys()
    for name, task in DOCUMENT_TASKS.items():
        assert {example.task for example in task.examples(2)} == {name}
