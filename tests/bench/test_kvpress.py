"""Result folders as kvpress writes them, from its own tables and from tasks of other kinds."""

import csv
import json
from pathlib import Path

import pytest
import yaml
from conftest import byte_tokenizer, tiny_model
from public_formats import FILES
from ragcache_bench.datasets import choose, named
from ragcache_bench.kvpress import Asked, write_results
from ragcache_bench.records import Record
from ragcache_bench.tasks import TASKS, Example
from ragcache_cli.main import app
from typer.testing import CliRunner

ABOUT = {"reader": "Qwen/Qwen3-8B", "max_new_tokens": 128, "device": "cuda", "seed": 0}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "ruler" / "4096" / "test.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(FILES["ruler/4096/test.jsonl"][1])
    return path


def record(example: Example, answer: str, method: str = "naive", recompute: float | None = None) -> Record:
    return Record(
        f"{example.id} {method}", example.task, example.id, method, recompute, 0, answer, 0.0, 0.5, 0.1, 0.2, 1
    )


def test_folders_files_and_columns_are_those_of_kvpress(table: Path, tmp_path: Path) -> None:
    ((name, task),) = named(f"kvpress:{table}").items()
    examples = task.examples(10)
    said = {"niah_multivalue": "1234567 and 7654329", "vt": "ABC, DEF", "qa_1": "By the Fjord.", name: "inland"}
    parts = {example.id: example.id.removeprefix(f"{name}-").rpartition("-")[0] or name for example in examples}
    records = [record(example, said[parts[example.id]]) for example in examples]
    records += [record(example, "", "cacheblend", 0.15) for example in examples]
    folders = write_results(tmp_path / "out", records, {name: Asked(task, examples)}, ABOUT)
    assert [folder.name for folder in folders] == [
        "ruler__4096__Qwen--Qwen3-8B__ragcache_naive__0.00__n4",
        "ruler__4096__Qwen--Qwen3-8B__ragcache_cacheblend_r0.15__0.00__n4",
    ]
    assert sorted(file.name for file in folders[0].iterdir()) == ["config.yaml", "metrics.json", "predictions.csv"]
    assert json.loads((folders[0] / "metrics.json").read_text()) == {
        name: {"string_match": 0.0}, "niah_multivalue": {"string_match": 50.0}, "qa_1": {"string_match": 100.0},
        "vt": {"string_match": 100.0},
    }  # fmt: skip
    rows = list(csv.DictReader((folders[0] / "predictions.csv").read_text().splitlines()))
    assert set(rows[0]) == {
        "question", "answer_prefix", "answer", "task", "max_new_tokens", "predicted_answer", "compression_ratio",
    }  # fmt: skip
    answers = {row["task"]: json.loads(row["answer"]) for row in rows}
    assert answers["vt"] == ["ABC", "DEF"]
    assert answers["qa_1"] == ["fjord", "the fjord"]
    assert {float(row["compression_ratio"]) for row in rows} == {0.0}  # no KV pair is dropped
    config = yaml.safe_load((folders[1] / "config.yaml").read_text())
    assert (config["dataset"], config["data_dir"], config["model"]) == ("ruler", "4096", "Qwen/Qwen3-8B")
    assert (config["press_name"], config["recompute"], config["charged"]) == ("ragcache_cacheblend_r0.15", 0.15, 0.1)
    assert (config["questions"], config["exact_match"], config["f1"]) == (4, 0.0, 0.5)


def test_other_tasks_are_folders_too_and_a_model_s_folder_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    (example,) = TASKS["facts"].examples(1)
    told = {**ABOUT, "reader": str(tmp_path / "my-model")}
    (folder,) = write_results(
        tmp_path / "out", [record(example, example.answers[0])], {"facts": Asked(TASKS["facts"], [example])}, told
    )
    assert folder.name == "facts__my-model__ragcache_naive__0.00__n1"
    assert json.loads((folder / "metrics.json").read_text()) == {"facts": {"string_match": 100.0}}
    assert str(tmp_path) not in (folder / "config.yaml").read_text()


def test_a_second_table_of_the_same_folders_names_has_a_folder_of_its_own(table: Path, tmp_path: Path) -> None:
    again = tmp_path / "again" / "ruler" / "4096" / "test.jsonl"
    again.parent.mkdir(parents=True)
    again.write_text(table.read_text())
    asked = {
        name: Asked(task, task.examples(1)) for name, task in choose([f"kvpress:{table}", f"kvpress:{again}"]).items()
    }
    folders = write_results(tmp_path, [record(one.examples[0], "x") for one in asked.values()], asked, ABOUT)
    assert [folder.name.partition("__Qwen")[0] for folder in folders] == ["ruler__4096", "kvpress-4096-test"]


def test_questions_that_state_no_answer_are_not_scored(tmp_path: Path) -> None:
    (example,) = TASKS["facts"].examples(1)
    silent = Example(example.id, "facts", example.chunks, example.question, (), ())
    (folder,) = write_results(tmp_path, [record(silent, "anything")], {"facts": Asked(TASKS["facts"], [silent])}, ABOUT)
    assert json.loads((folder / "metrics.json").read_text()) == {}


def test_the_command_writes_them_beside_its_table(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    out = tmp_path / "q.json"
    command = ["bench", "quality", "--data", f"kvpress:{table}", "--n", "1", "--methods", "naive", "--budgets", "0.3"]
    more = ["--model", str(model), "--out", str(out), "--max-new-tokens", "2", "--random-seeds", "1"]
    result = CliRunner().invoke(app, [*command, *more, "--kvpress", str(tmp_path / "results")])
    assert result.exit_code == 0, result.output
    rows = [row for row in json.loads(out.read_text())["rows"] if row["method"] != "chance"]
    assert len(list((tmp_path / "results").iterdir())) == len(rows)
    assert (tmp_path / "results" / "ruler__4096__model__ragcache_full__0.00__n1" / "metrics.json").exists()
