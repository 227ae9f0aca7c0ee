"""The test model says what it is wherever it answers people, and answers nothing that it cannot read."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import tiny_reader

from ragcache import Engine, Index, Message, RagCache
from ragcache.model import notice
from ragcache.model.loading import BUNDLED, load_reader

NOTES = ["The Tide project is led by Mara Voss. It is based in Kelmar.", "The Otter ferry carries forty cars."]
GREEK = "Ποιος είναι διευθυντής της βιβλιοθήκης;"
QUESTION = "Who leads the Tide project?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    reader = load_reader(BUNDLED, device="cpu")
    with Index(tmp_path_factory.mktemp("bundled") / "index", reader) as index:
        yield Engine(reader, index)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged; nothing was before."""
    notice.warn_once.cache_clear()
    caplog.set_level(logging.WARNING, logger="ragcache.model.notice")
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("ragcache")]


def test_its_answers_say_what_answered_and_how_to_name_a_real_model(engine: Engine) -> None:
    answer = engine.answer(QUESTION, NOTES)
    assert answer.text == "Mara Voss"
    assert not answer.refused
    assert notice.TEST_MODEL in answer.report.notes
    assert notice.TEST_MODEL in str(answer)
    assert "--model smollm2" in notice.TEST_MODEL


@pytest.mark.parametrize(
    ("question", "notes"),
    [
        (GREEK, NOTES),
        (QUESTION, ["図書館は毎日9時に開館します。"]),
        ("谁领导潮汐项目?", NOTES),
    ],
    ids=["question", "notes", "short"],
)
def test_what_it_cannot_read_gets_a_sentence_instead_of_an_answer(
    engine: Engine, question: str, notes: list[str]
) -> None:
    answer = engine.answer(question, notes)
    assert answer.refused
    assert answer.text == notice.UNREADABLE
    assert answer.as_dict()["refused"]
    stream = engine.stream(question, notes)
    assert "".join(stream) == notice.UNREADABLE
    assert stream.answer.refused


def test_a_conversation_and_a_prompt_of_others_are_refused_alike(engine: Engine) -> None:
    said = [Message("user", QUESTION), Message("assistant", "Mara Voss")]
    assert engine.answer(GREEK, NOTES, history=said).refused
    assert engine.complete([Message("user", GREEK)]).answer.refused
    assert engine.complete(f"{GREEK}\n\nAnswer:").answer.refused


@pytest.mark.parametrize(
    "question", ["Où est le café de l'Étoile?", "Who\u2019s \u201cMara\u201d \u2013 the project\u2019s lead?"]
)
def test_a_few_foreign_letters_are_no_reason_to_refuse(engine: Engine, question: str) -> None:
    assert not engine.answer(question, NOTES).refused


def test_any_other_model_is_let_answer(tmp_path: Path) -> None:
    reader = tiny_reader()
    with Index(tmp_path / "index", reader) as index:
        answer = Engine(reader, index).answer(GREEK, [GREEK])
    assert not answer.refused
    assert notice.TEST_MODEL not in answer.report.notes


def test_opening_it_warns_once_in_a_process(warnings: Callable[[], list[str]], tmp_path: Path) -> None:
    for name in ("one", "two"):
        RagCache.open(tmp_path / name).close()
    RagCache.open(tmp_path / "one", create=False).close()
    assert warnings() == [notice.TEST_MODEL]


def test_who_loads_it_is_not_warned(warnings: Callable[[], list[str]], engine: Engine, tmp_path: Path) -> None:
    RagCache.open(tmp_path / "index", model=engine.reader).close()
    assert warnings() == []
