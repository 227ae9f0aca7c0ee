import json
import random
from pathlib import Path

import pytest
from reader_tuning.__main__ import main
from reader_tuning.contexts import Contexts
from reader_tuning.curves import gather
from reader_tuning.facts import VALUE_FIRST, Facts
from reader_tuning.mixture import Mixture
from reader_tuning.notes import Notes
from reader_tuning.passages import Material, Part, Passage


def _notes() -> Notes:
    passage = Passage("Tide", "Anna Quill leads the Tide.", (("Who leads the Tide?", ("Anna Quill",)),))
    part = Part([[passage]], [passage])
    return Notes(Contexts(Material(part, part, Part(), (passage,)), worlds=False))


def test_notes_hold_their_answers_and_public_passages_come_in_between() -> None:
    notes = _notes()
    drawn = [notes.draw(random.Random(number)) for number in range(80)]
    assert drawn[7] == notes.draw(random.Random(7))
    assert 3 < sum("Anna Quill leads the Tide." in "\n".join(one.passages) for one in drawn) < 30
    assert max(len(one.asked) for one in drawn) == 16
    held = [*notes.validation()["notes"]]
    assert [*notes.validation()["notes"]] == held
    assert sum(len(one.asked) for one in held) > 30


def test_plain_facts_of_a_few_subjects_are_told_with_the_value_first_or_either_way() -> None:
    ways = [way for rows in VALUE_FIRST.relations.values() for row in rows for way in row.says]
    assert len(ways) > 1000
    assert all(0 <= way.find("{o}") < way.find("{s}") for way in ways)
    for wordings, relations, most in (("value-first", (1, 2), 10), ("either", (2, 4), 16)):
        source = Facts(wordings, relations)
        drawn = [source.draw(random.Random(number)) for number in range(60)]
        assert drawn[7] == source.draw(random.Random(7))
        sizes = [len(one.asked) for one in drawn]
        assert (min(sizes), max(sizes)) == (3 * relations[0], most)
        assert all(answers[0] in "\n".join(one.passages) for one in drawn for _, answers in one.asked)
        assert [*source.validation()["facts"]] == [*source.validation()["facts"]]
    assert str(source) == "facts (either, 2 to 4 of a subject)"


def test_plain_facts_come_among_other_notes() -> None:
    both = Mixture(Facts("value-first", (1, 2)), _notes(), share=0.5)
    texts = ["\n".join(both.draw(random.Random(number)).passages) for number in range(80)]
    assert 1 < sum("Anna Quill leads the Tide." in text for text in texts) < 12  # a tenth of half
    assert [*both.validation()] == ["facts", "notes"]
    assert str(both) == "50% facts (value-first, 1 to 2 of a subject), else notes"


def test_how_facts_are_drawn_is_refused_where_none_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--data", str(tmp_path), "--out", str(tmp_path), "--shape", "same"]
    for more in (["--share", "0.5"], ["--relations", "2", "4"]):
        monkeypatch.setattr("sys.argv", ["reader_tuning", *given, *more])
        with pytest.raises(SystemExit):
            main()
        assert "--facts" in capsys.readouterr().err.splitlines()[-1]


def test_curves_hold_examinations_and_some_losses_and_what_was_answered(tmp_path: Path) -> None:
    log = [{"step": 0, "validation": {}}, {"step": 10, "loss": 2.0}, {"step": 30, "loss": 1.0}]
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    answers = {"meta": {"seed": 2}, "tasks": {"fresh-facts": {"shares": {"n": 4, "exact": 0.5}, "replies": []}}}
    (tmp_path / "mean.json").write_text(json.dumps(answers))
    assert gather(tmp_path, ("one", "mean")) == {
        "curves": {"one": [log[0], log[2]]},
        "shares": {"mean": {"seed": 2, "fresh-facts": {"n": 4, "exact": 0.5}}},
    }
