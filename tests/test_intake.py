"""From files of many formats to sources that say where to look: what is in the index, what is not, and who says so."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcache import RagCache
from ragcache.model.decode import Sampling

SHORT = Sampling(max_new_tokens=2)


@pytest.fixture
def rag(tmp_path: Path, checkpoint: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive") as rag:
        yield rag


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A PDF of three pages with an outline."""
    from reportlab.pdfgen.canvas import Canvas

    folder = tmp_path / "docs"
    folder.mkdir()
    canvas = Canvas(str(folder / "report.pdf"))
    for title, sentence in (
        ("Tide", "The tide in Kelmar rises at seven every morning."),
        ("Costs", "The new lighthouse cost 4,200 euros to build."),
        ("Outlook", "The ferry to the islands stops running next year."),
    ):
        canvas.bookmarkPage(title)
        canvas.addOutlineEntry(title, title)
        canvas.drawString(72, 720, title)
        canvas.drawString(72, 700, sentence)
        canvas.showPage()
    canvas.save()
    return folder / "report.pdf"


def test_sources_of_a_pdf_say_page_heading_and_excerpt(rag: RagCache, report: Path) -> None:
    rag.ingest(report, chunk_tokens=80)
    answer = rag.ask("What did the lighthouse cost?", top_k=3, sampling=SHORT)
    assert [source.page for source in answer.sources] == [1, 2, 3], "as they stand in the document"
    costs = answer.sources[1]
    assert costs.heading == "Costs"
    assert "The new lighthouse cost 4,200 euros to build." in costs.excerpt
    assert costs.citation == f'{report}, p. 2, "Costs"'
    shown = answer.as_dict()["sources"][1]
    assert (shown["page"], shown["heading"], shown["excerpt"]) == (2, "Costs", costs.excerpt)


def test_the_excerpt_s_own_page_is_named_where_a_chunk_spans_several(rag: RagCache, report: Path) -> None:
    rag.ingest(report, chunk_tokens=250)
    for page, question in ((1, "When does the tide rise in Kelmar?"), (3, "When does the ferry stop?")):
        [source] = rag.ask(question, sampling=SHORT).sources
        assert source.page == page


def test_an_index_whose_documents_have_no_marks_goes_on_to_work(rag: RagCache, report: Path) -> None:
    rag.ingest(report)
    catalog = rag.index.catalog
    [row] = catalog.documents()
    chunks = [(chunk.text, chunk.start, chunk.end) for chunk in catalog.chunks_of(row.id)]
    rag.index.put(row.source, row.digest, chunks, {k: v for k, v in row.metadata.items() if k != "marks"})
    [source, *_] = rag.ask("What did the lighthouse cost?", sampling=SHORT).sources
    assert (source.page, source.heading) == (None, "")
    assert "lighthouse" in source.excerpt
    assert rag.ingest(report).unchanged == 1


def test_rows_of_tables_and_records_are_found_by_their_columns(rag: RagCache, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "staff.csv").write_text("name,town,role\nAda,Kelmar,pilot\nBob,Rye,baker\n")
    (folder / "boats.json").write_text('{"boats": [{"name": "Otter", "kind": "ferry"}]}')
    rag.ingest(folder, chunk_tokens=40, titles="none")
    [best] = rag.ask("Which town does Bob the baker come from?", top_k=1, sampling=SHORT).sources
    assert best.excerpt == "name: Bob town: Rye role: baker"
    [best] = rag.ask("Is Otter a ferry boat?", top_k=1, sampling=SHORT).sources
    assert best.text == "boats.name: Otter\nboats.kind: ferry"


def test_what_is_left_out_is_named_in_the_plan_and_in_the_report(rag: RagCache, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "node_modules").mkdir(parents=True)
    for name, text in (("a.md", "One."), ("b.md", "Two."), ("old.md", "Old."), ("i.png", "x"), ("empty.md", "")):
        (folder / name).write_text(text)
    (folder / ".gitignore").write_text("b.md\n")
    os.mkfifo(folder / "pipe.txt")
    plan = rag.plan(folder, exclude=["old.md"])
    done = rag.ingest(folder, exclude=["old.md"])
    assert plan.documents == done.added == 1
    for left in (plan, done):
        assert not left.complete
        assert [Path(path).name for path in left.skipped] == ["i.png"]
        assert [Path(path).name for path in left.ignored] == [".gitignore", "b.md", "node_modules", "old.md"]
        assert ["pipe" in error or "empty" in error for error in left.errors] == [True, True]
    assert rag.ingest(folder, exclude=["old.md"], ignore_files=False).added == 1
    assert rag.ingest(folder / "a.md").complete


@pytest.mark.parametrize(("asked", "said"), [(32, ""), (300, "all-MiniLM-L6-v2 embeds at most 256"), (9000, "takes")])
def test_chunks_that_a_limit_keeps_shorter_than_asked_are_said(
    rag: RagCache, tmp_path: Path, asked: int, said: str
) -> None:
    (tmp_path / "a.txt").write_text("The tide rises at seven. " * 200)
    plan, done = (work(tmp_path / "a.txt", chunk_tokens=asked) for work in (rag.plan, rag.ingest))
    assert plan.notes == done.notes
    assert bool(done.notes) == bool(said)
    if said:
        assert any(said in note and f"{asked:,} tokens asked for" in note for note in done.notes)
    longest = max(len(chunk.token_ids) for chunk in rag.index.catalog.all_chunks())
    assert longest <= min(asked, rag.reader.limit)
