"""The objective of robust training, its closed form and its gradient: against every corner of the ball."""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.judge import all_of, at_least, claim, close, lie
from lemmata.robustness.adversarial_training import AdversarialTraining, worst_nearby
from lemmata.robustness.robust_loss import robust_logistic_loss

WIDE = (-100.0, 100.0)  # a box that no perturbation meets


def corners(size):
    """All corners of the ball of the maximum norm, (2 ** size, size)."""
    return torch.tensor(list(itertools.product((-1.0, 1.0), repeat=size)), dtype=torch.float64)


def two_logits(weight, bias):
    """A linear classifier with the logits 0 and w.x + b."""
    model = nn.Linear(len(weight), 2).double()
    with torch.no_grad():
        model.weight.copy_(torch.stack([torch.zeros_like(weight), weight]))
        model.bias.copy_(torch.stack([torch.zeros_like(bias), bias]))
    return model


def drawn_problem(draw, examples=12, size=6):
    """Points of both classes, and weights of which none is nearly zero, so that one corner is the worst."""
    x, y = draw.normal(examples, size), torch.arange(examples) % 2
    weight, bias = draw.uniform(size, low=0.3, high=1.0) * draw.signs(size), draw.normal(1)[0]
    return x, y, weight, bias


def signs_of(y):
    return 2.0 * y.double() - 1.0


def corner_losses(weight, bias, x, y, eps):
    """Of each example at each corner, (examples, corners): a convex function is largest at one of them."""
    margins = signs_of(y)[:, None] * ((x[:, None] + eps * corners(x.shape[1])) @ weight + bias)
    return functional.softplus(-margins)


def worst_of_each(losses):
    return losses.amax(1).sum()


def worst_in_common(losses):
    return losses.sum(0).amax()


def mean_of_each(losses):
    return losses.mean(1).sum()


@claim("robust.objective")
@lie("one perturbation for all examples", inner=worst_in_common)
@lie("the mean over the neighbourhood", inner=mean_of_each)
@lie("a ball of half the radius", radius=0.5)
def worst_losses_are_summed(draw, inner=worst_of_each, radius=1.0):
    """The loss of adversarial training of a linear classifier, against all corners; and how it grows with the ball."""
    x, y, weight, bias = drawn_problem(draw)
    model, batch = two_logits(weight, bias), Examples(x=x, y=y)
    sizes = [0.0, 0.05, 0.3, 2.0]
    found = torch.stack([len(x) * AdversarialTraining(eps, bounds=WIDE)(model, batch)["loss"] for eps in sizes])
    each = [inner(corner_losses(weight, bias, x, y, radius * eps)) for eps in sizes]
    clean = functional.cross_entropy(model(x), y, reduction="sum")
    return all_of(
        close(found, torch.stack(each), ulps=1000, detail="sum of the worst losses, for four radii"),
        close(found[0], clean, ulps=1000, detail="without a ball"),
        at_least(found[1:] - found[:-1], 0.0, detail="by how much a larger ball has the larger loss"),
    )


def penalised(weight, bias, x, y, eps, norm=math.inf):
    dual = 1.0 if norm == math.inf else math.inf if norm == 1 else norm / (norm - 1)
    return robust_logistic_loss(weight, bias, x, y, 0.0) + eps * torch.linalg.vector_norm(weight, ord=dual)


def best_by_holder(weight, y, eps, norm):
    """The perturbation with which Hoelder's inequality is an equality, and others of the same length."""
    dual = norm / (norm - 1)
    towards = weight.sign() * weight.abs() ** (dual - 1)
    return -eps * signs_of(y)[:, None] * towards / torch.linalg.vector_norm(towards, ord=norm)  # (examples, size)


@claim("robust.linear_closed_form")
@lie("the norm is added outside the logarithm", loss=penalised)
@lie("the 2-norm of the weights", dual=2.0)
@lie("half the norm", weight=0.5)
def no_attack_is_needed(draw, dual=1.0, weight=1.0, loss=robust_logistic_loss):
    """Every corner of the cube and of the cross, and Hoelder's equality with random directions for other norms."""
    x, y, w, b = drawn_problem(draw, examples=20, size=8)
    signs, cube = signs_of(y), math.inf if dual == 1 else dual / (dual - 1)
    checks = []
    for size, eps in ((1.0, 0.0), (1.0, 0.2), (1e-8, 0.2), (300.0, 0.5)):  # weights so small or large that all is flat
        worst = corner_losses(size * w, b, x, y, eps).amax(1)
        found = loss(size * w, b, x, signs, weight * eps, norm=cube)
        checks.append(close(found, worst, ulps=1000, detail=f"cube of radius {eps:g}, weights times {size:g}"))
    cross = torch.cat([torch.eye(8), -torch.eye(8)]).double()  # (16, size)
    margins = signs[:, None] * ((x[:, None] + 0.4 * cross) @ w + b)
    checks.append(close(loss(w, b, x, signs, weight * 0.4, norm=1), functional.softplus(-margins).amax(1), ulps=1000))
    for norm in (1.5, 2, 3):
        around = draw.normal(500, 1, 8)
        around = 0.4 * around / torch.linalg.vector_norm(around, ord=norm, dim=-1, keepdim=True)
        tried = torch.cat([around.expand(-1, 20, -1), best_by_holder(w, y, 0.4, norm)[None]])
        worst = functional.softplus(-signs * ((x + tried) @ w + b)).amax(0)
        checks.append(close(loss(w, b, x, signs, weight * 0.4, norm=norm), worst, ulps=1000, detail=f"norm {norm:g}"))
    return all_of(*checks)


class AtThePerturbation(AdversarialTraining):
    def __call__(self, model, batch):
        nearby = worst_nearby(model, batch.x, batch.y, self.threat, self.steps, self.step, self.random_start)
        return {"loss": functional.cross_entropy(model(nearby - batch.x), batch.y)}


class AtAnyPerturbation(AdversarialTraining):
    def __call__(self, model, batch):
        nearby = worst_nearby(model, batch.x, batch.y, self.threat, 0, 0.0, True)
        return {"loss": functional.cross_entropy(model(nearby), batch.y)}


@claim("robust.danskin")
@lie("the perturbation takes the place of the input", printed="004/1", training=AtThePerturbation)
@lie("at any perturbation", training=AtAnyPerturbation)
@lie("of several maximisers any gives the derivative", several=torch.amin)
def the_gradient_is_that_at_the_maximiser(draw, training=AdversarialTraining, several=torch.amax):
    """Adversarial training's gradient against differences of the maximum; and at a tie, where a weight is zero."""
    x, y, weight, bias = drawn_problem(draw)
    eps, h, signs = 0.3, 1e-5, signs_of(y)
    model = two_logits(weight, bias)
    training(eps, bounds=WIDE)(model, Examples(x=x, y=y))["loss"].backward()

    def maximum(w, b):
        return corner_losses(w, b, x, y, eps).amax(1).mean()

    units = torch.eye(len(weight)).double()
    slopes = [(maximum(weight + h * e, bias) - maximum(weight - h * e, bias)) / (2 * h) for e in units]
    slopes.append((maximum(weight, bias + h) - maximum(weight, bias - h)) / (2 * h))
    found = torch.cat([model.weight.grad[1], model.bias.grad[1:]])
    # the third derivatives of the loss are below |x + δ|³, and the square of h takes it from there
    evidence = [close(found, torch.stack(slopes), within=1e-7, detail="gradient against central differences")]

    tied, t = weight.clone(), 1e-7
    tied[0] = 0.0  # then both signs of the first perturbation are as bad
    worst = -eps * signs[:, None] * tied.sign()  # (examples, size), zero in the first place
    both = torch.stack([worst + side * eps * units[0] for side in (1, -1)])  # (maximisers, examples, size)
    for side in (1.0, -1.0):
        step = (robust_logistic_loss(tied + side * t * units[0], bias, x, signs, eps)
                - robust_logistic_loss(tied, bias, x, signs, eps)) / t  # fmt: skip
        margins = signs * ((x + both) @ tied + bias)
        gradient = -torch.sigmoid(-margins)[..., None] * signs[:, None] * (x + both)  # (maximisers, examples, size)
        derivative = several(side * gradient[..., 0], 0)
        evidence.append(close(step, derivative, within=1e-5, detail="one-sided derivative at a tie"))
    return all_of(*evidence)
