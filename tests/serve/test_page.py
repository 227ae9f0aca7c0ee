"""The page at `/` is self-contained: what it names is there, and nothing else is allowed."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from openai_ragcache import ServerSettings, Tenants, create_app

from ragcache import RagCache


@pytest.fixture(scope="module")
def client(rag: RagCache) -> Iterator[TestClient]:
    with TestClient(create_app(Tenants.of_one(rag)), base_url="http://127.0.0.1") as client:
        yield client


SCRIPTS = [f"/page/{name}.js" for name in ("page", "shared", "ask", "documents", "history")]


@pytest.mark.parametrize("path", ["/", "/page/style.css", *SCRIPTS])
def test_the_policy_allows_our_own_files_only(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.findall(r"https?://|@import|url\(", answer.text)


def test_nothing_else_is_a_part_of_the_page(client: TestClient) -> None:
    for name in ("index.html", "../app.py", "..%2fapp.py", "nothing.js"):
        assert client.get(f"/page/{name}").status_code == 404


def test_the_markup_has_no_script_style_or_handler_of_its_own(client: TestClient) -> None:
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="/page/page.js">']
    assert not re.findall(r"<style|\sstyle=|\son\w+=", page)
    for path in SCRIPTS:
        script = client.get(path).text
        assert not re.findall("innerHTML|outerHTML|insertAdjacentHTML|document.write|eval", script)
        assert set(re.findall(r'from "([^"]+)"', script)) <= set(SCRIPTS)


def test_what_the_scripts_look_for_is_there_and_every_field_has_a_label(client: TestClient) -> None:
    page = client.get("/").text
    ids = re.findall(r'\bid="([\w-]+)"', page)
    assert len(ids) == len(set(ids))
    for path in SCRIPTS:
        assert set(re.findall(r'(?:find|setFigure)\("([\w-]+)"', client.get(path).text)) <= set(ids)
    named = " ".join(re.findall(r'(?:aria-labelledby|for)="([\w -]+)"', page)).split()
    assert set(named) <= set(ids)
    labelled = re.sub(r"<label>.*?</label>", "", page)
    assert re.findall(r'<(?:input|textarea|select) id="([\w-]+)"', labelled) == ["question", "files"]
    assert '<label for="question">' in page
    assert '<label for="files">' in page
    assert '<html lang="en">' in page
    views = re.findall(r'<a href="#(\w+)"', page)
    assert views == ["ask", "documents", "history"]
    assert {f"{view}-view" for view in views} <= set(ids)


def test_the_page_needs_no_key_but_what_it_asks_for_does(rag: RagCache) -> None:
    app = create_app(Tenants.of_one(rag, "k" * 16), ServerSettings())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/").status_code == 200
        assert client.get("/v1/models").status_code == 401
