"""Drivers of what is proved about points and labels: general position, separability, version spaces, perceptrons."""

from itertools import combinations

import mpmath
import torch
from scipy.optimize import linprog
from tests.certificates import truths
from tests.certificates.instances import Source
from tests.certificates.registry import Certificate, Refused, demand

from lemmata.connectionism.cover import count_dichotomies, dichotomies, in_general_position, separable_labellings
from lemmata.connectionism.max_margin import MaximumMarginClassifier
from lemmata.connectionism.perceptron import Perceptron
from lemmata.connectionism.separability import Separation, separate
from lemmata.connectionism.version_space import VersionSpace


def draw_points(source: Source) -> tuple:
    return source.points(source.whole(1, 5), source.whole(1, 3)), source.chance(0.5)


def draw_labelled(source: Source) -> tuple:
    """Nearly equal points of opposite classes are the hard ones; labels are random, so ties are on both sides."""
    x, bias = source.points(source.whole(1, 6), source.whole(1, 3)), source.chance(0.7)
    return x, source.labels(len(x)), bias


def plane_of(x, y, bias: bool):
    return truths.separating_plane(truths.signed(truths.exact(x), y.tolist(), bias))


def separates(weight, intercept, x, y, bias: bool) -> bool:
    """Whether a stored unit gives every stored point its label, exactly."""
    unit = [*truths.exact(weight), *([truths.exact(intercept)] if bias else [])]
    return all(truths.dot(row, unit) > 0 for row in truths.signed(truths.exact(x), y.tolist(), bias))


# ---------------------------------------------------------------- general position


def judge_position(found: bool, x, bias: bool) -> None:
    rows = [[*row, *([truths.ONE] if bias else [])] for row in truths.exact(x)]
    demand(found == truths.in_general_position(rows), f"in general position: {found}")


def position_in_floats(x, bias: bool) -> bool:
    rows = torch.nn.functional.pad(x.double(), (0, 1), value=1.0) if bias else x.double()
    size = min(rows.shape)
    subsets = combinations(range(len(rows)), size)
    return all(int(torch.linalg.matrix_rank(rows[list(subset)])) == size for subset in subsets)


position = Certificate(
    "in_general_position", in_general_position, draw_points, judge_position, {"singular values": position_in_floats}
)


# ---------------------------------------------------------------- separability


def judge_separation(found, x, y, bias: bool) -> None:
    separable = plane_of(x, y, bias) is not None
    demand(found.separable == separable, f"separable: {found.separable}")
    if found.exact is not None and found.separable:  # where no stored numbers would do
        rows = truths.signed(truths.exact(x), y.tolist(), bias)
        demand(all(truths.dot(row, found.exact) > 0 for row in rows), "the exact plane does not separate")
    elif found.weight is not None and found.separable:
        demand(separates(found.weight, found.bias, x, y, bias), "the plane does not separate")


def by_floats(x, y, bias: bool) -> Separation:
    """A linear program in double precision, believed if its optimum exceeds a tolerance."""
    rows = y[:, None] * (torch.nn.functional.pad(x.double(), (0, 1), value=1.0) if bias else x.double())
    scaled = (rows / rows.abs().amax().clamp(min=1e-300)).numpy()
    columns = torch.cat([-torch.from_numpy(scaled), torch.ones(len(rows), 1)], dim=1).numpy()
    bounds = [(-1, 1)] * rows.shape[1] + [(None, None)]
    best = linprog([0.0] * rows.shape[1] + [-1.0], columns, [0.0] * len(rows), bounds=bounds)
    return Separation(best.x is not None and best.x[-1] > 1e-9)


separation = Certificate(
    "separate", separate, draw_labelled, judge_separation,
    {"a linear program in floats": by_floats, "one class": lambda x, y, bias: Separation(bool((y == y[0]).all()))},
)  # fmt: skip


def draw_claim(source: Source) -> tuple:
    """A separation that may be true or false: a plane that almost separates, or multipliers that almost cancel."""
    x, y, bias = draw_labelled(source)
    inputs = x.shape[1] + bias
    if source.chance(0.5):
        plane = plane_of(x, y, bias)
        values = [float(source.normal()) for _ in range(inputs)]
        if plane is not None and source.chance(0.9):
            size = max(map(abs, plane))
            values = [float(value / size) for value in plane]
            if source.chance(0.5):
                values[source.whole(0, inputs - 1)] += source.sign() * 10.0 ** -source.whole(6, 17)
        found = torch.tensor(values, dtype=torch.float64)
        weight, intercept = (found[:-1], found[-1]) if bias else (found, found.new_zeros(()))
        return Separation(True, weight, intercept, biased=bias), x, y
    counts = torch.tensor([float(source.whole(0, 2)) for _ in range(len(x))], dtype=torch.float64)
    if source.chance(0.5):  # one of each class: it cancels only where the two are equal
        counts = torch.zeros_like(counts)
        for label in (-1, 1):
            counts[(y == label).nonzero().flatten()[:1]] = 1.0
    if source.chance(0.3):
        counts[source.whole(0, len(x) - 1)] += source.one_of((1e-9, -1e-9, 1e-15))
    multipliers = counts / counts.sum() if float(counts.sum()) > 0 else counts
    return Separation(False, multipliers=multipliers, biased=bias), x, y


def judge_verified(verified: bool, claim, x, y) -> None:
    if not verified:
        raise Refused
    if claim.separable:
        demand(separates(claim.weight, claim.bias, x, y, claim.biased), "verified, but the plane does not separate")
    else:
        demand(plane_of(x, y, claim.biased) is None, "verified, but the points are separable")


def verified_in_floats(claim, x, y) -> bool:
    rows = y[:, None] * (torch.nn.functional.pad(x.double(), (0, 1), value=1.0) if claim.biased else x.double())
    if claim.separable:
        weight = torch.cat([claim.weight, claim.bias[None]]) if claim.biased else claim.weight
        return bool((rows @ weight >= -1e-12 * rows.abs().max()).all())
    return bool(((claim.multipliers @ rows).abs() <= 1e-12 * rows.abs().max()).all())


verification = Certificate(
    "Separation.verify", lambda claim, x, y: claim.verify(x, y), draw_claim, judge_verified,
    {"a tolerance": verified_in_floats},
)  # fmt: skip


def draw_few(source: Source) -> tuple:
    return source.points(source.whole(1, 4), source.whole(1, 2)), source.chance(0.5)


def judge_labellings(found, x, bias: bool) -> None:
    listed, count = found
    truth = truths.separable_labellings(truths.exact(x), bias)
    demand(count == len(truth), f"{count} dichotomies, truth {len(truth)}")
    demand(sorted(map(tuple, listed.int().tolist())) == sorted(truth), "other labellings")


def labellings(x, bias: bool):
    return separable_labellings(x, bias), count_dichotomies(x, bias)


def labellings_in_floats(x, bias: bool):
    every = torch.cartesian_prod(*[torch.tensor([-1, 1])] * len(x)).reshape(-1, len(x))
    kept = [y for y in every if by_floats(x, y, bias).separable]
    return torch.stack(kept) if kept else every[:0], len(kept)


cover = Certificate(
    "separable_labellings", labellings, draw_few, judge_labellings,
    {"linear programs in floats": labellings_in_floats}, share=0.3,
)  # fmt: skip


def judge_count(found: int, points: int, dimensions: int, bias: bool) -> None:
    counts = {(1, n): 2 for n in range(1, dimensions + 2)}
    for s in range(2, points + 1):  # Cover's recurrence
        counts |= {(s, n): counts[s - 1, n] + counts.get((s - 1, n - 1), 0) for n in range(1, dimensions + 2)}
    truth = counts.get((points, dimensions + bias), 0)
    demand(found == truth, f"{found}, truth {truth}")


counting = Certificate(
    "dichotomies", dichotomies,
    lambda source: (source.whole(1, 80), source.whole(0, 40), source.chance(0.5)), judge_count,
    {"floats": lambda points, dimensions, bias: int(float(dichotomies(points, dimensions, bias)))},
)  # fmt: skip


# ---------------------------------------------------------------- version spaces


def draw_space(source: Source) -> tuple:
    bias = source.chance(0.5)
    x = source.points(source.whole(1, 5), source.whole(2, 3) - bias)
    y = source.labels(len(x))
    plane = plane_of(x, y, bias)
    inputs = x.shape[1] + bias
    values = [source.normal() for _ in range(inputs)]
    if plane is not None:
        size = max(map(abs, plane))
        values = [float(value / size) for value in plane]
    unit = torch.tensor(values, dtype=source.one_of((torch.float64, torch.float32)))
    weight, intercept = (unit[:-1], unit[-1]) if bias else (unit, unit.new_zeros(()))
    return x, y, bias, weight, intercept


def space(x, y, bias: bool, weight, intercept):
    found = VersionSpace(x, y, bias)
    return found.is_empty, bool(found.contains(weight, intercept)), found.fraction()


def judge_space(found, x, y, bias: bool, weight, intercept) -> float:
    empty, inside, fraction = found
    truth = truths.fraction_of_directions(truths.signed(truths.exact(x), y.tolist(), bias))
    demand(empty == (plane_of(x, y, bias) is None), f"empty: {empty}")
    demand(inside == separates(weight, intercept, x, y, bias), f"contains: {inside}")
    error = abs(truths.high(fraction) - truth)
    demand(error <= 1e-14, f"fraction {fraction}, truth {mpmath.nstr(truth, 20)}")
    return float(error / truth) if truth > 1e-300 else 0.0


def space_in_floats(x, y, bias: bool, weight, intercept):
    wide = x.to(weight.dtype)
    activation = y * (wide @ weight + (intercept if bias else 0.0))
    empty = not by_floats(x, y, bias).separable
    return empty, bool((activation > 0).all()), 0.0 if empty else space(x, y, bias, weight, intercept)[2]


def hollow(*given):
    empty, inside, fraction = space(*given)
    return empty, inside, fraction * (1 - 1e-9)


version_space = Certificate(
    "VersionSpace", space, draw_space, judge_space,
    {"floats": space_in_floats, "digits lost": hollow}, share=0.5,
)  # fmt: skip


# ---------------------------------------------------------------- classifiers


def widest_street(x, y, bias: bool):
    """The fitted classifier, or None where it says that no plane separates."""
    try:
        return MaximumMarginClassifier(bias).fit(x, y)
    except ValueError as error:
        if "not linearly separable" in str(error):
            return None
        raise


def judge_street(found, x, y, bias: bool) -> None:
    demand((found is not None) == (plane_of(x, y, bias) is not None), f"separable: {found is not None}")


street = Certificate(
    "MaximumMarginClassifier", widest_street, draw_labelled, judge_street,
    {"a linear program in floats": lambda x, y, bias: True if by_floats(x, y, bias).separable else None}, share=0.5,
)  # fmt: skip


def draw_started(source: Source) -> tuple:
    x, y, bias = draw_labelled(source)
    start = None
    if source.chance(0.5) and x.is_floating_point():  # a start at which products cancel
        start = torch.tensor([source.one_of((1.0, -1.0, 1e8)) for _ in range(x.shape[1])], dtype=x.dtype)
        if x.shape[1] == 3 and source.chance(0.5):
            big = source.one_of((2.0**24, 1e16, 3e7))
            x = torch.tensor([[big, -big, source.one_of((0.25, -0.25, 1.5))] for _ in x], dtype=x.dtype)
            start = torch.ones_like(start)
    return x, y, bias, start


def perceptron(x, y, bias: bool, start):
    return Perceptron(bias, max_epochs=50).fit(x, y, weight=start)


def judge_perceptron(model, x, y, bias: bool, start) -> None:
    if model.status_ == "separated":
        demand(separates(model.weight_, model.bias_, x, y, bias), "separated, but its own unit is wrong")
    elif model.status_ == "not separable":
        demand(plane_of(x, y, bias) is None, "not separable, but it is")
    if model.certificate_ is not None:
        judge_separation(model.certificate_, x, y, bias)
    if model.status_ not in ("separated", "not separable"):
        raise Refused


def believed(x, y, bias: bool, start):
    """A sweep in the dtype of the data that finds no mistake, or a linear program in floats."""
    model = perceptron(x, y, bias, start)
    weight, intercept = model.weight_, model.bias_
    clean = bool((y * (x.to(weight) @ weight + intercept) >= 0).all())
    model.status_, model.certificate_ = ("separated" if clean else "not separable"), None
    return model


learner = Certificate(
    "Perceptron", perceptron, draw_started, judge_perceptron, {"no proof": believed}, share=0.5
)  # fmt: skip

CERTIFICATES = (
    position, separation, verification, cover, counting, version_space, street, learner,
)  # fmt: skip
