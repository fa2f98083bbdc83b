"""Where an optimiser goes: from a start along a gradient, or along gradients that are given."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


def path(make: Callable[..., Any], start: Tensor, gradient: Callable[[Tensor], Tensor], steps: int) -> Tensor:
    """The points (steps + 1, ...) that the optimiser `make([parameter])` visits, the start first."""
    return _visited_points(make, start, (gradient for _ in range(steps)))


def driven(make: Callable[..., Any], gradients: Tensor, start: Tensor | None = None) -> Tensor:
    """The displacements (steps, ...) of the optimiser for given gradients (steps, ...), from zero or a start."""
    start = torch.zeros_like(gradients[0]) if start is None else start
    return _visited_points(make, start, (lambda theta, g=g: g for g in gradients)).diff(dim=0)


def _visited_points(make: Callable[..., Any], start: Tensor, gradients: Iterable[Callable[[Tensor], Tensor]]) -> Tensor:
    theta = start.detach().clone().requires_grad_()
    optimizer, points = make([theta]), [start.detach()]
    for gradient in gradients:
        theta.grad = gradient(theta.detach()).clone()
        optimizer.step()
        points.append(theta.detach().clone())
    return torch.stack(points)
