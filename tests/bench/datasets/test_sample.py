"""Drawing questions, cutting them to size, and what a card says of the result."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from public_formats import FILES, IRCOT, squad
from ragcache_bench.datasets import DATASETS, Public, answerable, card, choose, load, named, parse, unasked
from ragcache_bench.metrics import exact_match

from ragcache.errors import InvalidArgument

Put = Callable[..., Path]


def test_every_set_draws_the_same_for_the_same_seed_and_fewer_are_the_first_of_more(put: Put, name: str) -> None:
    of, path = FILES[name][0], put(name)
    whole = load(of, path, seed=3)
    assert whole == load(of, path, seed=3)
    assert load(of, path, 1, seed=3) == whole[:1]
    assert len({example.id for example in whole}) == len(whole)
    for example in whole:
        assert example.task == of
        assert example.gold == tuple(sorted(set(example.gold)))


def test_another_seed_draws_and_shuffles_otherwise(put: Put) -> None:
    path = put("train-v2.0.json")
    one, other = load("squad", path, seed=1), load("squad", path, seed=2)
    assert [example.id for example in one] != [example.id for example in other]
    assert {e.id: e.chunks for e in one} != {e.id: e.chunks for e in other}


def test_a_foreign_passage_never_contains_the_answer(put: Put) -> None:
    content = squad()
    asked = {"id": "x", "question": "?", "answers": [{"text": "Another"}]}
    content["data"][0]["paragraphs"] += [{"context": f"Another fjord, number {n}.", "qas": [asked]} for n in range(5)]
    path = put("x.json", json.dumps(content))
    for seed in range(5):
        (oslo,) = [e for e in load("squad", path, seed=seed, chunks=4) if "Oslo" in e.question]
        assert len(oslo.chunks) == 4
        assert sum("fjord" in text for text in oslo.chunks) == 1


def test_no_passage_that_is_needed_is_left_out_to_meet_a_number(put: Put) -> None:
    (example,) = load("hotpotqa", put("hotpot_dev.json"), chunks=1)
    assert example.gold in ((0, 1),)
    assert len(example.chunks) == 2


def test_a_pool_too_small_gives_fewer_chunks(put: Put) -> None:
    assert {len(example.chunks) for example in load("squad", put("train-v2.0.json"), chunks=50)} == {6}


def test_ids_that_occur_again_get_a_number(put: Put) -> None:
    path = put("x.txt", IRCOT.replace('"qid": "1"', '"qid": "0"'))
    assert {example.id for example in load("musique", path)} == {"musique-0", "musique-0#2"}


@pytest.mark.parametrize("wrong", [{"n": 0}, {"chunks": 0}, {"size": 0}, {"chunks": -3}])
def test_numbers_below_one_are_refused(put: Put, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument, match=f"{next(iter(wrong))} of babi-1 is {next(iter(wrong.values()))}; give 1"):
        load("babi-1", put("qa1_one_train.txt"), **wrong)


def test_a_size_for_passages_that_stay_whole_is_refused(put: Put) -> None:
    with pytest.raises(InvalidArgument, match="size of squad is 5, but its passages stay whole"):
        load("squad", put("train-v2.0.json"), size=5)


def test_a_card_counts_the_questions_whose_answer_is_in_no_chunk(put: Put) -> None:
    # as in the MuSiQue sample of CacheBlend, where it is so for 35 of 150
    rows = [
        {"question": f"Who won race {n}?", "answers": [f"Runner {n}"], "ctxs": [{"title": f"Race {n}", "text": text}]}
        for n in range(8)
        for text in [f"The winner was runner-{n}!" if n < 6 else f"It rained on {n}0 days."]
    ]
    examples = load("musique", put("musique_s.json", json.dumps(rows)), chunks=1)
    found = card(examples)
    assert (found.n, found.answerable, found.gold, found.closed) == (8, 0.75, 0.0, 0.0)
    assert sorted(found.missing) == ["musique-7", "musique-8"]
    assert sorted(e.id for e in examples if not answerable(e)) == sorted(found.missing)
    assert "the answer stands in the chunks of only 6 of 8 questions; report scores on those" in found.warnings
    assert "the needed chunks of 8 of 8 questions are not known, so there is no row `evidence`" in str(found)


def test_yes_and_no_are_counted_apart_for_no_text_needs_to_contain_them(put: Put) -> None:
    found = card(load("hotpotqa", put("hotpot_dev.json")))
    assert (found.closed, found.answerable, found.missing) == (1.0, None, ())


def test_a_card_sees_repeated_questions_and_a_common_answer(put: Put) -> None:
    story = "1 Mary went to the {0}.\n2 Where is Mary?\t{0}\t1\n"
    places = ["kitchen", "kitchen", "garden", "hall"]
    found = card(load("babi-1", put("qa1_x.txt", "".join(map(story.format, places)))))
    assert (found.repeated, found.majority, found.chunks, found.words) == (1, 0.5, 1.0, 5.0)
    assert found.warnings == (
        "1 of 4 questions are asked more than once",
        "one answer is right for 50% of the questions",
    )


def test_a_sound_sample_has_no_warnings(put: Put) -> None:
    found = card(load("nq-open", put("retrieved.jsonl")))
    assert (found.answerable, found.gold, found.repeated) == (1.0, 1.0, 0)
    assert all("not" not in text for text in found.warnings)


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [("a 5-cylinder engine", "5", True), ("Eminem's life", "Eminem", True), ("The U.S. won", "U.S.", True),
     ("in the house", "us", False), ("3,500 men", "3500", True), ("奥斯陆位于峡湾", "峡湾", True),
     ("first b, then c", "c b; then", False), ("first then b", "b; then", True), ("anything", "the", False)],
)  # fmt: skip
def test_an_answer_is_found_as_words_however_they_are_punctuated(put: Put, text: str, answer: str, there: bool) -> None:
    row = {"question": "?", "answers": [answer], "ctxs": [{"title": "", "text": text}]}
    (example,) = load("nq-open", put("x.jsonl", json.dumps(row)))
    assert answerable(example) is there


def test_the_parts_of_an_answer_are_scored_like_an_enumeration() -> None:
    assert exact_match("1234567, 7654321", ["1234567; 7654321"]) == 1.0


def test_a_spec_is_one_task_and_a_folder_one_for_each_file(put: Put) -> None:
    folder = put("babi/qa2_two_train.txt", FILES["qa1_one_train.txt"][1]).parent
    for name in ("qa1_one_train.txt", "qa1_one_test.txt", "qa15_x_train.txt.gz"):
        put(f"babi/{name}", FILES["qa1_one_train.txt"][1])
    tasks = named(f"babi:{folder}", size=1)
    assert list(tasks) == ["babi-1", "babi-2", "babi-15"]
    assert tasks["babi-1"] == Public("babi-1", folder / "qa1_one_test.txt", size=1)
    assert tasks["babi-15"].examples(1)[0].task == "babi-15"
    assert list(named(f"babi:{folder / 'qa2_two_train.txt'}")) == ["babi-2"]
    assert list(named(f"babi-15:{folder / 'qa15_x_train.txt.gz'}")) == ["babi-15"]
    path = put("train-v2.0.json")
    assert named(f"xquad:{path}", chunks=3) == {"xquad": Public("xquad", path, 3)}
    assert parse(f"xquad:{path}") == ("xquad", path)


def test_ruler_tasks_are_named_by_their_folders(put: Put) -> None:
    root = put("out/niah_single_1/validation.jsonl", FILES["niah.jsonl"][1]).parents[1]
    put("out/vt/validation.jsonl", FILES["niah.jsonl"][1])
    assert list(named(f"ruler:{root}")) == ["ruler-vt", "ruler-niah_single_1"]


def test_two_tasks_of_one_name_in_a_folder_are_refused_by_their_paths(put: Put) -> None:
    for length in (4096, 8192):
        root = put(f"out/{length}/vt/validation.jsonl", FILES["niah.jsonl"][1]).parents[2]
    put("out/8192/vt/test.jsonl", FILES["niah.jsonl"][1])
    with pytest.raises(
        InvalidArgument, match=r"4096/vt/validation\.jsonl and .*8192/vt/.* are both ruler-vt; name one"
    ):
        named(f"ruler:{root}")
    (task,) = named(f"ruler:{root / '8192'}").values()
    assert task.path.name == "test.jsonl"  # another split of the same task


def test_a_second_file_of_a_set_has_rows_of_its_own(put: Put) -> None:
    english, other = put("xquad.en.json", FILES["train-v2.0.json"][1]), put("xquad.de.json", json.dumps(squad()))
    tasks = choose([f"xquad:{english}", f"xquad:{other}", f"xquad:{english}"], 3)
    assert {name: task.path for name, task in tasks.items()} == {"xquad": english, "xquad-xquad.de": other}
    first, second = (task.examples(4, 1) for task in tasks.values())
    assert [one.question for one in first] == [one.question for one in second]  # the same draw
    assert {one.task for one in second} == {"xquad-xquad.de"}
    assert [one.id for one in second] == [one.id.replace("xquad", "xquad-xquad.de", 1) for one in first]
    again = put("again/xquad.de.json", json.dumps(squad()))
    with pytest.raises(InvalidArgument, match=f"{other} and {again} are both xquad-xquad.de; rename one"):
        choose([f"xquad:{english}", f"xquad:{other}", f"xquad:{again}"])


def test_tasks_that_ask_nothing_are_left_out_of_a_folder_by_name(put: Put) -> None:
    summary = json.dumps({"input": "", "context": "A report.", "answers": ["short"], "_id": "g"})
    for name in ("gov_report", "lcc_e"):
        put(f"longbench/{name}.jsonl", summary)
    folder = put("longbench/hotpotqa.jsonl", FILES["hotpotqa.jsonl"][1]).parent
    (task,) = named(f"longbench:{folder}").values()
    assert (task.name, len(task.examples(9))) == ("longbench-hotpotqa", 2)
    assert unasked(f"longbench:{folder}") == ["gov_report", "lcc_e"]
    assert unasked(f"longbench:{task.path}") == unasked(f"xquad:{task.path}") == []


def test_a_public_task_answers_like_any_other_and_shows_no_folder(put: Put) -> None:
    task = Public("squad", put("train-v2.0.json"), chunks=2)
    assert task.examples(2, 5) == load("squad", task.path, 2, 5, 2)
    assert task.card().n == 6
    assert task.chance == pytest.approx(1 / 6)
    assert repr(task) == "Public('squad', 'train-v2.0.json', chunks=2, size=None)"
    assert not task.needs
    assert not task.twin


def test_specs_that_name_no_set_no_path_or_no_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="'quux' is no public set; name one of squad, xquad"):
        parse("quux:x.json")
    with pytest.raises(InvalidArgument, match="'xquad' names no file; write xquad:PATH"):
        parse("xquad")
    with pytest.raises(InvalidArgument, match="does not exist"):
        named(f"xquad:{tmp_path / 'gone.json'}")
    with pytest.raises(InvalidArgument, match="expected a file, not a folder"):
        named(f"xquad:{tmp_path}")
    with pytest.raises(InvalidArgument, match=r"expected qa\*_"):
        named(f"babi:{tmp_path}")


def test_the_formats_in_the_tests_cover_the_table() -> None:
    folders = ("babi", "conteb", "kvpress")
    read = {of.partition("-")[0] if of.startswith(folders) else of for of, _ in FILES.values()}
    assert read | {"xquad"} == set(DATASETS)
