import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcache_bench.questions.names import Names, held_out
from ragcache_bench.questions.relations import RELATIONS
from ragcache_bench.questions.worlds import UNKNOWN, make_context
from reader_training.curriculum import LEVELS


@pytest.mark.parametrize("kind", ["person", "project", "company", "product", "site", "policy", "word"])
def test_training_names_and_held_out_names_never_meet(kind):
    train = {Names(random.Random(i)).draw(kind) for i in range(60)}
    held = {Names(random.Random(i), held=True).draw(kind) for i in range(60)}
    assert not train & held
    assert all(held_out(n) for n in held)
    assert len(held) > 10


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, len(LEVELS) - 1), st.booleans())
def test_every_answer_stands_in_its_gold_chunks(seed, level, held):
    context = make_context(random.Random(seed), LEVELS[level], held)
    for q in context.questions:
        if q.gold:
            assert q.answer in " ".join(context.chunks[i] for i in q.gold)
        else:
            assert q.answer == UNKNOWN or not context.separable


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_a_section_fact_names_its_subject_in_the_header_only(seed):
    context = make_context(random.Random(seed), LEVELS[4])
    for q in context.questions:
        if q.family == "section":
            header, fact = q.gold
            assert header < fact
            assert q.answer in context.chunks[fact]
            assert not context.separable


def test_the_same_seed_gives_the_same_context():
    assert make_context(random.Random(3), LEVELS[6]) == make_context(random.Random(3), LEVELS[6])


def test_unseen_questions_are_not_among_the_trained_ones():
    for r in RELATIONS:
        assert r.unseen
        assert not set(r.unseen) & set(r.asks)
