"""Attacks of least norm: the nearest linearised boundary, and the curve that fixed and minimal attacks share."""

import math

import torch
from torch import nn

from lemmata.judge import all_of, always, at_least, claim, close, lie, reaches
from lemmata.robustness.claims.digit_networks import held_out_digits, standard_classifier
from lemmata.robustness.claims.linear_theory import ANYWHERE, linear_classifier, points_at, two_logits, unequal_weights
from lemmata.robustness.fast_gradient import fgsm
from lemmata.robustness.linear_boundary import linear_distance
from lemmata.robustness.nearest_boundary import deepfool
from lemmata.robustness.plane_radius import exact_radius
from lemmata.robustness.projected_gradient import pgd


@claim("attack.deepfool")
@lie("the printed constraint, which no step at all fulfils", printed="001/1", sign=1.0)
@lie("the nearest class by the squared norm", power=2.0)
@lie("without an overshoot the answer changes as well", overshoot=0.0)
@lie("half the norm is enough on digits", radius=0.5)
def the_nearest_linearised_boundary(draw, sign=-1.0, power=1.0, overshoot=0.02, radius=1.0, attack=deepfool):
    """One step on affine classifiers against the nearest half-space; then digits, beside projected gradient."""
    weight, bias = unequal_weights(draw, 4, 6) * torch.tensor([[1.0], [1.0], [0.3], [3.0]]).double(), draw.normal(4)
    model = linear_classifier(weight, bias)
    x = draw.normal(400, 6)
    first, second = model(x).detach().topk(2, dim=1).values.mT
    x = x[first - second > 0.1][:150]  # the attack never steps across less than a ten-thousandth of the logits' range
    scores = model(x).detach()
    y = scores.argmax(1)
    a = weight[y][:, None] - weight  # (points, classes, inputs), zero for the own class
    gaps, lengths = scores.amax(1, keepdim=True) - scores, a.norm(dim=2)
    nearest = torch.where(lengths > 0, gaps / lengths**power, math.inf).argmin(1)
    each = torch.arange(len(x))
    # the shortest v with a.v <= sign * gap
    shortest = (sign * gaps[each, nearest]).clamp(max=0)[:, None] * a[each, nearest]
    shortest = shortest / lengths[each, nearest].square()[:, None]
    once = attack(model, x, y, bounds=ANYWHERE, steps=1, overshoot=overshoot, halvings=0)

    network = standard_classifier(draw)
    images, classes = held_out_digits()
    found = attack(network, images, classes)
    middle = radius * float(found.norms.median())
    inside = pgd(network, images, classes, middle, 2, steps=40).success.double().mean()
    return all_of(
        close(once.examples - x, (1 + overshoot) * shortest, ulps=1e4, scale=100.0),
        always(once.success),
        reaches(found.success.double().mean(), 0.99, detail="fraction of digits whose answer changes in 50 steps"),
        reaches(inside, 0.6, at_most=True, detail="what projected gradient finds within the median norm"),
        reaches(inside, 0.35, detail="the same, which is not less by far"),
    )


def beyond(distances, eps):
    return distances > eps


def within(distances, eps):
    return distances <= eps


@claim("attack.fixed_vs_minimal")
@lie("the distribution function itself", share=within)
@lie("the norm of the weights in place of the dual norm", dual=False)
@lie("an inexact attack bounds robust accuracy from below", upper=False)
def one_curve_of_two_attacks(draw, share=beyond, dual=True, upper=True, fixed=fgsm, minimal=deepfool):
    """Robust accuracy at fifty radii, of one step that is exact there, against the distances of a thousand points."""
    w, b = unequal_weights(draw, 6), draw.normal(1)[0]
    model, x = two_logits(w, b), points_at(draw, w, b, draw.normal(1000))
    y = model(x).argmax(1)
    survived, farther, measured, distances = [], [], [], []
    for norm in (1, 2, math.inf):
        q = {1: math.inf, 2: 2, math.inf: 1}[norm] if dual else norm
        r = (x @ w + b).abs() / torch.linalg.vector_norm(w, ord=q)
        radii = torch.quantile(r, torch.linspace(0.01, 0.99, 50).double()).tolist()
        survived += [(~fixed(model, x, y, eps, norm, ANYWHERE).success).double().mean() for eps in radii]
        farther += [share(r, eps).double().mean() for eps in radii]
        measured.append(linear_distance(w[None], b[None], x, norm).distances)
        distances.append(r)
    network = nn.Sequential(linear_classifier(draw.normal(8, 2), draw.normal(8)), nn.ReLU())
    network = network.append(linear_classifier(draw.normal(3, 8), draw.normal(3))).eval()
    x, box = draw.uniform(200, 2, low=-1.0, high=1.0), (-2.0, 2.0)
    y = network(x).argmax(1)
    r = exact_radius(network, x, y, 2, box).radius
    found = minimal(network, x, y, norm=2, bounds=box)
    far = torch.where(found.success, found.norms, math.inf)
    radii = torch.quantile(r[r.isfinite()], torch.linspace(0.1, 0.9, 9).double()).tolist()
    truth = torch.stack([(r > eps).double().mean() for eps in radii])
    by_norm = torch.stack([(far > eps).double().mean() for eps in radii])
    by_step = torch.stack([(~fixed(network, x, y, eps, 2, box).success).double().mean() for eps in radii])
    side = 1.0 if upper else -1.0
    return all_of(
        close(torch.stack(survived), torch.stack(farther)),
        close(torch.stack(measured), torch.stack(distances)),
        at_least(side * by_norm, side * truth),
        at_least(side * by_step, side * truth),
        always([bool(found.success.any())]),  # an attack that finds nothing bounds nothing
    )
