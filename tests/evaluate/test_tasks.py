import pytest

from ragcache.evaluate.tasks import TASKS, Corpus, Facts, Sections


@pytest.mark.parametrize("name", list(TASKS))
def test_examples_are_the_same_for_the_same_seed_and_others_for_another(name):
    task = TASKS[name]
    assert task.examples(5, 3) == task.examples(5, 3)
    assert task.examples(5, 3) != task.examples(5, 4)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_answer_stands_in_the_gold_chunks(name):
    for e in TASKS[name].examples(30, 1):
        assert e.gold
        assert e.answers[0] in " ".join(e.chunks[i] for i in e.gold)
        assert e.task == name


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
    assert all(len(e.chunks) == 6 for e in Facts(chunks=6).examples(10))
    assert all(len(e.chunks) == 12 for e in Corpus("two-hop", chunks=12).examples(10))
    assert all(len(e.chunks) == 4 * 3 + 2 for e in Sections(subjects=4, between=2).examples(10))


def test_the_corpus_has_no_more_examples_than_questions():
    assert len(Corpus("section").examples(10_000)) == 90
