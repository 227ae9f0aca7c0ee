"""The doctor's checks pass on sound models, fail on broken ones, and their price list is in order."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, tiny_reader
from ragcache_bench import doctor
from ragcache_bench.commands import doctor as commands
from transformers import AutoConfig
from typer.testing import Result

from ragcache.engine.engine import Engine
from ragcache.methods import DEFAULT_METHOD, METHODS
from ragcache.model.reader import Reader

pytestmark = pytest.mark.slow

Run = Callable[..., Result]
DEFAULT, NOISE, RAW, FUSED, MENDED = range(5)


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral-sliding", "gemma3", "phi3-partial"])
def test_recomputing_everything_is_full_prefill(readers: Callable[[str], Reader], name: str) -> None:
    check = doctor.check_full_recompute(readers(name))
    assert check.passed
    assert check.tolerance == 1e-4


def test_in_bf16_the_model_s_own_rounding_is_allowed() -> None:
    reader = Reader(tiny_model("qwen2", dtype=torch.bfloat16), byte_tokenizer())
    check = doctor.check_full_recompute(reader)
    assert 1e-4 < check.tolerance < 0.5
    assert check.passed


def test_a_wrong_mask_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny_reader("llama")
    sound = Reader.logits

    def blind(self: Reader, token_ids, positions, buffer, plan):  # type: ignore[no-untyped-def]
        buffer.truncate(plan.end)
        for layer in buffer.layers:
            layer.values[0, :, :1] += 1.0
        return sound(self, token_ids, positions, buffer, plan)

    monkeypatch.setattr(Reader, "logits", blind)
    assert not doctor.check_full_recompute(reader).passed


def test_a_logit_that_is_no_number_does_not_pass() -> None:
    nothing, something = torch.full((3,), torch.nan), torch.zeros(3)
    assert doctor._distance(nothing, something) == float("inf")


def test_reuse_costs_more_than_rounding(readers: Callable[[str], Reader]) -> None:
    rungs = doctor.ladder(readers("llama"))
    assert rungs[NOISE].kl < 1e-6
    assert rungs[NOISE].changed == 0
    assert rungs[RAW].kl > 1e-4
    assert {rung.questions for rung in rungs} == {8}
    assert rungs[MENDED].kl > rungs[NOISE].kl


def test_the_default_is_measured_first_and_as_the_engine_answers_by_default(
    readers: Callable[[str], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    prefill = Engine.prefill

    def noted(self: Engine, *arguments: object, **options: object) -> object:
        made = prefill(self, *arguments, **options)  # type: ignore[arg-type]
        asked.append(made.report)
        return made

    monkeypatch.setattr(Engine, "prefill", noted)
    rungs = doctor.ladder(readers("llama"))
    assert rungs[DEFAULT].name == f"the default, {DEFAULT_METHOD}"
    assert rungs[DEFAULT].kl > rungs[NOISE].kl
    own = [report for report in asked if report.method == DEFAULT_METHOD]
    assert len(own) == 8
    assert {report.recompute for report in own} == {METHODS[DEFAULT_METHOD].recompute}
    states = [chunk.cache for report in own for chunk in report.chunks]
    assert states.count("hit") > 0.8 * len(states), "what is exact shows nothing of reuse"
    assert "miss" not in states


@pytest.mark.parametrize(("changed", "rounding"), [(0, 0), (3, 0), (3, 2)])
def test_the_verdict_counts_first_tokens_that_reuse_by_the_default_changes(changed: int, rounding: int) -> None:
    rungs = [doctor.Rung("default", 0.1, changed, 8), doctor.Rung("noise", 0.0, rounding, 8)]
    found = doctor.judge(doctor.FullRecompute(0.0, 1e-4), rungs)
    assert (found.works, found.changed, found.questions) == (True, changed, 8)
    assert f"changes the first token in {changed} of 8 built-in questions" in found.words
    assert ("rounding alone in 2" in found.words) == (rounding > 0)


def test_a_dtype_that_the_processor_is_slow_at_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(tiny_model("qwen2", dtype=torch.bfloat16), byte_tokenizer())
    for factor in (0.5, 1.0, 5.0):
        monkeypatch.setattr(doctor, "_seconds", lambda rows, _, by=factor: 1.0 if rows.dtype == torch.float32 else by)
        assert doctor.dtype_slowdown(reader) == factor
    found = commands._examined(reader)
    assert found["dtype_slowdown"] == 5.0
    certified = {"model": "tiny", "method": "auto", "codec": "k8v4", "confirmed": 9, "questions": 10}
    certified |= {"low": 0.6, "high": 0.98, "outdated": ""}
    for factor in (0.5, 1.0, 5.0):
        commands._show({**found, "dtype_slowdown": factor, "certificates": [certified]})
        shown = capsys.readouterr().out
        assert ("5.0 times more slowly" in shown) == (factor == 5.0)
        assert "tiny by auto, KV written as k8v4: full prefill confirmed 9 of 10 answers" in " ".join(shown.split())


def test_what_a_dtype_costs_is_asked_of_narrow_ones_on_a_cpu(readers: Callable[[str], Reader]) -> None:
    assert doctor.dtype_slowdown(readers("llama")) is None  # fp32
    narrow = doctor.dtype_slowdown(Reader(tiny_model("qwen2", dtype=torch.bfloat16), byte_tokenizer()))
    assert narrow is not None
    assert narrow > 0


def test_layers_of_one_layout_stand_together(readers: Callable[[str], Reader]) -> None:
    (only,) = doctor.layer_groups(readers("llama"))
    assert (only.layers, only.pairing, only.dims) == ((0, 1, 2, 3), "half", 16)
    assert {group.layers for group in doctor.layer_groups(readers("gemma3"))} == {(0, 2), (1, 3)}


def test_the_command_reports_what_the_checks_found(run: Run, checkpoint: Path) -> None:
    done = run("doctor", "--model", checkpoint, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["full_recompute"]["passed"]
    assert (found["limit"], found["dtype"]) == (2048, "float32")
    assert len(found["ladder"]) == 5
    changed = found["ladder"][DEFAULT]["changed"]
    assert (found["verdict"]["works"], found["verdict"]["changed"]) == (True, changed)
    shown = run("doctor", "--model", checkpoint).stdout
    assert shown.strip().splitlines()[-1] == (
        "this model works with ragcache; reuse by the default changes the first token in "
        f"{changed} of 8 built-in questions"
    )
    assert "0-3" in shown
    assert "raw KV" in shown


def test_an_index_is_looked_at_first_and_its_own_model_examined(
    run: Run, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[str] = []
    monkeypatch.setattr(
        commands, "_examined", lambda reader: examined.append(reader.name) or {"full_recompute": {"passed": True}}
    )
    monkeypatch.setattr(commands, "_show", lambda found: None)
    (tmp_path / "note.txt").write_text("The tide turns at noon.")
    assert run("ingest", tmp_path / "note.txt", "--index", tmp_path / "index", "--model", checkpoint).exit_code == 0
    next((tmp_path / "index" / "kv").glob("??/*.safetensors")).unlink()
    done = run("doctor", "--index", tmp_path / "index")
    assert "1 documents, 1 chunks" in done.stdout
    found = json.loads(run("doctor", "--index", tmp_path / "index", "--json").stdout)
    assert found["index"]["documents"] == 1
    assert examined == [str(checkpoint)] * 2


def test_a_failed_check_ends_with_exit_code_1(run: Run, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "check_full_recompute", lambda reader: doctor.FullRecompute(1.0, 1e-4))
    done = run("doctor", "--model", checkpoint)
    assert done.exit_code == 1
    assert "--method full" in done.stderr
    assert "does not work with ragcache" in done.stdout


def test_a_refused_model_ends_with_exit_code_2_and_the_reason(run: Run, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=512, n_embd=32, n_layer=2, n_head=2, n_positions=256, bos_token_id=0, eos_token_id=1)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    refused = run("doctor", "--model", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "learned positions" in refused.stderr


def test_a_model_that_is_not_there_ends_with_exit_code_2(run: Run, tmp_path: Path) -> None:
    assert run("doctor", "--model", tmp_path / "none").exit_code == 2


# -- by a configuration alone ----------------------------------------------------------------------------------------
def test_a_configuration_alone_says_whether_a_model_works_and_what_it_costs(run: Run, tmp_path: Path) -> None:
    AutoConfig.for_model("deepseek_v3", dtype="bfloat16").save_pretrained(tmp_path)  # no weights, and no tokenizer
    done = run("doctor", "--model", tmp_path, "--config-only", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "model": str(tmp_path),
        "architecture": "DeepseekV3ForCausalLM",
        "dtype": "bfloat16",
        "quantization": "",
        "limit": 4096,
        "bytes_per_token": 70272,
        "gigabytes_per_1000_pages": 35.136,
    }


def test_a_configuration_names_what_its_quantised_weights_need(run: Run, tmp_path: Path) -> None:
    config = AutoConfig.for_model("qwen3")
    config.quantization_config = {"quant_method": "gptq", "bits": 4}
    config.save_pretrained(tmp_path)
    shown = run("doctor", "--model", tmp_path, "--config-only").stdout
    assert "quantised by gptq: `pip install optimum gptqmodel accelerate`" in " ".join(shown.split())
    assert "works: a reduced copy of it" in " ".join(shown.split())


@pytest.mark.parametrize(("kind", "reason"), [("gpt2", "learned positions"), ("deepseek_v32", "an indexer chooses")])
def test_a_configuration_alone_is_refused_for_the_same_reason(run: Run, tmp_path: Path, kind: str, reason: str) -> None:
    AutoConfig.for_model(kind).save_pretrained(tmp_path)
    refused = run("doctor", "--model", tmp_path, "--config-only")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert reason in refused.stderr
    assert "--method full" in refused.stderr


def test_a_configuration_whose_forward_is_another_is_refused_with_the_figures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragcache.model.attention import SoftmaxForm

    AutoConfig.for_model("gemma2").save_pretrained(tmp_path)
    monkeypatch.setattr(SoftmaxForm, "capped", lambda form, logits: logits)
    refused = run("doctor", "--model", tmp_path, "--config-only")
    assert refused.exit_code == 2
    assert "off those of the model's own full prefill" in " ".join(refused.stderr.split())


def test_a_class_that_no_reduced_copy_can_be_built_of_has_to_be_loaded(run: Run, tmp_path: Path) -> None:
    AutoConfig.for_model("qwen3", hidden_act="nosuch").save_pretrained(tmp_path)
    refused = run("doctor", "--model", tmp_path, "--config-only")
    assert refused.exit_code == 2
    assert "configuration alone says nothing" in " ".join(refused.stderr.split())


def test_a_configuration_alone_knows_no_index(run: Run, tmp_path: Path) -> None:
    refused = run("doctor", "--config-only", "--index", tmp_path)
    assert refused.exit_code == 2
    assert "leave --index and --adapter out" in " ".join(refused.stderr.split())


def test_a_configuration_alone_is_not_asked_for_vllm(run: Run) -> None:
    refused = run("doctor", "--config-only", "--engine", "vllm")
    assert refused.exit_code == 2
    assert "leave it or --engine vllm out" in " ".join(refused.stderr.split())
