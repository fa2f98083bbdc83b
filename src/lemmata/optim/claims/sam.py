"""Sharpness-aware minimisation: where its gradient is taken, and what its inner problem is worth."""

import torch

from lemmata.judge import all_of, at_most, claim, close, lie
from lemmata.measure.sharpness import worst_loss_rise
from lemmata.optim.sam import SAM

RHO, LR = 0.3, 0.1


TENSORS = (1, 3)  # the weights are two tensors, of so many entries


def _bent_loss(x):
    """A loss with curvature that changes from place to place."""
    return (x**4).sum() / 4 + torch.sin(x).sum() + x[0] * x[1]


def together(gradient):
    return gradient.norm()


def apart(gradient):
    """The norm of each tensor, at its entries."""
    return torch.cat([part.norm().expand(len(part)) for part in gradient.split(TENSORS)])


def largest(eigenvalues):
    return eigenvalues[-1]


def trace(eigenvalues):
    return eigenvalues.sum()


def _two_passes(optimizer, start):
    """The places where the loss was looked at, and where one step leads."""
    weights, seen = [torch.nn.Parameter(part.clone()) for part in start.split(TENSORS)], []
    sam = optimizer(weights, base=torch.optim.SGD, lr=LR, rho=RHO)

    def closure():
        seen.append(torch.cat([*weights]).detach())
        sam.zero_grad()
        loss = _bent_loss(torch.cat([*weights]))
        loss.backward()
        return loss

    sam.step(closure)
    return seen, torch.cat([*weights]).detach()


@claim("optim.sam")
@lie("the gradient is not normalised", power=0.0)
@lie("divided by the square of its norm", power=2.0)
@lie("each tensor is divided by its own norm", norm=apart)
@lie("the gradient is taken where one stands", ahead=0.0)
@lie("all curvatures count, not only the largest", curvature=trace)
@lie("without the factor one half", half=1.0)
def the_gradient_of_the_worst_point_nearby(
    draw, power=1.0, norm=together, ahead=1.0, half=0.5, curvature=largest, optimizer=SAM, measure=worst_loss_rise
):
    """Both passes over two tensors, twenty times, against autograd; then minima of quadratics: SAM's way up, repeated,
    and other ways."""
    moved, formula, ends, steps = [], [], [], []
    gradient = torch.func.grad(_bent_loss)
    for start in draw.normal(20, 4) * 10.0 ** draw.uniform(20, 1, low=-2, high=0.5):
        (first, second), end = _two_passes(optimizer, start)
        g = gradient(first)
        moved.append(second - first)
        formula.append(RHO * g / norm(g) ** power)
        ends.append(end)
        steps.append(start - LR * gradient(start + ahead * moved[-1]))
    rises, others, bounds = [], [], []
    for eigenvalues in (torch.tensor([1.0, 10.0]), torch.tensor([0.0, 1e-3, 2.0, 2.0]), torch.ones(5)):
        q, values = draw.orthogonal(len(eigenvalues)), eigenvalues.double()
        layer = torch.nn.Linear(len(values), 1, bias=False).double()
        layer.weight.data = 1e-9 * draw.unit(1, len(values))  # at the minimum itself no gradient leads away
        batch = (values.sqrt()[:, None] * q.T, torch.zeros(len(values), 1).double())  # Hessian Q diag(values) Q'
        rises.append(measure(layer, lambda f, y: (f - y).square().sum() / 2, batch, RHO, steps=30).rise)
        e = RHO * draw.unit(500, len(values)) * draw.uniform(500, 1)  # (points, n)
        others.append(((e @ q) ** 2 @ values / 2).amax())
        bounds.append(half * RHO**2 * curvature(values))
    return all_of(
        close(moved, formula, ulps=4096, scale=1.0),
        close(ends, steps, ulps=4096, scale=100.0),
        close(rises, bounds, within=1e-7),
        at_most(others, bounds, ulps=256),
    )
