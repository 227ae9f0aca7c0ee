import json
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench import runs
from ragcache_bench.commands import quality as bench_quality
from ragcache_bench.speed import latency, replay, shapes, throughput
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

from ragcache.rag import RagCache

pytestmark = pytest.mark.slow

SECTIONS = ["bench", "quality", "--tasks", "sections", "--n", "1", "--methods", "cacheblend", "--budgets", "0.3"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def test_quality_writes_table_picture_and_answers(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "docs" / "q.json"
    options = ["--model", str(model), "--out", str(out), "--max-new-tokens", "2", "--random-seeds", "1", "--json"]
    result = CliRunner().invoke(app, [*SECTIONS, *options])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    methods = [row["method"] for row in content["rows"]]
    references = ["evidence", "true-deviation"]
    assert methods[:7] == ["full", "naive", "random", "epic", *references, "cacheblend"]
    assert all(row["kl"] >= 0 for row in content["rows"] if row["method"] != "chance")
    assert content["meta"]["n"] == 1
    assert content["meta"]["versions"]["torch"]
    assert {file.name for file in out.parent.iterdir()} == {"q.json", "q.md", "q.png", "q.jsonl"}


OWN = [
    {"question": "Who leads the Tide project?", "answers": ["Mara Voss"]},
    {"question": "When does the ferry cross?"},
    {"question": "What does the mill grind?"},
]


@pytest.fixture
def asked_of(model: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Questions, and an index that holds KV for naive and its kind only."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in {"a": "The Tide project is led by Mara Voss.", "b": "The mill grinds rye."}.items():
        (folder / f"{name}.txt").write_text(text)
    with RagCache.open(tmp_path / "index", model=str(model)) as rag:
        rag.ingest(folder, methods=["naive"])
    questions = tmp_path / "my.jsonl"
    questions.write_text("".join(json.dumps(line) + "\n" for line in OWN))
    return questions, tmp_path / "index"


def own(asked_of: tuple[Path, Path], out: Path, *more: str) -> Result:
    questions, index = asked_of
    options = ["--questions", str(questions), "--index", str(index), "--out", str(out), "--budgets", "0.3"]
    options += ["--max-new-tokens", "3", "--random-seeds", "1"]
    return CliRunner().invoke(app, ["bench", "quality", *options, *more])


def test_own_questions_are_asked_by_every_method_that_the_index_serves(
    asked_of: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "own.json"
    result = own(asked_of, out, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert [row["method"] for row in content["rows"]] == ["full", "naive", "random", "epic", "cacheblend", "prophetkv"]
    assert {name for one in content["meta"]["left_out"] for name in one["methods"]} == {
        "auto", "prefix", "link0", "fusionrag"
    }  # fmt: skip
    full = content["rows"][0]
    assert (full["n"], full["score"], full["agreement"]) == (3, pytest.approx(2 / 3), 1.0)  # nobody is Mara Voss here
    assert content["meta"]["recommendation"]["words"]
    before = out.with_suffix(".jsonl").read_text()
    shown = own(asked_of, out)
    assert out.with_suffix(".jsonl").read_text() == before  # nothing was asked twice
    assert shown.stdout.strip().splitlines()[-1].startswith("3 questions are too few to tell")


def test_named_chunks_are_read_instead_of_what_is_retrieved(asked_of: tuple[Path, Path], tmp_path: Path) -> None:
    questions, index = asked_of
    with RagCache.open(index) as rag:
        (chunk,) = rag.retrieve("mill", top_k=1)
    questions.write_text(json.dumps({"question": "What?", "chunks": [chunk.id]}) + "\n")
    assert own(asked_of, tmp_path / "own.json").exit_code == 0
    questions.write_text(json.dumps({"question": "What?", "chunks": [chunk.id, "nonesuch"]}) + "\n")
    refused = own(asked_of, tmp_path / "own.json")
    assert refused.exit_code == 2
    assert "'nonesuch'" in refused.stderr


@pytest.mark.parametrize(
    "line", ["[]", '{"question": ""}', '{"question": "a", "answers": "b"}', '{"question": 3}', "who?"]
)
def test_a_line_that_is_no_question_is_refused_by_its_number(
    asked_of: tuple[Path, Path], tmp_path: Path, line: str
) -> None:
    asked_of[0].write_text('{"question": "fine"}\n' + line + "\n")
    refused = own(asked_of, tmp_path / "own.json")
    assert refused.exit_code == 2
    assert "line 2 of" in refused.stderr


def test_a_named_method_that_the_index_cannot_serve_is_refused(asked_of: tuple[Path, Path], tmp_path: Path) -> None:
    refused = own(asked_of, tmp_path / "own.json", "--methods", "fusionrag")
    assert refused.exit_code == 2
    assert "ragcache ingest --method fusionrag" in refused.stderr


def test_quick_is_twelve_questions_at_one_budget(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_quality, "QUICK", 1)
    options = ["--tasks", "facts,sections", "--quick", "--model", str(model), "--max-new-tokens", "2", "--json"]
    result = CliRunner().invoke(app, ["bench", "quality", *options, "--out", str(tmp_path / "q.json")])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert {row["recompute"] for row in content["rows"] if row["method"] != "chance"} == {None, 0.05, 0.15}
    assert {row["task"] for row in content["rows"] if row["method"] == "naive+title"} == {"sections"}
    assert "ape" in content["meta"]["absent"]
    assert "Not in this table: " in (tmp_path / "q.md").read_text()
    assert "auto" not in content["meta"]["absent"]
    assert content["meta"]["n"] == 1
    assert content["meta"]["budgets"] == [0.15]


def test_a_public_set_is_a_task(model: Path, tmp_path: Path) -> None:
    qas = [{"id": "1", "question": "Who leads?", "answers": [{"text": "Mara Voss", "answer_start": 0}]}]
    paragraphs = [{"context": "Mara Voss leads it.", "qas": qas}, {"context": "It rains in Oslo.", "qas": []}]
    file = tmp_path / "squad.json"
    file.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    options = ["--data", f"xquad:{file}", "--quick", "--model", str(model), "--max-new-tokens", "2", "--json"]
    for more, chunks in (([], None), (["--chunks", "1"], 1)):
        result = CliRunner().invoke(app, ["bench", "quality", *options, *more, "--out", str(tmp_path / "q.json")])
        assert result.exit_code == 0, result.output
        content = json.loads(result.stdout)
        assert {row["task"] for row in content["rows"]} == {"xquad"}
        assert f"chunks={chunks}," in content["meta"]["tasks"]["xquad"]


@pytest.fixture
def unmarked(tmp_path: Path) -> Path:
    """A set whose needed chunks are not marked."""
    file = tmp_path / "samples.json"
    texts = [f"Mara Voss leads project {n}." for n in range(3)]
    ctxs = [{"title": "", "text": text} for text in texts]
    file.write_text(json.dumps([{"question": "Who leads?", "answers": ["Mara Voss"], "ctxs": ctxs}]))
    return file


def test_what_a_set_does_not_mark_is_warned_of_and_no_row_is_told_it(
    model: Path, unmarked: Path, tmp_path: Path
) -> None:
    out, warning = tmp_path / "q.json", "musique: the needed chunks of 1 of 1 questions are not known"
    options = ["--data", f"musique:{unmarked}", "--quick", "--model", str(model), "--max-new-tokens", "2"]
    result = CliRunner().invoke(app, ["bench", "quality", *options, "--out", str(out)])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    methods = {row["method"] for row in content["rows"]}
    assert "evidence" not in methods
    answers = out.with_suffix(".jsonl").read_text()
    assert '"naive"' in answers
    assert '"evidence"' not in answers  # nor was it asked
    assert {"full", "naive", "true-deviation"} <= methods
    assert content["meta"]["warnings"]["musique"][0].startswith(warning.removeprefix("musique: "))
    assert warning in out.with_suffix(".md").read_text()
    assert result.stderr.index(warning) < result.stderr.index("wrote ")
    heads = next(line for line in result.stdout.splitlines() if "ci_low" in line).split()
    assert heads[heads.index("ci_low") - 1] == "delta"


def test_a_question_too_long_is_refused_before_anything_is_encoded(
    model: Path, unmarked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs.Bench, "answers", lambda *given, **how: pytest.fail("something was asked"))
    rows = json.loads(unmarked.read_text())
    rows += [{**rows[0], "question": "Who leads them?", "ctxs": [{"title": "", "text": "So it is. " * 900}]}]
    unmarked.write_text(json.dumps(rows))
    options = ["--data", f"musique:{unmarked}", "--model", str(model), "--out", str(tmp_path / "q.json")]
    result = CliRunner().invoke(app, ["bench", "quality", *options])
    assert result.exit_code == 2
    assert "2 of 2 questions of musique do not fit" in result.stderr  # the long passage is the other's company
    assert "--chunks N" in result.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["quality", "--tasks", "alchemy"], "alchemy"),
        (["quality", "--methods", "sorcery"], "sorcery"),
        (["quality", "--budgets", "0.1;0.2"], "0.1;0.2"),
        (["quality", "--budgets", "7"], "7"),
        (["quality", "--index", "x"], "--questions"),
        (["quality", "--questions", "x.jsonl", "--workers", "2"], "--workers"),
        (["quality", "--questions", "x.jsonl"], "--index"),
        (["quality", "--data", "nonesuch:x"], "nonesuch"),
        (["latency", "--shape", "gpt-9"], "gpt-9"),
        (["latency", "--dtype", "int3"], "int3"),
        (["latency", "--context", "4k"], "4k"),
    ],
)
def test_bad_options_are_one_sentence_and_exit_code_2(options: list[str], reason: str) -> None:
    result = CliRunner().invoke(app, ["bench", *options])
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("out", ["x.jsonl", "q.md", "Qwen3-0.6B", "", "lb.json"])
def test_an_out_that_would_write_over_something_is_refused_before_the_model_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(bench_quality, "bench", None)
    monkeypatch.setattr(RagCache, "open", None)
    data, line = tmp_path / "lb.jsonl", '{"question": "Who?"}'  # no line's end
    data.write_text(line)
    for given in (["--data", f"longbench:{data}"], ["--questions", str(data), "--index", str(tmp_path)]):
        result = CliRunner().invoke(app, ["bench", "quality", *given, "--out", str(tmp_path / out)])
        assert result.exit_code == 2
        assert result.stderr.count("--out ") == 2, "what was given, and what to give"
        assert len(result.stderr.strip().splitlines()) == 1
    assert {file.name for file in tmp_path.iterdir()} == {"lb.jsonl"}
    assert data.read_text() == line


DWARF = ("qwen2", {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
                   "num_key_value_heads": 1, "vocab_size": 1000})  # fmt: skip


def test_latency_prints_and_writes_the_same_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shapes.SHAPES, "dwarf", DWARF)
    out = tmp_path / "latency.json"
    options = ["--shape", "dwarf", "--context", "512,1024", "--repeats", "1", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, ["bench", "latency", *options])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    seen = [(row["context"], row["method"]) for row in content["rows"]]
    assert seen == [(n, m) for n in (512, 1024) for m in ("full", "naive", "cacheblend", "fusionrag")]
    assert content["meta"]["stores"] == ["warm"]
    assert {row["method"] for row in content["scaling"]} == {"full", "naive", "cacheblend", "fusionrag"}
    assert {file.name for file in tmp_path.iterdir()} == {"latency.json", "latency.md", "latency.png"}


def test_a_checkpoint_is_timed_with_its_own_weights(tmp_path: Path) -> None:
    tiny_model("llama", vocab_size=1200).save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    options = ["--shape", str(tmp_path / "model"), "--context", "512", "--methods", "naive", "--repeats", "1"]
    result = CliRunner().invoke(app, ["bench", "latency", *options, "--dtype", "float32", "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert [row["method"] for row in content["rows"]] == ["full", "naive"]
    assert content["rows"][0]["context"] == 512


def test_a_checkpoint_with_fewer_tokens_than_the_words_is_refused(tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    result = CliRunner().invoke(app, ["bench", "latency", "--shape", str(tmp_path / "model"), "--dtype", "float32"])
    assert result.exit_code == 2
    assert "1,000" in result.stderr


def test_a_grid_has_so_many_chunks_of_each_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shapes.SHAPES, "dwarf", DWARF)
    options = ["--shape", "dwarf", "--chunk", "16,32", "--chunks", "1,3", "--methods", "naive", "--repeats", "1"]
    result = CliRunner().invoke(app, ["bench", "latency", *options, "--json"])
    assert result.exit_code == 0, result.output
    seen = [(row["context"], row["chunk"]) for row in json.loads(result.stdout)["rows"] if row["method"] == "naive"]
    assert seen == [(16, 16), (48, 16), (32, 32), (96, 32)]


@pytest.mark.parametrize(
    ("command", "options", "ways"),
    [
        ("trace", ["--n", "3", "--chunks", "2", "--tokens", "20", "--pool", "5"],
         ["full", "naive", "fusionrag", "prefix cache"]),
        ("throughput", ["--n", "2", "--context", "512", "--tokens", "1,2", "--repeats", "1"], ["prophetkv"] * 8),
        ("ingestion", ["--n", "3", "--tokens", "20", "--repeats", "1"], None),
    ],
)  # fmt: skip
def test_times_are_printed_and_written_alike(
    command: str, options: list[str], ways: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shapes.SHAPES, "dwarf", DWARF)
    out = tmp_path / "times.json"
    result = CliRunner().invoke(app, ["bench", command, "--shape", "dwarf", *options, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    assert content["meta"]["instructions"]
    assert ways is None or [row["method"] for row in content["rows"]] == ways
    assert "| " in out.with_suffix(".md").read_text()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["latency", "--context", "4096,5000"], "5,000"),
        (["latency", "--store", "warm,col"], "col"),
        (["latency", "--peers", "llama.cpp:q3"], "llama.cpp:q3"),
        (["trace", "--store", "tape"], "tape"),
        (["trace", "--pool", "2"], "pool of 2"),
        (["trace", "--data", "tape:reel"], "tape:reel"),
        (["trace", "--peers", "llama.cpp:q3"], "llama.cpp:q3"),
        (["throughput", "--context", "100"], "100"),
    ],
)
def test_a_wrong_option_of_a_timing_shows_before_anything_runs(
    options: list[str], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shapes.SHAPES, "qwen2.5-0.5b", DWARF)
    monkeypatch.chdir(tmp_path)
    for module, name in ((latency, "measure"), (replay, "replay"), (throughput, "measure")):
        monkeypatch.setattr(module, name, lambda *given, **how: pytest.fail("something ran"))
    result = CliRunner().invoke(app, ["bench", *options])
    assert result.exit_code == 2
    assert word in result.stderr
