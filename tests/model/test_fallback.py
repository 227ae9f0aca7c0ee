"""What the gate refuses answers by full prefill, where nobody asks for reuse; the commands that say so work."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cli.conftest import write_pages
from conftest import byte_tokenizer, tiny_model
from model.test_compatibility import REFUSED, built
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

from ragcache.engine.engine import Engine
from ragcache.errors import UnsupportedModel
from ragcache.index.index import Index
from ragcache.model.decode import Sampling
from ragcache.model.fallback import FallbackReader
from ragcache.model.reader import Reader

SERVED = sorted(set(REFUSED) - {"mamba", "deepseek_v32"})  # this tiny DeepSeek V3.2 cannot run by itself either


@pytest.mark.parametrize("kind", SERVED)
def test_a_refused_model_answers_as_its_own_generate_does(kind: str, tmp_path: Path) -> None:
    model = built(kind, REFUSED[kind][0])
    reader = FallbackReader(model, byte_tokenizer(), name=kind)
    with Index(tmp_path, reader) as index:
        answer = Engine(reader, index, "full").answer("Who?", ["Mara leads it."], sampling=Sampling(max_new_tokens=4))
        prompt = (
            Engine(reader, index, "full").prefill("Who?", [index.uncached_chunk("Mara leads it.")]).prompt.token_ids
        )
    with torch.no_grad():
        ids = model.generate(torch.tensor([prompt]), max_new_tokens=4, do_sample=False)[0, len(prompt) :]
    assert list(answer.token_ids) == [token for token in ids.tolist() if token not in reader.stop_ids]
    assert any(kind in note and "prefilled in full" in note for note in answer.report.notes)


def test_reuse_of_a_refused_model_is_refused_with_its_reason(tmp_path: Path) -> None:
    reader = FallbackReader(built("gpt2", {}), byte_tokenizer(), name="gpt2")
    assert reader.bytes_per_token == 0
    with Index(tmp_path, reader) as index, pytest.raises(UnsupportedModel, match=r"learned positions.*--method full"):
        Engine(reader, index).answer("Who?", ["Mara leads it."], method="naive")


def test_a_model_whose_own_cache_does_not_go_on_is_not_served_at_all() -> None:
    model = built("gpt2", {})
    own = model.forward
    model.forward = lambda input_ids, **_: own(input_ids)
    with pytest.raises(UnsupportedModel, match="by full prefill either"):
        FallbackReader(model, byte_tokenizer(), name="forgetful")


def test_a_sound_model_is_served_as_ever(readers: Callable[[str], Reader]) -> None:
    reader = FallbackReader(tiny_model("llama"), byte_tokenizer(), name="tiny-llama")
    assert reader.refused == ""
    assert reader.fingerprint == readers("llama").fingerprint
    assert reader.bytes_per_token == readers("llama").bytes_per_token


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_what_the_refusal_advises_works(tmp_path: Path) -> None:
    model = tmp_path / "gpt2"
    built("gpt2", {"n_positions": 2048}).save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    pages, index = write_pages(tmp_path / "pages"), tmp_path / "index"
    refused = run("ingest", pages, "--index", tmp_path / "other", "--model", model)
    assert refused.exit_code == 2
    assert f"ragcache ingest PATH… --model {model} --method full --index DIR" in refused.stderr
    assert run("ingest", pages, "--model", model, "--method", "full", "--index", index).exit_code == 0
    answered = run("ask", "Who leads it?", "--index", index, "--max-new-tokens", 2, "--json")
    assert answered.exit_code == 0, answered.output
    report = json.loads(answered.stdout)
    assert report["method"] == "full"
    assert any("learned positions" in note for note in report["notes"])
    other = run("ask", "Who leads it?", "--index", index, "--method", "naive")
    assert other.exit_code == 2
    assert "learned positions" in other.stderr
