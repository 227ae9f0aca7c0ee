import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcache_bench.questions.families import BINDINGS, LOOKUPS, STORIES, draw
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import UNKNOWN, World
from reader_training.curriculum import FIRST_MIXED, LEVELS

_LEVEL = Level(forms=9, filler=0.3, alike=0.1)


def _context(tell, seed, *args):
    world = World(random.Random(seed), _LEVEL)
    tell(world, *args)
    return world.finish([world.ask(fact) for fact in world.facts])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(FIRST_MIXED, len(LEVELS) - 1), st.booleans())
def test_a_mixed_context_asks_what_its_chunks_can_answer(seed, level, held):
    context = draw(random.Random(seed), LEVELS[level], held)
    assert context.questions
    for q in context.questions:
        assert all(0 <= i < len(context.chunks) for i in q.gold)
        assert q.gold or q.answer == UNKNOWN


@pytest.mark.parametrize("family", list(BINDINGS))
def test_a_binding_is_read_in_full_and_its_twin_may_be_read_chunk_by_chunk(family):
    for seed in range(20):
        plain, twin = _context(BINDINGS[family], seed, False), _context(BINDINGS[family], seed, True)
        assert not plain.separable
        assert twin.separable
        assert all(len(q.gold) == 2 for q in plain.questions)
        assert all(len(q.gold) == 1 for q in twin.questions)


def test_a_pronoun_means_the_subject_of_its_kind_named_last():
    for seed in range(30):
        context = _context(BINDINGS["pronouns"], seed, False)
        kinds = [re.search(r"(?:next|the|The) (\w+) (?:is )?[A-Z]", chunk) for chunk in context.chunks]
        for q in context.questions:
            header, fact = q.gold
            assert header < fact
            kind = kinds[header].group(1)
            assert kind in context.chunks[fact]
            assert not any(m and m.group(1) == kind and "turn" in context.chunks[i] for i, m in
                           enumerate(kinds) if header < i < fact)  # fmt: skip


def test_counts_and_lists_agree_with_what_is_told():
    for seed in range(30):
        for q in _context(LOOKUPS["counting"], seed).questions:
            assert int(q.answer) == len(q.gold) == q.bridge.count(", ") + 1


def test_a_tracked_value_is_found_by_following_the_notes():
    for seed in range(30):
        context = _context(LOOKUPS["tracking"], seed)
        for q in context.questions:
            steps = q.reply.split(": ")
            assert len(q.gold) == len(steps)
            text = " ".join(context.chunks[i] for i in q.gold)
            assert all(step in text for step in steps)


def test_comparisons_name_the_greater_or_the_earlier():
    for seed in range(40):
        for q in _context(LOOKUPS["comparing"], seed).questions:
            a, b = (int(x.split()[0].replace(",", "")) for x in re.split(r", (?=\d+ |\d+$|\d+,\d{3} )", q.bridge))
            first, second = re.split(r", | or ", q.text.rstrip("?"))[1:]
            best = (a < b) if "opened first" in q.text else (a > b)
            assert q.answer == (first if best else second).removeprefix("the ")


def _replay(told):
    """Where people and things are, by reading the sentences: a second derivation of the stories' answers."""
    at, held, where = {}, {}, {}
    for sentence in told:
        if went := re.match(r"(\w+) (?:moved|went|journeyed|travelled|went back) (?:back )?to the (\w+)\.", sentence):
            at[went[1]] = went[2]
            where |= {thing: went[2] for thing, owner in held.items() if owner == went[1]}
        elif took := re.match(r"(\w+) (?:got|picked up|took|grabbed) the (\w+) there\.", sentence):
            held[took[2]], where[took[2]] = took[1], at[took[1]]
        elif left := re.match(r"\w+ (?:dropped|left|put down|discarded) the (\w+)\.", sentence):
            held.pop(left[1])
    return at | where


@pytest.mark.parametrize("number", [1, 2])
def test_story_answers_follow_from_reading_the_sentences(number):
    for seed in range(60):
        told, asked = STORIES[number](random.Random(seed))
        known = _replay(told)
        for text, answer in asked:
            assert known[re.search(r"(\w+)\?", text)[1]] == answer


def test_held_out_contexts_share_no_open_name_with_training():
    one = " ".join(draw(random.Random(1), LEVELS[-1]).chunks)
    assert one != " ".join(draw(random.Random(1), LEVELS[-1], held=True).chunks)
