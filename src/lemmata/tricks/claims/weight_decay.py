"""Weight decay: its gradient, its step, the views that give the same minimum, what it shrinks, and how much is best."""

import copy
import math

import torch
from scipy import optimize
from torch.autograd.functional import hessian, jacobian
from torch.nn import functional

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.logistic_regression import LogisticRegression
from lemmata.feedforward.mlp import MLP
from lemmata.judge import Figure, Line, Points, all_of, at_most, claim, close, lie, slope_is
from lemmata.tricks.weight_decay import constrained_minimum, decay_weights, decayed_minimum, l2_penalty, shrinkage


@claim("reg.weight_decay.l2")
@lie("the squared norm without one half has the gradient μθ", half=1.0)
@lie("the norm is not squared", power=1.0)
def the_penalty_pulls_in_proportion_to_the_weights(draw, half=0.5, power=2.0, penalty=l2_penalty):
    """The penalty against the norms of the layers, and gradients of both: one layer and three, tiny to huge."""
    values, norms, gradients, pulls = [], [], [], []
    for shapes in ([(3, 4)], [(4, 3), (5, 4), (1, 5)]):
        decays = [0.3, 1.7, 0.0][: len(shapes)]
        layers = [(10.0 ** draw.uniform(1, low=-3, high=3) * draw.normal(*shape)).requires_grad_() for shape in shapes]
        values.append(penalty(layers, decays))
        norms.append(sum(half * mu * layer.norm() ** power for mu, layer in zip(decays, layers, strict=True)))
        for omega in (values[-1], norms[-1]):
            gradients += [slope.flatten() for slope in torch.autograd.grad(omega, layers)]
            pulls += [(mu * layer).flatten() for mu, layer in zip(decays, layers, strict=True)]
    largest = torch.cat(pulls).abs()
    return all_of(close(values, norms), close(torch.cat(gradients), torch.cat(pulls), scale=largest))


def _step_size(lr):
    return lr


def _unit_rate(lr):
    return 1.0


def _correct_update(sign, rate):
    return sign, rate


def _as_printed(sign, rate):
    """Both misprints of the line, one in each form."""
    return -sign, _unit_rate


@claim("reg.weight_decay.update")
@lie("the gradient less μθ, and the second form without the step size", printed="000/1", line=_as_printed)
@lie("that line of the other source", printed="003/2", line=_as_printed)
@lie("the gradient less μθ", sign=-1.0)
@lie("the second form without the step size at the gradient", rate=_unit_rate)
@lie("the weights shrink by 1 - μ", shrinks=_unit_rate)
def decay_is_gradient_descent_on_the_penalised_loss(
    draw, sign=1.0, rate=_step_size, shrinks=_step_size, line=_correct_update, decay=decay_weights
):
    """Five steps of a network by both forms, of the loss with the penalty by autograd, and of torch's SGD."""
    sign, rate = line(sign, rate)
    x, y, lr, mu = draw.normal(20, 4), draw.normal(20, 2), 0.1, 0.3
    start = MLP(4, 2, widths=(5,), activation="tanh", bias=False, dtype=torch.float64)
    paths = []

    def gradient(model, added: torch.Tensor | float = 0.0):
        return torch.autograd.grad(functional.mse_loss(model(x), y) + added, tuple(model.parameters()))

    def first_form(model):
        return [w - lr * (g + sign * mu * w) for w, g in zip(model.parameters(), gradient(model), strict=True)]

    def second_form(model):
        pulls = [rate(lr) * slope for slope in gradient(model)]
        decay(model, shrinks(lr), mu)
        return [w - pull for w, pull in zip(model.parameters(), pulls, strict=True)]

    def penalised(model):
        slopes = gradient(model, l2_penalty(model, mu))
        return [w - lr * slope for w, slope in zip(model.parameters(), slopes, strict=True)]

    for step in (first_form, second_form, penalised):
        model = copy.deepcopy(start)
        for _ in range(5):
            torch.nn.utils.vector_to_parameters(
                torch.cat([w.detach().flatten() for w in step(model)]), model.parameters()
            )
        paths.append(torch.nn.utils.parameters_to_vector(model.parameters()))
    twin = copy.deepcopy(start)
    sgd = torch.optim.SGD(twin.parameters(), lr, weight_decay=mu)
    for _ in range(5):
        sgd.zero_grad()
        functional.mse_loss(twin(x), y).backward()
        sgd.step()
    wanted = torch.nn.utils.parameters_to_vector(twin.parameters())
    return all_of(*(close(path, wanted, ulps=256) for path in paths))


def _least_squares_problem(draw, points=12, features=4):
    """Least squares as a quadratic: data, Hessian and minimum."""
    x, y = draw.normal(points, features), draw.normal(points)
    return x, y, x.T @ x, torch.linalg.solve(x.T @ x, x.T @ y)


def _gaussian_likelihood(z, y):
    return torch.distributions.Normal(z, 1.0).log_prob(y).sum()


def _bernoulli_likelihood(z, y):
    return torch.distributions.Bernoulli(logits=z).log_prob(y.double()).sum()


def _in_ball(loss, radius, start):
    """The minimum in a ball, by scipy."""
    ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w}
    solved = optimize.minimize(
        lambda w: float(loss(torch.as_tensor(w))), start.numpy(),
        jac=lambda w: jacobian(loss, torch.as_tensor(w)).numpy(),
        constraints=[ball], method="SLSQP", options={"ftol": 1e-15, "maxiter": 200},
    )  # fmt: skip
    return torch.as_tensor(solved.x)


def _weight_length(theta, mu):
    return float(theta.norm())


def _decay_of(theta, mu):
    return mu


@claim("reg.weight_decay.views")
@lie("the constraint is |θ| ≤ μ", printed="000/1", radius=_decay_of)
@lie("the radius is the weight decay, which bounds the norm", printed="003/2", bound=_decay_of)
@lie("the prior's deviation and not its variance", power=-1.0)
def three_views_of_weight_decay(draw, radius=_weight_length, bound=_weight_length, power=-2.0, minimum=decayed_minimum):
    """Least squares and logistic regression with a penalty against the gradient of the posterior and scipy's minimum
    in a ball, and their radii over μ; least squares against our own minima too."""
    posterior, penalised, constrained, ours, found, back, radii = ([] for _ in range(7))
    decays = torch.logspace(-3, 3, 7, dtype=torch.float64)
    for tau in (0.3, 0.5, 1.0, 2.0):
        x, y, curvature, best = _least_squares_problem(draw)
        mu = tau**power
        theta = minimum(curvature, best, mu)
        convex = (
            (LinearRegression, _gaussian_likelihood, y),
            (LogisticRegression, _bernoulli_likelihood, draw.integers(0, 2, len(x))),
        )
        for model, likelihood, labels in convex:

            def loss(w, x=x, likelihood=likelihood, labels=labels):
                return -likelihood(x @ w, labels)

            def surprise(w, loss=loss, tau=tau):
                return loss(w) - torch.distributions.Normal(0 * w, tau).log_prob(w).sum()

            fits = [model(bias=False, ridge=float(each) / len(x)).fit(x, labels).weight_ for each in (mu, *decays)]
            posterior.append(jacobian(surprise, fits[0]) / curvature.norm())
            penalised.append(fits[0])
            constrained.append(_in_ball(loss, radius(fits[0], mu), best * 0.1))
            radii.append(torch.stack([w.norm() for w in fits[1:]]))
        nearest = constrained_minimum(curvature, best, bound(theta, mu))
        ours += [nearest.theta, penalised[-2]]
        found += [theta, theta]
        back.append(nearest.weight_decay / mu)
    return all_of(
        close(posterior, 0.0, scale=10.0, ulps=1000),
        close(constrained, penalised, within=1e-5),  # which is what SLSQP leaves
        close(ours, found, ulps=1e5),
        close(back, 1.0, ulps=1e7),  # a radius near that of the free minimum says little about a small decay
        at_most(torch.stack(radii).diff(dim=1), 0.0),
    )


def _decay_times(values, mu):
    return mu * torch.ones_like(values)


def _no_shrinkage(values, mu):
    return torch.ones_like(values)


@claim("reg.weight_decay.spectral")
@lie("the expansion without one half", half=1.0)
@lie("the identity is added without μ", added=_no_shrinkage)
@lie("the factor is its complement", complement=1.0)
def decay_shrinks_flat_directions(draw, half=0.5, added=_decay_times, complement=0.0, minimum=decayed_minimum):
    """Quadratics with eigenvalues over eight powers of ten; then expansion and minimum of logistic regression."""
    q, mu = draw.orthogonal(8), 0.3
    values, best = 10.0 ** torch.linspace(-4, 4, 8, dtype=torch.float64), draw.normal(8)
    along = q @ minimum(q.T @ torch.diag(values) @ q, q.T @ best, mu) / best  # what is left in each direction
    formula = values / (values + added(values, mu))
    formula = (1 - complement) * formula + complement * (1 - formula)
    x, y, directions = draw.normal(40, 3), draw.integers(0, 2, 40).double(), draw.unit(8, 3)

    def loss(w):
        return functional.binary_cross_entropy_with_logits(x @ w, y)

    start = LogisticRegression(bias=False).fit(x, y.long()).weight_
    curvature = hessian(loss, start)
    steps, decays = [0.01, 0.02, 0.04, 0.08], [1e-4, 2e-4, 4e-4, 8e-4]
    # Along one direction the third derivative may vanish, along eight it does not.
    rest = [
        torch.stack([loss(start + d * v) - loss(start) - half * d * d * v @ curvature @ v for v in directions]).norm()
        for d in steps
    ]
    shorter = [LogisticRegression(bias=False, ridge=each).fit(x, y.long()).weight_ for each in decays]
    gaps = [(w - minimum(curvature, start, each)).norm() for w, each in zip(shorter, decays, strict=True)]
    kept = shrinkage(values, mu)
    return all_of(
        close(along, formula, ulps=1e9),  # eigenvectors of the flattest are known to 1e-16 of the steepest value
        close(kept, formula),
        at_most(torch.maximum((1 - kept) * values / mu, kept * mu / values), 1.0),
        slope_is(steps, torch.stack(rest), 3.0, within=0.3),
        slope_is(decays, torch.stack(gaps), 2.0, within=0.1),
    )


def _expected_risk(values, decays, noise, signal):
    """Expected squared error of the weights, for each decay: what signal is shrunk, and what noise is left."""
    kept = torch.stack([shrinkage(values, float(each)) for each in decays])  # (decays, modes)
    return ((1 - kept).square() * signal + kept.square() * noise / values).sum(1)


@claim("reg.weight_decay.optimal")
@lie("signal over noise", power=-1.0)
@lie("the same for the mean loss", examples=1.0)
def the_best_decay_is_noise_over_signal(draw, power=1.0, examples=0.0, model=LinearRegression):
    """The exact risk of ridge regression for designs of all shapes, minimised over μ; and drawn teachers."""
    best, predicted = [], []
    for (points, features), noise, signal in (((40, 20), 0.5, 0.3), ((8, 20), 2.0, 0.1), ((30, 5), 0.1, 3.0)):
        x = draw.normal(points, features) * 10.0 ** draw.uniform(features, low=-1, high=1)
        values = torch.linalg.svdvals(x).square()
        scale = noise / signal
        grid = scale * torch.logspace(-1, 1, 401, dtype=torch.float64)
        risks = _expected_risk(values, grid, noise, signal)
        at = int(risks.argmin())
        # The vertex of the parabola through three points of the grid, in log μ.
        left, middle, right = risks[at - 1 : at + 2]
        vertex = float((left - right) / (left - 2 * middle + right)) / 2
        best.append(grid[at] * (grid[1] / grid[0]) ** vertex)
        predicted.append(scale**power / points**examples)
    x, teachers = draw.normal(12, 3), math.sqrt(0.3) * draw.normal(3, 4000)
    y = x @ teachers + math.sqrt(0.5) * draw.normal(12, 4000)
    decays = torch.logspace(-2, 2, 9, dtype=torch.float64)
    errors = [(model(bias=False, ridge=float(mu) / 12).fit(x, y).weight_ - teachers).square() for mu in decays]
    measured, deviation = (torch.stack([part(e.sum(0)) for e in errors]) for part in (torch.mean, torch.std))
    figure = Figure(
        "Error of the weights over the weight decay", "μ", "expected squared error",
        [Line(grid, risks, "exact"), Points([predicted[-1]], [risks.min()], "predicted best")], x_log=True,
    )  # fmt: skip
    return all_of(
        close(torch.stack(best) / torch.tensor(predicted, dtype=torch.float64), 1.0, within=1e-3),
        close(
            measured,
            _expected_risk(torch.linalg.svdvals(x).square(), decays, 0.5, 0.3),
            within=6.2 * deviation / 4000**0.5,
        ),
    ).showing(figure)
