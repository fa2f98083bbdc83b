"""Functions that claims about convexity and smoothness are tried on, and the gaps and quotients they look at."""

import torch

from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_values

SLACK = 1e-10  # of values of size 1 to 100 in double precision


def squares(x):
    return x.square().sum()


def exponentials(x):
    return torch.exp(x).sum()


def log_sum_exp(x):
    return torch.logsumexp(x, 0)


def one_norm(x):
    return x.abs().sum()


def two_norm(x):
    return x.norm()


def softplus(x):
    return torch.nn.functional.softplus(x).sum()


def fourth_powers(x):
    return (x**4).sum()


def cubes(x):
    return (x**3).sum()


def sines(x):
    return torch.sin(x).sum()


def saddle(x):
    return x[0] ** 2 - x[1:].square().sum()


def double_wells(x):
    return (x**4 - x**2).sum()


CONVEX = (squares, exponentials, log_sum_exp, one_norm, two_norm, softplus)


def spectrum(draw, *eigenvalues):
    """A symmetric matrix with these eigenvalues along random directions."""
    q = draw.orthogonal(len(eigenvalues))
    matrix = (q * torch.tensor(eigenvalues, dtype=torch.float64)) @ q.T
    return (matrix + matrix.T) / 2


def logistic(draw, ridge, count=20, features=3):
    """A regularised logistic loss, whose curvature is at least the ridge."""
    x, y = draw.normal(count, features), draw.signs(count)
    return lambda w: torch.nn.functional.softplus(-y * (x @ w)).mean() + ridge / 2 * w.square().sum()


def descend(f, x, lr, steps):
    """Gradient descent from every row of x."""
    x = x.clone().requires_grad_()
    optimizer = torch.optim.SGD([x], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        batch_values(f, x).sum().backward()
        optimizer.step()
    return x.detach()


def chord_gap(f, x, y, weight):
    """How far the chord from x to y lies above the function: λf(x) + (1 - λ)f(y) - f(λx + (1 - λ)y)."""
    between = weight[..., None] * x + (1 - weight[..., None]) * y
    return weight * batch_values(f, x) + (1 - weight) * batch_values(f, y) - batch_values(f, between)


def tangent_gap(f, x, y):
    """How far the function at y lies above its tangent plane at x: f(y) - f(x) - ⟨∇f(x), y - x⟩."""
    return batch_values(f, y) - batch_values(f, x) - (batch_gradients(f, x) * (y - x)).sum(-1)


def gradient_monotony(f, x, y):
    """Whether the gradient turns the way the point moves: ⟨∇f(x) - ∇f(y), x - y⟩."""
    return ((batch_gradients(f, x) - batch_gradients(f, y)) * (x - y)).sum(-1)


def least_curvature(f, x):
    """The least eigenvalue of the Hessian at each point."""
    return torch.linalg.eigvalsh(batch_hessians(f, x))[..., 0]


def curvature_between(f, x, y):
    """|∇f(x) - ∇f(y)| / |x - y|, and the same with the part of the change along the segment alone."""
    change, length = batch_gradients(f, x) - batch_gradients(f, y), (x - y).norm(dim=-1)
    return change.norm(dim=-1) / length, (change * (x - y)).sum(-1) / length**2


def quadratic_bound_gap(f, x, y, curvature):
    """How far the parabola of this curvature that touches the function at y lies above it at x."""
    return curvature / 2 * (x - y).square().sum(-1) - tangent_gap(f, y, x)
