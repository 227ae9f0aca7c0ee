import re
from collections import defaultdict
from random import Random

import pytest
from ragcache_bench.questions.names import held_out
from ragcache_bench.questions.relations import RELATIONS
from reader_tuning.language import WIDE, WIDE_BY_SUBJECT
from reader_tuning.language.idle import idle_sentence
from reader_tuning.language.made import NAMES
from reader_tuning.language.names import KINDS, WideNames
from reader_tuning.language.open_relations import open_relation
from reader_tuning.language.reading import ARTICLE, ENTITIES, PEOPLE, PROPER, fill, read
from reader_tuning.language.words import ADJECTIVES, NOUNS

LEAST = {"says": 6, "it": 4, "asks": 6, "unseen": 2}
OPEN = tuple(open_relation(Random(seed)) for seed in range(150))


def key(relation):
    return f"{relation.subject}.{relation.name}"


def plain(form):
    """A question without its subject's article."""
    return re.sub(r"\bthe \{s\}", "{s}", form).lower()


def test_the_bank_is_wide():
    assert len(WIDE) >= 260
    assert len(WIDE_BY_SUBJECT) >= 40
    assert len({key(relation) for relation in WIDE}) == len(WIDE)
    assert len({relation.value for relation in WIDE}) >= 40
    assert {relation.subject for relation in RELATIONS} <= set(WIDE_BY_SUBJECT)
    assert all(len(relations) >= 2 for relations in WIDE_BY_SUBJECT.values() if relations[0].subject != "word")


@pytest.mark.parametrize("part", LEAST)
def test_every_relation_has_enough_wordings_and_none_twice(part):
    for relation in WIDE:
        forms = getattr(relation, part)
        assert len(forms) >= LEAST[part], (key(relation), part)
        assert len(set(forms)) == len(forms), (key(relation), part)


@pytest.mark.parametrize("relation", [*WIDE, *OPEN], ids=key)
def test_every_wording_has_its_slots(relation):
    assert all(form.count("{s}") == form.count("{o}") == 1 for form in relation.says)
    assert all("{s}" not in form and form.count("{o}") == 1 for form in relation.it)
    for form in (*relation.asks, *relation.unseen, *relation.phrase):
        assert form.count("{s}") == 1, form
        assert "{o}" not in form, form
    for form in (*relation.says, *relation.it, *relation.asks, *relation.unseen, *relation.phrase):
        assert "{" not in re.sub(r"\{[so]\}", "", form), form
        assert not re.search(r"\bthe the\b|  | / |^ | $", form.lower().replace("{s} / ", "")), form
    assert not set(relation.asks) & set(relation.unseen)
    assert relation.value in PROPER or not any(form.startswith("{o}") for form in (*relation.says, *relation.it))


def test_an_unseen_question_is_asked_nowhere():
    asked = {plain(form) for relation in WIDE for form in relation.asks}
    assert not {plain(form) for relation in WIDE for form in relation.unseen} & asked


def test_a_question_means_one_relation_of_its_subject():
    meant = defaultdict(set)
    for relation in WIDE:
        for form in (*relation.asks, *relation.unseen):
            meant[relation.subject, plain(form)].add(relation.name)
    assert not {form: names for form, names in meant.items() if len(names) > 1}


def test_a_statement_means_one_relation_of_its_subject_and_value():
    meant = defaultdict(set)
    for relation in WIDE:
        for form in (*relation.says, *relation.it):
            meant[relation.subject, relation.value, form].add(relation.name)
    assert not {form: names for form, names in meant.items() if len(names) > 1}


def test_values_that_are_entities_have_phrases_and_the_article_is_right():
    for relation in WIDE:
        assert bool(relation.phrase) == (relation.value in ENTITIES), key(relation)
        if relation.subject.replace(" ", "-") in ARTICLE:
            assert all("the {s}" in form for form in relation.asks), key(relation)
        if relation.subject in PEOPLE:
            assert not any(re.match(r"Its? ", form) for form in relation.it), key(relation)


def test_a_says_before_which_it_stands_takes_a_value_without_a_vowel():
    for relation in WIDE:
        if any(re.search(r"\b[Aa] \{o\}", form) for form in (*relation.says, *relation.it)):
            values = {WideNames(Random(seed)).draw(relation.value) for seed in range(40)}
            assert not [value for value in values if value[0] in "aeiou"], key(relation)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_again_from_the_same_seed_and_hardly_twice(kind):
    names = WideNames(Random(7), alike=0.3)
    drawn = [names.draw(kind) for _ in range(20)]
    again = WideNames(Random(7), alike=0.3)
    assert drawn == [again.draw(kind) for _ in range(20)]
    assert all(name and name == name.strip() and not re.search(r"[{}|\n]", name) for name in drawn)
    if kind in NAMES:
        assert len(set(drawn)) == 20
        assert not any(map(held_out, drawn))
        held = WideNames(Random(7), held=True)
        assert all(held_out(held.draw(kind)) for _ in range(5))


def test_every_kind_that_is_mentioned_can_be_drawn():
    wanted = {kind for relation in (*WIDE, *RELATIONS, *OPEN) for kind in (relation.subject, relation.value)}
    assert wanted <= set(KINDS)


def test_names_are_composed_and_not_listed():
    for kind in ("person", "company", "project", "city", "word"):
        names = {NAMES[kind](Random(seed)) for seed in range(3000)}
        assert len(names) > 2000, kind
    assert len(NOUNS) >= 600
    assert len(ADJECTIVES) >= 300


def test_open_relations_differ_and_repeat_by_seed():
    assert open_relation(Random(3)) == OPEN[3]
    assert len({relation.says[0] for relation in OPEN}) > 140
    assert open_relation(Random(1), "company", "project").value == "company"


def test_idle_sentences_are_many():
    rng = Random(5)
    sentences = [idle_sentence(rng) for _ in range(2000)]
    assert len(set(sentences)) > 1700
    assert not [s for s in sentences if re.search(r"[{}]|\b[Aa] [aeiou]", s) or s[0].islower()]
    assert idle_sentence(Random(1)) == idle_sentence(Random(1))


def test_a_sentence_begins_with_a_capital_unless_it_begins_with_an_address():
    assert fill("{o} is here, not {s}.", "Ann", "copper") == "Copper is here, not Ann."
    assert fill("{s} runs.", "web.kel.example") == "web.kel.example runs."


def test_a_text_that_is_no_relation_is_refused():
    with pytest.raises(ValueError, match="not the beginning"):
        read("nothing\n  says {s} {o}.")
    with pytest.raises(ValueError, match="no sense"):
        read("museum head: person < nothing\n  says {s} {o}.")
