"""Logistic regression: its gradient, its convex loss, what it finds on planted data, and data without a minimiser."""

import itertools
import warnings

import torch
from torch.autograd.functional import hessian

from lemmata.feedforward.logistic_regression import LogisticRegression
from lemmata.feedforward.softmax import binary_cross_entropy
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


@claim("logistic.gradient")
@lie("the gradient is (y - σ(w'x)) x", sign=-1.0)
@lie("the label is subtracted from the logit", squash=torch.nn.Identity())
def the_gradient_is_the_error_times_the_input(draw, sign=1.0, squash=torch.sigmoid, loss=binary_cross_entropy):
    """Autograd for a hundred examples, and the sum that vanishes at the learnt weights."""
    x, y, w = draw.normal(100, 4), draw.integers(0, 2, 100).double(), draw.normal(4).requires_grad_()
    found = torch.stack([torch.autograd.grad(loss(w @ x[i], y[i]), w)[0] for i in range(100)])
    w = w.detach()
    learnt = LogisticRegression(bias=False).fit(x, y.long())
    total = (x * (torch.sigmoid(learnt.decision_function(x)) - y)[:, None]).sum(0)
    return all_of(
        close(found, sign * (squash(x @ w) - y)[:, None] * x),
        close(total, 0.0, scale=float(x.abs().sum())),
    )


@claim("logistic.model")
@lie(
    "the planted weights are twice as long",
    factor=2.0,
    regime="2,000 examples leave the weights a standard error of a twentieth",
    loose="the same",
)
@lie("p(1 - p) is p", curvature=torch.clone)
@lie("with a penalty there is no finite minimiser either", ridge=0.1)
def logistic_regression_finds_probabilities(
    draw, factor=1.0, curvature=lambda p: p * (1 - p), ridge=0.0, model=LogisticRegression
):
    """Planted weights within their own standard errors; Newton's method and gradient descent; the Hessian, which is
    nowhere negative; and separable data, on which longer weights are better without end."""
    x, planted = draw.normal(2000, 3), torch.tensor([1.0, -2.0, 0.5]).double()
    y = (draw.uniform(2000) < torch.sigmoid(x @ planted)).long()
    newton, gd = (model(bias=False, solver=solver).fit(x, y) for solver in ("newton", "gd"))

    def loss(w):
        return binary_cross_entropy(x[:200] @ w, y[:200])

    places = draw.normal(20, 3) * 3
    curves = torch.stack([torch.as_tensor(hessian(loss, place)) for place in places])
    weights = curvature(torch.sigmoid(x[:200] @ places.T)).T  # (20, 200)
    error = newton.weight_ - factor * planted
    information = x.T @ (x * (lambda p: p * (1 - p))(newton.probability(x)[:, 1:]))
    apart = x[:100] + 2 * torch.where(x[:100, :1] > 0, 1, -1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        line = model(ridge=ridge).fit(apart, (apart[:, 0] > 0).long())
    longer = [binary_cross_entropy(c * line.decision_function(apart), (apart[:, 0] > 0).long()) for c in (1, 4, 16, 64)]
    return all_of(
        # Chi-square with three degrees of freedom exceeds 45 with probability 1e-9.
        at_most(error @ information @ error, 45.0),
        close(gd.weight_, newton.weight_, within=1e-6),
        close(curves, torch.einsum("wi,ij,ik->wjk", weights, x[:200], x[:200]) / 200),
        at_least(torch.linalg.eigvalsh(curves)[:, 0], 0.0),
        exactly([line.status_, len(told)], ["separable", 1]),
        always([later < earlier for earlier, later in itertools.pairwise(longer)]),
    )
