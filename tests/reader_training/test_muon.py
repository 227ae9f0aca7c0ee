import torch
from reader_training.muon import Muon, orthogonalise


def test_orthogonalise_brings_singular_values_near_one():
    stack = torch.randn(3, 16, 40, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(stack).float())
    assert values.min() > 0.4
    assert values.max() < 1.5


def test_tall_and_wide_matrices_step_the_same_way():
    wide = torch.nn.Parameter(torch.zeros(4, 10))
    tall = torch.nn.Parameter(torch.zeros(10, 4))
    grad = torch.randn(4, 10, generator=torch.Generator().manual_seed(0))
    wide.grad, tall.grad = grad, grad.T.clone()
    Muon([wide, tall]).step(0.1)
    assert torch.allclose(wide, tall.T)
    assert (wide * grad).sum() < 0
