"""What the sets that ask about documents become: which chunks, on which pages, under which titles."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from public_formats import FILES, PLACES, WORDS, corpus, squad
from ragcache_bench.datasets import card, load
from ragcache_bench.datasets.item import choice, holds
from ragcache_bench.metrics import exact_match
from ragcache_bench.tasks import Example

from ragcache.errors import InvalidArgument

Put = Callable[..., Path]


def needed(example: Example) -> list[str]:
    return [example.chunks[i] for i in example.gold]


def by_id(of: str, path: Path, **more: int) -> dict[str, Example]:
    return {example.id.removeprefix(f"{of}-"): example for example in load(of, path, **more)}


def articles() -> dict[str, object]:
    """Two articles; a paragraph of the first tells the answer to another's question."""
    content = squad()
    towns, more = content["data"][0], json.loads(json.dumps(content["data"][0]))
    towns["title"], more["title"] = "Towns_of_old", "More_towns"
    towns["paragraphs"].append({"context": "The fjord is deep.", "qas": []})
    more["paragraphs"] = [{"context": f"{text} Far away.", "qas": []} for text in WORDS.values()]
    asked = {"id": "more", "question": "Which is far?", "answers": [{"text": "Far away"}]}
    more["paragraphs"][0]["qas"] = [asked]
    return {"data": [towns, more]}


def test_distractors_come_from_the_same_article_first_and_hold_no_answer(put: Put) -> None:
    path = put("x.json", json.dumps(articles()))
    for seed in range(5):
        oslo = next(e for e in load("squad", path, seed=seed, chunks=4) if "Oslo" in e.question)
        assert set(oslo.chunks) <= set(WORDS.values())  # six of the article, one of which tells of the fjord too
        assert sum("fjord" in text for text in oslo.chunks) == 1
    oslo = next(e for e in load("squad", path, chunks=9) if "Oslo" in e.question)
    assert len(set(oslo.chunks)) == 9
    assert set(WORDS.values()) < set(oslo.chunks)  # then those of other articles
    assert "The fjord is deep." not in oslo.chunks


def test_another_seed_draws_other_paragraphs_of_the_article(put: Put) -> None:
    path = put("x.json", json.dumps(articles()))
    drawn = {seed: next(e for e in load("squad", path, seed=seed, chunks=3) if "Oslo" in e.question) for seed in (1, 2)}
    assert set(drawn[1].chunks) != set(drawn[2].chunks)


def test_articles_are_pages_in_order_and_titles_stand_beside_the_text(put: Put) -> None:
    examples = by_id("squad", put("x.json", json.dumps(articles())), chunks=9)
    towns = (*WORDS.values(), "The fjord is deep.")
    assert examples["q0"].pages[0] == towns
    assert len(examples["q0"].pages) == 2  # the other article's paragraphs make up the number
    titles = dict(zip(examples["q0"].chunks, examples["q0"].titles, strict=True))
    assert {title: text in towns for text, title in titles.items()} == {"Towns of old": True, "More towns": False}
    assert not any("Towns of old" in text for text in examples["q0"].chunks)


@pytest.mark.parametrize("name", ["hotpot_dev.json", "musique_ans.jsonl", "annotated.txt", "retrieved.jsonl"])
def test_titles_that_stand_in_the_text_are_told_beside_it_too(put: Put, name: str) -> None:
    for example in load(FILES[name][0], put(name)):
        assert len(example.titles) == len(example.chunks)
        assert all(text.startswith(f"{title}\n") for title, text in zip(example.titles, example.chunks, strict=True))
        assert example.pages == ()


def test_sets_without_titles_or_documents_have_none(put: Put) -> None:
    for example in load("babi-1", put("qa1_one_train.txt")):
        assert (example.titles, example.pages) == ((), ())


def test_a_choice_belongs_to_the_question_and_letter_and_text_are_accepted(put: Put) -> None:
    examples = by_id("longbench-v2", put("data.json"))
    one, other = examples["v1"], examples["v2"]
    assert one.question.splitlines()[:3] == ["What is the code word?", "(A) rose", "(B) fern"]
    for said in ("C", "(C)", "marigold", "(C) marigold", "C. Marigold."):
        assert exact_match(said, one.answers) == 1.0
    assert all(exact_match(said, other.answers) == 1.0 for said in ("A", "rose"))
    for said in ("B", "fern", "A", "marigolds"):
        assert exact_match(said, one.answers) == 0.0
    for said in ("", "The", "An", "The answer is A.", "A fern"):
        assert exact_match(said, other.answers) == 0.0
    assert one.pages == (one.chunks,)
    assert card([one]).closed == 1.0
    assert card([other]).majority == 1.0
    assert list(by_id("longbench-v2-short", put("data.json"))) == ["v1"]


@pytest.mark.parametrize(
    ("said", "there"),
    [("A", True), ("(A)", True), ("The answer is A.", True), ("I choose A because of it", True), ("A is right", True),
     ("Answer: a", True), ("It is a rose", True), ("", False), ("The", False), ("A fern", False),
     ("Yes. A fern", False), ("It is a fern", False), ("An oak", False), ("B", False)],
)  # fmt: skip
def test_the_letter_a_is_told_from_the_article(said: str, there: bool) -> None:
    assert holds(said, choice("A", "rose")) is there


def test_other_letters_are_found_as_words() -> None:
    assert holds("The answer is B.", choice("B", "rose"))
    assert not holds("The answer is A.", choice("B", "rose"))


def test_a_long_context_without_marked_evidence_keeps_what_shares_most_with_the_question(put: Put) -> None:
    one = by_id("longbench-v2", put("data.json"), chunks=2, size=20)["v1"]
    assert len(one.chunks) == 2
    assert "marigold" in one.chunks[-1]
    assert len(one.pages[0]) > 10
    assert [text for text in one.pages[0] if text in one.chunks] == list(one.chunks)


def test_a_paper_is_a_page_and_every_annotator_is_right(put: Put) -> None:
    examples = by_id("qasper", put("qasper-dev-v0.3.json"))
    assert sorted(examples) == ["spans", "yes"]  # unclear, unanswerable, and about a table: left out
    spans = examples["spans"]
    assert spans.answers == ("Oslo; fjord", "a fjord")
    assert exact_match("Oslo, fjord", spans.answers) == 1.0
    assert needed(spans) == [WORDS["Oslo"], WORDS["Lima"]]
    assert spans.chunks == ("We study towns.", *(WORDS[town] for town in ("Cairo", "Oslo", "Quito", "Lima")))
    assert spans.titles == ("On towns", "Introduction", "Introduction", "", "")
    assert spans.pages == (spans.chunks,)
    assert examples["yes"].answers == ("yes",)


def test_fewer_chunks_of_a_paper_keep_its_order_and_its_evidence(put: Put) -> None:
    spans = by_id("qasper", put("qasper-dev-v0.3.json"), chunks=3)["spans"]
    assert len(spans.chunks) == 3
    assert needed(spans) == [WORDS["Oslo"], WORDS["Lima"]]
    assert [text for text in spans.pages[0] if text in spans.chunks] == list(spans.chunks)
    assert len(spans.pages[0]) == 5


def test_sessions_are_pages_in_order_and_begin_with_their_date(put: Put) -> None:
    examples = by_id("locomo", put("locomo10.json"), size=2)
    assert sorted(examples) == ["conv-1-1", "conv-1-2", "conv-1-3"]  # the fourth is adversarial
    when, swim, shown = (examples[f"conv-1-{n}"] for n in (1, 2, 3))
    assert when.chunks == (
        "1:56 pm on 8 May, 2023\nAnn: Hello.\nBo: Look. [shows a photo of a boat]",
        "1:14 pm on 25 May, 2023\nAnn: Hello again.\nBo: It is cold.",
        "Ann: I saw the fjord last year.",
    )
    assert when.pages == (when.chunks[:1], when.chunks[1:])
    assert when.titles == ("1:56 pm on 8 May, 2023", "1:14 pm on 25 May, 2023", "1:14 pm on 25 May, 2023")
    assert (when.answers, when.gold) == (("2022",), (1, 2))  # what is said, and when it was said
    assert (swim.answers, swim.gold) == (("Likely no",), (0, 1))
    assert shown.gold == ()


def test_news_are_cut_under_their_line_and_the_piece_with_the_fact_is_needed(put: Put) -> None:
    (example,) = load("multihop-rag", put("multihop/MultiHopRAG.json"), size=30)  # the null query is left out
    line = "On Oslo (The Herald, 2023-10-07)"
    assert len(example.gold) == 2
    assert {text.split("\n")[0] for text in needed(example)} == {line, "On Lima (The Herald, 2023-10-07)"}
    assert all(WORDS["Oslo"] in text or WORDS["Lima"] in text for text in needed(example))
    assert len(example.chunks) == 8
    assert all(text.startswith(f"{title}\n") for title, text in zip(example.titles, example.chunks, strict=True))
    assert len(example.pages) == 2
    assert all(len({text.split("\n")[0] for text in page}) == 1 for page in example.pages)


def test_news_without_their_corpus_or_their_article_are_refused(put: Put) -> None:
    path = put("multihop/MultiHopRAG.json")
    (path.parent / "corpus.json").write_text(json.dumps(corpus()[1:]))
    with pytest.raises(InvalidArgument, match=r"evidence_list\[0\], title: expected the title of an article in corpus"):
        load("multihop-rag", path)
    (path.parent / "corpus.json").unlink()
    with pytest.raises(InvalidArgument, match=r"corpus\.json: expected a file"):
        load("multihop-rag", path)


def test_helmet_asks_each_question_once_and_hotpotqa_keeps_every_passage(put: Put) -> None:
    examples = load("helmet-rag", put("nq-dev-multikilt_1000_k50_dep6.jsonl"))
    assert sorted(example.question for example in examples) == ["what lies by oslo", "what lies by perth"]
    for example in examples:
        (gold,) = needed(example)
        assert gold.split("\n")[0].lower() in example.question
    lines = put("nq-dev-multikilt_1000_k50_dep6.jsonl").read_text()
    for example in load("helmet-rag", put("hotpotqa-dev-multikilt_1000_k50_dep3.jsonl", lines), chunks=2):
        assert (len(example.chunks), example.gold) == (len(PLACES), ())


def test_queries_become_questions_on_their_documents_pages(put: Put) -> None:
    examples = by_id("conteb-gates", put("gates/queries/test.jsonl"), chunks=4)
    oslo = examples["1"]
    assert oslo.question == "How many gates has Oslo?"
    assert (oslo.answers, needed(oslo)) == (("4 gates",), ["It has 4 gates."])
    assert len(set(oslo.chunks)) == 4
    page = (WORDS["Oslo"], "The mayor of Oslo is new.", "It has 4 gates.")  # by number, not by file
    assert page in oslo.pages
    assert all(any(text in page for page in oslo.pages) for text in oslo.chunks)
    assert sorted(needed(examples["7"])) == sorted(page[:2])  # several chunks of one document


def test_company_in_conteb_is_what_a_retriever_would_return(put: Put) -> None:
    cairo = by_id("conteb-gates", put("gates/queries/test.jsonl"), chunks=4)["3"]
    assert {"It has 5 gates.", WORDS["Cairo"], "The mayor of Cairo is new."} <= set(cairo.chunks)


def test_queries_that_state_no_answer_are_agreed_on(put: Put) -> None:
    path = put("gates/queries/test.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "answer": None}) + "\n" for row in rows))
    examples = load("conteb-gates", path)
    assert {example.answers for example in examples} == {()}
    found = card(examples)
    assert (found.unstated, found.closed, found.answerable, found.majority) == (1.0, 0.0, None, 0.0)
    assert "7 of 7 questions state no answer; read their agreement with full prefill" in found.warnings


def test_queries_without_their_chunks_are_refused(put: Put) -> None:
    path = put("gates/queries/test.jsonl")
    chunks = path.parents[1] / "documents" / "test.jsonl"
    chunks.write_text(chunks.read_text().replace("Oslo_10", "Oslo-10"))
    with pytest.raises(InvalidArgument, match=r"line 1, chunk_id: expected a document's id, '_' and a number"):
        load("conteb-gates", path)
    chunks.unlink()
    with pytest.raises(InvalidArgument, match=r"documents: expected the chunks, as test-00000-of-00001"):
        load("conteb-gates", path)
