import pytest
import torch
import torch.nn.functional as F

from ragcache.evaluate.packed import packed_weights


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(600, 48), (3, 200, 48), (2, 48)])
def test_products_are_the_same_within_rounding(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer, plain, x = torch.nn.Linear(48, 80, bias=bias), F.linear, torch.randn(*shape)
    wanted = layer(x)
    with packed_weights():
        assert F.linear is not plain
        assert torch.allclose(layer(x), wanted, atol=1e-5)
        assert torch.equal(layer.bfloat16()(x.bfloat16()), plain(x.bfloat16(), layer.weight, layer.bias))
    assert F.linear is plain


def test_training_goes_by_the_plain_way() -> None:
    layer, x = torch.nn.Linear(48, 80), torch.randn(600, 48)
    with packed_weights():
        layer(x).sum().backward()
    assert layer.weight.grad is not None
