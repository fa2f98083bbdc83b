"""The linear threshold unit: its formula, its boundary and its margins."""

import itertools

import torch

from lemmata.connectionism.linear_threshold import (
    LinearThresholdUnit,
    augment,
    dataset_margin,
    geometric_margin,
)
from lemmata.connectionism.perceptron import Perceptron
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie


class BoundaryIsPositive(LinearThresholdUnit):
    """sgn(0) = +1: a point on the boundary gets the label +1."""

    def forward(self, x):
        return torch.where(self.activation(x) >= 0, 1.0, -1.0).to(x)


class ThroughTheOrigin(LinearThresholdUnit):
    """The bias is forgotten."""

    def activation(self, x):
        return super().activation(x) - self.bias


@claim("perceptron.unit")
@lie(
    "the answer stays the same for every factor but zero",
    regime="every positive factor keeps the answer",
    loose="every positive factor keeps the answer",
    factor=-2.5,
)
@lie("the bias plays no part in the answer", unit=ThroughTheOrigin)
@lie("a point on the boundary gets the label +1", unit=BoundaryIsPositive)
def positive_scaling_keeps_and_negation_flips_the_answer(draw, unit=LinearThresholdUnit, factor=2.5):
    """Whole numbers, so that some points lie on the boundary: against Python's integers, rescaled, and negated."""
    measured, exact, scaled, negated = [], [], [], []
    x = draw.integers(-2, 3, 40, 3)
    for _ in range(20):
        w, b = draw.integers(-3, 4, 3), int(draw.integers(-3, 4, 1))
        sums = [sum(i * j for i, j in zip(row, w.tolist(), strict=True)) + b for row in x.tolist()]
        exact.append([(total > 0) - (total < 0) for total in sums])
        measured.append(unit(w.double(), b)(x.double()))
        scaled.append(unit(factor * w.double(), factor * b)(x.double()))
        negated.append(unit(-w.double(), -b)(x.double()))
    answers = torch.stack(measured)
    return all_of(
        exactly(answers, torch.tensor(exact)),
        exactly(torch.stack(scaled), answers),
        exactly(torch.stack(negated), -answers),
        exactly(unit(w.double())(x.double()), torch.sign(x.double() @ w.double()), detail="without a bias"),
    )


def append_minus_one(x):
    """(x, -1), which belongs to the unit that subtracts its bias."""
    return torch.nn.functional.pad(x, (0, 1), value=-1.0)


@claim("perceptron.homogeneous")
@lie("the input -1 is appended although the bias is added", extend=append_minus_one)
@lie("the constant input 1 serves the unit that subtracts its bias", sign=-1.0)
def the_bias_is_the_weight_of_a_constant_input(draw, extend=augment, sign=1.0):
    """The activation of random units, and every iterate of the perceptron with and without the bias absorbed."""
    x, w, b = draw.normal(50, 4), draw.normal(4), draw.uniform(1, low=1.0, high=2.0)
    activation = LinearThresholdUnit(w, sign * b).activation(x)
    absorbed = extend(x) @ torch.cat([w, b])
    # Whole numbers make the two runs comparable to the last bit; random labels are not separable, so they run long.
    points, y = draw.integers(-4, 5, 12, 3).double(), draw.signs(12)
    biased = Perceptron(max_epochs=25, certify=False, record=True).fit(points, y)
    without = Perceptron(bias=False, max_epochs=25, certify=False, record=True).fit(extend(points), y)
    return all_of(
        close(activation, absorbed, scale=(extend(x).abs() @ torch.cat([w, b]).abs())),
        # The other convention: a unit that subtracts its bias has the constant input -1.
        close(LinearThresholdUnit(w, -b).activation(x), append_minus_one(x) @ torch.cat([w, b]), ulps=256),
        exactly(without.trajectory_[:, :-1], biased.trajectory_),
        exactly(without.bias_, torch.zeros((), dtype=torch.float64)),
    )


def nearest_on_boundary(w, b, x):
    """The points p closest to x with w p + b = 0, from the equations p + m w = x and w p = -b of the minimum."""
    size = len(w)
    equations = w.new_zeros(size + 1, size + 1)
    equations[:size, :size] = torch.eye(size)
    equations[:size, size] = equations[size, :size] = w
    sides = torch.nn.functional.pad(x, (0, 1), value=-b)
    return torch.linalg.solve(equations, sides.T).T[:, :size]


@claim("perceptron.decision_boundary")
@lie("the signed distance from the origin is +b/‖w‖", sign=1.0)
@lie("the boundary is where the activation differs from zero", relation=torch.ne)
@lie("w itself is the unit normal", power=0.0)
def the_boundary_is_a_hyperplane(draw, sign=-1.0, relation=torch.eq, power=1.0):
    """Nearest points, solved for, against normal, offset and projection; lattice points that lie on it exactly."""
    on_it, off_it, normals, offsets, directions, distances, feet, nearest = ([] for _ in range(8))
    # A unit is its direction and offset, whatever its size: also where squares underflow or overflow.
    for size in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0**-600, 2.0**600):
        # The last weight is 1, so that any whole coordinates are completed to a lattice point on the boundary.
        w = torch.cat([draw.integers(-3, 4, 3), torch.ones(1, dtype=torch.int64)]).double()
        b = float(draw.choice([-3, -2, -1, 1, 2, 3]))
        unit = LinearThresholdUnit(size * w, size * b)
        free = draw.integers(-5, 6, 30, 3).double()
        on = torch.cat([free, -(free @ w[:3] + b)[:, None]], dim=1)
        x = torch.cat([draw.normal(30, 4), torch.zeros(1, 4, dtype=w.dtype)])
        on_it.append(relation(unit.activation(on), 0.0))
        off_it.append(~relation(unit.activation(on + w), 0.0))
        normals.append(unit.normal)
        offsets.append(unit.offset)
        directions.append(w / w.norm() ** power)
        distances.append(sign * b / w.norm())
        feet += [unit.project(x), (unit.offset * unit.normal)[None]]
        nearest += [nearest_on_boundary(w, b, x), nearest_on_boundary(w, b, x[-1:])]
    return all_of(
        always(torch.stack(on_it + off_it)),
        close(torch.stack(normals), torch.stack(directions)),
        close(torch.stack(offsets), torch.stack(distances)),
        close(torch.cat(feet), torch.cat(nearest)),
    )


def functional_margin(weight, bias, x, y):
    """Without the length of the weight: not a distance."""
    return y * (x @ weight + bias)


def unsigned_distance(weight, bias, x, y):
    """The distance alone, which does not see the label."""
    return geometric_margin(weight, bias, x, y).abs()


@claim("perceptron.margin_point")
@lie("the length of the weight is not divided out", margin=functional_margin)
@lie("the margin does not depend on the label", margin=unsigned_distance)
@lie("the margin grows with the weight", power=1.0)
def the_margin_of_a_point_is_its_signed_distance(draw, margin=geometric_margin, power=0.0):
    """Distances found by solving for the nearest point, with the sign of the answer; and rescaled weights."""
    w, b = 3 * draw.unit(4), 0.7
    x, y = draw.normal(1000, 4), draw.signs(1000)
    nearest = nearest_on_boundary(w, b, x)
    correct = LinearThresholdUnit(w, b)(x) == y
    predicted = (x - nearest).norm(dim=1) * torch.where(correct, 1.0, -1.0).double()
    return all_of(
        close(margin(w, b, x, y), predicted),
        # Also by factors with which squares underflow and overflow.
        *(close(margin(c * w, c * b, x, y), c**power * margin(w, b, x, y)) for c in (5.0, 2.0**-600, 2.0**600)),
    )


@claim("perceptron.margin_sign")
@lie("the equivalence holds with sgn(0) = +1", unit=BoundaryIsPositive)
@lie("correct if and only if the margin is not negative", positive=torch.ge)
def correct_if_and_only_if_the_margin_is_positive(draw, unit=LinearThresholdUnit, positive=torch.gt):
    """Every small whole weight, bias, point and label, boundary points included, and random real ones."""
    grid = torch.tensor(list(itertools.product([-1.0, 0.0, 1.0], repeat=2)), dtype=torch.float64)
    x, y = grid.repeat(2, 1), torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat_interleave(9)
    agree, convention = [], []
    for first, second, b in itertools.product(range(-2, 3), repeat=3):
        if (first, second) == (0, 0):
            continue
        w = torch.tensor([first, second], dtype=torch.float64)
        distance = geometric_margin(w, b, x, y)
        agree.append((unit(w, b)(x) == y) == positive(distance, 0))
        # With sgn(0) = +1 the equivalence breaks exactly at activation 0 and label +1.
        broken = (BoundaryIsPositive(w, b)(x) == y) != (distance > 0)
        convention.append(broken == ((LinearThresholdUnit(w, b).activation(x) == 0) & (y == 1)))
    w, points, labels = draw.normal(3), draw.normal(10_000, 3), draw.signs(10_000)
    real = (unit(w, 0.3)(points) == labels) == positive(geometric_margin(w, 0.3, points, labels), 0)
    return all_of(always(torch.stack(agree)), always(torch.stack(convention)), always(real))


def mean_margin(weight, bias, x, y):
    """The average of the points instead of the worst of them."""
    return geometric_margin(weight, bias, x, y).mean()


@claim("perceptron.margin_dataset")
@lie("the margin of a data set is the mean margin of its points", margin=mean_margin)
@lie("the margin of a data set is the median margin of its points", quantile=0.5)
def the_margin_of_a_data_set_is_that_of_its_worst_point(draw, margin=dataset_margin, quantile=0.0):
    """Growing random sets: the quantile of the distances, never larger with more points, positive iff separated."""
    quantiles, growing, separated = [], [], []
    for index in range(20):
        w, b, x = draw.normal(3), 0.4, draw.normal(12, 3)
        y = LinearThresholdUnit(w, b)(x)
        y = y if index % 2 else y * torch.where(draw.uniform(12) < 0.3, -1.0, 1.0).double()
        prefix = torch.stack([margin(w, b, x[:n], y[:n]) for n in range(1, 13)])
        distances = geometric_margin(w, b, x, y)
        quantiles.append((prefix[-1], torch.quantile(distances, quantile)))
        growing.append(prefix.diff().max())
        separated.append(bool(prefix[-1] > 0) == bool((LinearThresholdUnit(w, b)(x) == y).all()))
    measured, predicted = map(torch.stack, zip(*quantiles, strict=True))
    return all_of(close(measured, predicted), at_most(torch.stack(growing), 0.0), always(separated))
