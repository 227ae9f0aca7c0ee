"""The page in a real browser, by axe and by hand; `make page-check` runs it where there is a Chromium."""

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai_ragcache import Tenants
from ragcache_bench.tasks import KNOWN, Example
from retrieve.test_documents import make_pdf
from serve.served import MODEL, serve
from studied import load_study

from ragcache import RagCache

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="takes a Chromium on the path")
MESSAGES_OF, STUDIED_SERVER = load_study("learnt_texts")["messages_of"], load_study("studied_server")
MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
LISTING = re.compile(r"/v1/ragcache/documents\?order=asc")
DEVICES = [
    *({"color_scheme": shade, "viewport": {"width": 1100, "height": 800}} for shade in ("light", "dark")),
    {"color_scheme": "light", "viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True},
]


@pytest.fixture(scope="module")
def origin(rag: RagCache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over a document that holds markup, and one that holds none."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "tide.md").write_text("The Tide project is led by Mara Voss. " * 30)
    (folder / "markup.md").write_text(f"The Ebb project is led by Jon Pell. {MARKUP} It began in May. " * 10)
    with RagCache.open(folder / "index", model=rag.reader) as own:
        own.ingest([folder / "tide.md", folder / "markup.md"])
        with serve(Tenants.of_one(own)) as url:
            yield url.removesuffix("/v1")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page that complains of nothing, and asks nobody but its own server."""
    context = browser.new_context(**getattr(request, "param", DEVICES[0]))
    page, said, asked = context.new_page(), list[str](), set[str]()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda one: asked.add(one.url.split("/")[2]) if one.url.startswith("http") else None)
    yield page
    context.close()
    assert said == []
    assert len(asked) == 1


def ask(page: Any, origin: str, question: str) -> None:
    """Ask by keyboard alone, and wait for both answers."""
    page.goto(origin)
    playwright.expect(page.locator("#served")).to_contain_text("answers at")
    page.locator("#question").focus()
    page.keyboard.type(question)
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#full .figure b")).to_contain_text("ms", timeout=60_000)
    playwright.expect(page.locator("#send")).to_be_enabled()


def show(page: Any, view: str) -> None:
    page.locator(f'nav a[href="#{view}"]').click()
    playwright.expect(page.locator(f"#{view}-view")).to_be_visible()


def open_rows(page: Any, rows: str) -> None:
    """Open every row of a list, and have what is in it."""
    playwright.expect(page.locator(f"{rows} details").first).to_be_visible()
    for summary in page.locator(f"{rows} summary").all():
        summary.click()
    playwright.expect(page.locator(f"{rows} .text").first).to_be_visible()


@pytest.mark.parametrize("page", DEVICES, indirect=True)
def test_no_view_has_a_barrier_that_axe_finds(page: Any, origin: str) -> None:
    ask(page, origin, "Who leads the Tide project?")
    open_rows(page, "#chunks")
    for view, rows in (("ask", ""), ("documents", "#documents-list"), ("history", "")):
        show(page, view)
        if rows:
            open_rows(page, rows)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"


def test_a_barrier_would_be_found(page: Any, origin: str) -> None:
    page.goto(origin)
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert [one["id"] for one in axe.Axe().run(page).response["violations"]] == ["image-alt"]


def test_markup_in_a_document_is_shown_as_text(page: Any, origin: str) -> None:
    ask(page, origin, "Who leads the Ebb project?")
    open_rows(page, "#chunks")
    playwright.expect(page.locator("#chunks .text", has_text="<script>").first).to_be_visible()
    show(page, "documents")
    open_rows(page, "#documents-list")
    playwright.expect(page.locator("#documents-list .text", has_text="<img src=x").first).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "Documents · ragcache"


def test_an_answer_shows_both_times_every_token_s_state_and_the_ratio_that_was_set(page: Any, origin: str) -> None:
    ask(page, origin, "Who leads the Tide project?")
    times = [page.locator(f"#{which} .figure b").inner_text() for which in ("reused", "full")]
    assert all(float(time.removesuffix(" ms").replace(",", "")) > 0 for time in times)
    open_rows(page, "#chunks")
    assert page.locator("#chunks .text mark.hit, #chunks .text mark.exact").count() > 0
    chunks, before = count_tokens(page)
    assert before < chunks
    page.locator("#ratio").focus()
    page.keyboard.press("End")
    assert page.locator("#share").inner_text() == "100 %"
    page.locator("#send").click()
    playwright.expect(page.locator("#full .figure b")).to_contain_text("ms", timeout=60_000)
    playwright.expect(page.locator("#send")).to_be_enabled()
    assert count_tokens(page) == (chunks, chunks)
    open_rows(page, "#chunks")
    assert page.locator("#chunks .text mark.hit").count() == 0
    assert page.locator("#chunks .text mark.recomputed").count() > 0


def count_tokens(page: Any) -> tuple[int, int]:
    """Tokens of the chunks that an answer was given from, and those of them that were recomputed."""
    said = re.search(r"(\d+) of their (\d+) tokens recomputed", page.locator("#summary").inner_text())
    assert said is not None
    return int(said[2]), int(said[1])


def test_misleading_documents_show_as_agreement_that_drops(page: Any, rag: RagCache, tmp_path: Path) -> None:
    """The default reads a chunk as its document has it: here in another order than the prompt."""
    honest, misled = (KNOWN[task].examples(24, seed) for seed, task in enumerate(("sections", "sections-misled")))
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        STUDIED_SERVER["ingest_examples"](own, (*honest, *misled))
        with serve(Tenants.of_one(own), verify=1.0) as url, httpx.Client(base_url=url, timeout=60) as client:
            shares = [ask_and_look(page, client, examples) for examples in (honest, misled)]
    assert shares[0] >= 90
    assert shares[1] <= 80


def ask_and_look(page: Any, client: httpx.Client, examples: Sequence[Example]) -> int:
    """Ask questions over their chunks, and read from the page how many of a hundred answers full prefill confirms."""
    for example in examples:
        body = {"model": MODEL, "messages": MESSAGES_OF(example), "max_tokens": 24}
        assert client.post("/chat/completions", json=body).status_code == 200
    STUDIED_SERVER["wait_until_idle"](client)
    found = client.get("ragcache/agreement").json()
    page.goto(str(client.base_url).replace("/v1/", "/#history"))
    page.reload()
    said = page.locator("#agreed")
    playwright.expect(said).to_contain_text(f"of the last {found['verified']} verified answers")
    playwright.expect(page.locator("#marks i.other")).to_have_count(found["verified"] - found["confirmed"])
    playwright.expect(page.locator("#below")).to_be_visible(visible=found["below"])
    assert found["below"] == (found["recent"]["high"] < found["bound"])
    return int(said.locator("b").inner_text().removesuffix("%"))


def test_of_two_refreshes_that_cross_the_last_one_is_shown(page: Any, origin: str) -> None:
    held = hold_listings(page)
    rows, totals = page.locator("#documents-list details"), page.locator("#totals")
    page.goto(f"{origin}/#documents")
    wait_for(page, lambda: len(held) == 1)
    show(page, "history")
    show(page, "documents")
    wait_for(page, lambda: len(held) == 2)
    first, second = held
    second.continue_()
    playwright.expect(rows).to_have_count(2)
    with page.expect_response(LISTING):
        first.fulfill(json=listed("late.md", "later.md", has_more=False))
    page.wait_for_timeout(100)
    playwright.expect(rows).to_have_count(2)
    playwright.expect(page.locator("#documents-list summary", has_text="late")).to_have_count(0)
    playwright.expect(totals).to_contain_text("2 documents")


def test_rows_that_are_asked_for_twice_are_shown_once(page: Any, origin: str) -> None:
    held = hold_listings(page)
    page.goto(f"{origin}/#documents")
    wait_for(page, lambda: len(held) == 1)
    playwright.expect(page.locator("#more")).to_be_hidden()
    held.pop().fulfill(json=listed("a.md", has_more=True))
    page.locator("#more").dblclick()
    wait_for(page, lambda: len(held) == 2)
    for one in held:
        with page.expect_response(LISTING):
            one.fulfill(json=listed("b.md", has_more=False))
    page.wait_for_timeout(100)
    playwright.expect(page.locator("#documents-list summary b")).to_have_text(["a.md", "b.md"])


def hold_listings(page: Any) -> list[Any]:
    """The page's requests for documents, none of which is answered yet."""
    held = list[Any]()

    def hold(route: Any) -> None:
        held.append(route)

    page.route(LISTING, hold)
    return held


def listed(*names: str, has_more: bool) -> dict[str, Any]:
    """A page of documents."""
    rows = [{"id": name, "source": name, "chunks": 1, "tokens": 1, "bytes": 1, "file_id": None} for name in names]
    totals = {"documents": len(names), "chunks": len(names), "bytes": len(names)}
    return {"data": rows, "last_id": names[-1], "has_more": has_more, "totals": totals, "pending": []}


def wait_for(page: Any, true: Callable[[], bool]) -> None:
    """Let the page go on until something is the case."""
    ends = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ends, "it never came true"
        page.wait_for_timeout(10)


def test_an_upload_is_ingested_shown_and_removed(page: Any, origin: str, tmp_path: Path) -> None:
    (tmp_path / "reef.md").write_text("The Reef project is led by Ann Lowe. " * 20)
    page.goto(f"{origin}/#documents")
    page.locator("#files").set_input_files(tmp_path / "reef.md")
    row = page.locator("#documents-list summary", has_text="reef.md")
    playwright.expect(row).to_be_visible(timeout=60_000)
    row.click()
    page.get_by_role("button", name="Remove reef.md").click()
    playwright.expect(row).to_have_count(0)
    playwright.expect(page.locator("#documents-list details")).to_have_count(2)


def test_a_pdf_is_uploaded_and_answered_from(page: Any, origin: str, tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "moss.pdf", ["The Moss project is led by Tara Quill. " * 20])
    page.goto(f"{origin}/#documents")
    page.locator("#files").set_input_files(file)
    playwright.expect(page.locator("#documents-list summary", has_text="moss.pdf")).to_be_visible(timeout=60_000)
    ask(page, origin, "Who leads the Moss project?")
    playwright.expect(page.locator("#reused .answer")).to_contain_text("Tara Quill")
    playwright.expect(page.locator("#chunks summary", has_text="moss.pdf").first).to_be_visible()
    show(page, "documents")
    page.locator("#documents-list summary", has_text="moss.pdf").click()
    page.get_by_role("button", name="Remove moss.pdf").click()
    playwright.expect(page.locator("#documents-list summary", has_text="moss.pdf")).to_have_count(0)
