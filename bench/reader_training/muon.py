"""Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon) with equal shapes stacked into one bmm."""

from collections.abc import Iterable

import torch
from torch import Tensor


class Muon:
    """Momentum whose matrix updates are orthogonalised by five Newton-Schulz steps.

    Parameters
    ----------
    parameters : iterable of Tensor
        Matrices only.
    momentum, weight_decay : float
        As usual; the update is scaled by 0.2 sqrt(max(rows, columns)), which matches AdamW's step size
        (Moonlight, arXiv 2502.16982).
    dtype : torch.dtype
        Of the Newton-Schulz steps.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        self.parameters = list(parameters)
        self.buffers = [torch.zeros_like(p) for p in self.parameters]
        self._momentum, self._decay, self._dtype = momentum, weight_decay, dtype
        self._groups: dict[tuple[int, ...], list[int]] = {}
        for i, p in enumerate(self.parameters):
            self._groups.setdefault(tuple(sorted(p.shape)), []).append(i)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Apply one update with learning rate `rate`."""
        for (rows, columns), members in self._groups.items():
            updates = [self._blend(i) for i in members]
            wide = [u if u.shape[0] == rows else u.T for u in updates]
            step = orthogonalise(torch.stack(wide).to(self._dtype)).float() * (0.2 * max(rows, columns) ** 0.5)
            for i, u in zip(members, step, strict=True):
                p = self.parameters[i]
                p.mul_(1 - rate * self._decay).add_(u if p.shape[0] == rows else u.T, alpha=-rate)

    def _blend(self, i: int) -> Tensor:
        grad, buffer = self.parameters[i].grad, self.buffers[i]
        if grad is None:
            return torch.zeros_like(buffer)
        buffer.lerp_(grad, 1 - self._momentum)
        return grad.lerp(buffer, self._momentum)  # Nesterov


def orthogonalise(stack: Tensor) -> Tensor:
    """Return matrices with singular values near 1 and the singular vectors of `stack`, (n, rows <= columns)."""
    x: Tensor = stack / (stack.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + torch.bmm(-4.7750 * a + 2.0315 * torch.bmm(a, a), x)
    return x
