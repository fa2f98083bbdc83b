"""Carlini and Wagner's attack: its penalty, its box, its search, and why hidden gradients do not stop it."""

import torch
from torch import nn

from lemmata.judge import all_of, always, claim, close, exactly, lie, reaches
from lemmata.robustness.claims.digit_networks import held_out_digits, standard_classifier
from lemmata.robustness.claims.linear_theory import linear_classifier
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.nearest_boundary import deepfool
from lemmata.robustness.penalty_search import carlini_wagner, from_box, into_box
from lemmata.robustness.projected_gradient import pgd


def the_target(y, target):
    return target


def the_own_class(y, target):
    return y


def the_logits(network, x):
    return network(x)


def the_embedding(network, x):
    return network[:-1](x)


@claim("attack.cw_constraint")
@lie("the constraint asks for the class that x has", printed="004/1", wanted=the_own_class)
@lie("Z is the embedding before the logits", printed="004/2", scores=the_embedding)
@lie("the smallest of the other logits in place of the largest", among=torch.amin)
@lie("c = m / |a|^2 is enough", factor=1.0)
def penalty_and_constraint(
    draw, wanted=the_target, scores=the_logits, among=torch.amax, factor=2.0, attack=carlini_wagner
):
    """g on logits with ties; then affine classifiers, the penalty on the way to the boundary, and the attack."""
    network = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)).double()
    x, target = draw.normal(400, 6), draw.integers(0, 5, 400)
    reached = margin_goal(scores(network, x).detach(), target, target) >= 0
    logits, place = draw.integers(-2, 2, 400, 5).double(), target[:, None]  # many of them tie
    others = torch.stack([among(torch.cat([row[:t], row[t + 1 :]])) for row, t in zip(logits, target, strict=True)])

    model = linear_classifier(draw.normal(3, 4), 0.1 * draw.normal(3))
    points = draw.uniform(20, 4, low=-0.5, high=0.5)
    y = model(points).argmax(1)
    aim = (y + draw.integers(1, 3, 20)) % 3
    found = attack(model, points, y, targeted=aim, bounds=(-3.0, 3.0))

    pair, margin = linear_classifier(draw.normal(2, 4), torch.zeros(2).double()), 0.4
    a = (pair.weight[0] - pair.weight[1]).detach()
    shortest = margin * a / (a @ a)  # from a point at this margin on the other side, which is -shortest
    ways = torch.linspace(0, 2, 401).double()[:, None] * shortest  # the constrained minimum is in the middle
    first = torch.zeros(401, dtype=torch.long)
    penalty = (-margin_goal(pair(ways - shortest), 1 - first, first)).clamp(min=0)
    weights = factor * margin / (a @ a) * torch.tensor([0.5, 0.9, 0.99, 1.01, 1.1, 3.0]).double()
    minimum = (ways.square().sum(1) + weights[:, None] * penalty).argmin(1)
    return all_of(
        exactly(reached, network(x).argmax(1) == target),
        exactly(margin_goal(logits, target, target) >= 0, logits.gather(1, place)[:, 0] >= others),
        exactly(minimum == 200, [False] * 3 + [True] * 3),
        exactly(model(found.examples).argmax(1), wanted(y, aim)),
        always(found.success),
    )


@claim("attack.cw_tanh")
@lie("half of the hyperbolic tangent, and one", printed="004/1", shift=2.0)
@lie("the inverse needs no shrinking at pixels 0 and 1", shrink=0.0)
@lie("the tangent itself, without a half", half=1.0)
def the_box_by_a_change_of_variables(draw, shift=1.0, half=0.5, shrink=0.01, attack=carlini_wagner):
    """The map near and far from zero, its inverse on images with black and white pixels, and an attack beside them."""
    w = torch.cat([4 * draw.normal(1000), torch.tensor([-1e3, -30.0, 0.0, 30.0, 1e3]).double()])
    image = half * (w.tanh() + shift)
    x = torch.cat([draw.uniform(98, low=0.05, high=0.95), torch.tensor([0.0, 1.0]).double()])
    start = from_box(x, shrink=shrink)
    model = linear_classifier(draw.normal(2, 100), draw.normal(2))
    found = attack(model, x[None], model(x[None]).argmax(1))
    return all_of(
        close(into_box(w), image),
        always((image >= 0) & (image <= 1)),
        always(torch.isfinite(start)),
        close(into_box(start)[:98] - 0.5, (1 - shrink) * (x[:98] - 0.5)),
        always((found.examples >= 0) & (found.examples <= 1) & found.success[:, None]),
    )


@claim("attack.cw")
@lie("almost no penalty succeeds, too", weights=(1e-9, 5))
@lie("one weight for all images serves as well as a search", weights=(10.0, 1))
@lie("the perturbations are half as long as DeepFool's", beside=0.5)
def small_perturbations_by_a_search_for_c(draw, weights=(None, 5), beside=1.1, attack=carlini_wagner):
    """Norms on digits beside those of DeepFool, and what projected gradient finds in a ball of their median."""
    network = standard_classifier(draw)
    x, y = held_out_digits(50)
    first, searches = weights
    found, others = attack(network, x, y, c=first, searches=searches), deepfool(network, x, y)
    radius = float(found.norms.median())
    inside = pgd(network, x, y, radius, 2, steps=40)
    return all_of(
        reaches(found.success.double().mean(), 0.99, detail="fraction of digits whose answer changes"),
        reaches(radius / float(others.norms.median()), beside, at_most=True, detail="median norm over DeepFool's"),
        reaches(inside.success.double().mean(), 0.6, at_most=True, detail="what projected gradient finds within it"),
    )


def within_one(model, x, y):
    return pgd(model, x, y, 1.0, 2)


@claim("attack.cw_defences")
@lie("without a factor the gradients vanish, too", factor=1.0)
@lie("the factor changes what it takes to be fooled", power=0.1)
@lie("projected gradient on the cross-entropy survives as well", attack=within_one)
def scaled_logits_hide_one_gradient(draw, factor=100.0, power=0.0, attack=carlini_wagner):
    """A network with logits a hundred times as large: cross-entropy and differences of logits, before and after."""
    network = standard_classifier(draw)
    x, y = held_out_digits(50)

    def defended(images):
        return factor * network(images)

    before, after = (attack(model, x, y) for model in (network, defended))
    plain, hidden = (pgd(model, x, y, 0.2, steps=20) for model in (network, defended))
    medians = [each.norms.median() for each in (before, after)]
    return all_of(
        exactly(defended(x).argmax(1), network(x).argmax(1)),
        reaches(
            plain.success.double().mean() - hidden.success.double().mean(), 0.3, detail="lost by projected gradient"
        ),
        always(["gradients that are exactly zero" in hidden.flags]),
        reaches(after.success.double().mean(), 0.99, detail="fooled behind the factor"),
        close(medians[1], factor**power * medians[0], within=0.02 * float(medians[0])),
    )
