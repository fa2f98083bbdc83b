"""Linear rates of gradient descent: strong convexity, the Polyak-Lojasiewicz condition, networks with many units."""

from typing import Any

import torch

from lemmata.foundations.analysis.claims.functions import spectrum
from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import batch_hessians, batch_jacobians
from lemmata.foundations.analysis.gradient_dominance import pl_constant
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, at_least, at_most, claim, exactly, lie, slope_is
from lemmata.optim.claims.smooth_functions import bowl, slopes
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.landscapes import landscape

SLACK = 1e-12  # of values, relative to the first


def descended(optimizer, f, start, steps, lr):
    """The path, and the values along it."""
    path = descent_path(f, start, steps, lambda parameters: optimizer(parameters, lr=lr))
    return path, f(path)


@claim("optim.strong.linear_rate")
@lie("the values shrink by 1 - 2μ/L", loose="a slower rate holds too", factor=2.0)
@lie("the number of steps grows like the root of κ", growth=0.5)
def strong_convexity_gives_a_linear_rate(draw, factor=1.0, growth=1.0, optimizer=GradientDescent):
    """Quadratics from round to long, a logistic loss with a ridge; and the number of steps to a hundredth."""
    heights, bounds, steps, start = [], [], 80, draw.normal(10, 6)
    ridge, data, labels = 0.2, draw.normal(30, 6), draw.signs(30)

    def loss(w):
        return torch.nn.functional.softplus(-labels * (w @ data.T)).mean(-1) + ridge / 2 * w.square().sum(-1)

    bend = float(torch.linalg.matrix_norm(data, 2)) ** 2 / 120 + ridge
    lowest = descended(optimizer, loss, start[:1], 400, 1 / bend)[1].min()  # to rounding: (1 - 0.2/L)^400
    cases: list[Any] = [(loss, ridge / bend, 1 / bend, lowest)]
    for kappa in (1.0, 1.02, 2.0, 10.0, 100.0, 1000.0):
        values = (4.0 / kappa, *(4.0 * kappa ** -draw.uniform(4)).tolist(), 4.0)
        f = QuadraticFunction(torch.diag(torch.tensor(values, dtype=torch.float64)))
        bent, least = smoothness(f).value, strong_convexity(f).value
        cases.append((f, least / bent, 0.25, f.minimum))
    for f, ratio, lr, least in cases:
        above = (descended(optimizer, f, start, steps, lr)[1] - least) / (f(start) - least)
        heights.append(above)
        rate = max(1 - factor * ratio, 0.0)  # a value that is left cannot be less than none
        bounds.append(rate ** torch.arange(steps + 1.0, dtype=torch.float64)[:, None].expand_as(above))
    kappas = torch.tensor([60.0, 120.0, 240.0], dtype=torch.float64)
    path, _ = descended(optimizer, lambda x: (x[..., 0].square() / kappas) / 2, torch.ones(3, 1).double(), 600, 1.0)
    needed = (path[..., 0].square() > 0.01).sum(0)
    return all_of(
        at_most(torch.cat(heights), torch.cat(bounds) + SLACK),
        slope_is(kappas, needed, growth, within=0.015),
    )


def before(path):
    return path[:-1]


def behind(path):
    return path[1:]


def dented(x):
    """A valley of smoothness 4 whose slope doubles on the way down: 4 at x = 3, 8 at x = 2, then 4x down to 0."""
    x = x[..., 0].abs()
    return 4 * torch.where(x < 2, x**2 / 2, torch.where(x < 3, 4 * x - x**2 / 2 - 4, x + 0.5))


@claim("optim.gd.pl_rate")
@lie("the values shrink by 1 - 2μ/L", loose="a slower rate holds too", factor=2.0)
@lie("a step gains by the gradient at its end", printed="003/1", slope_at=behind)
@lie("one step is compared with its own end", printed="003/2", height_at=behind)
def the_pl_condition_gives_a_linear_rate(
    draw, factor=1.0, slope_at=before, height_at=before, optimizer=GradientDescent
):
    """Least squares with a kernel; ripples and a dented valley, not convex: the rate, and the steps of its proof."""
    wide = draw.normal(3, 6)
    flat, round_, ripples = QuadraticFunction(wide.T @ wide), bowl(4.0), landscape("ripples")
    square = (torch.full((2,), -4.0, dtype=torch.float64), torch.full((2,), 4.0, dtype=torch.float64))
    cases = [  # function, L, μ, starts
        (flat, smoothness(flat).value, pl_constant(flat).value, draw.normal(20, 6)),
        (QuadraticFunction(spectrum(draw, 0.0, 0.3, 3.0)), 3.0, 0.3, draw.normal(20, 3)),
        (QuadraticFunction(spectrum(draw, 0.0, 2.0, 2.04)), 2.04, 2.0, draw.normal(20, 3)),
        (
            ripples,
            8.0,
            pl_constant(ripples, square, minimum=0.0, points=256).value,
            draw.uniform(20, 2, low=-4.0, high=4.0),
        ),
        (dented, 4.0, 4 / 7, 3 * draw.uniform(20, 1)),
        (dented, 4.0, 4 / 7, torch.tensor([[3.0]], dtype=torch.float64)),
        (round_, 4.0, 4.0, draw.normal(20, 2)),
    ]
    parts = [[], [], []]
    for f, bend, mu, start in cases:
        path, values = descended(optimizer, f, start, 60, 1 / bend)
        size, rate = values[0] + SLACK, max(1 - factor * mu / bend, 0.0)
        bound = rate ** torch.arange(61.0, dtype=torch.float64)[:, None] * values[0]
        gained = slopes(f, slope_at(path)).square().sum(-1) / (2 * bend)
        parts[0].append(((values - bound) / size).flatten())
        parts[1].append(((values.diff(dim=0) + gained) / size).flatten())
        parts[2].append(((values[1:] - rate * f(height_at(path))) / size).flatten())
    return all_of(*(at_most(torch.cat(part), SLACK) for part in parts))


def tanh_network(inputs, units):
    """The outputs of sums of tanh units, as a function of all weights (..., units * (features + 1))."""

    def outputs(w):
        features = inputs.shape[-1]
        first, last = w[..., : units * features], w[..., units * features :]
        hidden = torch.tanh(first.unflatten(-1, (units, features)) @ inputs.T)  # (..., units, examples)
        return (last[..., None] * hidden).sum(-2) / units**0.5

    return outputs


def residual_of(outputs, target):
    return lambda w: outputs(w) - target


def half_square(residual):
    return lambda w: residual(w).square().sum(-1) / 2


def kernel_floor(residual, weights):
    """The least eigenvalue of the tangent kernel, at each of some weights."""
    jacobians = batch_jacobians(residual, weights)
    return torch.linalg.eigvalsh(jacobians @ jacobians.mT)[..., 0]


@claim("optim.pl.star_ball")
@lie("steps of 2/β converge", share=2.0)
@lie(
    "an eighth of the radius suffices",
    regime="no path needs more than half of the radius: the theorem adds up rates of values, not lengths",
    loose="a wider ball holds the path too",
    radius=0.25,
)
def descent_stays_in_a_ball_and_ends_at_a_solution(draw, radius=2.0, share=1.0, optimizer=GradientDescent):
    """Least squares with more unknowns than equations, wide tanh networks, a bowl: length of the path and rate."""
    cases, bends = [(lambda w: 1.5 * w, draw.normal(4), 2.25, 2.25)], []
    for _ in range(8):
        matrix, target = draw.normal(3, 8), draw.normal(3)
        curvatures = torch.linalg.eigvalsh(matrix @ matrix.T)
        residual = residual_of(lambda w, a=matrix: w @ a.T, target)
        cases.append((residual, draw.normal(8), *curvatures[[-1, 0]].tolist()))
    for _ in range(3):
        start = draw.normal(200)
        residual = residual_of(tanh_network(draw.normal(3, 4), 40), draw.normal(3))
        beta = 1.5 * float(torch.linalg.eigvalsh(batch_hessians(half_square(residual), start))[-1])
        path, _ = descended(optimizer, half_square(residual), start, 80, 1 / beta)
        # The conditions of the theorem, measured on the way.
        mu = float(kernel_floor(residual, path[::20]).min())
        bends.append(torch.linalg.eigvalsh(batch_hessians(half_square(residual), path[[0, 5, 80]]))[:, -1] / beta)
        cases.append((residual, start, beta, mu))
    lengths, balls, heights = [], [], []
    for residual, start, beta, mu in cases:
        path, values = descended(optimizer, half_square(residual), start, 80, share / beta)
        lengths.append(path.diff(dim=0).norm(dim=-1).sum())
        balls.append(radius * (2 * beta * values[0]) ** 0.5 / mu)
        heights.append(values / values[0] - (1 - mu / beta) ** torch.arange(81.0, dtype=torch.float64))
    return all_of(
        at_most(torch.cat(bends), 1.0),
        at_most(torch.stack(lengths), torch.stack(balls)),
        at_most(torch.cat(heights), SLACK),
    )


def block_curvatures(loss, place, count=44):
    """The least and the largest curvature where the first weights alone may move: the Hessian has one as low as the
    least of a block of it."""

    def of_some(w):
        return loss(torch.cat([w, place[count:].expand(*w.shape[:-1], -1)], -1))

    return torch.linalg.eigvalsh(batch_hessians(of_some, place[:count]))[[0, -1]]


@claim("optim.pl.overparam")
@lie("one unit does as well", regime="some twenty units do", loose="so do more than 512", width=1)
@lie("the loss is convex around its minima", convex=True)
def wide_networks_train_as_if_they_were_convex(draw, width=512, convex=False, optimizer=GradientDescent):
    """Sixteen random examples: kernel, PL ratio and loss along descent; and the Hessian beside where it ended."""
    inputs, target = draw.normal(16, 10), draw.normal(16)
    outputs = tanh_network(inputs, width)
    start = draw.normal(11 * width)
    largest = float(torch.linalg.matrix_norm(batch_jacobians(outputs, start), 2)) ** 2
    loss = half_square(residual_of(outputs, target))
    path, values = descended(optimizer, loss, start, 80, 1 / largest)
    floors = kernel_floor(outputs, path[::10])
    ratios = slopes(loss, path[::10]).square().sum(-1) / (2 * values[::10])
    curvatures = block_curvatures(loss, path[-1] + 0.01 * draw.unit(11 * width))
    return all_of(
        at_least(floors, 0.1),
        at_least(ratios, floors),
        # Half of the rate that the kernel alone gives leaves room for what the residual bends.
        at_most(values[1:] / values[:-1], 1 - float(floors.min()) / (2 * largest)),
        at_most(values[-1] / values[0], 1e-3),
        exactly(bool(curvatures[0] > -1e-6 * curvatures[1]), convex),
    )
