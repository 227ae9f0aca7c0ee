import gzip
import json
import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from ragcache_bench.tasks.independent import INDEPENDENT
from reader_tuning import passages
from reader_tuning.adapter import Adapter
from reader_tuning.contexts import Context, Contexts, make_context, validation_contexts
from reader_tuning.examine import Reply, examine, shares
from reader_tuning.independent import ask
from reader_tuning.passages import Material, Passage, load, write_part
from reader_tuning.readers import load_reader
from reader_tuning.rows import BRANCH, Layout
from reader_tuning.tuner import Settings, Tuner
from transformers import AutoModelForCausalLM, AutoTokenizer

from ragcache import bundled
from ragcache.errors import InvalidArgument
from ragcache.model.adapter import merge_adapter

pytestmark = pytest.mark.slow

_TINY = Settings(steps=4, contexts=2, warm_up=1, every=2)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files of the four formats: six articles, ten single passages, two of them in a multi-hop question."""
    monkeypatch.setattr(passages, "EXAMINED", {"xquad": 2, "nq-open": 3})
    monkeypatch.setattr(passages, "VALIDATION", {"xquad": 1, "nq-open": 2})
    written = [
        {
            "id": sha256(f"Book {i} is by Writer {i}.".encode()).hexdigest()[:16],
            "question": f"Book {i}?",
            "answer": "Book",
        }
        for i in range(10)
    ]
    monkeypatch.setattr(passages, "WRITTEN", tmp_path / "written.jsonl")
    _write(tmp_path / "written.jsonl", "\n".join(map(json.dumps, written)))
    articles = [
        {
            "title": f"Town_{i}",
            "paragraphs": [
                {
                    "context": f"Town {i} lies on river {i}{j}. It has {100 + 10 * i + j} streets.",
                    "qas": [
                        {
                            "id": f"{i}-{j}",
                            "question": f"Streets of part {i}{j}?",
                            "answers": [{"text": str(100 + 10 * i + j), "answer_start": 0}],
                        }
                    ],
                }
                for j in range(3)
            ],
        }
        for i in range(6)
    ]
    _write(tmp_path / passages.XQUAD, json.dumps({"data": articles}))
    rows = [
        {
            "question": f"who wrote book {i}",
            "answers": [f"Writer {i}", "Nobody"],
            "ctxs": [{"title": f"Book {i}", "text": f"Book {i} is by Writer {i}."}],
        }
        for i in range(10)
    ]
    _write(tmp_path / passages.NQ_OPEN, "\n".join(map(json.dumps, rows)))
    wiki = [
        {"title": f"Film {i} (1990)", "text": f"Film {i} is a 199{i} film directed by Anna B. Bly. The end."}
        for i in range(6)
    ]
    _write(tmp_path / passages.WIKI, json.dumps(wiki))
    titles = "\n\n".join(f"Wikipedia Title: {title}\nText." for title in ("Book 9", "Film 5 (1990)"))
    hops = f'# METADATA: {{"qid": "1"}}\n{titles}\n\nQ: Who?\nA: I\n'
    for path in passages.IRCOT:
        _write(tmp_path / path, hops)
    return tmp_path


def test_nothing_examined_is_trained_on(folder: Path) -> None:
    material = load(folder)
    parts = (material.training, material.validation, material.examined)
    assert [len(part.articles) for part in parts] == [3, 1, 2]
    titles = [{one.title for one in (*part.single, *(a[0] for a in part.articles))} for part in parts]
    assert not titles[0] & titles[1]
    assert not (titles[0] | titles[1]) & titles[2]
    assert "Book 9" not in titles[0]
    assert {one.title for one in material.wiki} == {f"Film {i} (1990)" for i in range(5)}
    assert material.wiki[1].asked[0] == ("Who is the director of Film 1?", ("Anna B. Bly",))
    for one in material.training.single:
        assert one.asked == (
            (f"who wrote book {one.title[-1]}", (f"Writer {one.title[-1]}",)),
            (f"{one.title}?", ("Book",)),
        )
    assert all(len(one.asked) == 1 for part in parts[1:] for one in part.single)
    assert load(folder) == material
    assert load(folder, seed=1) != material


def test_examined_questions_come_back_from_their_files(folder: Path, tmp_path: Path) -> None:
    from ragcache_bench.datasets import load as read

    write_part(load(folder).examined, tmp_path / "examined")
    (articles,) = [read("xquad", tmp_path / "examined" / "xquad-examined.json")]
    assert len(articles) == 6
    assert all(len(one.pages[0]) == 3 and one.titles[0].startswith("Town ") for one in articles)
    assert len(read("nq-open", tmp_path / "examined" / "nq-open-examined.jsonl", chunks=2)) == 3


def test_no_question_is_asked_that_another_passage_answers_too() -> None:
    same = [Passage("A", "Anna came.", (("Who came?", ("Anna",)),)), Passage("B", "Anna left. Bo too.")]
    assert make_context(random.Random(0), same).asked == ()
    apart = [same[0], Passage("B", "Bo left.", (("Who left?", ("Bo",)),))]
    made = make_context(random.Random(0), apart, titled=True)
    assert made.passages == ("A\nAnna came.", "B\nBo left.")
    assert sorted(made.asked) == [("Who came?", ("Anna",)), ("Who left?", ("Bo",))]
    assert len(make_context(random.Random(0), apart, most=1).asked) == 1


def test_contexts_come_from_every_source_and_validation_asks_everything_once(folder: Path) -> None:
    material, rng = load(folder), random.Random(1)
    contexts = Contexts(material)
    drawn = [contexts.draw(rng) for _ in range(60)]
    text = "\n".join(passage for context in drawn for passage in context.passages)
    assert all(word in text for word in ("river", "Writer", "Film"))
    assert any("Town" not in one and "Book" not in one and "Film" not in one for c in drawn for one in c.passages)
    asked = [question for one in validation_contexts(material.validation) for question, _ in one.asked]
    wanted = [q for p in (*material.validation.articles[0], *material.validation.single) for q, _ in p.asked]
    assert sorted(asked) == sorted(wanted)


def _tuner(out: Path, material: Material, settings: Settings, workers: int = 1) -> Tuner:
    model = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)  # quick on any processor
    tokenizer = AutoTokenizer.from_pretrained(bundled.reader_path())
    adapter = Adapter.new(dict(model.named_parameters()), rank=2, alpha=4.0)
    return Tuner(out, model, tokenizer, Contexts(material), adapter, settings, "bundled", workers)


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout(AutoTokenizer.from_pretrained(bundled.reader_path()))


_CONTEXT = Context(
    ("Anna leads Tide.", "Bo leads Ebb."), (("Who leads Ebb?", ("Bo", "Bo Ash")), ("Who leads Tide?", ("Anna",)))
)


def test_a_branch_is_the_prompt_that_is_asked_and_its_shortest_answer(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr("reader_tuning.rows._FOREIGN", 0.0)
    row = layout.row(random.Random(0), _CONTEXT)
    for number, (question, answers) in enumerate(_CONTEXT.asked):
        at = [i for i, segment in enumerate(row.segment) if segment < BRANCH or segment == BRANCH + number]
        ids, said = [row.ids[i] for i in at], [row.ids[i] for i in at if row.label[i]]
        assert ids[: -len(said)] == list(layout.prompt(_CONTEXT, question).token_ids)
        assert [row.position[i] for i in at] == list(range(len(at)))
        assert layout.tokenizer.decode(said) == min(answers, key=len) + layout.tokenizer.eos_token
    foreign = {tuple(layout.row(random.Random(seed), _CONTEXT).ids) for seed in range(20)}
    assert foreign == {tuple(row.ids)}


def test_other_prompts_are_read_too(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr("reader_tuning.rows._FOREIGN", 1.0)
    texts = {layout.tokenizer.decode(layout.row(random.Random(seed), _CONTEXT).ids) for seed in range(20)}
    assert any("Helpful Answer:" in text for text in texts)
    assert any("Query: Who leads Ebb?" in text for text in texts)
    assert not any("\u2042" in text for text in texts)


def _trained(weights: dict[str, torch.Tensor]) -> Adapter:
    """One that adds something."""
    adapter, made = Adapter.new(weights, rank=3, alpha=6.0), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for matrix in adapter.parameters():
            matrix.normal_(0, 0.1, generator=made)
    return adapter


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT asks for what transformers has renamed
def test_a_merged_adapter_is_what_peft_makes_of_its_files(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    model = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)
    adapter = _trained({name: p.detach() for name, p in model.named_parameters()})
    adapter.save(tmp_path, "bundled")
    ids = torch.arange(10, 40)[None]
    theirs = peft.PeftModel.from_pretrained(model, tmp_path)
    with torch.no_grad():
        wanted = theirs(ids).logits
        ours = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)
        before = ours(ids).logits
        merge_adapter(ours, tmp_path)
        found = ours(ids).logits
    assert (found - wanted).abs().max() < 1e-3  # sums of another order, of logits around 10
    assert (found - before).abs().max() > 0.1


def test_what_leads_from_one_model_to_another_is_an_adapter_of_some_rank() -> None:
    model = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)
    before = {name: p.detach() for name, p in model.named_parameters()}
    adapter = _trained(before)
    with torch.no_grad():
        after = before | {name: before[name] + adapter.added(name) for name in adapter.pairs}
        rest = []
        for rank in (1, 3):
            found = Adapter.between(before, after, rank)
            missing = [found.added(name) - adapter.added(name) for name in adapter.pairs]
            rest.append(max(float(one.abs().max()) for one in missing))
    assert rest[1] < 1e-5 < 1e-2 < rest[0]


def test_a_run_learns_logs_is_an_adapter_and_resumes(folder: Path, tmp_path: Path) -> None:
    material, out = load(folder), tmp_path / "run"
    first = _tuner(out, material, _TINY)
    first.run()
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 2, 4]
    assert {"xquad", "nq-open"} == set(lines[-1]["validation"])
    first.adapter.save(out / "adapter", "bundled")
    again = _tuner(out, material, _TINY)
    for ours, theirs in zip(first.adapter.parameters(), again.adapter.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert any(up.abs().max() > 0 for _, up in again.adapter.pairs.values())
    with pytest.raises(InvalidArgument, match="another --out"):
        _tuner(out, material, replace(_TINY, rate=1.0))
    with pytest.raises(InvalidArgument, match=r"bundled.*deep of it"):
        Tuner(out, again.model, again.layout.tokenizer, Contexts(material), again.adapter, _TINY, "deep of it")
    again.run()  # nothing is left to do
    again.export(tmp_path / "reader")
    tuned = AutoModelForCausalLM.from_pretrained(tmp_path / "reader", dtype=torch.float32)
    merged = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)
    with torch.no_grad():
        merge_adapter(merged, out / "adapter")
    for (name, ours), theirs in zip(tuned.named_parameters(), merged.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-2), name  # the adapter's files are in bf16
    assert any(not torch.equal(p, again.model.get_parameter(name)) for name, p in tuned.named_parameters())
    assert len((out / "log.jsonl").read_text().splitlines()) == len(lines)


def test_an_interrupted_run_ends_as_one_that_was_not(folder: Path, tmp_path: Path) -> None:
    material = load(folder)
    once = _tuner(tmp_path / "once", material, _TINY)
    once.run()
    part = _tuner(tmp_path / "part", material, _TINY)
    part.run(until=2)
    rest = _tuner(tmp_path / "part", material, _TINY)
    rest.run()
    for ours, theirs in zip(once.adapter.parameters(), rest.adapter.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_step_of_all_rows_at_once_is_that_of_one_after_the_other(
    folder: Path, tmp_path: Path, monkeypatch, workers: int
) -> None:
    material, settings = load(folder), replace(_TINY, contexts=3)
    apart = _tuner(tmp_path / "apart", material, settings, workers)
    together = _tuner(tmp_path / "together", material, settings)
    forwards: dict[str, list[int]] = {"apart": [], "together": []}
    one_by_one = apart._forwards
    monkeypatch.setattr(apart, "_forwards", lambda rows: forwards["apart"].append(len(rows)) or one_by_one(rows))
    monkeypatch.setattr(together, "_forwards", lambda rows: forwards["together"].append(len(rows)) or [rows])
    apart.run(until=1)
    together.run(until=1)
    assert forwards["together"] == [3]
    assert sorted(forwards["apart"]) == ([3] if workers == 1 else [1, 2])
    assert apart._losses == pytest.approx(together._losses, rel=1e-5)
    for ours, theirs in zip(apart.adapter.parameters(), together.adapter.parameters(), strict=True):
        one, other = (apart._adam.state[ours]["exp_avg"], together._adam.state[theirs]["exp_avg"])
        assert (one - other).norm() <= 1e-4 * one.norm()  # of the gradient: AdamW's first step knows its sign only


def test_matrices_are_tuned_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    tuner = _tuner(tmp_path / "run", load(folder), replace(_TINY, rate=0.1))
    before = {name: weight.clone() for name, weight in tuner.model.named_parameters()}
    tuner.run()
    tuner.export(tmp_path / "reader")
    tuned = AutoModelForCausalLM.from_pretrained(tmp_path / "reader", dtype=torch.float32)
    changed = {name for name, weight in tuned.named_parameters() if not torch.equal(weight, before[name])}
    assert changed == {name for name in before if name.endswith("_proj.weight")}


def test_replies_are_counted_where_they_hold_an_answer_and_where_they_are_one(layout: Layout) -> None:
    replies = [Reply("q", ("Oslo",), "Oslo."), Reply("q", ("Oslo",), "It is Oslo"), Reply("q", ("Oslo",), "Rome")]
    assert shares(replies) == {"n": 3, "holds": 0.667, "exact": 0.333}
    model = AutoModelForCausalLM.from_pretrained(bundled.reader_path(), dtype=torch.float32)
    found = examine(model, layout, [_CONTEXT, Context(("Nothing.",), ())])
    assert [reply.question for reply in found] == ["Who leads Ebb?", "Who leads Tide?"]
    for reply in found:  # the shared beginning changes nothing
        ids = torch.tensor([layout.prompt(_CONTEXT, reply.question).token_ids])
        out = model.generate(ids, max_new_tokens=24, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
        assert layout.tokenizer.decode(out, skip_special_tokens=True).strip() == reply.text


def test_a_reader_is_asked_independent_questions_and_is_loaded_from_its_folder(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr("reader_tuning.examine._TOKENS", 4)
    model, tokenizer = load_reader(bundled.reader_path())
    assert (model.dtype, len(tokenizer)) == (torch.bfloat16, len(layout.tokenizer))
    found = ask(model, layout, n=2, seed=2)
    assert {name: task["shares"]["n"] for name, task in found.items()} == {"fresh-facts": 2, "fresh-sections": 2}
    asked = [reply["question"] for reply in found["fresh-facts"]["replies"]]
    assert asked == [one.question for one in INDEPENDENT["fresh-facts"].examples(2, 2)]
