"""Robust training: its objective, closed form and gradient against every corner; what it brings and costs."""

import math

import torch
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.data.planar import moons
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, at_least, claim, close, lie, reaches
from lemmata.robustness.adversarial_training import AdversarialTraining, worst_nearby
from lemmata.robustness.claims.digit_networks import (
    EPS,
    conv_network,
    held_out_digits,
    learn_digits,
    robust_classifier,
    standard_classifier,
)
from lemmata.robustness.claims.linear_theory import ANYWHERE, corners, two_logits
from lemmata.robustness.plane_radius import exact_radius
from lemmata.robustness.projected_gradient import pgd
from lemmata.robustness.robust_loss import robust_logistic_loss, worst_margin


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
    found = torch.stack([len(x) * AdversarialTraining(eps, bounds=ANYWHERE)(model, batch)["loss"] for eps in sizes])
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
    loss = training(eps, bounds=ANYWHERE)(model, Examples(x=x, y=y))["loss"]
    to_weight, to_bias = torch.autograd.grad(loss, (model.weight, model.bias))

    def maximum(w, b):
        return corner_losses(w, b, x, y, eps).amax(1).mean()

    units = torch.eye(len(weight)).double()
    slopes = [(maximum(weight + h * e, bias) - maximum(weight - h * e, bias)) / (2 * h) for e in units]
    slopes.append((maximum(weight, bias + h) - maximum(weight, bias - h)) / (2 * h))
    found = torch.cat([to_weight[1], to_bias[1:]])
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


# --- What it brings, and what it costs ---


def learn_noise(network, generator):
    learn_digits(network, generator, AdversarialTraining(EPS, steps=0), epochs=30)


def noise_classifier(draw):
    """Trained on images with random noise of the size of the attack."""
    return draw.trained(conv_network, learn_noise)


def right_under_attack(model, x, y):
    return float((~pgd(model, x, y, EPS, restarts=2, early_stop=True).success).double().mean())


@claim("robust.adversarial_training")
@lie("training on random noise of the same size does the same", trained=noise_classifier)
@lie("training on the images as they are does the same", trained=standard_classifier)
@lie("the gradients of a batch are added up", power=0.0)
def training_on_the_worst_images(draw, trained=robust_classifier, power=1.0):
    """One step of a linear classifier against the corners' gradients; digits under twenty steps with two restarts."""
    x, y, weight, bias = drawn_problem(draw)
    model, lr, eps = two_logits(weight, bias), 0.1, 0.3
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    AdversarialTraining(eps, bounds=ANYWHERE)(model, Examples(x=x, y=y))["loss"].backward()
    optimizer.step()
    signs = signs_of(y)
    worst = x - eps * signs[:, None] * weight.sign()
    gradients = -(signs * torch.sigmoid(-signs * (worst @ weight + bias)))[:, None] * worst  # (examples, size)
    after = weight / 2 - lr / len(x) ** power * gradients.sum(0)
    images, classes = held_out_digits(200)
    network = trained(draw)
    clean = float((network(images).argmax(1) == classes).double().mean())
    return all_of(
        close(model.weight[1], after, ulps=1000, detail="weights of one logit after one step"),
        reaches(right_under_attack(network, images, classes), 0.45, detail="right under attack"),
        reaches(clean, 0.93, detail="right without"),
    )


def plane_network(repetition):
    torch.manual_seed(torch.initial_seed() + 1000 * repetition)
    return MLP(2, 2, widths=(32, 32))


PLANE = (-3.0, 4.0)  # a box around the moons


def two_moons(repetition):
    return moons(n=400, test=300, seed=repetition)


def learn_moons(network, generator, repetition, eps, clean):
    torch.manual_seed(generator.initial_seed() % 2**32)  # of the attacks' random starts
    loss, train = AdversarialTraining(eps, steps=5, bounds=PLANE, clean=clean), two_moons(repetition).train
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for step in range(300):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / 300)
        optimizer.zero_grad()
        loss(network, train)["loss"].backward()
        optimizer.step()


def moon_accuracies(draw, eps, clean=0.0, at=0.3, repetitions=4):
    """Right without perturbation and with the worst one of size `at`: in the mean, and exactly for each network."""
    found = []
    for repetition in range(repetitions):
        settings = {"repetition": repetition, "eps": eps, "clean": clean}
        network = draw.trained(plane_network, learn_moons, **settings).double()
        test = two_moons(repetition).test
        radius = exact_radius(network, test.x.double(), test.y, bounds=PLANE).radius
        found.append([float((radius > size).double().mean()) for size in (0.0, at)])
    return torch.tensor(found, dtype=torch.float64).mean(0)  # (2,)


def weak_and_strong_features(draw, examples=4000):
    """Four features that a perturbation of 0.3 leaves, and sixty that it turns round; all with unit noise."""
    mean = torch.cat([torch.full((4,), 1.0), torch.full((60,), 0.25)]).double()
    y = draw.signs(examples)
    return mean, y[:, None] * mean + draw.normal(examples, 64), y


def linear_accuracies(problem, eps, clean=0.0, at=0.3):
    """Of the weights that minimise the closed form: right without perturbation and with the worst, in closed form."""
    mean, x, y = problem
    weight = (0.01 * mean).requires_grad_()
    optimizer = torch.optim.LBFGS([weight], max_iter=100, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def objective():
        optimizer.zero_grad()
        worst, plain = (robust_logistic_loss(weight, 0.0, x, y, size).mean() for size in (eps, 0.0))
        loss = clean * plain + (1 - clean) * worst
        loss.backward()
        return loss

    optimizer.step(objective)
    weight = weight.detach()
    margins = torch.cat([worst_margin(weight, 0.0, mean[None], y[:1].abs(), size) for size in (0.0, at)])
    return 0.5 * torch.erfc(-margins / weight.norm() / math.sqrt(2))  # (2,): a margin is normal around that of the mean


def gained(many, few, which):
    """By how much one of both accuracies, 0 without and 1 with a perturbation, is higher; linear, and on the moons."""
    return [float(one[which] - other[which]) for one, other in zip(many, few, strict=True)]


@claim("robust.tradeoff")
@lie("the smaller radius is as robust at the larger", more=0.1)
@lie("training without a ball is as robust", more=0.0)
@lie("clean accuracy rises with the radius", price=-1.0)
def robustness_is_paid_for(draw, less=0.1, more=0.3, price=1.0):
    """Radii 0.1 and 0.3 of training: accuracies at 0.3 and at zero, exact for each network of two kinds."""
    problem = weak_and_strong_features(draw)
    small, large = ((linear_accuracies(problem, eps), moon_accuracies(draw, eps)) for eps in (less, more))
    won, paid = gained(large, small, 1), gained(small, large, 0)
    return all_of(
        reaches(won[0], 0.05, detail="linear: what the larger radius wins under attack"),
        reaches(won[1], 0.2, detail="moons: what the larger radius wins under attack"),
        reaches(price * paid[0], 0.01, detail="linear: what it pays without"),
        reaches(price * paid[1], 0.03, detail="moons: what it pays without"),
    )


@claim("robust.mixed_batches")
@lie("attacked examples alone have the clean accuracy of mixed batches", clean=0.0)
@lie("mixed batches have the lower clean accuracy", gain=-1.0)
@lie("mixed batches cost no robustness", cost=-1.0)
def half_of_the_batch_as_it_is(draw, clean=0.5, gain=1.0, cost=1.0):
    """Half of the loss of clean examples, against attacked ones alone, radius 0.3; exact for each network."""
    problem, eps = weak_and_strong_features(draw), 0.3
    mixed, pure = ((linear_accuracies(problem, eps, c), moon_accuracies(draw, eps, c)) for c in (clean, 0.0))
    won, paid = gained(mixed, pure, 0), gained(pure, mixed, 1)
    return all_of(
        reaches(gain * won[0], 0.003, detail="linear: what mixing wins without attack"),
        reaches(gain * won[1], 0.01, detail="moons: what mixing wins without attack"),
        reaches(cost * paid[0], 0.002, detail="linear: what it pays under attack"),
        reaches(cost * paid[1], 0.003, detail="moons: what it pays under attack"),
    )
