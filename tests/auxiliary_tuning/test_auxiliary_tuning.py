"""How the auxiliary is tuned: what it reads, its labels, its loss, and a run that resumes."""

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from auxiliary_tuning.contexts import draw
from auxiliary_tuning.importance import importance_loss, lay_out, question_attention, recompute_labels
from auxiliary_tuning.tuner import Settings, Tuner
from ragcache_bench.questions.names import held_out
from ragcache_bench.questions.worlds import Context, Question
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ragcache import Reader
from ragcache.bundled import reader_path
from ragcache.errors import InvalidArgument
from ragcache.prompt import Template
from ragcache.select import Auxiliary

_CONTEXT = Context(
    ["Notes of the day.", "This page is about Tide.", "It is led by Anna Bly.", "Ebb is led by Bo Ash."],
    [Question("Who leads Tide?", "Anna Bly", "section"), Question("Who leads Ebb?", "Bo Ash", "fact")],
    separable=False,
)
_TINY = Settings(steps=3, contexts=1, warm_up=1, rank=4, every=1, validation=2)


@cache
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(reader_path())


def tiny(layers: int, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=2048, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.3, attn_implementation="eager",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("last", [True, False])
def test_what_is_trained_is_what_the_row_ranks_by(last: bool) -> None:
    """Each question of a row of several, against the auxiliary of the engine, which reads one prompt for each."""
    model, template = tiny(3, seed=1), Template(tokenizer())
    found = question_attention(model, lay_out(template, _CONTEXT), last=last)
    auxiliary = Auxiliary(Reader(model, tokenizer(), name="tiny"), layers="last" if last else "all")
    chunks = [template.chunk(text, str(number)) for number, text in enumerate(_CONTEXT.chunks)]
    for ours, question in zip(found, _CONTEXT.questions, strict=True):
        masses = auxiliary.read(template.prompt(chunks, question.text)).masses
        assert torch.allclose(ours, torch.cat(masses[1:]), atol=1e-6)
    assert (found[0] - found[1]).abs().max() > 1e-4


def test_a_label_is_the_share_of_budgets_that_take_the_token() -> None:
    mass = torch.tensor([[0.1, 0.4, 0.2, 0.2, 0.2, *[0.0] * 15]])  # 5 % of 20 tokens is one, 15 % are three
    wanted = [0, 1 / 2 + 1 / 6, 1 / 6, 1 / 6, *[0] * 16]
    assert recompute_labels(mass)[0].tolist() == pytest.approx(wanted)
    assert recompute_labels(mass, shares=(0.01,))[0].tolist() == pytest.approx([0, 1, *[0] * 18])


def test_the_loss_is_the_soft_cross_entropy_less_the_labels_entropy() -> None:
    mass = torch.rand(3, 40, generator=torch.Generator().manual_seed(0)) + 0.01
    labels = recompute_labels(mass.flip(-1))
    entropy = torch.special.entr(labels).sum(-1).mean()
    wanted = F.cross_entropy(mass.log(), labels) - entropy  # the softmax of logarithms is the share of the sum
    assert float(importance_loss(mass, labels)) == pytest.approx(float(wanted), abs=1e-4)
    assert float(importance_loss(7 * mass, labels)) == pytest.approx(float(importance_loss(mass, labels)), abs=1e-5)
    assert float(importance_loss(labels, labels)) == pytest.approx(0, abs=1e-4)


def tuner(out: Path, settings: Settings = _TINY) -> Tuner:
    return Tuner(out, tiny(2, 2), tiny(3, 3), tokenizer(), settings, "tiny", drawn=lambda rng: _CONTEXT)


def test_one_step_lowers_the_loss_and_leaves_the_auxiliarys_own_weights_alone(tmp_path: Path) -> None:
    one = tuner(tmp_path)
    before, frozen = one.validate()["loss"], {name: w.clone() for name, w in one._frozen.items()}
    one.run(until=1)
    assert one.validate()["loss"] < before - 0.01
    assert all(torch.equal(w, frozen[name]) for name, w in one._auxiliary.named_parameters())


def test_a_run_resumes_where_it_was_and_refuses_other_settings(tmp_path: Path) -> None:
    whole = tuner(tmp_path / "whole")
    whole.run()
    tuner(tmp_path / "parts").run(until=1)
    resumed = tuner(tmp_path / "parts")
    resumed.run()
    for ours, theirs in zip(resumed.adapter.parameters(), whole.adapter.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    lines = [[json.loads(one) for one in (tmp_path / run / "log.jsonl").read_text().splitlines()]
             for run in ("whole", "parts")]  # fmt: skip
    assert [line["step"] for line in lines[1]] == [0, 1, 2, 3]
    assert [line["validation"] for line in lines[0]] == [line["validation"] for line in lines[1]]
    assert (tmp_path / "parts" / "adapter" / "adapter_model.safetensors").stat().st_size > 1000
    with pytest.raises(InvalidArgument, match="another --out"):
        tuner(tmp_path / "parts", replace(_TINY, rate=1.0))


def test_no_examined_family_and_no_examined_name_is_trained_on() -> None:
    contexts = [draw(random.Random(seed)) for seed in range(80)]
    families = {one.family.removesuffix("-twin") for context in contexts for one in context.questions}
    assert {"shift", "enumeration", "fact"} <= families
    assert not families & {"section", "pronoun", "label", "unit"}
    assert any(not context.separable for context in contexts)
    assert all(0 < len(context.questions) <= 8 for context in contexts)
    facts = [one.answer for context in contexts for one in context.questions if one.family == "enumeration"]
    assert not [name for name in facts if len(name.split()) == 2 and name.istitle() and held_out(name)]
