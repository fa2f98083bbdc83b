"""The perceptron algorithm: what it does, where its iterates live, and what it does on data it cannot separate."""

import itertools
import operator

import torch

from lemmata.connectionism.linear_threshold import augment
from lemmata.connectionism.perceptron import Perceptron, textbook_perceptron
from lemmata.connectionism.separability import separate, signed_rows
from lemmata.judge import (
    Domain,
    all_of,
    always,
    at_most,
    claim,
    close,
    count_is,
    everywhere,
    exactly,
    lie,
)

# The corners of the unit square in counting order, and the labels of "exclusive or" and "equal" on them.
SQUARE = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)), dtype=torch.float64)
XOR = (-1, 1, 1, -1)
XNOR = (1, -1, -1, 1)


def whole_numbers(draw, points, features, separable):
    """Labelled lattice points, on which every sum of the algorithm is exact."""

    def make():
        return draw.integers(-4, 5, points, features).double(), draw.signs(points)

    return draw.until(make, lambda data: separate(*data).separable is separable)


def own_label(y, updates):
    """The label of the point that is added."""
    return y[updates]


def one_label(y, updates):
    """One label y for all points."""
    return y[:1].expand(len(updates))


def in_integers(rows, y, epochs):
    """The points that sweeps over these rows, the constant input among them, find misclassified, in their order."""
    points, labels = rows.long().tolist(), y.long().tolist()
    weights, found = [0] * len(points[0]), []
    for _, (index, point) in itertools.product(range(epochs), enumerate(points)):
        if labels[index] * sum(map(operator.mul, weights, point)) <= 0:
            weights = [weight + labels[index] * value for weight, value in zip(weights, point, strict=True)]
            found.append(index)
    return found


@claim("perceptron.algorithm")
@lie("a misclassified point is subtracted", step=-1.0)
@lie("all points are added with the same label", label=one_label)
@lie("a point on the boundary counts as correct", tie=-1.0)
@lie(
    "a run that is stopped early still separates",
    regime="a run needs no more epochs than it needs",
    loose="more epochs than are needed are never made",
    patience=1,
)
def the_perceptron_adds_misclassified_points_until_there_are_none(
    draw, step=1.0, label=own_label, tie=0.0, patience=1000
):
    """Every update of six runs, and of the textbook loop, against the rule in Python's integers; where they end,
    against linear programming."""
    ends, truth, right, steps, rule, activations, updates, textbook, by_hand = ([] for _ in range(9))
    for index, separable in enumerate([True, False, False] * 2):
        points, y = whole_numbers(draw, 8, 2, separable)
        bias = index < 3
        x = points if bias else augment(points)  # absorbed in the data, the bias leaves the same question
        # Whole numbers repeat, which is proof enough: no linear program is asked.
        learnt = Perceptron(bias=bias, max_epochs=patience, certify=False, record=True).fit(x, y)
        path, made = learnt.trajectory_, learnt.updates_
        rows = augment(x) if bias else torch.nn.functional.pad(x, (0, 1))
        ends.append(learnt.status_)
        truth.append("separated" if separable else "not separable")
        right.append(bool((learnt.predict(x) == y).all()) is separable)
        steps.append(path.diff(dim=0).flatten())
        rule.append((step * label(y, made)[:, None] * rows[made]).flatten())
        activations.append(y[made] * (rows[made] * path[:-1]).sum(dim=1))
        updates.append(made.tolist())
        textbook.append(textbook_perceptron(x, y, learnt.epochs_, bias=bias)[2])
        by_hand.append(in_integers(rows, y, learnt.epochs_))
    return all_of(
        exactly(torch.cat(steps), torch.cat(rule)),
        at_most(torch.cat(activations), tie, attained=True),
        exactly([updates, textbook], [by_hand] * 2),
        exactly(ends, truth),
        always(right),
    )


@claim("perceptron.span")
@lie("the start does not matter", outside=1.0)
@lie("every mistake counts twice", dual=2.0)
def the_weights_stay_in_the_span_of_the_data(draw, outside=0.0, dual=1.0):
    """Distances of all iterates to the span of five points in twenty dimensions; the weights from mistake counts."""
    x, y = draw.integers(-3, 4, 5, 20).double(), draw.signs(5)
    basis, inside, direction = torch.linalg.qr(x.T).Q, draw.normal(5) @ x, draw.normal(20)
    perpendicular = torch.nn.functional.normalize(direction - basis @ (basis.T @ direction), dim=0)

    def distances(start, bias=True):
        path = Perceptron(bias=bias, record=True).fit(x, y, weight=start).trajectory_[:, :-1]  # (updates + 1, 20)
        return (path - path @ basis @ basis.T).norm(dim=1)

    start = inside + outside * perpendicular
    strays = torch.cat([distances(w, bias) for w in (start, None) for bias in (True, False)])
    learnt = Perceptron(bias=False).fit(x, y)
    size = float(x.abs().max()) * learnt.mistakes_
    return all_of(
        close(strays, 0.0, scale=size, ulps=200),
        exactly(dual * (learnt.mistake_counts_.double() * y) @ x, learnt.weight_),
        # From a start outside the span that part of it is never touched.
        close(distances(inside + perpendicular), 1.0, scale=size, ulps=200),
    )


@claim("perceptron.xor")
@lie("exclusive or is true where both are equal", labels=XNOR)
@lie("equality is separable although exclusive or is not", separable=15)
@lie("one of the four inequalities is not needed", weight=0.0)
def exclusive_or_is_not_separable(draw, labels=XOR, separable=14, weight=1.0):
    """All 16 labellings of the square's corners: which are separable, why the others are not, and that the perceptron
    errs in every epoch until its weights come back to where they were."""
    y = torch.tensor(labels)
    label = {tuple(map(int, corner)): sign for corner, sign in zip(SQUARE.tolist(), labels, strict=True)}
    answers = {signs: separate(SQUARE, torch.tensor(signs)) for signs in Domain.signs(4).cases()}
    added = torch.tensor([[weight, 1, 1, 1]], dtype=torch.float64) @ signed_rows(SQUARE, y)
    counts = [len(textbook_perceptron(SQUARE, y, epochs)[2]) for epochs in range(1, 9)]
    path = Perceptron(record=True).fit(SQUARE, y).trajectory_
    return all_of(
        exactly(added, torch.zeros(1, 3, dtype=torch.float64)),
        everywhere(Domain.bits(2), lambda corner: (label[corner] > 0) == (corner[0] != corner[1])),
        count_is(Domain.signs(4), lambda signs: answers[signs].separable, separable),
        everywhere(Domain.signs(4), lambda signs: answers[signs].separable != (signs in (XOR, XNOR))),
        everywhere(Domain.signs(4), lambda signs: answers[signs].verify(SQUARE, torch.tensor(signs))),
        always([later > earlier for earlier, later in itertools.pairwise(counts)]),
        always([bool((path[:-1] == path[-1]).all(dim=1).any())]),
    )


def flipped_labels(draw, flips):
    """Points in the plane labelled by a line, of which the first few labels are turned round."""
    x = draw.normal(20, 2)
    labels = torch.where(x @ draw.normal(2) + 0.2 > 0, 1.0, -1.0).double()
    labels[:flips] *= -1
    return x, labels


@claim("perceptron.nonseparable")
@lie("the number of errors never grows from one update to the next", monotone=True)
@lie("a clean epoch comes sooner or later", status="separated")
@lie("late weights err no more often than the best line", good=True)
def on_other_data_the_perceptron_never_settles(draw, monotone=False, status="not separable", good=False):
    """Long runs on data with three flipped labels: no iterate is right everywhere, errors go up and down, and in the
    second half of a run weights still come to err on more than three points, where the best line errs on three."""
    settled, rises, best = [], [], []
    for epochs in (1000, 100, 100, 100, 100):
        x, y = draw.until(lambda: flipped_labels(draw, 3), lambda data: not separate(*data).separable)
        learnt = Perceptron(max_epochs=epochs, record=True).fit(x, y)
        errors = (y[:, None] * (augment(x) @ learnt.trajectory_.T) <= 0).sum(dim=0)  # (updates + 1,)
        settled.append((learnt.status_, learnt.epochs_) == (status, epochs) and bool((errors > 0).all()))
        rises.append(bool((errors.diff() > 0).any()) is not monotone)
        best.append(bool((errors[len(errors) // 2 :] <= 3).all()))
    return all_of(always(settled), always(rises), exactly(all(best), good))
