import random

from reader_tuning.contexts import Contexts
from reader_tuning.notes import Notes
from reader_tuning.passages import Material, Part, Passage
from reader_tuning.value_first import VALUE_FIRST, ValueFirst


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


def test_facts_are_told_with_the_value_first_of_a_few_subjects() -> None:
    ways = [way for rows in VALUE_FIRST.relations.values() for row in rows for way in row.says]
    assert len(ways) > 1000
    assert all(0 <= way.find("{o}") < way.find("{s}") for way in ways)
    others = _notes()
    only = ValueFirst(others)
    for number in range(60):
        drawn = only.draw(random.Random(number))
        assert drawn == only.draw(random.Random(number))
        assert 3 <= len(drawn.asked) <= 10
        assert all(answers[0] in "\n".join(drawn.passages) for _, answers in drawn.asked)
    assert {*only.validation()} == {"value-first"}


def test_facts_told_value_first_come_among_other_notes() -> None:
    some = ValueFirst(_notes(), share=0.5, relations=4)
    texts = ["\n".join(some.draw(random.Random(number)).passages) for number in range(80)]
    assert 1 < sum("Anna Quill leads the Tide." in text for text in texts) < 12  # a tenth of half
    assert {*some.validation()} == {"value-first", "notes"}
    assert str(some) == "notes, 50% value first with up to 4 relations"
