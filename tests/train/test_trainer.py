import json

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ragcache.train.curriculum import LEVELS
from ragcache.train.trainer import Settings, Trainer

_TINY = Settings(minutes=0.03, tokens=512, vocabulary=600)


def test_a_run_logs_and_exports_a_stock_folder_and_goes_on_from_its_checkpoint(tmp_path):
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
    trainer = Trainer(tmp_path, _TINY)
    trainer.progress.level = 0
    batch = trainer._questions.next(LEVELS, 0)
    losses = []
    for _ in range(12):
        losses.append(trainer._backward(batch, 0.0)[0])
        trainer._update()
        trainer.progress.step += 1
    assert losses[-1] < losses[0] - 0.3
