"""Title lines in an index: in the chunks that the model reads, in what is embedded, in both, and changed later."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ragcache import RagCache
from ragcache.model.decode import Sampling

SHORT = Sampling(max_new_tokens=2)
PAID = "All of it is paid in cash at the gate, where the harbour master keeps a book of ships."
LINE = "Harbour guide \u203a Fees\n"
GUIDE = f"""# Harbour guide

Ships come and go.

## Fees

A berth costs 40 crowns a day, in winter half as much, and less at night. {PAID}

## Hours

It opens at seven every morning.
"""


class Letters:
    """Embeds a text as how often it has each letter, and keeps what it was given."""

    name, max_tokens = "letters", 400

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.seen += texts
        return [[1.0 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]

    def count(self, text: str) -> int:
        return len(text)


@pytest.fixture
def embedder() -> Letters:
    return Letters()


@pytest.fixture
def rag(tmp_path: Path, checkpoint: Path, embedder: Letters) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive", embedder=embedder) as rag:
        rag.titles = "none"  # where a test does not say where they stand
        yield rag


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    (tmp_path / "guide.md").write_text(GUIDE, encoding="utf-8")
    return tmp_path / "guide.md"


def texts(rag: RagCache) -> list[str]:
    return [text for _, text in rag.index.catalog.texts()]


def test_chunks_begin_with_their_title_line_and_keep_to_their_size(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, titles="both", chunk_tokens=120)
    rows = rag.index.catalog.all_chunks()
    assert all(row.text.startswith(("# Harbour guide", "Harbour guide\n## ", LINE)) for row in rows)
    assert max(len(row.token_ids) for row in rows) <= 120
    assert [GUIDE[row.start : row.end] for row in rows] == [row.text[-(row.end - row.start) :] for row in rows]


def test_text_inside_a_section_stands_under_its_headings(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, titles="text", chunk_tokens=120)
    assert LINE + PAID in texts(rag)


def test_the_kv_is_of_what_the_prompt_shows(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, titles="text", chunk_tokens=120)
    [row] = [row for row in rag.index.catalog.all_chunks() if row.text == LINE + PAID]
    answer = rag.ask("Is it paid in cash?", top_k=4, sampling=SHORT)
    assert row.token_ids == tuple(rag.index.template.chunk(LINE + PAID, "").token_ids)
    assert {chunk.cache for chunk in answer.report.chunks if chunk.id == row.id} <= {"hit", "exact"}


def test_an_excerpt_is_of_the_text_and_its_heading_of_its_place(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, titles="both", chunk_tokens=120)
    sources = rag.ask("Harbour guide: what is paid in cash?", top_k=4, sampling=SHORT).sources
    [source] = [one for one in sources if PAID in one.text]
    assert (source.excerpt, source.heading) == (PAID, "Harbour guide \u203a Fees")


@pytest.mark.parametrize(
    ("titles", "read", "embedded"),
    [("none", False, False), ("text", True, False), ("embedding", False, True), ("both", True, True)],
)
def test_titles_stand_where_they_are_asked_for(
    rag: RagCache, embedder: Letters, guide: Path, titles: str, read: bool, embedded: bool
) -> None:
    rag.ingest(guide, titles=titles, chunk_tokens=120)
    [text] = [text for text in texts(rag) if PAID in text]
    [seen] = [text for text in embedder.seen if PAID in text]
    assert text == (LINE + PAID if read else PAID)
    assert seen == (LINE + PAID if embedded else PAID)


def test_an_index_remembers_where_its_titles_stand(
    rag: RagCache, checkpoint: Path, guide: Path, tmp_path: Path
) -> None:
    rag.ingest(guide, titles="both", chunk_tokens=120)
    before = texts(rag)
    with RagCache.open(rag.index.path, embedder=Letters()) as again:
        assert (again.titles, again.ingest(guide).unchanged) == ("both", 1)
        assert texts(again) == before


def test_documents_are_split_again_when_titles_move(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, chunk_tokens=120)
    plain = texts(rag)
    assert rag.ingest(guide, titles="both").changed == 1
    assert texts(rag) != plain
    assert rag.ingest(guide, titles="none").changed == 1
    assert texts(rag) == plain


def test_kv_stays_where_only_the_embedded_text_changes(rag: RagCache, embedder: Letters, guide: Path) -> None:
    (guide.parent / "guide.md").write_text("# A\n\n" + "It opens at seven. " * 3, encoding="utf-8")
    rag.ingest(guide, chunk_tokens=100)
    embedder.seen.clear()
    done = rag.ingest(guide, titles="embedding")
    assert (done.changed, done.encoded) == (1, {})
    assert len(embedder.seen) == len(texts(rag))


def test_documents_of_an_older_version_are_left_alone(rag: RagCache, guide: Path) -> None:
    rag.ingest(guide, chunk_tokens=120)
    [row] = rag.index.catalog.documents()
    chunks = [(chunk.text, chunk.start, chunk.end) for chunk in rag.index.catalog.chunks_of(row.id)]
    rag.index.put(row.source, row.digest, chunks, {k: v for k, v in row.metadata.items() if k != "titles"})
    assert rag.ingest(guide).unchanged == 1


def test_a_plan_counts_the_title_lines(rag: RagCache, guide: Path) -> None:
    plan = rag.plan(guide, titles="both", chunk_tokens=120)
    rag.ingest(guide, titles="both", chunk_tokens=120)
    assert plan.tokens == sum(len(row.token_ids) for row in rag.index.catalog.all_chunks())


def test_a_title_takes_a_quarter_of_a_chunk_at_most(rag: RagCache, tmp_path: Path) -> None:
    file = tmp_path / f"{'long name ' * 9}.txt"
    file.write_text("It opens at seven every morning. " * 5, encoding="utf-8")
    rag.ingest(file, titles="both", chunk_tokens=60)
    assert all(2 < text.index("\n") <= 15 for text in texts(rag))


def test_room_is_kept_for_the_line_of_most_tokens_not_of_most_letters(rag: RagCache, tmp_path: Path) -> None:
    said = "It opens at seven every morning. " * 12
    headings = ("Opening hours in summer", "\u958b\u9928\u6642\u9593\u958b\u9928\u6642\u9593")
    text = "# G\n\n" + "\n\n".join(f"## {heading}\n\n{said}" for heading in headings)
    (tmp_path / "g.md").write_text(text, encoding="utf-8")
    rag.ingest(tmp_path / "g.md", titles="both", chunk_tokens=130)
    assert max(len(row.token_ids) for row in rag.index.catalog.all_chunks()) <= 130
