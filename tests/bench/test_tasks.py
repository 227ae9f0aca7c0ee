import re

import pytest
from ragcache_bench.tasks import TASKS, Binding, Corpus, Lookup, Sections, Trace

from ragcache.errors import InvalidArgument

TWINS = [name for name in TASKS if f"{name}-twin" in TASKS]


@pytest.mark.parametrize("name", list(TASKS))
def test_examples_are_the_same_for_the_same_seed_and_others_for_another(name):
    task = TASKS[name]
    assert task.examples(5, 3) == task.examples(5, 3)
    assert task.examples(5, 3) != task.examples(5, 4)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_answer_stands_in_the_gold_chunks(name):
    for e in TASKS[name].examples(30, 1):
        assert e.task == name
        assert bool(e.gold) == (name != "unknown")
        if name not in ("unknown", "multivalue", "counting", "yesno", "units"):
            assert e.answers[0] in " ".join(e.chunks[i] for i in e.gold)


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_asks_the_same_and_needs_the_facts_chunk_only(name):
    for a, b in zip(TASKS[name].examples(40, 2), TASKS[f"{name}-twin"].examples(40, 2), strict=True):
        assert (a.question, a.answers, len(a.chunks)) == (b.question, b.answers, len(b.chunks))
        assert b.gold == a.gold[1:]
        assert a.gap == a.gold[1] - a.gold[0] > 0
        assert b.gap is None
        assert a.chunks[a.gold[0]] == b.chunks[a.gold[0]]


@pytest.mark.parametrize("name", TWINS)
def test_alone_the_facts_chunk_does_not_tell_whose_it_is_but_its_twin_does(name):
    """What tells it apart (a name in the question, or the state that is the answer) stands in the first gold chunk."""
    for a, b in zip(TASKS[name].examples(40, 2), TASKS[f"{name}-twin"].examples(40, 2), strict=True):
        key = a.answers[0].split()[-1] if name in ("shifts", "units") else _subject(a.question, a.chunks[a.gold[0]])
        assert key in a.chunks[a.gold[0]]
        assert not re.search(rf"\b{re.escape(key)}\b", a.chunks[a.gold[1]])
        assert key in b.chunks[b.gold[0]]


def _subject(question: str, header: str) -> str:
    """The longest run of the question's words, from a capital on, that the header shares."""
    words = question.rstrip("?").split()[1:]
    starts = [i for i, word in enumerate(words) if word[0].isupper()]
    runs = [" ".join(words[i:j]) for i in starts for j in range(i + 1, len(words) + 1)]
    return max((run for run in runs if run in header), key=len)


def test_sections_and_twin_differ_in_the_facts_wording_only():
    plain, twin = Sections().examples(40, 2), Sections(twin=True).examples(40, 2)
    for a, b in zip(plain, twin, strict=True):
        assert (a.question, a.answers, len(a.chunks)) == (b.question, b.answers, len(b.chunks))
        header, fact = a.gold
        assert b.gold == (fact,)
        assert a.chunks[header] == b.chunks[header]
        same = sum(x == y for x, y in zip(a.chunks, b.chunks, strict=True))
        assert same == len(a.chunks) - 6


def test_a_section_chunk_has_other_sentences_before_its_fact():
    for e in Sections().examples(40, 2):
        text = e.chunks[e.gold[1]]
        assert len(text[: text.index(e.answers[0])].split()) >= 6


def test_sizes_are_kept():
    assert all(len(e.chunks) == 6 for e in Lookup("facts", chunks=6).examples(10))
    assert all(len(e.chunks) == 12 for e in Corpus("two-hop", chunks=12).examples(10))
    assert all(len(e.chunks) == 4 * 3 + 2 for e in Sections(subjects=4, between=2, fill=0.0).examples(10))


def test_the_corpus_has_no_more_examples_than_questions():
    assert len(Corpus("section").examples(10_000)) == 90


def test_a_binding_has_as_many_subjects_to_tell_apart_as_it_says():
    for e in Binding("shifts", subjects=4, chunks=16).examples(20):
        marks = ("is on duty", "over the desk", "price is now", "price changes", "level is now", "level changes",
                 "train stops", "train reaches", "tour moves on", "tour reaches", "calendar says",
                 "date is", "guard is in", "guard walks", "shop sells", "shop changes")  # fmt: skip
        assert sum(any(mark in chunk for mark in marks) for chunk in e.chunks) == 4


def test_too_few_chunks_for_a_binding_are_refused_with_both_numbers():
    with pytest.raises(InvalidArgument, match="3 subjects takes more than 4 chunks"):
        Binding("pronouns", chunks=4).examples(1)


def test_longer_contexts_keep_question_and_gold():
    for e in Lookup("needles", chunks=48).examples(10):
        assert len(e.chunks) == 48
        assert e.answers[0] in e.chunks[e.gold[0]]


def test_a_trace_draws_popular_chunks_again_in_other_orders():
    examples = Trace().examples(60)
    seen = [c for e in examples for c in e.chunks]
    assert len(set(seen)) < len(seen) / 4
    first = max(set(seen), key=seen.count)
    assert len({e.chunks.index(first) for e in examples if first in e.chunks}) > 3
