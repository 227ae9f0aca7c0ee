"""Advice over one's own index: the default and the controls always take part, what is left out is named, and a verdict
rests on enough questions."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.contenders import Contender, in_turn
from ragcache_bench.user_questions import OwnQuestion, read
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

from ragcache.encode import Alone
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.rag import RagCache

pytestmark = pytest.mark.slow

PAGES = {
    "a.md": "# Tide\n\nThe Tide project is led by Mara Voss.\n\nIt is based in Kelmar and ends in May.",
    "b.txt": "The mill grinds rye on Mondays. On Tuesdays it grinds oats. Nobody works there for the rest of the week.",
    "c.txt": "A ferry crosses the sound every hour. It carries forty cars. The last one leaves at ten in the evening.",
}
QUESTIONS = ["Who leads the Tide project?", "When does the ferry cross?", "What does the mill grind?"]


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index as `ragcache ingest PATH` makes it, and three questions beside it; to be read only."""
    place = tmp_path_factory.mktemp("own")
    tiny_model("llama").save_pretrained(place / "model")
    byte_tokenizer().save_pretrained(place / "model")
    (place / "pages").mkdir()
    for name, text in PAGES.items():
        (place / "pages" / name).write_text(text)
    with RagCache.open(place / "index", model=str(place / "model")) as rag:
        rag.ingest(place / "pages", chunk_tokens=72)
        assert list(rag.index.catalog.recipes()) == ["in-document(window=2048)"]
    (place / "q.jsonl").write_text("".join(json.dumps({"question": text}) + "\n" for text in QUESTIONS))
    return place


def run(*line: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in line])


def quality(place: Path, out: Path, *more: object) -> Result:
    options = ["--questions", place / "q.jsonl", "--index", place / "index", "--out", out]
    return run("bench", "quality", *options, "--max-new-tokens", 2, "--random-seeds", 1, "--top-k", 3, *more)


def content(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, float | None]]:
    return [(row["method"], row["recompute"]) for row in found["rows"]]


def test_lines_end_where_json_says_they_end(tmp_path: Path) -> None:
    texts = ["Who\u2028leads?", "When\u2029does\x85it cross?"]
    lines = [json.dumps({"question": text}, ensure_ascii=False) for text in texts]
    file = tmp_path / "q.jsonl"
    file.write_bytes("\r\n\n".join(lines).encode())
    assert read(file) == [OwnQuestion(1, texts[0]), OwnQuestion(3, texts[1])]


def test_the_default_at_its_own_share_stands_first_and_what_recomputes_nothing_is_there(
    default: Path, tmp_path: Path
) -> None:
    found = rows(content(quality(default, tmp_path / "o.json", "--budgets", "0.3", "--json")))
    assert found[:2] == [("full", None), ("auto", 0.05)]
    assert {("auto", 0.0), ("auto", 0.3)} <= set(found)
    assert len(found) == len(set(found))


def test_the_default_takes_part_whatever_is_named(default: Path, tmp_path: Path) -> None:
    found = rows(content(quality(default, tmp_path / "o.json", "--methods", "in-document", "--json")))
    assert {("auto", 0.0), ("auto", 0.05)} <= set(found)
    assert ("in-document", 0.3) in found
    assert ("in-document", 0.0) not in found, "the same as auto at 0"


def test_controls_take_part_in_an_index_without_their_kv_and_leave_none_there(default: Path, tmp_path: Path) -> None:
    before = json.loads(run("store", "stats", "--index", default / "index", "--json").stdout)["encodings"]
    found = content(quality(default, tmp_path / "o.json", "--budgets", "0.1,0.3", "--json"))
    assert {("naive", None), ("random", 0.1), ("random", 0.3)} <= set(rows(found))
    assert [(one["methods"], one["encoding"]) for one in found["meta"]["made_for_this_run"]] == [
        (["naive", "random"], "alone")
    ]
    after = json.loads(run("store", "stats", "--index", default / "index", "--json").stdout)["encodings"]
    assert after == before


def test_kv_made_for_a_run_answers_as_kv_that_is_stored_does(default: Path, tmp_path: Path) -> None:
    options = ("--budgets", "0.3", "--methods", "cacheblend", "--json")
    made = content(quality(default, tmp_path / "made.json", *options))
    index = tmp_path / "index"
    with RagCache.open(index, model=str(default / "model")) as rag:
        rag.ingest(default / "pages", chunk_tokens=72, methods=["auto", "naive"])
    stored = content(quality(default, tmp_path / "stored.json", "--index", index, *options))
    assert rows(made) == rows(stored)
    assert not stored["meta"]["made_for_this_run"]
    for one, other in zip(made["rows"], stored["rows"], strict=True):
        assert one["kl"] == pytest.approx(other["kl"], abs=1e-6)
        assert (one["agreement"], one["charged"]) == (other["agreement"], other["charged"])


def test_what_is_left_out_is_named_with_a_command_that_adds_it(default: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with RagCache.open(index, model=str(default / "model")) as rag:
        rag.ingest(default / "pages", chunk_tokens=72)
    out = ("--index", index, "--budgets", "0.3", "--methods", "auto,ape,epic,cacheblend")
    named = quality(default, tmp_path / "n.json", *out)
    assert named.exit_code == 2, "what is named is not left out"
    shown = quality(default, tmp_path / "o.json", "--index", index, "--budgets", "0.3")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert "Left out" in text
    for line in re.findall(r"`ragcache (ingest [^`]+)`", text):
        assert run(*shlex.split(line)).exit_code == 0
    again = content(quality(default, tmp_path / "p.json", "--index", index, "--budgets", "0.3", "--json"))
    assert {method for method, _ in rows(again)} >= set("auto prefix naive link0 epic cacheblend prophetkv".split())
    assert not again["meta"]["left_out"]
    assert not again["meta"]["made_for_this_run"]


def test_a_quick_look_asks_the_default_and_gives_no_verdict_from_three_questions(default: Path, tmp_path: Path) -> None:
    found = content(quality(default, tmp_path / "o.json", "--quick", "--json"))
    assert {("full", None), ("auto", 0.0), ("auto", 0.05), ("auto", 0.15), ("naive", None), ("random", 0.15)} <= set(
        rows(found)
    )
    advice = found["meta"]["recommendation"]
    assert advice["verdict"] == "undecided"
    assert advice["method"] is None
    last = quality(default, tmp_path / "o.json", "--quick").stdout.strip().splitlines()[-1]
    assert last.startswith("3 questions are too few to tell")
    assert "189" in last
    assert not re.search(r"\bUse\b", last)


def test_kv_is_in_memory_before_anything_is_timed(
    default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragcache.engine.engine import Engine
    from ragcache.store import LocalStore

    timed, read = [False], list[bool]()
    get, stream = LocalStore.get, Engine.stream

    def noted(self: LocalStore, key: str) -> Any:
        read.append(timed[0])
        return get(self, key)

    def streaming(*arguments: Any, **options: Any) -> Any:
        timed[0] = True
        found = stream(*arguments, **options)
        timed[0] = False
        return found

    monkeypatch.setattr(LocalStore, "get", noted)
    monkeypatch.setattr(Engine, "stream", streaming)
    content(quality(default, tmp_path / "o.json", "--budgets", "0.3", "--json"))
    assert read
    assert not any(read)


def test_rows_are_before_and_behind_each_other_equally_often() -> None:
    field = [Contender(METHODS[name], share) for name, share in [("full", None), ("naive", None), ("auto", 0.0),
                                                                  ("auto", 0.3)]]  # fmt: skip
    ahead, first = Counter[tuple[str, str]](), Counter[str]()
    for number in range(2 * len(field)):
        order = [repr((who.method.name, who.recompute)) for who in in_turn(field, number)]
        first[order[0]] += 1
        ahead.update((a, b) for i, a in enumerate(order) for b in order[i + 1 :])
    assert in_turn(field, 0) == field
    assert set(first.values()) == {2}
    assert set(ahead.values()) == {len(field)}


def test_a_chunk_s_kv_is_made_alone_as_ingestion_makes_it(readers: Any, tmp_path: Path) -> None:
    from ragcache_bench.lending import lend
    from staged import make

    reader: Reader = readers("llama")
    engine, chunks = make(tmp_path, reader, "naive")
    with lend(engine.index, chunks, [Alone()]) as lent:
        other, same = lent["alone"]
        assert [chunk.text for chunk in same] == [chunk.text for chunk in chunks]
        ours, theirs = engine.prefill("Who?", chunks, method="naive"), other.prefill("Who?", same, method="naive")
        assert {chunk.cache for chunk in theirs.report.chunks} == {"hit"}
    assert ours.prompt.token_ids == theirs.prompt.token_ids
    assert (ours.logits - theirs.logits).abs().max() < 1e-5
