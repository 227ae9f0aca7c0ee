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


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js"])
def test_the_policy_allows_our_own_files_only(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.findall(r"https?://|@import|url\(", answer.text)


def test_the_markup_has_no_script_style_or_handler_of_its_own(client: TestClient) -> None:
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>", page) == ['<script src="/page.js" defer>']
    assert not re.findall(r"<style|\sstyle=|\son\w+=", page)
    assert "innerHTML" not in client.get("/page.js").text


def test_what_the_script_looks_for_is_there_and_every_field_has_a_label(client: TestClient) -> None:
    page, script = client.get("/").text, client.get("/page.js").text
    ids = re.findall(r'\bid="([\w-]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'find\("([\w-]+)"\)', script)) <= set(ids)
    assert set(re.findall(r'(?:aria-labelledby|for)="([\w-]+)"', page)) <= set(ids)
    labelled = re.sub(r"<label>.*?</label>", "", page)
    assert re.findall(r'<(?:input|textarea|select) id="([\w-]+)"', labelled) == ["question"]
    assert '<label for="question">' in page
    assert '<html lang="en">' in page


def test_the_page_needs_no_key_but_what_it_asks_for_does(rag: RagCache) -> None:
    app = create_app(Tenants.of_one(rag, "k" * 16), ServerSettings())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/").status_code == 200
        assert client.get("/v1/models").status_code == 401
