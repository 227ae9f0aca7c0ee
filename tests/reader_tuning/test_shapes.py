from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from conftest import tiny_model
from reader_training.forward import hidden_states
from reader_tuning.average import average
from reader_tuning.shapes import SHAPES, Shape, reshape
from transformers import PreTrainedModel

IDS = torch.arange(3, 43)[None]
SAMPLE = [IDS, IDS.flip(1)]


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return tiny_model("llama").float().eval()


@torch.no_grad()
def logits(model: PreTrainedModel) -> torch.Tensor:
    found: torch.Tensor = model(IDS).logits
    return found


def test_keys_of_their_own_and_the_same_shape_change_nothing(model: PreTrainedModel) -> None:
    heads = reshape(model, SHAPES["heads"], SAMPLE)
    assert heads.config.num_key_value_heads == model.config.num_attention_heads > model.config.num_key_value_heads
    assert torch.allclose(logits(heads), logits(model), atol=1e-5)
    assert torch.equal(logits(reshape(model, SHAPES["same"], SAMPLE)), logits(model))


def test_layers_are_kept_in_order_and_may_come_twice(model: PreTrainedModel) -> None:
    depth = model.config.num_hidden_layers
    order = (range(depth), range(depth - 1, depth))
    deep = reshape(model, Shape(layers=order), SAMPLE)
    assert deep.config.num_hidden_layers == depth + 1
    last = [deep.model.layers[place].mlp.up_proj.weight for place in (-2, -1)]
    assert torch.equal(*last)
    assert torch.equal(last[0], model.model.layers[-1].mlp.up_proj.weight)
    assert torch.equal(logits(reshape(deep, Shape(layers=(range(depth),)), SAMPLE)), logits(model))


def test_another_rope_base_is_in_the_config_and_in_the_logits(model: PreTrainedModel) -> None:
    turned = reshape(model, Shape(theta=123.0), SAMPLE)
    assert turned.config.rope_parameters["rope_theta"] == 123.0
    assert not torch.allclose(logits(turned), logits(model), atol=1e-3)


def test_normalised_queries_have_the_mean_size_that_they_had(model: PreTrainedModel) -> None:
    normed = reshape(model, SHAPES["qwen3"], SAMPLE)
    assert torch.equal(logits(reshape(normed, SHAPES["same"], SAMPLE)), logits(normed)), "tuned further as it is"
    assert type(normed).__name__ == "Qwen3ForCausalLM"
    sizes: list[torch.Tensor] = []
    hook = model.model.layers[0].self_attn.q_proj.register_forward_hook(lambda _m, _i, out: sizes.append(out))
    for ids in SAMPLE:
        model(ids)
    hook.remove()
    attention = normed.model.layers[0].self_attn
    out = attention.q_norm(torch.randn(5, model.config.head_dim))
    assert out.square().mean().sqrt().item() == pytest.approx(torch.cat(sizes).square().mean().sqrt().item(), rel=1e-3)


@pytest.mark.parametrize("name", ["heads", "rope", "qwen3"])
def test_every_shape_is_trained_as_transformers_runs_it(model: PreTrainedModel, name: str) -> None:
    made = reshape(model, SHAPES[name], SAMPLE)
    positions = torch.arange(IDS.shape[1])[None]
    bias = torch.full((1, 1, IDS.shape[1], IDS.shape[1]), float("-inf")).triu(1)
    (ours,) = hidden_states(dict(made.named_parameters()), made.config, IDS, bias, positions, torch.float32)
    with torch.no_grad():
        assert torch.allclose(ours, made.model(IDS).last_hidden_state, atol=1e-4)


def test_an_average_lies_between_and_of_one_model_is_itself(model: PreTrainedModel) -> None:
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    other = deepcopy(model)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(2.0)
    for name, weight in average([other, model]).named_parameters():
        assert torch.allclose(weight, before[name] + 1.0, atol=1e-6), name
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in average([deepcopy(model)]).named_parameters())


def test_shapes_fit_the_model_they_are_for() -> None:
    depths = {name: sum(map(len, shape.layers)) or 30 for name, shape in SHAPES.items()}
    assert depths["shallow"] < 30 < depths["deep"]
    assert all(layer < 30 for shape in SHAPES.values() for part in shape.layers for layer in part)
    assert len({replace(shape) for shape in SHAPES.values()}) == len(SHAPES)
