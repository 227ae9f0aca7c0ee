"""Pictures of the server's page, as its guide shows them: each view light, dark, and on a phone.

    .venv-page/bin/python bench/studies/page_pictures.py --out docs/guides/page

`make page-check` makes that environment; Chromium comes from the system. The built-in model answers over the demo
corpus, in float32, and every answer is verified. The last picture is of a server that is asked over pages whose parts
stand in another order than in the prompt.
"""

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from learnt_texts import messages_of
from openai_ragcache import Tenants
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from ragcache_bench.tasks import KNOWN
from studied_server import ingest_examples, serve, wait_until_idle

from ragcache import RagCache
from ragcache.bundled import corpus_path

_MODEL = "bundled"
_SCREENS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1000, "height": 1000}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1000, "height": 1000}},
    "phone": {
        "color_scheme": "light",
        "viewport": {"width": 390, "height": 1200},
        "has_touch": True,
        "is_mobile": True,
    },
}
_ASKS = ("When does {} start?", "What is the budget of {}?", "What code does {} have?", "Who leads {}?")
_NAMES = ("Amber Raven", "Cold Raven", "Delquil", "Dunlo", "Ursos", "Amber Engine")
_CHUNKS = 16  # of a question on the page


@contextmanager
def served(ingest: Callable[[RagCache], object]) -> Iterator[httpx.Client]:
    """A server that verifies every answer over what was ingested into an index, and a client of it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RagCache.open(Path(folder) / "index", model=_MODEL, dtype="float32") as rag,
    ):
        ingest(rag)
        with serve(Tenants.of_one(rag), verify=1.0) as url, httpx.Client(base_url=url, timeout=600) as client:
            yield client


@contextmanager
def demo_corpus() -> Iterator[httpx.Client]:
    """A server over the demo corpus, behind some questions."""
    with served(lambda rag: rag.ingest([corpus_path()])) as client:
        for question in (ask.format(name) for name in _NAMES for ask in _ASKS):
            _ask(client, [{"role": "user", "content": question}], retrieve=4)
        yield client


@contextmanager
def misleading_pages() -> Iterator[httpx.Client]:
    """A server that was asked over honest pages, and then over misleading ones."""
    honest, misled = (KNOWN[task].examples(24, seed) for seed, task in enumerate(("sections", "sections-misled")))
    with served(lambda rag: ingest_examples(rag, (*honest, *misled))) as client:
        for example in (*honest, *misled):
            _ask(client, messages_of(example))
        yield client


def _ask(client: httpx.Client, messages: list[dict[str, str]], **how: Any) -> None:
    body = {"model": _MODEL, "messages": messages, "max_tokens": 24, "ragcache": how}
    client.post("/chat/completions", json=body).raise_for_status()
    wait_until_idle(client)


def show(page: Any, origin: str, view: str) -> None:
    """Bring a view to where its picture is taken."""
    page.goto(f"{origin}/#{view}")
    if view == "ask":
        expect(page.locator("#served")).to_contain_text("answers at")
        page.locator("#count").fill(str(_CHUNKS))
        page.locator("#question").fill("Who leads Cold Raven?")
        for _ in range(2):  # the first loads KV from the disk
            page.locator("#send").click()
            expect(page.locator("#full .figure b")).to_contain_text("ms", timeout=60_000)
            expect(page.locator("#send")).to_be_enabled()
        page.locator("#chunks summary").first.click()
    if view == "documents":
        page.locator("#documents-list summary").first.click()
    if view == "history":
        expect(page.locator("#agreed")).to_contain_text("verified")
    page.locator(f"#{view}-view .text").first.wait_for() if view != "history" else page.wait_for_timeout(500)


def take(page: Any, file: Path) -> None:
    """Write a picture of what is seen, with 256 colours."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256).save(file, optimize=True)
    typer.echo(f"{file}: {file.stat().st_size} bytes")


def main(out: Annotated[Path, typer.Option(help="Folder to write to.")]) -> None:
    """Take all pictures."""
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with demo_corpus() as client:
            origin = str(client.base_url).removesuffix("/v1/")
            for screen, how in _SCREENS.items():
                page = browser.new_context(**how).new_page()
                for view in ("ask", "documents", "history"):
                    show(page, origin, view)
                    take(page, out / f"{view}-{screen}.png")
        with misleading_pages() as client:
            page = browser.new_context(**_SCREENS["light"]).new_page()
            show(page, str(client.base_url).removesuffix("/v1/"), "history")
            take(page, out / "history-misled.png")
        browser.close()


if __name__ == "__main__":
    typer.run(main)
