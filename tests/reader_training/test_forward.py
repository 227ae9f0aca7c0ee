import pytest
import torch
from reader_training.forward import hidden_states
from reader_training.model import new_reader
from reader_tuning.adapter import Adapter
from reader_tuning.shapes import Shape, reshape

_SHAPES = {"grouped": Shape(), "multi-head": Shape(multi_head=True, theta=1e4), "normed": Shape(qk_norm=True)}


@pytest.fixture(scope="module", params=_SHAPES)
def model(request):
    made = reshape(new_reader(300, hidden=64, layers=3, inner=96), _SHAPES[request.param], [torch.arange(40)[None]])
    with torch.no_grad():
        for p in made.parameters():
            p.add_(torch.randn_like(p) * 0.02)  # biases and gains away from their trivial start
    return made


def _inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 300, (2, 40), generator=torch.Generator().manual_seed(1))
    bias = torch.full((40, 40), float("-inf")).triu(1)[None, None].repeat(2, 1, 1, 1)
    bias[1, :, 30:, 5:12] = float("-inf")
    bias[:, :, 32:, 1:25] = float("-inf")  # keys that a whole block of queries does not see
    positions = torch.arange(40).repeat(2, 1)
    positions[1, 30:] += 7
    return ids, bias, positions


@pytest.fixture(autouse=True)
def _narrow_blocks(monkeypatch):
    monkeypatch.setattr("reader_training.forward.BLOCK", 8)


def test_fast_forward_equals_hugging_face_in_fp32(model):
    ids, bias, positions = _inputs()
    weights = dict(model.named_parameters())
    with torch.no_grad():
        (ours,) = hidden_states(weights, model.config, ids, bias, positions, torch.float32)
        theirs = model.model(input_ids=ids, attention_mask=bias, position_ids=positions).last_hidden_state
    assert (ours - theirs).abs().max() < 1e-4


def test_hand_written_backward_equals_autograd_of_hugging_face(model):
    ids, bias, positions = _inputs()
    weights = dict(model.named_parameters())
    target = torch.randn(2, 40, 64, generator=torch.Generator().manual_seed(2))
    (hidden_states(weights, model.config, ids, bias, positions, torch.float32)[0] * target).sum().backward()
    ours = {n: p.grad.clone() for n, p in weights.items()}
    model.zero_grad()
    out = model.model(input_ids=ids, attention_mask=bias, position_ids=positions).last_hidden_state
    (out * target).sum().backward()
    for name, p in weights.items():
        assert (ours[name] - p.grad).abs().max() < 1e-3 * max(1.0, p.grad.abs().max().item()), name
    model.zero_grad()


def test_a_state_of_an_earlier_layer_is_what_the_model_without_the_later_ones_returns(model):
    ids, bias, positions = _inputs()
    weights = dict(model.named_parameters())
    with torch.no_grad():
        early, _ = hidden_states(weights, model.config, ids, bias, positions, torch.float32, depths=(2,))
        last = model.model.layers.pop(2)
        theirs = model.model(input_ids=ids, attention_mask=bias, position_ids=positions).last_hidden_state
        model.model.layers.append(last)
    assert (early - theirs).abs().max() < 1e-4


def test_factors_get_the_gradients_that_their_products_give_them(model):
    ids, bias, positions = _inputs()
    frozen = {name: p.detach() for name, p in model.named_parameters()}
    adapter = Adapter.new(frozen, rank=3, alpha=6.0)
    with torch.no_grad():
        for matrix in adapter.parameters():
            matrix.normal_(0, 0.1, generator=torch.Generator().manual_seed(3))
    merged = frozen | {name: frozen[name] + adapter.added(name) for name in adapter.pairs}
    target = torch.randn(2, 40, 64, generator=torch.Generator().manual_seed(2))
    (hidden_states(merged, model.config, ids, bias, positions, torch.float32)[0] * target).sum().backward()
    through_products = [matrix.grad for matrix in adapter.parameters()]
    merged, factors = {name: weight.detach() for name, weight in merged.items()}, adapter.factors()
    (out,) = hidden_states(merged, model.config, ids, bias, positions, torch.float32, pairs=factors)
    (out * target).sum().backward()
    for ours, theirs in zip(adapter.gradients(factors), through_products, strict=True):
        assert (ours - theirs).abs().max() < 1e-4 * theirs.abs().max()
