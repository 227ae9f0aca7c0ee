"""Documents about several subjects: what a fact needs stands in its document, and no title tells it."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from ragcache_bench.tasks import DOCUMENTS, KNOWN, TASKS
from ragcache_bench.tasks.example import add_titles

pytestmark = pytest.mark.slow

PLAIN = [name for name, task in DOCUMENTS.items() if name == task.name]


def test_there_are_seven_kinds_and_none_takes_part_unasked() -> None:
    assert len(PLAIN) == 7
    assert DOCUMENTS.keys() <= KNOWN.keys()
    assert not DOCUMENTS.keys() & TASKS.keys()


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_a_prompt_has_chunks_of_several_long_documents(name: str) -> None:
    examples = DOCUMENTS[name].examples(30, 1)
    least, most = (2, 30) if DOCUMENTS[name].cut else (8, 40)
    assert examples == DOCUMENTS[name].examples(30, 1)
    for one in examples:
        assert one.task == name
        assert len(one.chunks) == len(one.titles) == 14
        assert 2 <= len(one.pages) <= 8
        assert all(len(page) >= least for page in one.pages)
        known = {text: number for number, page in enumerate(one.pages) for text in page}
        assert set(one.chunks) <= set(known)
        assert len({known[one.chunks[at]] for at in one.gold}) == 1, "a fact and what it needs are of one document"
    assert max(len(page) for one in examples for page in one.pages) > most
    assert len({len(one.pages) for one in examples}) > 3


@pytest.mark.parametrize("name", PLAIN)
def test_the_answer_is_in_the_gold_chunks_and_a_twin_needs_only_the_fact(name: str) -> None:
    for one, twin in zip(DOCUMENTS[name].examples(30, 2), DOCUMENTS[f"{name}-twin"].examples(30, 2), strict=True):
        assert (one.question, one.answers, one.titles) == (twin.question, twin.answers, twin.titles)
        needed, fact = one.gold
        assert twin.gold == (fact,)
        assert one.chunks[needed] == twin.chunks[needed]
        assert all(word in f"{one.chunks[needed]} {one.chunks[fact]}" for word in one.answers[0].split())
        assert one.answers[0] in twin.chunks[fact]


@pytest.mark.parametrize("name", PLAIN)
def test_no_title_and_no_chunk_alone_tells_both_whom_it_is_about_and_the_answer(name: str) -> None:
    for one in DOCUMENTS[name].examples(40, 3):
        asked = set(re.findall(r"[A-Z][\w']+", one.question)[1:]) - {"Mr", "Mrs"}
        titles = " ".join(one.titles)
        assert not any(word in titles.split() for word in asked)
        told = [text for at, text in enumerate(add_titles(one).chunks) if at != one.gold[0]]
        alone = [text for text in told if one.answers[0] in text]
        if name not in ("column-units", "minutes"):  # where the chunk with the fact names what is asked about
            assert not any(asked & set(text.split()) for text in alone if asked), "or a title would mend it"


@pytest.mark.parametrize("name", PLAIN)
def test_shuffled_is_the_same_prompt_in_another_order(name: str) -> None:
    plain, shuffled = DOCUMENTS[name].examples(20, 4), DOCUMENTS[f"{name}-shuffled"].examples(20, 4)
    assert [sorted(one.chunks) for one in plain] == [sorted(one.chunks) for one in shuffled]
    assert [one.pages for one in plain] == [one.pages for one in shuffled]
    assert any(one.chunks != other.chunks for one, other in zip(plain, shuffled, strict=True))
    for one, other in zip(plain, shuffled, strict=True):
        assert {one.chunks[at] for at in one.gold} == {other.chunks[at] for at in other.gold}


@pytest.mark.parametrize("name", PLAIN)
def test_cut_has_the_same_words_in_chunks_that_overlap_and_end_anywhere(name: str) -> None:
    plain, cut = DOCUMENTS[name].examples(20, 5), DOCUMENTS[f"{name}-cut"].examples(20, 5)
    for one, other in zip(plain, cut, strict=True):
        assert [" ".join(page).split() for page in one.pages] == [_joined(page) for page in other.pages]
        known = [text for page in other.pages for text in page]
        assert set(other.chunks) <= set(known)
        assert max(len(text.split()) for text in known) == 48
    ends = [text[-1] for one in cut for page in one.pages for text in page[:-1]]
    assert sum(end.isalnum() for end in ends) > len(ends) / 2, "most borders are in the middle of a sentence"


@pytest.mark.parametrize("name", PLAIN)
def test_the_gold_chunks_of_a_cut_document_hold_what_those_of_the_whole_one_do(name: str) -> None:
    task = DOCUMENTS[f"{name}-cut"]
    for number in range(20):
        whole = replace(task, cut=False)._draw(f"{name} {number}", task.length)
        parts = task._draw(f"{name} {number}", task.length)
        for one, other in zip(whole.asked, parts.asked, strict=True):
            said = " ".join(parts.chunks[at] for at in other.gold)
            assert all(set(whole.chunks[at].split()) <= set(said.split()) for at in one.gold)
        assert not set(parts.alone) & {at for one in parts.asked for at in one.gold}


def _joined(page: Sequence[str]) -> list[str]:
    """The words of a page, each once where chunks overlap."""
    first, *rest = (text.split() for text in page)
    return [*first, *(word for words in rest for word in words[8:])]
