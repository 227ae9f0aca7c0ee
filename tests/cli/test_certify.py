"""`ragcache certify` writes how often full prefill confirms a method's answers, and `ragcache doctor` shows it."""

import json
from pathlib import Path

import pytest
from ragcache_bench.commands import doctor as commands
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache import RagCache
from ragcache.bundled import corpus_path
from ragcache.engine.certificate import Certificate, certify, generate_questions
from ragcache.engine.verify import wilson_interval
from ragcache.errors import InvalidArgument

pytestmark = pytest.mark.slow

NAMES = ("amber-raven", "cold-raven", "delquil", "dunlo")
QUESTIONS = [f"What is the budget of {name.replace('-', ' ').title()}?" for name in NAMES]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certified") / "index"
    with RagCache.open(path, model="bundled", method="naive", dtype="float32", kv="int8") as rag:
        rag.ingest([corpus_path() / "projects" / f"{name}.md" for name in NAMES], titles="none")
    return path


def test_it_writes_what_a_comparison_of_both_answers_finds(index: Path, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("\n\n".join(QUESTIONS))
    line = ["certify", "--index", str(index), "--questions", str(tmp_path / "questions.txt"), "--top-k", "6", "--json"]
    result = CliRunner().invoke(app, [*line, "--at-least", "1"])
    found = json.loads(result.stdout)
    with RagCache.open(index, create=False) as rag:
        answers = [[rag.ask(one, top_k=6, method=name).token_ids for name in (None, "full")] for one in QUESTIONS]
        same = sum(one == other for one, other in answers)
        assert 0 < same < len(QUESTIONS), "a comparison that can fail"
        assert found["fingerprint"] == rag.reader.fingerprint
    assert (found["questions"], found["confirmed"]) == (len(QUESTIONS), same)
    assert (found["method"], found["encoding"], found["recompute"]) == ("naive", "alone", None)
    assert found["codec"] == "int8"
    assert {one["question"] for one in found["worst"]} <= set(QUESTIONS)
    assert result.exit_code == 1, "fewer than all were confirmed"
    [kept] = Certificate.read_all(index)
    assert kept.confirmed == same
    assert Path(found["file"]).is_file()


def test_the_doctor_shows_it_and_says_whether_documents_have_changed_since(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RagCache.open(index, create=False) as rag:
        certify(rag.engine, QUESTIONS[:1], lambda one: rag.retrieve(one, top_k=2), "naive").write(index)
        [known] = commands._read_certificates(index)
        assert (known["questions"], known["outdated"]) == (1, "")
        (tmp_path / "new.md").write_text("The Tide project is led by Mara Voss.")
        rag.ingest([tmp_path / "new.md"])
        [known] = commands._read_certificates(index)
        assert known["codec"] == "int8"
        assert known["outdated"] == "its documents have changed since"
        (index / "certificates" / "broken.json").write_text("{}")
        assert len(list(Certificate.read_all(index))) == 1


def test_questions_are_made_from_the_chunks_words(index: Path) -> None:
    with RagCache.open(index, create=False) as rag:
        asked = generate_questions(rag.index, 5)
        assert len(set(asked)) == 5
        assert asked == generate_questions(rag.index, 5)
        texts = " ".join(chunk.text for chunk in rag.index.catalog.all_chunks())
        for one in asked:
            words = one.removeprefix("What is said about ").removesuffix("?").split(" and ")
            assert all(word in texts for word in words)
        with pytest.raises(InvalidArgument, match="reuses nothing"):
            certify(rag.engine, asked, lambda one: [], "full")
        with pytest.raises(InvalidArgument, match="--questions"):
            certify(rag.engine, [], lambda one: [], "naive")


def test_the_interval_is_wilson_s() -> None:
    assert wilson_interval(0, 0) == (0, 1)
    assert wilson_interval(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(1, 10)[1] == 1


def test_a_file_of_questions_that_is_none_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["certify", "--questions", str(tmp_path / "none.txt")])
    assert result.exit_code == 2
    assert "cannot be read" in result.output
