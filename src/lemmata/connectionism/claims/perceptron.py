"""The perceptron algorithm: what it does, where its iterates live, and what it does on data it cannot separate."""

import itertools

import torch

from lemmata.connectionism.linear_threshold import augment, geometric_margin
from lemmata.connectionism.one_versus_rest import OneVersusRest
from lemmata.connectionism.perceptron import Perceptron, textbook_perceptron
from lemmata.connectionism.separability import Separation, separate, signed_rows
from lemmata.judge import (
    Domain,
    Figure,
    Line,
    Points,
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


@claim("perceptron.algorithm")
@lie("a misclassified point is subtracted", step=-1.0)
@lie("all points are added with the same label", label=one_label)
@lie("a point on the boundary counts as correct", tie=-1.0)
@lie(
    "a run that is stopped early still separates",
    regime="a run needs no more sweeps than it needs",
    loose="more sweeps than are needed are never made",
    patience=1,
)
def the_perceptron_separates_or_says_that_it_cannot(draw, step=1.0, label=own_label, tie=0.0, patience=1000):
    """Every update against the rule and against the textbook loop; the status against linear programming."""
    parts, shown = [], None
    for index, separable in enumerate([True, False, False] * 2):
        points, y = whole_numbers(draw, 8, 2, separable)
        bias = index < 3
        x = points if bias else augment(points)  # absorbed in the data, the bias leaves the same question
        # Whole numbers repeat, which is proof enough: no linear program is asked.
        learnt = Perceptron(bias=bias, max_epochs=patience, certify=False, record=True).fit(x, y)
        updates, path = learnt.updates_, learnt.trajectory_
        rows = augment(x) if bias else torch.nn.functional.pad(x, (0, 1))
        weight, b, reference = textbook_perceptron(x, y, learnt.epochs_, bias=bias)
        before = Perceptron(bias=bias, max_epochs=max(learnt.epochs_ - 1, 1), certify=False).fit(x, y).mistakes_
        parts += [
            exactly(learnt.status_, "separated" if separable else "not separable"),
            exactly(before == len(reference), separable, detail="the last sweep is clean iff the data are separable"),
            exactly(path.diff(dim=0), step * label(y, updates)[:, None] * rows[updates]),
            at_most(y[updates] * (rows[updates] * path[:-1]).sum(dim=1), tie, attained=True),
            exactly(updates, reference),
            exactly(torch.cat([learnt.weight_, learnt.bias_[None]]), torch.cat([weight, b[None]])),
            exactly(torch.cat([learnt.weight_, learnt.bias_[None]]), path[-1]),
            exactly(learnt.mistake_counts_, [reference.count(i) for i in range(len(x))]),
            exactly(learnt.mistakes_, len(reference)),
            always([learnt.epochs_ < patience]),
        ]
        if learnt.status_ == "separated":
            parts.append(exactly(learnt.predict(x), y))
            parts.append(exactly(learnt.margin(x, y), geometric_margin(weight, b, x, y).min()))
            shown = shown or picture(learnt.unit_, x, y)
        elif not separable:
            parts.append(always([learnt.certificate_ is not None and learnt.certificate_.verify(x, y)]))
    return all_of(
        *parts,
        blocks_find_the_same_mistakes(draw),
        *(many_mistakes_are_the_same(draw, bias) for bias in (True, False)),
        hurried_runs_say_so(draw),
        awkward_data_are_decided(draw),
        only_proofs_are_accepted(),
        each_class_against_the_rest_is_a_perceptron(draw),
    ).showing(shown)


def each_class_against_the_rest_is_a_perceptron(draw):
    """Two and four classes, with and without bias, sweep by sweep, against the textbook loop on the signs of each."""
    parts = []
    for classes, bias in ((2, True), (4, True), (4, False)):
        x, y = draw.integers(-9, 10, 40, 3).double(), draw.integers(0, classes, 40)
        units = [1] if classes == 2 else range(classes)
        signs = [torch.where(y == unit, 1.0, -1.0).double() for unit in units]
        textbook = [textbook_perceptron(x, sign, 3, bias) for sign in signs]
        learnt = OneVersusRest(3, classes) if bias else OneVersusRest(3, classes, bias=False)
        updates = [learnt.sweep(x, y) for _ in range(3)]
        weight, b = torch.stack([run[0] for run in textbook]), torch.stack([run[1] for run in textbook])
        activation = x @ weight.T + b
        wrong = torch.stack(signs, 1) * activation <= 0
        by_class = torch.cat([-activation, activation], 1) if classes == 2 else activation
        parts += [
            exactly(learnt.weight, weight),
            exactly(learnt.bias, b),
            exactly(OneVersusRest(3, classes, bias).fit(x, y, max_epochs=3).weight, weight),
            exactly(sum(updates), sum(len(run[2]) for run in textbook)),
            exactly(learnt.mistakes(x, y), int(wrong.any(1).sum())),
            exactly(learnt.decision_function(x), by_class),
            exactly(learnt.predict(x), by_class.argmax(1)),
        ]
    corners = torch.tensor([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    sorted_out = OneVersusRest(2, 3).fit(corners, torch.arange(3))
    copied = OneVersusRest(2, 3)
    copied.load_state_dict(sorted_out.state_dict())
    return all_of(
        *parts,
        exactly(sorted_out.mistakes(corners, torch.arange(3)), 0),
        exactly(copied.predict(corners), torch.arange(3)),
    )


def blocks_find_the_same_mistakes(draw):
    """Enough points for several blocks, with mistakes close together at first and far apart later."""
    x = draw.integers(-9, 10, 400, 4).double()
    y = torch.where(x @ torch.tensor([3.0, -2.0, 1.0, 2.0], dtype=x.dtype) > 0, 1.0, -1.0)
    fast = Perceptron(max_epochs=4, certify=False).fit(x, y)
    return exactly(fast.updates_, textbook_perceptron(x, y, epochs=4)[2])


def many_mistakes_are_the_same(draw, bias):
    """Labels that nothing explains: after hundreds of mistakes compiled code goes on in the middle of a sweep."""
    x, y = draw.integers(-9, 10, 400, 19).double(), draw.signs(400)
    fast = Perceptron(bias=bias, max_epochs=5, certify=False).fit(x, y)
    weight, b, updates = textbook_perceptron(x, y, epochs=5, bias=bias)
    learnt = torch.cat([fast.weight_, fast.bias_[None]])
    return all_of(exactly(fast.updates_, updates), exactly(learnt, torch.cat([weight, b[None]])))


def hurried_runs_say_so(draw):
    """Real numbers never repeat, so the status after too few sweeps rests on the linear program alone."""
    x, noise = draw.normal(60, 2), draw.signs(60)
    planted = torch.where(x[:, 0] > 0.1 * x[:, 1], 1.0, -1.0).double()
    scales = torch.tensor([1e6, 1e-6], dtype=x.dtype)
    mixed, clear = (Perceptron(max_epochs=1).fit(x * scales, y) for y in (noise, planted))
    unasked = Perceptron(max_epochs=2, certify=False).fit(x, noise)
    excluded, witness = mixed.certificate_, clear.certificate_
    return all_of(
        exactly((mixed.status_, clear.status_, unasked.status_), ("not separable", "epoch limit", "epoch limit")),
        exactly((mixed.epochs_, clear.epochs_, unasked.epochs_), (1, 1, 2)),
        always([excluded is not None and not excluded.separable and excluded.verify(x * scales, noise)]),
        always([witness is not None and witness.separable and witness.verify(x * scales, planted)]),
        always([unasked.certificate_ is None]),
        always([not hasattr(unasked, "trajectory_")]),
    )


def awkward_data_are_decided(draw):
    """Points and features of very different sizes, a feature and a point that are zero: the answer is always proved."""
    x, w = draw.normal(12, 3), torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    clear = torch.where(x @ w > 0, 1.0, -1.0).double()
    x[:6] = x[6:] * torch.tensor([1e3, 1e-3, 1.0, 1.0, 1e2, 1e-2])[:, None]  # on the same rays, so labels must agree
    clear[:6] = clear[6:]
    mixed = clear * torch.where(torch.arange(12) < 6, -1.0, 1.0)
    sizes, dead = torch.tensor([1e9, 1e-9, 1.0]).double(), torch.tensor([1.0, 1.0, 0.0]).double()
    far = 10.0 ** draw.uniform(12, 1, low=-9.0, high=9.0)
    cases = [(x, clear, True), (x, mixed, False), (x * sizes, clear, True), (x * sizes, mixed, False)]
    cases += [(x * far, clear, True), (x * far, mixed, False), (x * dead, mixed, False)]
    cases += [(torch.cat([x, 0 * x[:1]]), torch.cat([clear, clear[:1]]), False)]  # no unit without bias decides at 0
    answers = [separate(points, y, bias=False) for points, y, _ in cases]
    proved = [found.verify(points, y) for found, (points, y, _) in zip(answers, cases, strict=True)]
    central = [found.bias is None or bool(found.bias == 0) for found in answers]
    right = exactly([found.separable for found in answers], [truth for _, _, truth in cases])
    return all_of(right, always(proved), always(central))


def picture(unit, x, y):
    """The two classes in the plane and the line between them."""
    along = torch.stack([-unit.normal[1], unit.normal[0]])
    ends = unit.offset * unit.normal + torch.tensor([[-6.0], [6.0]], dtype=x.dtype) * along
    classes = [Points(x[y == sign, 0], x[y == sign, 1], name) for sign, name in ((1, "label +1"), (-1, "label −1"))]
    return Figure("A data set and the line learnt", "x₁", "x₂", [*classes, Line(ends[:, 0], ends[:, 1], "boundary")])


@claim("perceptron.span")
@lie("the start does not matter", outside=1.0)
@lie("every mistake counts twice", dual=2.0)
def the_weights_stay_in_the_span_of_the_data(draw, outside=0.0, dual=1.0):
    """Distances of all iterates to the span of five points in twenty dimensions; the weights from mistake counts."""
    x, y = draw.integers(-3, 4, 5, 20).double(), draw.signs(5)
    inside, basis = draw.normal(5) @ x, torch.linalg.qr(x.T).Q
    direction = draw.normal(20)
    perpendicular = torch.nn.functional.normalize(direction - basis @ (basis.T @ direction), dim=0)
    start = inside + outside * perpendicular
    runs = [Perceptron(bias=bias, record=True).fit(x, y, weight=w) for w in (start, None) for bias in (True, False)]
    parts = []
    for learnt in runs:
        path = learnt.trajectory_[:, :-1]
        parts.append(close(path - path @ basis @ basis.T, 0.0, scale=path.abs().max(), ulps=200))
        parts.append(exactly(learnt.status_, "separated"))
    counts = runs[-1].mistake_counts_.double()
    parts.append(exactly(dual * (counts * y) @ x, runs[-1].weight_))
    # From a start outside the span that part of it is never touched.
    stray = Perceptron(record=True).fit(x, y, weight=inside + perpendicular).trajectory_[:, :-1]
    parts.append(close((stray - stray @ basis @ basis.T).norm(dim=1), 1.0, scale=stray.abs().max(), ulps=200))
    return all_of(*parts)


def gives_up(signs):
    """What the perceptron says of a labelling of the square, without a certificate asked for."""
    return Perceptron(certify=False).fit(SQUARE, torch.tensor(signs)).status_


@claim("perceptron.xor")
@lie("exclusive or is true where both are equal", labels=XNOR)
@lie("equality is separable although exclusive or is not", separable=15)
@lie("one corner needs no multiplier", weight=0.0)
def exclusive_or_is_not_separable(draw, labels=XOR, separable=14, weight=1.0):
    """All 16 labellings of the square's corners: which are separable, the proofs, and what the perceptron says."""
    y = torch.tensor(labels)
    label = {tuple(map(int, corner)): sign for corner, sign in zip(SQUARE.tolist(), labels, strict=True)}
    every = Domain.signs(4)
    answers = {signs: separate(SQUARE, torch.tensor(signs)) for signs in every.cases()}
    proof = torch.tensor([weight, 1, 1, 1], dtype=torch.float64)
    proof = Separation(False, multipliers=proof / proof.sum())
    return all_of(
        everywhere(Domain.bits(2), lambda corner: (label[corner] > 0) == (corner[0] != corner[1])),
        count_is(every, lambda signs: answers[signs].separable, separable),
        everywhere(every, lambda signs: answers[signs].separable != (signs in (XOR, XNOR))),
        everywhere(every, lambda signs: (gives_up(signs) == "not separable") != answers[signs].separable),
        everywhere(every, lambda signs: answers[signs].verify(SQUARE, torch.tensor(signs))),
        everywhere(Domain.listed(XOR, XNOR), lambda signs: proof.verify(SQUARE, torch.tensor(signs))),
        exactly(signed_rows(SQUARE, torch.tensor(XOR)).sum(dim=0), torch.zeros(3, dtype=torch.float64)),
        never_a_clean_sweep(y),
    )


def never_a_clean_sweep(y):
    """The textbook loop errs in every sweep, and its weights come back to where they were: so it goes on for ever."""
    learnt = Perceptron(record=True).fit(SQUARE, y)
    counts = [len(textbook_perceptron(SQUARE, y, sweeps)[2]) for sweeps in range(1, 9)]
    returned = (learnt.trajectory_[:-1] == learnt.trajectory_[-1]).all(dim=1)
    return all_of(
        always([later > earlier for earlier, later in itertools.pairwise(counts)]),
        always([bool(returned.any()), learnt.epochs_ < 8]),
    )


def only_proofs_are_accepted():
    """An answer fails on every labelling but its own, and so do planes and multipliers that prove nothing."""
    every = [torch.tensor(signs) for signs in itertools.product([-1, 1], repeat=4)]
    answers = [separate(SQUARE, signs) for signs in every]
    planes = [(s, found) for s, found in zip(every, answers, strict=True) if found.separable]
    swapped = [found.verify(SQUARE, other) for s, found in planes for other in every if not s.equal(other)]
    y = torch.tensor(XOR)
    touching = Separation(True, torch.tensor([1.0, 1.0]), torch.tensor(-1.0))
    quarter = torch.full((4,), 0.25, dtype=torch.float64)
    nudge = torch.tensor([1.0, 0.0, 0.0, -1.0], dtype=torch.float64)
    crossed = torch.tensor([0.5, 0.5, 0.5, -0.5], dtype=torch.float64)  # cancels the points of `odd`, with a wrong sign
    proof, bent, slight, doubled, vacuous, negative = (
        Separation(False, multipliers=m)
        for m in (quarter, quarter + 1e-3 * nudge, quarter + 1e-9 * nudge, 2 * quarter, 1e-9 * quarter, crossed)
    )
    # The activation 8e-10 is positive, but within the rounding of the terms of a million that make it.
    doubtful = Separation(True, torch.tensor([1e6 + 8e-10, 0.0], dtype=torch.float64), torch.tensor(-1e6))
    corner, one, uneven = SQUARE[2:3], torch.tensor([1]), torch.tensor([1.0, 0.7], dtype=torch.float64)
    odd = torch.tensor([-1, 1, 1, 1])
    # On whole numbers a slight error is mended: a quarter is the only fraction near by that is not unwieldy.
    accepted = [proof.verify(data, y) for data in (SQUARE, 0.1 * SQUARE, uneven * SQUARE)] + [slight.verify(SQUARE, -y)]
    rejected = [
        *swapped,
        touching.verify(SQUARE, odd),
        doubtful.verify(corner, one),
        *(each.verify(SQUARE, y) for each in (bent, doubled)),
        *(each.verify(1e-6 * SQUARE, y) for each in (bent, slight, doubled)),
        *(each.verify(SQUARE, odd) for each in (proof, vacuous, negative)),
        Separation(False, multipliers=quarter, biased=False).verify(SQUARE, odd),
        Separation(False, multipliers=torch.full((3,), 1 / 3)).verify(SQUARE, y),
        Separation(True, multipliers=quarter).verify(SQUARE, y),
        Separation(False).verify(SQUARE, y),
        Separation(True, torch.ones(2)).verify(SQUARE, odd),
        Separation(True, bias=torch.tensor(1.0)).verify(SQUARE, odd),
        Separation(True, torch.ones(3), torch.tensor(-0.5)).verify(SQUARE, odd),
        Separation(False, torch.ones(2), torch.tensor(-0.5)).verify(SQUARE, odd),
    ]
    return always([*accepted, *(not verdict for verdict in rejected)])


def flipped_labels(draw, flips):
    """Points in the plane labelled by a line, of which the first few labels are turned round."""
    x = draw.normal(20, 2)
    labels = torch.where(x @ draw.normal(2) + 0.2 > 0, 1.0, -1.0).double()
    labels[:flips] *= -1
    return x, labels


@claim("perceptron.nonseparable")
@lie("the number of errors never grows from one update to the next", monotone=True)
@lie("a clean sweep comes sooner or later", status="separated")
@lie("the last weights err no more often than the best line", good=True)
def on_other_data_the_perceptron_never_settles(draw, monotone=False, status="not separable", good=False):
    """Long runs on data with three flipped labels: no iterate is right everywhere, errors go up and down, and the last
    weights err on more than three points."""
    settled, rises, best = [], [], []
    short = Perceptron(max_epochs=100, record=True)
    for sweeps, learner in [(1000, Perceptron(record=True)), (100, short), (100, short), (100, short), (100, short)]:
        x, y = draw.until(lambda: flipped_labels(draw, 3), lambda data: not separate(*data).separable)
        learnt = learner.fit(x, y)
        errors = (y[:, None] * (augment(x) @ learnt.trajectory_.T) <= 0).sum(dim=0)
        settled.append((learnt.status_, learnt.epochs_) == (status, sweeps) and bool((errors > 0).all()))
        rises.append(bool((errors.diff() > 0).any()) is not monotone)
        best.append(int(errors[-1]) <= 3)
    times = list(range(len(errors)))
    marks = [
        Line(times, errors, "errors of the perceptron"),
        Line([0, times[-1]], [3, 3], "errors of the planted line"),
    ]
    shown = Figure("Errors on data that no line separates", "update", "points on the wrong side", marks)
    return all_of(always(settled), always(rises), exactly(all(best), good)).showing(shown)
