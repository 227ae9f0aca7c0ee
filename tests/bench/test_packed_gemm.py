import pytest
import torch
import torch.nn.functional as F
from ragcache_bench.packed_gemm import packed_weights


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this PyTorch has no oneDNN")
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(512, 48), (600, 48), (3, 200, 48), (1, 25, 48), (2, 48)])
def test_products_are_the_same_within_rounding(
    shape: tuple[int, ...], bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer, plain, x = torch.nn.Linear(48, 80, bias=bias), F.linear, torch.randn(*shape)
    wanted, asked = layer(x), list[torch.Size]()
    monkeypatch.setattr(F, "linear", lambda x, *rest: asked.append(x.shape) or plain(x, *rest))
    with packed_weights():
        assert torch.allclose(layer(x), wanted, atol=1e-5)
        assert len(asked) == (x.numel() < 24 * 48)  # few rows go by the plain way
        assert torch.equal(layer.bfloat16()(x.bfloat16()), plain(x.bfloat16(), layer.weight, layer.bias))


def test_training_goes_by_the_plain_way() -> None:
    layer, x = torch.nn.Linear(48, 80), torch.randn(600, 48)
    with packed_weights():
        layer(x).sum().backward()
    assert layer.weight.grad is not None
