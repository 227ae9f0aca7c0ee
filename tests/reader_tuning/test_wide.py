import random
from dataclasses import replace

from ragcache_bench.questions.level import Level
from ragcache_bench.questions.lexicon import PLAIN
from ragcache_bench.questions.relations import BY_SUBJECT
from ragcache_bench.tasks.independent.relations import KINDS
from reader_tuning import wide
from reader_tuning.wide import LEXICON, draw_mixed

LEVELS = (
    Level(mix=(1, 1), only=("facts",), relations=(1, 1), forms=2, tokens=240),
    Level(mix=(1, 1), only=("sections", "pronouns"), bindings=0.5, forms=99, filler=0.2, titled=0.2, tokens=480),
    Level(mix=(1, 4), bindings=0.65, relations=(1, 4), forms=99, filler=0.45, titled=0.25, least=26, tokens=1100),
)


def test_answers_stand_in_the_notes_and_every_draw_is_the_same_again() -> None:
    for number in range(60):
        level = LEVELS[number % len(LEVELS)]
        context = draw_mixed(random.Random(number), level)
        assert context == draw_mixed(random.Random(number), level)
        text = "\n".join(context.chunks)
        for question in context.questions:
            if question.family in ("fact", "section", "twin", "pronoun", "label"):
                assert question.answer in text, question


def test_names_and_wordings_are_many() -> None:
    rng = random.Random(5)
    contexts = [draw_mixed(rng, LEVELS[1]) for _ in range(150)]
    asked = {question.text for context in contexts for question in context.questions}
    assert len({text.split()[0] for text in asked}) > 12
    starts = [chunk.partition("\n")[0] for context in contexts for chunk in context.chunks]
    assert any(line.startswith("Title: ") for line in starts)
    assert any(line.startswith("## ") for line in starts)
    kinds = {fact.subject for kind in LEXICON.kinds for fact in LEXICON.relations[kind]}
    assert len(kinds) > 100


def test_a_lexicon_invents_only_where_it_is_told_to() -> None:
    plain = PLAIN.some(random.Random(1), "project", 3)
    assert plain == random.Random(1).sample(BY_SUBJECT["project"], 3)
    always = replace(LEXICON, invented=1.0)
    known = {relation.name for rows in LEXICON.relations.values() for relation in rows}
    assert not known & {one.name for one in always.some(random.Random(1), "museum", 2)}
    assert LEXICON.some(random.Random(1), "museum", 99)


def test_no_examined_wording_is_trained_on() -> None:
    examined = {wide._bare(way) for kind in KINDS for relation in kind.relations for way in relation.wordings}
    for lexicon in (LEXICON, wide._OTHER_NAMES):
        rows = [relation for kind in lexicon.relations.values() for relation in kind]
        ways = [way for one in rows for way in (*one.says, *one.it, *one.asks)]
        seen = [way for way in ways if wide._bare(way) in examined]
        assert len(seen) < 12  # of the plain bank, where nothing else says the same
        assert lexicon is not LEXICON or not seen


def test_half_of_what_can_be_told_value_first_is_told_so() -> None:
    shares = []
    for row in (row for rows in LEXICON.relations.values() for row in rows):
        first = sum(0 <= way.find("{o}") < way.find("{s}") for way in row.says)
        shares += [first / len(row.says)] if first else []
    assert len(shares) > 500
    assert 0.45 < sum(shares) / len(shares) < 0.55
