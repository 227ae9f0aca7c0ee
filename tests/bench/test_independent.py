"""The examination of fresh facts asks what its text tells, once, in many words."""

import random
import re
from functools import cache
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcache_bench.datasets.item import holds
from ragcache_bench.tasks.example import Example, add_titles
from ragcache_bench.tasks.independent import INDEPENDENT
from ragcache_bench.tasks.independent.draw import Draw, asked_relation
from ragcache_bench.tasks.independent.idle import IDLE, INTRODUCTIONS
from ragcache_bench.tasks.independent.relations import KINDS, Relation, read_kinds

RELATIONS = tuple(relation for kind in KINDS for relation in kind.relations)
SECTIONS = tuple(name for name in INDEPENDENT if name.startswith("fresh-sections"))
every_task = pytest.mark.parametrize("name", INDEPENDENT)


@cache
def drawn(name: str, n: int = len(RELATIONS), seed: int = 3) -> list[Example]:
    return INDEPENDENT[name].examples(n, seed)


def pattern(wording: str) -> str:
    """What a wording looks like with anything for its slots."""
    return re.sub(r"\\\{[so]\\\}", "(.+)", re.escape(wording[:1].upper() + wording[1:]))


def values(relation: Relation, text: str) -> set[str]:
    """What a text tells for a relation, with its subject or without."""
    ways = chain(relation.named, relation.implied)
    return {found[0] for way in ways if (found := re.search(pattern(way), text))}


def test_the_wordings_are_many_and_none_stands_twice() -> None:
    assert len(KINDS) >= 14
    assert len(RELATIONS) >= 60
    assert len(IDLE) >= 60
    for kind in KINDS:
        assert len(kind.relations) >= 4
        told = [wording for relation in kind.relations for wording in relation.wordings]
        assert len(set(told)) == len(told)
    for relation in RELATIONS:
        assert (len(relation.named) >= 4, len(relation.implied) >= 3, len(relation.asked) >= 4) == (True,) * 3


def test_every_wording_has_the_slots_of_its_sort() -> None:
    for relation in RELATIONS:
        slots = {
            sort: {tuple(sorted(re.findall(r"\{(.)\}", wording))) for wording in wordings}
            for sort, wordings in (("+", relation.named), ("-", relation.implied), ("?", relation.asked))
        }
        assert slots == {"+": {("o", "s")}, "-": {("o",)}, "?": {("s",)}}
    assert all("{s}" in introduction for introduction in INTRODUCTIONS)


def test_no_idle_sentence_tells_a_number_or_of_one_person_or_thing() -> None:
    assert not [sentence for sentence in IDLE if re.search(r"\d|\b([Hh]e|[Ss]he|[Hh]is|[Hh]er|[Ii]ts)\b", sentence)]


def test_wordings_are_read_from_text() -> None:
    text = "= cat, cats\nnames: Tom <code>\n\nage: <2..9> years\n+ {s} is {o} old.\n- It is {o} old.\n? How old is {s}?"
    (cat,) = read_kinds(text)
    assert (cat.name, cat.plural, cat.names, cat.article) == ("cat", "cats", "Tom <code>", "")
    (age,) = cat.relations
    assert age == Relation("age", "<2..9> years", ("{s} is {o} old.",), ("It is {o} old.",), ("How old is {s}?",))


@every_task
def test_the_same_seed_gives_the_same_questions_and_another_gives_others(name: str) -> None:
    task = INDEPENDENT[name]
    assert task.examples(4, 5) == task.examples(6, 5)[:4]
    assert not {one.question for one in task.examples(4, 5)} & {one.question for one in task.examples(4, 6)}
    assert [one.id for one in task.examples(2, 5)] == [f"{name}/5/0", f"{name}/5/1"]


@every_task
def test_the_answer_stands_in_its_gold_chunk_and_in_no_other(name: str) -> None:
    for example in drawn(name):
        told = [i for i, chunk in enumerate(example.chunks) if holds(chunk, example.answers)]
        assert told == [example.gold[-1]]
        assert example.chunks[told[0]].count(example.answers[-1]) == 1


@every_task
def test_chunks_are_short_and_neither_few_nor_many(name: str) -> None:
    bare = 4 if name.endswith("bare") else 0
    for example in drawn(name):
        assert 10 <= len(example.chunks) + bare <= 14
        assert all(20 <= len(chunk.split()) <= 56 for chunk in example.chunks)


def sentences(text: str) -> list[str]:
    return [f"{part}." for part in re.split(r"(?<!Dr)(?<!Prof)(?<! [A-Z])\. |\n", text.removesuffix("."))]


@every_task
def test_the_asked_attribute_is_told_of_at_least_three_subjects(name: str) -> None:
    for number, example in enumerate(drawn(name)):
        _, relation = asked_relation(3, number)
        assert sum(bool(values(relation, one)) for chunk in example.chunks for one in sentences(chunk)) >= 3


@every_task
def test_every_relation_is_asked_for_before_any_comes_again(name: str) -> None:
    asked = [asked_relation(3, number) for number in range(len(RELATIONS))]
    assert len({(kind.name, relation.name) for kind, relation in asked}) == len(RELATIONS)
    for (_, relation), example in zip(asked, drawn(name), strict=True):
        assert any(re.fullmatch(pattern(way), example.question) for way in relation.asked)


def fixed_words(wording: str) -> str:
    """The longest part of a wording that no name or value fills."""
    return max(re.split(r"\{.\}", wording), key=len)


def test_nearly_all_wordings_appear() -> None:
    for name, ways in (("fresh-facts", "named"), ("fresh-sections", "implied")):
        text = "\n".join(chunk for seed in (0, 1, 2) for one in drawn(name, seed=seed) for chunk in one.chunks)
        parts = {fixed_words(wording) for relation in RELATIONS for wording in getattr(relation, ways)}
        assert sum(part in text for part in parts) > 0.97 * len(parts)


def test_subjects_are_new_each_time() -> None:
    questions = [one.question for seed in (0, 1, 2) for one in drawn("fresh-facts", seed=seed)]
    assert len(set(questions)) == len(questions)
    titles = [title for one in drawn("fresh-sections") for title in dict.fromkeys(one.titles)]
    assert len(set(titles)) > 0.97 * len(titles)


def test_what_is_made_up_together_cannot_be_mistaken() -> None:
    for kind in KINDS:
        draw = Draw(random.Random(kind.name))
        facts = [draw.fact(one, relation) for one in draw.subjects(kind, 4) for relation in kind.relations]
        texts = [fact.value for fact in facts] + sorted({fact.subject.name for fact in facts})
        assert not [(a, b) for a in texts for b in texts if a is not b and holds(a, [b])]


@pytest.mark.parametrize("other", SECTIONS[1:])
def test_all_forms_of_sections_ask_the_same_of_the_same_places(other: str) -> None:
    for plain, form in zip(drawn("fresh-sections"), drawn(other), strict=True):
        assert (plain.question, plain.answers, plain.gap) == (form.question, form.answers, form.gap)
        assert list(map(len, plain.pages)) == list(map(len, form.pages))
        start = next(i for i, page in enumerate(plain.pages) if plain.chunks[plain.gold[0]] == page[0])
        assert holds(form.pages[start][form.gap or 0], form.answers)


@every_task
def test_every_chunk_has_a_title_and_a_section_that_of_its_subject(name: str) -> None:
    for example in drawn(name):
        assert len(example.titles) == len(example.chunks)
        assert all(example.titles)
        titled = add_titles(example)
        starts = tuple(f"{title}\n{chunk}" for title, chunk in zip(example.titles, example.chunks, strict=True))
        assert titled.chunks == starts
        for page, under in zip(example.pages, titled.pages, strict=True):
            assert [text.split("\n")[1] for text in under] == list(page)
            assert len({text.split("\n")[0] for text in under}) == 1


def subject(example: Example) -> str:
    """The name that the question shares with its section's title."""
    return next(title for title in example.titles if title in example.question)


def test_only_where_it_says_so_does_the_fact_need_its_header() -> None:
    for number, plain in enumerate(drawn("fresh-sections")):
        name = subject(plain)
        twin, bare = (drawn(f"fresh-sections{form}")[number] for form in ("-twin", "-bare"))
        header, fact = (plain.chunks[i] for i in plain.gold)
        assert (name in header, name in fact) == (True, False)
        assert plain.gold[1] - plain.gold[0] == plain.gap
        assert name in twin.chunks[twin.gold[0]]
        assert not [chunk for chunk in bare.chunks if name in chunk]
        assert [page[1:] for page in bare.pages] == [page[1:] for page in plain.pages]
        assert bare.chunks == tuple(chunk for page in bare.pages for chunk in page[1:])
    needs = [name for name, task in INDEPENDENT.items() if task.needs]
    assert needs == ["fresh-sections", "fresh-sections-bare"]
    assert {INDEPENDENT[name].chance for name in needs} == {0.25}


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**40), name=st.sampled_from(sorted(INDEPENDENT)))
def test_whatever_the_seed_there_is_one_right_answer(seed: int, name: str) -> None:
    for number, example in enumerate(INDEPENDENT[name].examples(3, seed)):
        _, relation = asked_relation(seed, number)
        assert [i for i, chunk in enumerate(example.chunks) if holds(chunk, example.answers)] == [example.gold[-1]]
        told = values(relation, example.chunks[example.gold[-1]])
        assert any(example.answers[-1] in statement for statement in told)
        assert not holds(example.question, example.answers)
        assert "{" not in " ".join((*example.chunks, example.question))
