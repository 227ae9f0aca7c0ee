import json
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache.evaluate import latency

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
    assert methods[:6] == ["full", "naive", "random", "epic", "first4", "cacheblend"]
    assert content["meta"]["n"] == 1
    assert content["meta"]["versions"]["torch"]
    assert {file.name for file in out.parent.iterdir()} == {"q.json", "q.md", "q.png", "q.jsonl"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["quality", "--tasks", "alchemy"], "alchemy"),
        (["quality", "--methods", "sorcery"], "sorcery"),
        (["quality", "--budgets", "0.1;0.2"], "0.1;0.2"),
        (["quality", "--budgets", "7"], "7"),
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


def test_latency_prints_and_writes_the_same_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
             "num_key_value_heads": 1, "vocab_size": 1000}  # fmt: skip
    monkeypatch.setitem(latency.SHAPES, "dwarf", ("qwen2", sizes))
    out = tmp_path / "latency.json"
    options = ["--shape", "dwarf", "--context", "512,1024", "--repeats", "1", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, ["bench", "latency", *options])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    seen = [(row["context"], row["method"]) for row in content["rows"]]
    assert seen == [(n, m) for n in (512, 1024) for m in ("full", "naive", "cacheblend", "fusionrag")]
    assert content["meta"]["memory_tier"] is False
