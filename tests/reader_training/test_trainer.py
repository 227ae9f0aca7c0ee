import json
from dataclasses import replace
from functools import cache

import pytest
import torch
from reader_training import trainer
from reader_training.curriculum import FIRST_MIXED, LEVELS
from reader_training.tokens import build_tokenizer
from reader_training.trainer import Settings, Trainer
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.slow

_TINY = Settings(minutes=0.01, tokens=512, vocabulary=600, layers=4, dtype="float32")
_BUILT = cache(build_tokenizer)


@pytest.fixture(autouse=True)
def _one_tokenizer(monkeypatch):
    monkeypatch.setattr(trainer, "build_tokenizer", _BUILT)


def test_a_run_logs_and_exports_a_stock_folder_and_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    evaluate = Trainer.evaluate
    monkeypatch.setattr(Trainer, "evaluate", lambda self, contexts=64: evaluate(self, contexts // 32))
    first = Trainer(tmp_path, _TINY)
    first.run()
    last = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert last["step"] > 0
    assert "held_out" in last
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "reader", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "reader")
    assert model.generate(**tokenizer("The lead", return_tensors="pt"), max_new_tokens=2, do_sample=False).shape[1] > 2

    again = Trainer(tmp_path, _TINY)
    assert again.progress.step == first.progress.step
    for name, p in first.weights.items():
        assert torch.equal(p, again.weights[name])
    assert all(torch.equal(a, b) for a, b in zip(first.muon.buffers, again.muon.buffers, strict=True))


def test_training_lowers_the_loss_on_one_batch(tmp_path):
    trained = Trainer(tmp_path, _TINY)
    trained.progress.level = 0
    batch = trained._questions.next(LEVELS, 0)
    losses = []
    for _ in range(12):
        losses.append(trained._backward(batch, 0.0)[0])
        trained._update()
        trained.progress.step += 1
    assert losses[-1] < losses[0] - 0.3


def test_a_run_goes_on_from_a_reader_with_all_or_some_of_its_layers(tmp_path):
    eight = replace(_TINY, layers=8)
    first = Trainer(tmp_path / "first", eight)
    first.export(tmp_path / "reader")
    same = Trainer(tmp_path / "same", replace(eight, start=tmp_path / "reader"))
    assert same.progress.level == FIRST_MIXED
    for name, p in first.weights.items():
        assert torch.equal(p.bfloat16().float(), same.weights[name])
    fewer = Trainer(tmp_path / "fewer", replace(eight, start=tmp_path / "reader", layers=3, level=2))
    assert fewer.progress.level == 2
    for new, old in enumerate((0, 4, 7)):
        name = "model.layers.{}.mlp.up_proj.weight"
        assert torch.equal(fewer.weights[name.format(new)], same.weights[name.format(old)])
    assert not any("layers.3." in name for name in fewer.weights)
