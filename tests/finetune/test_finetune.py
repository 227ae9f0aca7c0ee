"""`ragcache finetune`: learns, goes on where it was killed, and refuses what nothing can be learnt from."""

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import scaled_dot_product_attention

from ragcache import RagCache
from ragcache.errors import InvalidArgument, StorageFull
from ragcache.model.loading import SMOLLM2
from ragcache.model.reader import Reader
from ragcache.model.tuning import Tuning, read_tuning

pytest.importorskip("peft")

from ragcache_cli.main import app
from ragcache_finetune import run
from ragcache_finetune.attention import attend
from ragcache_finetune.contexts import Asked, Context, hold_out, read_contexts
from ragcache_finetune.data import invent, retrieve
from ragcache_finetune.layout import SampleLayout
from ragcache_finetune.links import NAME, activation_dtype, add_links
from ragcache_finetune.material import gather_material
from ragcache_finetune.recipes import find_recipe
from ragcache_finetune.run import finetune
from ragcache_finetune.settings import Settings
from ragcache_finetune.trainer import Course
from transformers import TrainingArguments
from typer.testing import CliRunner

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what peft, accelerate and transformers say of each other
]
KILLED: dict[str, dict[str, Any]] = {"kvlink": {"recipe": "kvlink"}, "full": {"full_weights": True, "rate": 1e-4}}
NAMES = ("Oslo", "Bern", "Rome", "Lima", "Kyiv", "Cork")


def write_rows(file: Path, names: Sequence[str] = NAMES) -> Path:
    """A context of three chunks with two questions for each name."""
    rows = []
    for number, name in enumerate(names):
        chunks = [f"Mill {number} is in {name}.", f"Its owner is M{number}.", "It rains."]
        rows.append({"question": f"Where is mill {number}?", "answers": [name], "chunks": chunks})
        rows.append({"question": "Who owns it?", "answers": [f"M{number}", "M"], "chunks": chunks})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def settings(checkpoint: Path, folder: Path, **changes: Any) -> Settings:
    """A few steps on the tiny model."""
    folder.mkdir(exist_ok=True)
    given: dict[str, Any] = {"recipe": "turborag", "steps": 4, "batch": 2, "every": 2, "rate": 5e-3, "rank": 4}
    files: dict[str, Any] = {"data": str(write_rows(folder / "rows.jsonl")), "out": folder / "out"}
    return Settings(model=str(checkpoint), **{**given, **files, "dtype": "float32", **changes})


def quietly(text: str) -> None:
    """Note nothing."""


def curve(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("recipe", ["turborag", "block-attention"])
def test_the_loss_falls_in_twenty_steps(checkpoint: Path, tmp_path: Path, recipe: str) -> None:
    given = settings(checkpoint, tmp_path, recipe=recipe, steps=20, every=5, rank=8, rate=1e-2)
    finetune(given, note=quietly)
    losses = [line["loss"] for line in curve(given.out) if "loss" in line]
    assert losses[-1] < 0.7 * losses[0]


def test_an_adapter_is_loaded_by_a_reader_and_makes_another_model(checkpoint: Path, tmp_path: Path) -> None:
    given = settings(checkpoint, tmp_path)
    report = finetune(given, note=quietly)
    reader = Reader.load(str(checkpoint), dtype="float32", adapter=given.out)
    assert reader.fingerprint != Reader.load(str(checkpoint), dtype="float32").fingerprint
    tuning = read_tuning(given.out)
    assert tuning is not None
    assert (tuning.recipe, tuning.attention, tuning.links, tuning.steps) == ("turborag", "independent", 0, 4)
    card = (given.out / "README.md").read_text()
    assert "nats a token before" in card
    written = card + json.dumps(report) + "".join(file.read_text() for file in given.out.glob("*.json"))
    assert str(tmp_path) not in written
    assert str(checkpoint.parent) not in written


def test_a_finished_run_is_not_trained_again(checkpoint: Path, tmp_path: Path) -> None:
    given, notes = settings(checkpoint, tmp_path), list[str]()
    report = finetune(given, note=quietly)
    assert finetune(given, note=notes.append) == json.loads(json.dumps(report))
    assert "trained already" in notes[0]
    with pytest.raises(InvalidArgument, match="recipe turborag, 0 link tokens, not kvlink, 5 link tokens"):
        finetune(settings(checkpoint, tmp_path, recipe="kvlink"), note=quietly)
    with pytest.raises(InvalidArgument, match=r"rate 0\.005, not 0\.1"):
        finetune(settings(checkpoint, tmp_path, rate=0.1), note=quietly)


def test_link_tokens_are_trained_and_kept(checkpoint: Path, tmp_path: Path) -> None:
    given = settings(checkpoint, tmp_path, recipe="kvlink", links=1, steps=2)
    finetune(given, note=quietly)
    links = load_file(given.out / "links.safetensors")["links"]
    other = settings(checkpoint, tmp_path / "other", recipe="kvlink", links=1, steps=2, rate=1e-9)
    finetune(other, note=quietly)
    moved = (links - load_file(other.out / "links.safetensors")["links"]).abs().amax((1, 2))
    assert links.shape == (3, 1, 64)
    assert (moved > 1e-4).all()  # those of every document


def test_two_gpus_train_as_one(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (settings(checkpoint, tmp_path / name, steps=2) for name in ("one", "two"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # the second run's GPUs are counted, and not used
    finetune(one, note=quietly)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr(run, "TrainingArguments", lambda **given: TrainingArguments(**given | {"use_cpu": False}))
    finetune(two, note=quietly)
    ours, theirs = (load_file(given.out / "adapter_model.safetensors") for given in (one, two))
    assert all(torch.equal(value, theirs[key]) for key, value in ours.items())


@pytest.fixture(scope="module")
def killed_runs(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Settings]:
    """Runs that were killed behind their third step, each in a process of its own."""
    folder = tmp_path_factory.mktemp("killed")
    runs = {name: settings(checkpoint, folder / name, **changes) for name, changes in KILLED.items()}
    script = f"""
import os, signal, torch
from pathlib import PosixPath
from ragcache_finetune.run import finetune
from ragcache_finetune.settings import Settings
torch.set_num_threads(1)
def kill(stage, step, of):
    if step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
for settings in {[*runs.values()]!r}:
    if not (child := os.fork()):  # what it imports is imported once
        finetune(settings, progress=kill)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.lstrip("-").isdigit()] == ["-9"] * len(runs), done.stderr
    return runs


@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_goes_on_and_ends_with_the_same_weights(
    checkpoint: Path, tmp_path: Path, killed_runs: dict[str, Settings], name: str
) -> None:
    whole, killed = settings(checkpoint, tmp_path, **KILLED[name]), killed_runs[name]
    finetune(whole, note=quietly)
    steps = list[int]()
    finetune(killed, note=quietly, progress=lambda _, step, __: steps.append(step))
    assert steps == [3, 4]
    weights = "model.safetensors" if whole.full_weights else "adapter_model.safetensors"
    for file in (weights, *([] if whole.full_weights else ["links.safetensors"])):
        ours, theirs = load_file(whole.out / file), load_file(killed.out / file)
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            assert torch.equal(value, theirs[key]), key
    assert [line["step"] for line in curve(whole.out)] == [line["step"] for line in curve(killed.out)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "is empty"),
        ("hello\n", "line 1 .* is no question"),
        ('{"question": "Where?", "chunks": ["a", "b"]}', "line 1 .* has no answer to learn"),
        ('{"question": "Where?", "answers": [" "], "chunks": ["a", "b"]}', "no answer to learn"),
        ('{"question": "Where?", "answers": ["x"], "chunks": "a, b"}', "one text, without borders"),
        ('{"question": "Where?", "answers": ["x"]}', "has no chunks"),
        ('{"question": "Where?", "answers": ["x"], "chunks": ["a"]}', "no border between chunks"),
    ],
)
def test_rows_from_which_nothing_can_be_learnt_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(rows)
    with pytest.raises(InvalidArgument, match=message):
        read_contexts(file)


def test_lines_end_where_json_says_they_end(tmp_path: Path) -> None:
    chunks = ["One\u2028two", "three\u2029four\x85five"]
    row = json.dumps({"question": "Where?", "answers": ["x"], "chunks": chunks}, ensure_ascii=False)
    file = tmp_path / "rows.jsonl"
    file.write_bytes(f"{row}\r\n\n{row}\n".encode())
    assert read_contexts(file) == [Context(tuple(chunks), (Asked("Where?", ("x",)),) * 2)]
    file.write_bytes(f"{row}\r\n\nhello".encode())
    with pytest.raises(InvalidArgument, match="line 3 "):
        read_contexts(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": "turbo"}, "no recipe is called 'turbo'"),
        ({"links": 5}, "'turborag' has no link tokens, and --links is 5"),
        ({"recipe": "kvlink", "links": 3}, "--links is 3; give 0, 1 or 5"),
        ({"questions": Path("q.jsonl")}, "--questions goes with an index"),
        ({"data": "nowhere.jsonl"}, "cannot be read"),
        ({"dtype": "bf16"}, "--dtype is 'bf16'; give auto, float32 or bfloat16"),
        ({"dtype": "float16"}, "--dtype is 'float16'; give auto, float32 or bfloat16"),
        ({"held_out": -1}, "--held-out is -1; give 0 or more"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    checkpoint: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        finetune(settings(checkpoint, tmp_path, **changes), note=quietly)


def test_an_index_without_questions_and_a_folder_of_something_else_are_refused(
    checkpoint: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgument, match="name a JSONL file of them"):
        finetune(settings(checkpoint, tmp_path, data=str(tmp_path)), note=quietly)
    with pytest.raises(InvalidArgument, match="holds no run"):
        finetune(settings(checkpoint, tmp_path, out=tmp_path), note=quietly)


def test_alternating_attention_reads_every_context_once_either_way_in_two_passes() -> None:
    from conftest import byte_tokenizer

    contexts = [Context((f"a{i}", f"b{i}"), (Asked("Who?", ("x",)),)) for i in range(5)]
    for recipe, expected in (("block-attention", {(i, way) for i in range(5) for way in (True, False)}),
                             ("full", {(i, False) for i in range(5)})):  # fmt: skip
        course = Course(contexts, SampleLayout(byte_tokenizer(), find_recipe(recipe)), 10, seed=3)
        samples = [course[number] for number in range(10)]
        text = [byte_tokenizer().decode(sample.ids) for sample in samples]
        numbers = [next(i for i in range(5) if f"a{i}" in one) for one in text]
        assert {(i, one.independent) for i, one in zip(numbers, samples, strict=True)} == expected


def test_what_is_held_out_shares_no_chunk_with_what_is_trained_on() -> None:
    contexts = [Context((f"a{i}", f"a{i + 1}"), (Asked("Who?", ("x",)),)) for i in range(40)]
    training, held = hold_out(contexts, 0, 3)
    assert len(held) == 3
    assert not {c for one in training for c in one.chunks} & {c for one in held for c in one.chunks}


def test_invented_documents_are_the_same_for_a_seed() -> None:
    assert invent(3, 1) == invent(3, 1) != invent(3, 2)
    assert all(len(context.chunks) > 1 for context in invent(3, 1))


def command(given: Settings, *more: object) -> str:
    """What a terminal is shown."""
    options = ["--model", given.model, "--data", given.data, "--out", given.out, "--steps", 1, "--dtype", "float32"]
    line = ["finetune", "--recipe", given.recipe, "--batch", 1, *options, *more]
    done = CliRunner().invoke(app, [str(word) for word in line])
    assert done.exit_code == 0, done.output
    return done.output


def test_what_was_not_examined_is_not_called_zero(checkpoint: Path, tmp_path: Path) -> None:
    few = settings(checkpoint, tmp_path / "few")
    assert "no held-out questions (--validation FILE, --held-out N), so none were examined" in command(few)
    assert "(0) | not examined |" in (few.out / "README.md").read_text()
    report = json.loads((few.out / "report.json").read_text())
    assert report["answered_before"] == report["answered_after"] == {}
    none = settings(checkpoint, tmp_path / "none")
    assert "none were examined" in command(none, "--validation", none.data, "--held-out", 0)
    some = settings(checkpoint, tmp_path / "some")
    others = write_rows(tmp_path / "others.jsonl", names=("Turin", "Ghent"))
    assert "answered 0.0 (independent mask) before" in command(some, "--validation", others, "--held-out", 1)
    assert "(2) | 0.000 (independent mask) before" in (some.out / "README.md").read_text()


def test_the_last_words_name_the_option_that_reads_what_was_written(checkpoint: Path, tmp_path: Path) -> None:
    whole, adapter = settings(checkpoint, tmp_path / "whole"), settings(checkpoint, tmp_path / "adapter")
    assert f"answer with --model {whole.out}" in command(whole, "--full-weights")
    Reader.load(str(whole.out))
    assert f"answer with --adapter {adapter.out}" in command(adapter)


def test_without_the_extra_it_is_one_error_that_names_it() -> None:
    script = """
import sys
sys.modules["peft"] = None  # importing it now fails as if it were not installed
from pathlib import Path
from ragcache_finetune.command import finetune
try:
    finetune(recipe="turborag", model="bundled", data="worlds", out=Path("nowhere"))
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("MissingExtra")
    assert "pip install 'ragcache-kv[finetune]'" in done.stdout


# -- what must not be mixed up ---------------------------------------------------------------------------------------
def test_what_is_examined_is_not_trained_on_and_what_that_costs_is_said(checkpoint: Path, tmp_path: Path) -> None:
    given = settings(checkpoint, tmp_path)
    notes = list[str]()
    some = write_rows(tmp_path / "some.jsonl", names=NAMES[:2])
    found = gather_material(replace(given, validation=some), notes.append)
    assert (len(found.training), len(found.held)) == (4, 2)
    assert "2 of 6 contexts are not trained on" in notes[0]
    with pytest.raises(InvalidArgument, match=r"no context of .* is left to train on"):
        gather_material(replace(given, validation=Path(given.data)), quietly)
    rows = [{"question": "Where?", "answers": ["x"], "chunks": [f"a{i // 4}", f"b{i}"]} for i in range(40)]
    shared = tmp_path / "shared.jsonl"
    shared.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = gather_material(replace(given, data=str(shared), held_out=2), notes.append)
    assert f"{38 - len(found.training)} of 40 contexts are not trained on" in notes[-1]


def test_link_tokens_are_trained_for_the_chunks_that_training_reads(checkpoint: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.jsonl"
    rows = [{"question": "Where?", "answers": ["x"], "chunks": [f"c{i}" for i in range(count)]} for count in (2, 5)]
    longer.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given, notes = settings(checkpoint, tmp_path, recipe="kvlink", validation=longer), list[str]()
    finetune(given, note=notes.append)
    tuning = read_tuning(given.out)
    assert tuning is not None
    assert tuning.documents == 3, "five were never read"
    assert any("1 of 2 held-out contexts are not examined" in note for note in notes)


def test_a_run_goes_on_with_the_same_model_only(checkpoint: Path, tmp_path: Path) -> None:
    given = settings(checkpoint, tmp_path)
    finetune(given, note=quietly)
    other = tmp_path / "elsewhere" / checkpoint.name
    shutil.copytree(checkpoint, other)
    weights = load_file(other / "model.safetensors")
    save_file({name: value * 1.5 for name, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(InvalidArgument, match="holds a run with fingerprint"):
        finetune(replace(given, model=str(other)), note=quietly)


def test_a_run_that_could_not_begin_leaves_its_folder_to_the_next(checkpoint: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.jsonl"
    rows = [{"question": "Where?", "answers": ["x"], "chunks": ["word " * 9000, "b"]}] * 2
    long.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = settings(checkpoint, tmp_path, data=str(long))
    with pytest.raises(InvalidArgument, match="give it fewer chunks"):
        finetune(given, note=quietly)
    write_rows(long)
    finetune(given, note=quietly)


def test_a_full_disk_is_a_storage_error_and_the_run_goes_on(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(checkpoint, tmp_path)

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_card", refuse)
        with pytest.raises(StorageFull, match="free some space and run the same command"):
            finetune(given, note=quietly)
    with (given.out / "curve.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert finetune(given, note=quietly)["loss"] is not None


def test_a_run_of_fewer_steps_than_a_checkpoint_takes_has_a_loss(checkpoint: Path, tmp_path: Path) -> None:
    assert finetune(settings(checkpoint, tmp_path, steps=1, every=50), note=quietly)["loss"] > 0


def test_a_model_of_other_layers_than_full_attention_is_refused(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Reader.load(str(checkpoint))
    loaded.model.config.layer_types = ["linear_attention", "full_attention"]
    monkeypatch.setattr("ragcache_finetune.models.load_reader", lambda *_, **__: loaded)
    with pytest.raises(InvalidArgument, match=r"layers of another kind than full attention \(linear_attention\)"):
        finetune(settings(checkpoint, tmp_path), note=quietly)


def test_link_tokens_do_not_decide_what_a_model_computes_in() -> None:
    from conftest import tiny_model

    model = tiny_model("llama", hidden_size=32).bfloat16()
    add_links(model, 2, 1)
    assert getattr(model, NAME).dtype == torch.float32
    assert activation_dtype(model) == torch.bfloat16


@pytest.mark.parametrize(
    ("answers", "chunks", "message"),
    [(["", " "], ["a Oslo", "b"], "line 1 .* has no answer to learn"), (["Oslo"], ["a Oslo"], "give --top-k 5")],
)
def test_an_index_that_teaches_nothing_is_refused_with_its_own_reason(
    answers: list[str], chunks: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        asked_of_an_index(answers, chunks, tmp_path, monkeypatch)


def test_a_blank_answer_to_a_question_of_an_index_is_not_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [context] = asked_of_an_index(["", "Oslo"], ["a Oslo", "b"], tmp_path, monkeypatch)
    assert context.asked[0].answers == ("Oslo",)


def asked_of_an_index(
    answers: list[str], chunks: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Context]:
    """The contexts of one question to an index that finds these chunks."""
    questions = place / "questions.jsonl"
    questions.write_text(json.dumps({"question": "Where?", "answers": answers}))
    found = SimpleNamespace(retrieve=lambda *_, **__: [SimpleNamespace(text=text) for text in chunks])
    monkeypatch.setattr("ragcache_finetune.data.RagCache.open", lambda *_, **__: nullcontext(found))
    return retrieve(Settings("turborag", "bundled", str(place), place / "out", questions=questions), quietly)


def test_training_attention_takes_values_narrower_than_keys() -> None:
    """Latent attention's; against torch's own, by heads in groups."""
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 4, 5, 12), torch.randn(1, 2, 5, 12), torch.randn(1, 2, 5, 8)
    mask = torch.full((5, 5), -torch.inf).triu(1)[None, None]
    ours, _ = attend(None, query, key, value, mask, 0.3)
    theirs = scaled_dot_product_attention(query, key, value, mask, scale=0.3, enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(ours, theirs)


def test_an_index_of_a_tuned_model_retrieves_several_chunks(checkpoint: Path, tmp_path: Path) -> None:
    reader = Reader.load(str(checkpoint))
    reader.name = SMOLLM2  # which takes one by itself
    counts = []
    for tuning in (None, Tuning("full", "full", "reordered", 0, 0, SMOLLM2, 1)):
        reader.tuning = tuning
        with RagCache.open(tmp_path / str(tuning is None), model=reader, method="naive") as rag:
            counts.append(rag.top_k)
    assert counts == [1, 5]
