"""Texts of no document, in the wrappers of front ends: prefilled at first and second sight, found from the third on."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from openai_ragcache import Tenants
from openai_ragcache.learning import _blocks, _paragraphs
from openai_ragcache.tenants import Tenant
from serve.served import MODEL, serve
from serve.test_front_ends import anything_llm, langchain_default, light_rag, numbered, open_webui

from ragcache import RagCache
from ragcache.bundled import corpus_path

pytestmark = pytest.mark.slow

TEXTS = [path.read_text().strip()[:450] for path in sorted((corpus_path() / "projects").glob("*.md"))[:6]]
ROOM = 64 << 20
REUSE = {"ragcache": {"method": "auto"}}  # named, so that little is reused too
Write = Callable[[Sequence[str]], list[dict[str, str]]]


class FrontEnd:
    """A front end that shows texts to the model, and waits until what is learnt of them has been."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, messages: list[dict[str, str]], **more: object) -> dict:
        body = {"model": MODEL, "messages": messages, "max_tokens": 1, **more}
        about = self._client.post("/chat/completions", json=body).json()["ragcache"]
        while self.read("ragcache_idle_work"):
            time.sleep(0.02)
        return about

    def read(self, name: str) -> float:
        lines = self._client.get("../metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(name)).split()[1])


@contextmanager
def front_end(rag: RagCache) -> Iterator[FrontEnd]:
    with serve(Tenants.of_one(rag)) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield FrontEnd(client)


def reused(about: dict) -> float:
    tokens = about["tokens"]
    return sum(one["tokens"] for one in about["chunks"] if one["cache"] != "miss") / sum(
        tokens[k] for k in ("context", "question")
    )


@pytest.fixture
def empty(rag: RagCache, tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "own", model=rag.reader, second_sight_bytes=ROOM) as own:
        yield own


@pytest.mark.parametrize("write", [open_webui, anything_llm, langchain_default, light_rag, numbered])
def test_what_comes_a_second_time_elsewhere_hits_from_the_third_on(empty: RagCache, write: Write) -> None:
    orders = [random.Random(seed).sample(TEXTS, len(TEXTS)) for seed in range(3)]
    with front_end(empty) as client:
        shares = [reused(client.ask(write(order))) for order in orders]
    assert shares[:2] == [0, 0]
    assert shares[-1] > 0.6, shares
    assert not empty.index.catalog.all_chunks(), "nothing of it is written"


def test_what_comes_again_at_the_same_place_is_not_learnt(empty: RagCache) -> None:
    with front_end(empty) as client:
        messages = open_webui(TEXTS[:3])
        for turn in range(3):
            said = [*messages, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"And {turn}?"}]
            client.ask(said)
        assert client.read("ragcache_learnt_bytes") == 0


def test_learnt_texts_are_answered_from_and_said_to_be_learnt(empty: RagCache) -> None:
    with front_end(empty) as client:
        for order in ([0, 1], [1, 2], [2, 0, 1], [1, 0, 2]):
            about = client.ask(open_webui([TEXTS[i] for i in order]))
    assert about["hit"] == 3
    assert all("kept since its second prompt" in chunk["reason"] for chunk in about["chunks"])
    assert not any("no chunk was reused" in note for note in about["notes"])


def test_a_prompt_with_more_to_learn_than_it_knows_is_prefilled_and_learnt_from(empty: RagCache) -> None:
    with front_end(empty) as client:
        for order in (TEXTS[:1], TEXTS[1::-1], TEXTS[5:0:-1]):  # the first is learnt with the second prompt
            client.ask(open_webui(order))
        about = client.ask(open_webui(TEXTS))
        assert about["method"] == "full"
        assert any(note.startswith("prefilled in full") for note in about["notes"]), about["notes"]
        again = client.ask(open_webui(TEXTS[::-1]))
        assert (again["method"], reused(again) > 0.6) == ("auto", True), "what was new then has been learnt since"


def test_documents_of_requests_are_learnt_too(empty: RagCache) -> None:
    states = []
    with front_end(empty) as client:
        for _ in range(3):
            documents = [{"text": text} for text in TEXTS[:2]]
            about = client.ask([{"role": "user", "content": "Who is it?"}], documents=documents)
            states.append(about["hit"] + about["exact"])
    assert states == [0, 0, 2]


def test_documents_that_are_json_are_learnt_as_they_are(empty: RagCache) -> None:
    documents = [{"text": json.dumps({"content": text, "place": "Kelmär"})} for text in TEXTS[:2]]
    with front_end(empty) as client:
        found = [client.ask([{"role": "user", "content": "Who is it?"}], documents=documents) for _ in range(3)]
    assert [about["hit"] + about["exact"] for about in found] == [0, 0, 2]


@pytest.mark.parametrize(("ascii_only", "indent"), [(True, None), (False, 2)])
def test_ingested_chunks_in_json_hit_from_the_second_time_on(
    empty: RagCache, tmp_path: Path, ascii_only: bool, indent: int | None
) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.md").write_text(f'{text}\n\nIt said "so", in Kelmär, at the end of page {number}.')
    empty.ingest(sorted(tmp_path.glob("*.md")))
    known = empty.retrieve("Who leads it?", top_k=100)
    assert all("\n" in chunk.text for chunk in known), "a title line"
    texts = [chunk.text for chunk in known if "ä" in chunk.text]

    def write(order: Sequence[str]) -> list[dict[str, str]]:
        rows = [{"id": i, "content": text, "score": 0.5} for i, text in enumerate(order)]
        return [{"role": "user", "content": json.dumps(rows, ensure_ascii=ascii_only, indent=indent) + "\nWho?"}]

    with front_end(empty) as client:
        first = client.ask(write(texts[:6]))
        second = client.ask(write(texts[5::-1]), **REUSE)
    assert (len(texts) >= 6, first["hit"], first["chunks"]) == (True, 0, [])
    assert any("6 chunks stand in the prompt escaped" in note for note in first["notes"])
    escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in texts[:6]]
    tokens = sum(len(empty.reader.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in escaped)
    hit = sum(chunk["tokens"] for chunk in second["chunks"] if chunk["cache"] != "miss")
    assert hit / tokens >= 0.95, second
    assert not any("escaped" in note for note in second["notes"])


def test_a_list_of_json_strings_is_learnt_one_by_one(empty: RagCache) -> None:
    with front_end(empty) as client:
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            content = json.dumps([TEXTS[i] for i in order])
            about = client.ask([{"role": "user", "content": f"{content}\nWho?"}])
    assert about["hit"] + about["exact"] == 3


def test_no_tenant_learns_of_another_s_texts_and_memory_is_bounded(rag: RagCache, tmp_path: Path) -> None:
    one = RagCache.open(tmp_path / "one", model=rag.reader, second_sight_bytes=1 << 20)
    two = RagCache.open(tmp_path / "two", model=rag.reader, second_sight_bytes=1 << 20)
    keys = {"a" * 16: Tenant(one), "b" * 16: Tenant(two)}
    how = [{"headers": {"Authorization": f"Bearer {key}"}, "timeout": 60} for key in keys]
    with (
        serve(Tenants(keys)) as url,
        httpx.Client(base_url=url, **how[0]) as a,
        httpx.Client(base_url=url, **how[1]) as b,
    ):
        mine, theirs = FrontEnd(a), FrontEnd(b)
        for seed in range(4):
            about = mine.ask(open_webui(random.Random(seed).sample(TEXTS, 6)), **REUSE)
            assert 0 <= one.index.second_sight.nbytes <= 1 << 20
        assert about["hit"] > 0
        for seed in range(2):
            assert theirs.ask(open_webui(random.Random(seed).sample(TEXTS, 6)))["chunks"] == []
    one.close()
    two.close()


def test_wrappers_are_borders_and_blank_lines_part_paragraphs() -> None:
    text = (
        '<source id="1" name="a.md">One.\n\n  Two.</source>\n[CONTEXT 0]:\nThree "quoted".\n[END CONTEXT 0]\n---\nFour'
    )
    text += '\n[2] Five\n{"reference_id": "1", "content": "Six \\"x\\", y"}'
    found = [[text[a:b] for a, b in _paragraphs(text, *place)] for place in _blocks(text)]
    assert [one for one in found if one and len(one[0]) > 2] == [
        ["One.", "Two."], ['Three "quoted".'], ["Four"], ["Five"], ['Six \\"x\\", y'],
    ]  # fmt: skip
