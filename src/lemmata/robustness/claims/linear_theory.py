"""Linear classifiers, of which everything about small perturbations is known in closed form."""

import itertools
import math

import torch
from torch import nn

from lemmata.judge import all_of, always, at_least, claim, close, exactly, lie
from lemmata.robustness.fast_gradient import fgsm
from lemmata.robustness.linear_boundary import linear_distance
from lemmata.robustness.norm_ball import perturbation_norms, steepest_direction
from lemmata.robustness.threat import Threat

ANYWHERE = (-100.0, 100.0)  # a box that nothing meets


def linear_classifier(weight, bias):
    """The torch module with these weights, in float64 and evaluation mode."""
    model = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64).eval()
    with torch.no_grad():
        model.weight.copy_(weight)
        model.bias.copy_(bias)
    return model


def two_logits(w, b):
    """The sign of w.x + b as a classifier with two logits, half the score apart from zero: class 1 is +1."""
    return linear_classifier(torch.stack([-w, w]) / 2, torch.stack([-b, b]) / 2)


def corners(dimension):
    """All points with coordinates -1 and 1, (2^dimension, dimension)."""
    return torch.tensor(list(itertools.product([-1.0, 1.0], repeat=dimension)), dtype=torch.float64)


def points_at(draw, w, b, scores):
    """Points at random whose scores w.x + b are these."""
    x = draw.normal(len(scores), len(w))
    return x + (scores - b - x @ w)[:, None] * w / (w @ w)


def unequal_weights(draw, *shape):
    """Weights from 1/4 to 3, so that no two norms of them are alike."""
    return draw.signs(*shape) * draw.uniform(*shape, low=0.25, high=3.0)


def both(small, changed):
    return small & changed


def changed_alone(small, changed):
    return changed


def small_alone(small, changed):
    return small


@claim("attack.adversarial_example")
@lie("a change of the answer suffices, however far the input moves", demanded=changed_alone)
@lie("a small change of the input suffices, whatever the answer", demanded=small_alone)
@lie("the answer changes at half the distance of the boundary", factor=0.5)
def a_small_change_that_changes_the_answer(draw, demanded=both, factor=1.0):
    """Perturbations below, just above and far above a boundary's distance, and one attack, in each norm."""
    w, b = unequal_weights(draw, 6), draw.normal(1)[0]
    x = points_at(draw, w, b, 1.5 * draw.signs(9))
    model, evidence = two_logits(w, b), []
    answers, times = model(x).argmax(1), torch.tensor([0.4, 0.98, 1.02, 1.98, 2.02]).double()
    for norm in (1, 2, math.inf):
        shortest = linear_distance(w[None], b[None], x, norm)
        radius = 2 * float(shortest.distances.max())
        moved = x + times[:, None, None] * shortest.perturbations  # (times, points, inputs)
        small = torch.stack([Threat(radius, norm, ANYWHERE).admits(x, each) for each in moved])
        adversarial = demanded(small, model(moved).argmax(-1) != answers)
        evidence.append(exactly(adversarial, ((times > factor) & (times < 2))[:, None].expand(5, 9)))
        found = fgsm(model, x, answers, radius, norm, ANYWHERE)
        small, changed = found.norms <= radius, model(found.examples).argmax(1) != answers
        evidence.append(exactly(found.success, both(small, changed)))
    return all_of(*evidence)


def wanted_answer(answers, y, target):
    return answers == target


def any_other_answer(answers, y, target):
    return answers != y


@claim("attack.goals")
@lie("any wrong answer is the one that was wanted", wanted=any_other_answer)
@lie("an untargeted attack succeeds where the answer stays", untargeted=torch.eq)
@lie("the targeted attack climbs the loss of its target", sign=1.0)
def wrong_answers_wanted_answers_and_losses(draw, untargeted=torch.ne, wanted=wanted_answer, sign=-1.0, attack=fgsm):
    """One step of an attack with each goal, from the answers and losses where the losses' own gradients lead."""
    weight, bias, x = draw.normal(4, 8), draw.normal(4), draw.normal(400, 8)
    model, losses = linear_classifier(weight, bias), nn.functional.cross_entropy
    order = model(x).argsort(1, descending=True)
    y, target = order[:, 0], order[:, 2]  # not the class that is easiest to reach
    found = [attack(model, x, y, 1.0, 2, ANYWHERE), attack(model, x, y, 1.0, 2, ANYWHERE, targeted=target)]
    stepped, gained = [], []
    for classes, way in ((y, 1.0), (target, sign)):
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(losses(model(leaf), classes, reduction="sum"), leaf)
        stepped.append(x + way * nn.functional.normalize(gradient))
        gained.append(losses(model(stepped[-1]), classes) - losses(model(x), classes))
    answers = [model(images).argmax(1) for images in stepped]
    return all_of(
        exactly(found[0].success, untargeted(answers[0], y)),
        exactly(found[1].success, wanted(answers[1], y, target)),
        *[close(a.examples[a.success], to[a.success], ulps=1000) for a, to in zip(found, stepped, strict=True)],
        always([bool(gained[0] > 0), bool(gained[1] < 0)]),
        always([bool(a.success.any()) and not bool(a.success.all()) for a in found]),
    )


def with_label(y, score):
    return y * score


def without_label(y, score):
    return score


@claim("attack.linear_flip")
@lie("a point on the boundary has not reached it", compare=torch.lt)
@lie("the bias left out", offset=0.0)
@lie("the label left out", labelled=without_label)
def where_the_labelled_score_is_not_positive(draw, compare=torch.le, offset=1.0, labelled=with_label):
    """Whole numbers, on the boundary too, against the side on which the nearest point of the boundary lies."""
    w, b = draw.integers(1, 5, 6).double(), 2 * draw.signs(1)
    x, delta = draw.integers(-4, 5, 4000, 6).double(), draw.integers(-4, 5, 4000, 6).double()
    clear = x @ w + b != 0
    x, delta, y = x[clear], delta[clear], (x[clear] @ w + b).sign()
    back = linear_distance(w[None], b, x + delta).perturbations @ w  # what the way to the boundary adds to the score
    score = labelled(y, (x + delta) @ w + offset * b)
    return all_of(
        exactly(y * back > -0.5, compare(score, 0 * score)),  # scores are whole: none is between -1 and 0
        always([bool((back == 0).any()), bool((y * back > 0.5).any()), bool((y * back < -0.5).any())]),
    )


@claim("attack.linear_min_l2")
@lie("divided by the norm, which is not squared", power=1.0)
@lie("along w itself", sign=1.0)
@lie("the distance is divided by the squared norm", length=2.0)
@lie("larger scores are flipped more easily", margin=-1.0)
@lie("at the same score larger weights are flipped less easily", weights=1.0)
def the_score_over_the_norm(draw, sign=-1.0, power=2.0, length=1.0, margin=1.0, weights=-1.0, distance=linear_distance):
    """The least solution of one equation at three scales, all others, and what grows with scores and weights."""
    found, printed, solutions, lengths = [], [], [], []
    for size in (1e-5, 1.7, 1e5):
        w, b, x = size * draw.unit(7), size * draw.normal(1), draw.normal(20, 7)
        score = x @ w + b
        found.append(distance(w[None], b, x))
        printed.append(sign * (score / w.norm() ** power)[:, None] * w)
        lengths.append(score.abs() / w.norm() ** length)
        solutions.append(-score[:, None] * torch.linalg.pinv(w[None])[:, 0])
    aside = draw.normal(20, 7)
    others = solutions[-1] + aside - (aside @ w)[:, None] * w / (w @ w)  # these too lead to the boundary
    scores = torch.arange(1, 9).double()
    at_scores = distance(w[None], b, points_at(draw, w, b, scores)).distances
    at_norms = [distance(k * w[None], b, points_at(draw, k * w, b, scores[:1])).distances for k in scores]
    return all_of(
        close([each.perturbations for each in found], printed, ulps=1000),
        close([each.distances for each in found], lengths, ulps=1000),
        close([each.perturbations for each in found], solutions, ulps=1000),
        at_least(others.norm(dim=1), found[-1].distances),
        exactly(at_scores.diff().sign(), margin * torch.ones(7).double()),
        exactly(torch.cat(at_norms).diff().sign(), weights * torch.ones(7).double()),
    )


def whole_gap(first, second, squared):
    return (first - second) / squared


def only_the_second_logit(first, second, squared):
    return first - second / squared


def without_its_sign(first, second, squared):
    return (first - second).abs() / squared


@claim("attack.linear_pair")
@lie("only the second logit is divided, as an inline slash reads", multiplier=only_the_second_logit)
@lie("the sign of the gap left out", multiplier=without_its_sign)
@lie("the multiplier of the norm without its factor 1/2", half=1.0)
def between_two_affine_logits(draw, multiplier=whole_gap, half=0.5, distance=linear_distance):
    """Every pair of rows of a larger model, from either side of it, against the solved equations of Lagrange."""
    weight, bias, x = unequal_weights(draw, 5, 6), draw.normal(5), draw.normal(8, 6)
    logits, found, printed, solved, multipliers = x @ weight.mT + bias, [], [], [], []
    for i, j in itertools.combinations(range(5), 2):
        apart, gap = weight[j] - weight[i], logits[:, i] - logits[:, j]
        found.append(distance(weight[[i, j]], bias[[i, j]], x).perturbations)
        multipliers.append(multiplier(logits[:, i], logits[:, j], apart @ apart))
        printed.append(multipliers[-1][:, None] * apart)
        # the gradient of half |eta|^2 + lambda (f_i - f_j)(x + eta) vanishes, and so does the gap at x + eta
        equations = torch.zeros(7, 7, dtype=torch.float64)
        equations[:6, :6], equations[:6, 6], equations[6, :6] = 2 * half * torch.eye(6), -apart, apart
        right = torch.cat([torch.zeros(6, 8).double(), gap[None]])
        solved.append(torch.linalg.solve(equations, right).mT)  # eta and lambda, (points, 7)
    return all_of(
        close(found, printed, ulps=1000),
        close(found, torch.stack(solved)[..., :6], ulps=1e4),
        close(multipliers, torch.stack(solved)[..., 6], ulps=1e4),
    )


@claim("attack.linear_multiclass")
@lie("chosen by the gap over the squared norm", choice=2.0)
@lie("chosen by the gap alone", choice=0.0)
@lie("the gap over the norm itself is the multiplier", power=1.0)
def the_nearest_of_all_planes(draw, choice=1.0, power=2.0, distance=linear_distance):
    """Rows of very different lengths: all planes one by one, and the answers just before and behind the nearest."""
    sizes = torch.tensor([1.0, 0.3, 1.0, 3.0, 9.0]).double()
    weight, bias, x = sizes[:, None] * draw.unit(5, 6), draw.normal(5), draw.normal(300, 6)
    logits = x @ weight.mT + bias
    answers, rows = logits.argmax(1), torch.arange(300)
    apart = weight - weight[answers][:, None]  # (points, classes, inputs)
    gaps = logits.amax(1, keepdim=True) - logits
    ratios = (gaps / apart.norm(dim=-1) ** choice).scatter(1, answers[:, None], math.inf)
    chosen = ratios.argmin(1)
    towards = apart[rows, chosen]
    printed = (gaps[rows, chosen] / towards.norm(dim=1) ** power)[:, None] * towards
    found = distance(weight, bias, x)
    planes = gaps[..., None] * torch.linalg.pinv(apart[..., None, :])[..., 0]  # the least solution for each plane
    lengths = planes.norm(dim=-1).scatter(1, answers[:, None], math.inf)
    just = [((x + k * found.perturbations) @ weight.mT + bias).argmax(1) for k in (1 - 1e-6, 1 + 1e-6)]
    return all_of(
        exactly(found.nearest, chosen),
        close(found.perturbations, printed, ulps=1e4),
        close(found.distances, lengths.amin(1), ulps=1e4),
        exactly(just[0], answers),
        exactly(just[1], found.nearest),
    )


def bounded_perturbations(w, y, eps, cube):
    """Perturbations in the cube, and by how much they change the labelled score."""
    return eps * cube, y * (eps * cube @ w)


def bounded_weights(w, y, eps, cube):
    """Weights no longer than eps, any perturbation, and the score without its label."""
    short = eps * w / w.norm()
    return eps * cube, eps * cube @ short


@claim("attack.linear_linf")
@lie("a bound on the weights, and the score without the label", printed="002/1", problem=bounded_weights)
@lie("the 2-norm of the weights is the most that a score can lose", dual=2.0)
@lie("robust up to twice the loss of the score", threshold=2.0)
def the_worst_corner_of_a_cube(draw, problem=bounded_perturbations, dual=1.0, threshold=1.0):
    """All corners of the cube and points inside it, for both labels; attacks at scores around the threshold."""
    w, b, eps = unequal_weights(draw, 8), draw.normal(1)[0], 0.3
    cube = torch.cat([corners(8), draw.uniform(500, 8, low=-1.0)])
    lost = eps * torch.linalg.vector_norm(w, ord=dual)
    y = torch.tensor([1.0, -1.0]).double()
    worst, least, places = [], [], []
    for label in y:
        moves, change = problem(w, label, eps, cube)
        worst.append(-eps * steepest_direction(label * w[None])[0])
        least.append(change.min())
        places.append(moves[change.argmin()])
    scores = threshold * lost * torch.tensor([0.2, 0.7, 0.999, 1.001, 1.5]).double().repeat(2)
    labels = y.repeat_interleave(5)
    found = fgsm(two_logits(w, b), points_at(draw, w, b, labels * scores), (labels > 0).long(), eps, bounds=ANYWHERE)
    return all_of(
        close(worst, [-eps * (label * w).sign() for label in y]),
        close(places, worst),
        close(least, [-lost, -lost]),
        exactly(~found.success, scores > threshold * lost),
    )


def conjugate_exponent(p, total):
    """The q with 1/p + 1/q = total."""
    rest = total - 1 / p
    return 1 / rest if rest else math.inf


def same_exponent(p, total):
    return p


@claim("attack.linear_dual_norm")
@lie("the weights' own p-norm", conjugate=same_exponent)
@lie("exponents whose inverses add up to a tenth more", total=1.1)
def the_dual_norm_of_the_weights(draw, conjugate=conjugate_exponent, total=1.0, distance=linear_distance):
    """Six norms: the distance, the perturbation that has this length, and all others that lead to the boundary."""
    w, b, x = unequal_weights(draw, 7), draw.normal(1), draw.normal(40, 7)
    score, aside = x @ w + b, draw.normal(40, 7)
    aside = aside - (aside @ w)[:, None] * w / (w @ w)
    printed, lengths, measured, left, others = [], [], [], [], []
    for p in (1, 1.5, 2, 3, 10, math.inf):
        found = distance(w[None], b, x, p)
        lengths.append(found.distances)
        printed.append(score.abs() / torch.linalg.vector_norm(w, ord=conjugate(p, total)))
        measured.append(perturbation_norms(found.perturbations, p))
        left.append(score + found.perturbations @ w)
        others += [perturbation_norms(found.perturbations + k * aside, p) - found.distances for k in (-0.1, 1e-3, 3)]
    return all_of(
        close(lengths, printed, ulps=1e4),
        close(measured, lengths, ulps=1e4),
        close(left, torch.zeros(6, 40).double(), scale=score.abs().max(), ulps=1e4),
        at_least(torch.stack(others), -1e-12),
    )
