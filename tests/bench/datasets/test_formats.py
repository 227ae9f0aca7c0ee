"""What each format's questions become."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from public_formats import WORDS, training
from ragcache_bench.datasets import load
from ragcache_bench.tasks import Example

Put = Callable[..., Path]


def needed(example: Example) -> list[str]:
    return [example.chunks[i] for i in example.gold]


def test_squad_gives_each_question_its_paragraph_among_others_and_leaves_out_the_impossible(put: Put) -> None:
    examples = load("squad", put("train-v2.0.json"), chunks=4)
    assert len(examples) == 6
    for example in examples:
        town = example.question.removeprefix("What lies by ").removesuffix("?")
        assert needed(example) == [WORDS[town]]
        assert len(set(example.chunks)) == 4
        assert example.answers == (WORDS[town].split()[-1].rstrip("."),)


@pytest.mark.parametrize(("name", "of"), [("hotpot_dev.json", "hotpotqa"), ("columns.jsonl", "2wiki")])
def test_hotpot_marks_the_paragraphs_of_its_supporting_facts(put: Put, name: str, of: str) -> None:
    (example,) = load(of, put(name))
    assert example.id == f"{of}-h1"
    assert sorted(needed(example)) == [f"{town}\n{town} is a town. {WORDS[town]}" for town in ("Lima", "Turin")]
    assert len(example.chunks) == 6


def test_musique_takes_aliases_and_leaves_out_the_unanswerable(put: Put) -> None:
    (example,) = load("musique", put("musique_ans.jsonl"), chunks=3)
    assert example.answers == ("fjord", "the fjord", "inlet")
    assert sorted(needed(example)) == [f"{town}\n{WORDS[town]}" for town in ("Oslo", "Quito")]
    assert len(example.chunks) == 3


def test_annotated_samples_keep_every_paragraph_for_none_is_marked(put: Put) -> None:
    first, second = sorted(load("musique", put("annotated.txt"), chunks=2), key=lambda example: example.id)
    assert sorted(first.chunks) == sorted(second.chunks) == sorted(f"{town}\n{text}" for town, text in WORDS.items())
    assert (first.question, first.answers, first.gold) == ("What lies by Perth?", ("desert",), ())


def test_annotated_paragraphs_may_have_several_lines_and_be_preceded_by_blank_ones(put: Put) -> None:
    paragraphs = "Wikipedia Title: Nam\nOne.\n\nTwo.\n\nWikipedia Title: Ost\nThree."
    text = f'\n# METADATA: {{"qid": "a"}}\n{paragraphs}\n\nQ: Who?  \nA: Me\n'
    (example,) = load("hotpotqa", put("x.txt", text))
    assert sorted(example.chunks) == ["Nam\nOne.\n\nTwo.", "Ost\nThree."]
    assert (example.question, example.answers) == ("Who?", ("Me",))


def test_samples_with_retrieved_passages_are_read_under_the_names_of_their_sets(put: Put) -> None:
    ctxs = [{"title": "", "text": "Ada did."}, {"title": "B", "text": ""}]
    row = {"question": "Who?", "answers": ["Ada"], "ctxs": ctxs}
    with pytest.raises(ValueError, match=r"record 1, ctxs\[1\], text: expected something that is not blank"):
        load("musique", put("musique_s.json", json.dumps([row])))
    ctxs[1]["text"] = "Bea did not."
    (example,) = load("musique", put("musique_s.json", json.dumps([row])))
    assert (sorted(example.chunks), example.gold) == (["Ada did.", "B\nBea did not."], ())


def test_oracle_passages_get_those_of_other_questions_beside_them(put: Put) -> None:
    for example in load("nq-open", put("retrieved.jsonl"), chunks=3):
        (gold,) = needed(example)
        assert gold.split("\n")[0].lower() in example.question
        assert len(set(example.chunks)) == 3


def test_of_retrieved_passages_one_is_the_evidence_and_others_that_answer_are_left_out(put: Put) -> None:
    texts = {"Oslo lies far.": False, "A fjord.": True, "The fjord again.": True, "Rain.": False}
    ctxs = [{"title": "", "text": text, "has_answer": has} for text, has in texts.items()]
    (example,) = load("nq-open", put("x.jsonl", json.dumps({"question": "?", "answers": ["fjord"], "ctxs": ctxs})))
    assert needed(example) == ["A fjord."]
    assert sorted(example.chunks) == ["A fjord.", "Oslo lies far.", "Rain."]


@pytest.mark.parametrize("key", ["hasanswer", "has_answer", "isgold"])
def test_a_question_whose_marks_say_that_no_passage_answers_is_left_out(put: Put, key: str) -> None:
    def row(question: str, *marks: bool) -> dict[str, object]:
        ctxs = [{"title": "", "text": f"{question} {n}", key: mark} for n, mark in enumerate(marks)]
        return {"question": question, "answers": ["fjord"], "ctxs": ctxs}

    path = put("x.json", json.dumps([row("one?", False, False), row("two?", False, True)]))
    assert [example.question for example in load("nq-open", path)] == ["two?"]
    assert [example.question for example in load("helmet-rag", path)] == ["two?"]
    with pytest.raises(ValueError, match="expected questions with answers of nq-open, found none"):
        load("nq-open", put("y.json", json.dumps([row("one?", False)])))


def test_training_questions_without_a_positive_passage_are_left_out(put: Put) -> None:
    rows = [*training(), {**training()[0], "question": "what of it", "positive_ctxs": []}]
    (example,) = load("triviaqa", put("x.json", json.dumps(rows)))
    assert example.question == "what lies by oslo"


def test_training_passages_put_hard_negatives_before_others(put: Put) -> None:
    (example,) = load("triviaqa", put("training.json"), chunks=2)
    assert needed(example) == [f"Oslo\n{WORDS['Oslo']}"]
    assert sorted(example.chunks) == [f"Cairo\n{WORDS['Cairo']}", f"Oslo\n{WORDS['Oslo']}"]


def test_pairs_keep_their_order_and_the_wanted_one_is_among_them(put: Put) -> None:
    (example,) = load("kv-retrieval", put("pairs.jsonl"), chunks=2, size=3)
    assert needed(example) == ['"key-06": "value-06",\n"key-07": "value-07",\n"key-08": "value-08"']
    assert list(example.chunks) == sorted(example.chunks)
    assert len(example.chunks) == 2
    assert 'key "key-07"' in example.question


def test_a_babi_story_is_cut_into_sentences_up_to_the_question(put: Put) -> None:
    examples = {example.id: example for example in load("babi-1", put("qa1_one_train.txt"), size=2)}
    assert sorted(examples) == ["babi-1-3", "babi-1-6", "babi-1-8"]
    milk = examples["babi-1-6"]
    assert milk.chunks == (
        "Mary went to the kitchen. John went to the garden.",
        "Mary got the milk. Mary went to the hall.",
    )
    assert (milk.question, milk.answers, milk.gold) == ("Where is the milk?", ("hall",), (1,))
    assert examples["babi-1-3"].chunks == milk.chunks[:1]
    assert examples["babi-1-8"].chunks == ("Sandra went to the office.",)
    finer = {example.id: example for example in load("babi-1", put("qa1_one_train.txt"), size=1)}["babi-1-6"]
    assert (len(finer.chunks), finer.gold) == (4, (2, 3))


def test_long_contexts_are_cut_at_their_passages_else_at_sentences(put: Put) -> None:
    examples = {example.id: example for example in load("longbench", put("hotpotqa.jsonl"), size=20)}
    passages, prose = examples["longbench-abc"], examples["longbench-def"]
    assert needed(passages) == [f"Passage 3:\nCairo\n{WORDS['Cairo']}"]
    assert len(passages.chunks) == 6
    assert all(chunk.endswith(".") and len(chunk.split()) <= 20 for chunk in prose.chunks)
    assert prose.gold == (len(prose.chunks) - 1,)
    assert " ".join(prose.chunks).endswith("Sentence number 59 tells nothing new. The code word is marigold.")


def test_ruler_texts_are_taken_apart_into_context_and_question(put: Put) -> None:
    examples = {example.id: example for example in load("ruler", put("niah.jsonl"), size=40)}
    needles, chain, asked = (examples[f"ruler-{n}"] for n in range(3))
    assert needles.question == "What are all the special magic numbers for fern mentioned in the provided text?"
    assert needles.answers == ("1234567; 7654321",)
    assert all("1234567" in text or "7654321" in text for text in needed(needles))
    assert not any("quiz" in text for text in needles.chunks)
    assert chain.question == "Find all variables that are assigned the value 77 in the text above."
    assert not any("OLD" in text or "Memorize" in text for text in chain.chunks)
    assert len(chain.gold) == 2
    assert asked.answers == ("fjord", "the fjord")
    assert asked.chunks == (f"Document 1:\n{WORDS['Lima']}", f"Document 2:\n{WORDS['Oslo']}")
    assert (asked.question, asked.gold) == ("What lies by Oslo?", (1,))


def test_cutting_a_long_context_keeps_its_evidence_and_its_order(put: Put) -> None:
    path = put("niah.jsonl")
    for whole in load("ruler", path, size=40):
        (cut,) = [one for one in load("ruler", path, chunks=3, size=40) if one.id == whole.id]
        assert needed(cut) == needed(whole)
        places = [whole.chunks.index(text) for text in cut.chunks]
        assert places == sorted(places)
        assert len(cut.chunks) == min(3, len(whole.chunks))
