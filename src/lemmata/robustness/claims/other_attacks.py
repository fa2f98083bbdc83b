"""Perturbations of other kinds: one for all images, of one pixel, turned and shifted, and small in features."""

import math

import torch

from lemmata.data.registry import load
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie, reaches
from lemmata.robustness.claims.digit_networks import held_out_digits, standard_classifier
from lemmata.robustness.claims.linear_theory import linear_classifier
from lemmata.robustness.feature_space import feature_attack
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.projected_gradient import pgd
from lemmata.robustness.single_pixel import single_pixel_attack
from lemmata.robustness.spatial import spatial_attack, turned_and_shifted
from lemmata.robustness.universal import universal_attack
from lemmata.tricks.augmentation import rotated


def learned(draw, network, eps):
    """The perturbation that is made from six hundred images of the training set and the network's own answers."""
    x = load("digits").train.x[:600, None]
    return universal_attack(network, x, network(x).argmax(1), eps).perturbation


def signs_at_random(draw, network, eps):
    return eps * draw.signs(1, 8, 8).float()


def changed_answers(network, x, perturbation):
    """The fraction of images that are answered otherwise with the perturbation than without it."""
    return (network((x + perturbation).clamp(0, 1)).argmax(1) != network(x).argmax(1)).double().mean()


@claim("attack.universal")
@lie("signs at random do the same", perturbation=signs_at_random)
@lie("a tenth of the radius suffices", eps=0.03)
@lie("no image withstands it", share=1.0)
def one_perturbation_for_all(draw, perturbation=learned, eps=0.3, share=0.5):
    """A perturbation made from images of the training set, tried on others; ten sign patterns of the same norm."""
    network, x = standard_classifier(draw), held_out_digits(359)[0]
    delta = perturbation(draw, network, eps)
    others = torch.stack([changed_answers(network, x, signs_at_random(draw, network, eps)) for _ in range(10)])
    return all_of(
        at_most(delta.abs().max().double(), torch.tensor(eps).double() * (1 + 1e-6)),
        reaches(changed_answers(network, x, delta), share, detail="fraction of held-out images whose answer changes"),
        reaches(others.mean(), 0.45, at_most=True, detail="the same of sign patterns"),
    )


@claim("attack.universal_transfer")
@lie("signs at random do the same", perturbation=signs_at_random)
@lie("nearly all answers of the other network change", share=0.95)
@lie("a tenth of the radius suffices", eps=0.03)
def it_fools_a_network_it_never_saw(draw, perturbation=learned, share=0.15, eps=0.3):
    """The perturbation made on one network, tried on one with other weights; sign patterns of the same norm."""
    other, x = standard_classifier(draw, seed=1), held_out_digits(359)[0]
    delta = perturbation(draw, standard_classifier(draw), eps)
    others = torch.stack([changed_answers(other, x, signs_at_random(draw, other, eps)) for _ in range(10)])
    gained = changed_answers(other, x, delta) - others.mean()
    return reaches(gained, share, detail="answers of the other network that change, beyond those by sign patterns")


@claim("attack.single_pixel")
@lie("two pixels change", pixels=2)
@lie("four guesses find as many as evolution", guesses=(4, 1))
@lie("one pixel never decides", most=0.0)
def one_pixel_changes_the_answer(draw, pixels=1, guesses=(40, 20), most=0.6, attack=single_pixel_attack):
    """Every pixel of fifty digits at black and at white, by calls of the network alone; differential evolution."""
    network = standard_classifier(draw)
    x, y = held_out_digits(50)
    found = attack(network, x, y)
    population, generations = guesses
    evolved = attack(network, x, y, search="evolution", population=population, generations=generations)
    fooled_before = network(x).argmax(1) != y
    single = x.repeat_interleave(64, 0).flatten(1)  # (50 * 64, 64)
    wrong = torch.zeros(50, dtype=torch.bool)
    for value in (0.0, 1.0):
        tried = single.scatter(1, torch.arange(64).repeat(50)[:, None], value)
        wrong |= (network(tried.view(-1, 1, 8, 8)).argmax(1).view(50, 64) != y[:, None]).any(1)
    moved = found.success & ~fooled_before
    changed = (found.examples != x).flatten(1).sum(1)[moved]
    share = found.success.double().mean()
    return all_of(
        exactly(found.success, wrong | fooled_before),
        exactly(changed, torch.full_like(changed, pixels)),
        exactly(found.gradients.sum(), 0),
        reaches(share, 0.05, detail="fraction of digits that one pixel changes"),
        reaches(share, most, at_most=True, detail="the same, which is not most of them"),
        reaches((evolved.success & moved).double().sum() / moved.sum(), 0.7, detail="of these found by evolution"),
    )


def the_worst(wrong):
    return wrong.any(0).double().mean()


def one_at_random(wrong):
    return wrong.double().mean()


@claim("attack.other_perturbations")
@lie("a random turn is as bad as the worst", taken=one_at_random)
@lie("turns by two degrees suffice", degrees=2.0)
@lie("the perturbations are small in the maximum norm", small=True)
def turned_digits_are_answered_wrongly(draw, taken=the_worst, degrees=20.0, small=False, attack=spatial_attack):
    """Turns of the attack and one by one; then all turns with all shifts, against the mean of the same set."""
    network = standard_classifier(draw)
    x, y = held_out_digits()
    angles = [torch.full((len(x),), math.radians(angle)) for angle in torch.linspace(-degrees, degrees, 13).tolist()]
    turned = torch.stack([network(rotated(x, angle)).argmax(1) != y for angle in angles])
    found = attack(network, x, y, degrees=degrees, pixels=0)
    every = torch.stack([network(each).argmax(1) != y for each in turned_and_shifted(x, 30, 1, 13)])
    worst = attack(network, x, y)
    return all_of(
        close(found.success.double().mean(), taken(turned)),
        reaches(found.success.double().mean() - one_at_random(turned), 0.1, detail="wrong at worst, less at random"),
        reaches(worst.success.double().mean() - one_at_random(every), 0.1, detail="the same with shifts by a pixel"),
        reaches(worst.norms.median(), 0.5, at_most=small, detail="median perturbation in the maximum norm"),
    )


@claim("attack.feature_space")
@lie("the ellipsoid with the features' own matrix in place of its inverse", power=1.0)
@lie("a bound in features bounds the pixels, too", bounded=True)
@lie("what it finds in pixels is half of what projected gradient finds", beside=0.5)
def features_kept_near(draw, power=-1.0, bounded=False, beside=1.0, attack=feature_attack):
    """Linear features, whose set is an ellipsoid; features that are blind; pixels themselves; another network's."""
    weight, matrix = draw.normal(2, 4), draw.orthogonal(4) * torch.tensor([0.5, 1.0, 1.5, 2.0]).double()
    model, a = linear_classifier(weight, torch.zeros(2)), weight[1] - weight[0]
    x = (-0.1 * a / (a @ a)).expand(1, 4)  # of class 0, by a margin of 0.1
    ellipsoid = torch.linalg.matrix_power((matrix.T @ matrix), int(power))
    largest = torch.sqrt(a @ ellipsoid @ a) - 0.1  # at a radius of 1
    label = torch.zeros(1, dtype=torch.long)
    best = attack(model, x, label, 1.0, bounds=(-50.0, 50.0), features=lambda z: z @ matrix.T, steps=300, lr=0.3)
    reached = margin_goal(model(best.examples), label)
    few = attack(model, x, label, 1e-3, bounds=(-50.0, 50.0), features=lambda z: z @ blind_features(a), steps=100)

    network, other = standard_classifier(draw), standard_classifier(draw, seed=1)[:5].eval()
    images, y = held_out_digits(50)
    pixels, projected = attack(network, images, y, 0.6), pgd(network, images, y, 0.6, 2, steps=100)
    kept = attack(network, images, y, 5.0, features=other)
    far = torch.linalg.vector_norm((other(kept.examples) - other(images)).detach().flatten(1).double(), dim=1)
    ratio = pixels.success.double().sum() / projected.success.sum()
    return all_of(
        close(reached / largest, torch.ones(1).double(), within=0.02),
        at_most(reached, largest),
        always(few.success),
        exactly(bool(few.norms <= 1e-3), bounded),
        reaches(ratio, 0.85 * beside),
        reaches(ratio, 1.15 * beside, at_most=True),
        at_most(far, 5.0 * (1 + 1e-6)),
        reaches(kept.success.double().mean(), 0.2, detail="digits answered wrongly within the features' bound"),
    )


def blind_features(a):
    """Two features that do not see how far a point is along a."""
    return torch.linalg.qr(torch.cat([a[:, None], torch.eye(4).double()[:, :3]], 1))[0][:, 1:3]
