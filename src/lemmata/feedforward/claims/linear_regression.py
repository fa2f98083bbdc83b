"""Linear regression: noise and likelihood, one example at a time, the ridge; and all ways lead to one minimiser."""

import warnings

import torch
from torch.distributions import Laplace, Normal

from lemmata.feedforward.least_mean_squares import widrow_hoff
from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie, slope_is


def gradient(function, at):
    """By autograd."""
    at = at.clone().requires_grad_()
    return torch.autograd.grad(function(at), at)[0]


def one_over_t(first, steps):
    """In the end 4/t: for the curvature of 1/4 along each axis that is fast enough to forget the start."""
    return first / (1 + torch.arange(steps, dtype=torch.float64) / 4)


def constant(first, steps):
    return torch.full((steps,), first, dtype=torch.float64)


@claim("regression.sgd")
@lie("the error is subtracted", sign=-1.0)
@lie("a constant step converges with noise as well", noise=0.1)
@lie("of dependent columns it finds the planted weights too", copies=1)
@lie("what noise leaves does not depend on the step", floor=0.0, regime="of random steps", loose="the same")
@lie("what noise leaves grows with the square of the step", floor=2.0, regime="of random steps", loose="the same")
@lie("steps of any lengths converge with noise", decay=constant)
def a_step_on_one_example_is_unbiased(
    draw, sign=1.0, noise=0.0, copies=0, floor=1.0, decay=one_over_t, learn=widrow_hoff
):
    """The mean of the steps on each example, against the gradient of the mean loss and the formula; 20,000 steps of
    constant length without noise; and with it what steps of three lengths leave, and those that fall."""
    x, y, w, lr = draw.normal(9, 4), draw.normal(9), draw.normal(4), 0.1
    steps = torch.stack([learn(x, y, torch.tensor([i]), lr, w)[1] - w for i in range(9)])  # (9, 4)
    formula = torch.stack([sign * lr * (y[i] - w @ x[i]) * x[i] for i in range(9)])
    mean = gradient(lambda w: (x @ w - y).square().sum() / 18, w)
    points, best = draw.normal(40, 4), draw.normal(4)
    points[:, 4 - copies :] = points[:, :copies]
    values = points @ best + noise * draw.normal(40)
    order, longest = draw.integers(0, 40, 20_000), float(0.9 / points.square().sum(1).max())
    last = learn(points, values, order, longest)[-1]
    # Each axis twice, with errors of 1 and -1, so that the minimiser is 0 and every step has the noise.
    axes, errors = torch.eye(4, dtype=torch.float64).repeat(2, 1), draw.signs(1).repeat(8)
    errors[:4] *= -1
    order, lengths = draw.integers(0, 8, 20_000), [0.05, 0.1, 0.2]
    start = torch.ones(4, dtype=torch.float64)
    left = [learn(axes, errors, order, each, start)[1000:].square().sum(1).mean() for each in lengths]
    end = learn(axes, errors, order, decay(1.0, 20_000), start)[-1]
    return all_of(
        close(steps, formula),
        close(steps.mean(0), -lr * mean),
        at_most((last - best).norm(), 1e-6),
        slope_is(lengths, left, floor, within=0.2),
        at_most(end.norm(), 0.1),
    )


@claim("regression.gaussian_noise")
@lie("the error is divided by 2σ", power=1.0)
@lie("the constant is s log(2πσ²)", constant=1.0)
@lie("Laplace noise has the same minimiser", noise=Laplace)
def least_squares_is_maximum_likelihood(draw, power=2.0, constant=0.5, noise=Normal):
    """The negative log-likelihood by torch's own Gaussian, for a linear function and a small network; its gradient at
    the least-squares solution."""
    x, y, deviation = draw.normal(20, 3), draw.normal(20).exp(), 0.7
    weights, hidden = draw.normal(50, 3), draw.normal(3, 5)
    linear = weights @ x.T  # (50, 20)
    network = draw.normal(50, 5) @ torch.tanh(x @ hidden).T
    outputs = torch.cat([linear, network])  # (100, 20)
    nll = -noise(outputs, deviation).log_prob(y).sum(1)
    squares = (y - outputs).square().sum(1) / (2 * deviation**power)
    learnt = LinearRegression(bias=False).fit(x, y)
    pull = gradient(lambda w: -noise(x @ w, deviation).log_prob(y).sum(), learnt.weight_)
    return all_of(
        close(nll, squares + constant * 20 * torch.log(torch.tensor(2 * torch.pi * deviation**2, dtype=x.dtype))),
        close(pull, 0.0, scale=float(x.abs().sum() * y.abs().max()) / deviation**2),
    )


@claim("regression.ridge")
@lie("the ridge is λ, without the number of examples", printed="001/1", power=0.0)
@lie("the penalty is λ‖w‖²", half=1.0)
def ridge_regression_has_one_minimiser(draw, power=1.0, half=0.5, model=LinearRegression):
    """The gradient of the penalised loss at the learnt weights, and both closed forms, of few examples and of many,
    with a small ridge, a large one, and dependent columns."""
    pulls, primal, dual, learnt = ([] for _ in range(4))
    for points, features, ridge in ((20, 4, 0.3), (4, 20, 0.3), (20, 4, 100.0), (20, 4, 1e-3)):
        x, y = draw.normal(points, features), draw.normal(points)
        x[:, 1] = x[:, 0]
        w = model(ridge=ridge, bias=False).fit(x, y).weight_
        pulls.append(
            gradient(
                lambda w, x=x, y=y, ridge=ridge: (
                    (x @ w - y).square().sum() / (2 * len(x)) + half * ridge * w.square().sum()
                ),
                w,
            )
        )
        shift = points**power * ridge
        primal.append(torch.linalg.solve(x.T @ x + shift * torch.eye(features).double(), x.T @ y))
        dual.append(x.T @ torch.linalg.solve(x @ x.T + shift * torch.eye(points).double(), y))
        learnt.append(w)
    learnt, condition = torch.cat(learnt), 1e4  # of the last: x has squares below 100, the ridge is 0.02
    return all_of(
        close(torch.cat(primal), learnt, condition=condition),
        close(torch.cat(dual), learnt, condition=condition),
        close(torch.cat(pulls), 0.0, scale=10.0),
    )


@claim("regression.model")
@lie("gradient descent may take steps of 2.1/λmax", raises=ArithmeticError, step=2.1)
@lie("of dependent columns the first carries all the weight", first=1.0)
def all_ways_lead_to_one_minimiser(draw, step=1.9, first=0.5, model=LinearRegression):
    """Five solvers on consistent data, and gradient descent near its longest step; a column that occurs twice."""
    x = draw.normal(100, 5) + 3
    y = x @ draw.normal(5) + 2
    centred = x - x.mean(0)
    largest = torch.linalg.eigvalsh(centred.T @ centred / 100)[-1]
    ways = {"cholesky": None, "qr": None, "svd": None, "sgd": None, "gd": float(step / largest)}
    learnt = [model(solver=solver, lr=lr).fit(x, y) for solver, lr in ways.items()]
    found = torch.stack([torch.cat([one.weight_, one.bias_[None]]) for one in learnt])  # (solvers, 6)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        twice = model().fit(torch.cat([x, x[:, :1]], 1), y)
    weights = twice.weight_[[0, 5]] / learnt[0].weight_[0]
    values = torch.linalg.svdvals(centred)
    return all_of(
        close(found, found[0].expand(5, 6), within=1e-5),
        close(torch.stack([values[0] / values[-1]] * 5), [one.condition_ for one in learnt]),
        close([one.residual_norm_ for one in learnt], 0.0, within=1e-4),
        exactly([one.rank_ for one in [*learnt, twice]], [5] * 6),
        close(weights, [first, 1 - first], ulps=1e5),
        always(["not unique" in str(warning.message) for warning in told]),
    )
