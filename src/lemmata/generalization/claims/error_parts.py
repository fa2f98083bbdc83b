"""The parts of the error of a learnt function, on problems where every one of them is a number."""

import itertools

import numpy
import torch
from scipy.optimize import linprog

from lemmata.generalization.error_parts import ErrorParts, decompose, lipschitz_deviation
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, slope_is


def labelled_inputs(draw, inputs=5):
    """All classifiers of five inputs, the outcomes (input, label) with their probabilities, and their losses."""
    classifiers = torch.tensor(list(itertools.product([0, 1], repeat=inputs)))  # (classifiers, inputs)
    probability = 0.05 + draw.uniform(inputs, 2)
    probability = probability / probability.sum()
    losses = (classifiers[:, :, None] != torch.tensor([0, 1])).double()  # (classifiers, inputs, labels)
    return classifiers, probability, losses.flatten(1)


def excess(parts):
    """Risk above the least risk of all functions."""
    return parts.population


def empirical_excess(parts):
    """The same with the risk on the sample."""
    return parts.empirical_risk - parts.least_risk


def excess_in_class(parts):
    """Risk above the least risk in the class that was searched."""
    return parts.risk - parts.least_risk_in_class


@claim("error.population")
@lie("the risk on the sample in place of the true one", measure=empirical_excess)
@lie("the least risk of the class in place of all functions", measure=excess_in_class)
def risk_above_the_least(draw, measure=excess):
    """Every classifier of five inputs, against what disagreeing with the Bayes classifier costs at each input."""
    found, cost, of_bayes = [], [], []
    for _ in range(20):
        classifiers, probability, losses = labelled_inputs(draw)
        bayes = (probability[:, 1] > probability[:, 0]).long()
        price = (probability[:, 1] - probability[:, 0]).abs()
        wrong = (classifiers != bayes).double()
        members = wrong.sum(1).argsort(descending=True)[:20]  # a class without the Bayes classifier
        sample = draw.integers(0, 10, 6)
        parts = [decompose(losses, probability.flatten(), sample, members, row) for row in range(len(losses))]
        values = torch.stack([measure(part) for part in parts])
        found.append(values)
        cost.append(wrong @ price)
        of_bayes.append(values[wrong.sum(1) == 0])
    return all_of(
        close(torch.stack(found), torch.stack(cost), scale=1.0),
        at_least(torch.stack(found), 0.0, ulps=1e3),
        close(torch.cat(of_bayes), torch.zeros(20).double(), scale=1.0),
    )


def far_in_both_ways():
    """Two functions that look alike on two examples; one gains a quarter by them, and the other loses as much."""
    losses = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    probability = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
    return decompose(losses, probability, torch.tensor([[0, 2]]), torch.arange(2), torch.tensor([0]))


@claim("error.decomposition")
@lie("the largest deviation counted once", factor=1.0)
@lie("without the approximation error", approximation=0.0)
@lie("without the optimisation error", optimisation=0.0)
def three_parts_bound_the_error(draw, factor=2.0, approximation=1.0, optimisation=1.0):
    """10,000 samples of 50 finite problems with whatever function was learnt; four terms that are equal to it."""
    errors, bounds, terms = [], [], []
    problems: list[ErrorParts] = [far_in_both_ways()]
    for _ in range(50):
        losses, probability = draw.integers(0, 2, 20, 6).double(), 0.05 + draw.uniform(6)
        probability = probability / probability.sum()
        members = draw.permutation(20)[:8]
        samples = draw.integers(0, 6, 200, 5)
        learnt = members[draw.integers(0, 8, 200)]
        problems.append(decompose(losses, probability, samples, members, learnt))
    for parts in problems:
        errors.append(parts.population)
        rest = optimisation * parts.optimisation + approximation * parts.approximation
        bounds.append(rest + factor * parts.largest_gap)
        terms.append(parts.gap + parts.least_empirical_risk - parts.least_risk_in_class + rest)
    parts = problems[1]
    return all_of(
        at_most(torch.cat(errors), torch.cat(bounds), attained=True, ulps=1e3),
        close(torch.cat(terms), torch.cat(errors), scale=1.0),
        close(parts.bound, parts.optimisation + parts.statistical + parts.approximation, scale=1.0),
    )


def by_empirical_risk(parts):
    """Empirical risk above the least in the class."""
    return parts.optimisation


def by_true_risk(parts):
    """True risk above that of the least squares, which have the least empirical risk."""
    return parts.risk - parts.risk[-1]


@claim("error.optimisation")
@lie("by the true risk", measure=by_true_risk)
@lie("half of it, as the squares have it", factor=0.5)
def what_the_optimiser_leaves(draw, measure=by_empirical_risk, factor=1.0):
    """Gradient descent on least squares of 12 examples out of 60, against a quadratic form around their solution."""
    x, noise = draw.normal(60, 4), draw.normal(60)
    y = x @ draw.normal(4) + noise
    sample = draw.permutation(60)[:12]
    seen, hessian = x[sample], x[sample].mT @ x[sample] / 12
    best = torch.linalg.lstsq(seen, y[sample][:, None], driver="gelsd").solution[:, 0]
    lr, w, path = float(1 / torch.linalg.eigvalsh(hessian)[-1]), torch.zeros(4).double(), []
    for _ in range(30):
        path.append(w)
        w = w - lr * (hessian @ (w - best))
    functions = torch.stack([*path, best])
    losses = (functions @ x.T - y) ** 2  # (functions, outcomes)
    every = torch.arange(len(functions))
    uniform = torch.full((60,), 1 / 60, dtype=torch.float64)
    parts = decompose(losses, uniform, sample.expand(len(every), -1), every, every)
    left, away = measure(parts), functions - best
    scale = float(losses.max())
    return all_of(
        close(left, factor * ((away @ hessian) * away).sum(1), ulps=1e4, scale=scale),
        at_least(left, -1e-12 * scale),
        at_most(left.diff(), 1e-12 * scale),
    )


def class_above_all(parts):
    """The least risk of the class above that of all functions."""
    return parts.approximation


def sample_above_all(parts):
    """The least empirical risk of the class above the least risk of all functions."""
    return parts.least_empirical_risk - parts.least_risk


@claim("error.approximation")
@lie("by the empirical risk", measure=sample_above_all)
@lie(
    "it grows with the class",
    regime="a small factor of the same sign keeps it",
    loose="a larger factor keeps the sign",
    sign=-1.0,
)
@lie("it vanishes one degree before the target is contained", least=0)
def what_the_class_cannot_do(draw, measure=class_above_all, sign=1.0, least=1):
    """Best polynomials of each degree for one of degree five, against the squares of its Legendre coefficients."""
    nodes, weights = (torch.as_tensor(part) for part in numpy.polynomial.legendre.leggauss(12))
    legendre = torch.as_tensor(numpy.polynomial.legendre.legvander(nodes.numpy(), 8))  # (nodes, degrees)
    coefficients = draw.signs(6) * draw.uniform(6, low=0.5, high=2.0)
    coefficients = torch.cat([coefficients, torch.zeros(3).double()])
    best = torch.stack([legendre[:, : k + 1] @ coefficients[: k + 1] for k in range(9)])
    losses = (best - legendre @ coefficients) ** 2  # (degrees, nodes)
    sample = draw.integers(0, 12, 8)
    errors = torch.stack([
        measure(decompose(losses, weights / 2, sample, torch.arange(k + 1), k)) for k in range(9)
    ])  # fmt: skip
    squares = coefficients**2 / (2 * torch.arange(9).double() + 1)
    exact = torch.stack([squares[k + 1 :].sum() for k in range(9)])
    return all_of(
        close(errors, exact, ulps=1e3, scale=float(losses.max())),
        at_most(sign * errors.diff(), 0.0, ulps=1e3),
        always([bool((errors > 1e-6).sum() == 4 + least), bool((errors[5:] < 1e-9).all())]),
    )


def by_dimension(dimensions):
    """n^(-1/d), and n^(-1/2) on the line."""
    return -1 / max(dimensions, 2)


def in_any_dimension(dimensions):
    """n^(-1/2)."""
    return -0.5


def supremum(x, y):
    """The largest difference of the means of one 1-Lipschitz function, by a linear program over its values."""
    points = torch.cat([x, y])
    distance = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").numpy()
    first, second = (numpy.array(side) for side in zip(*itertools.permutations(range(len(points)), 2), strict=True))
    rows = numpy.zeros((len(first), len(points)))
    rows[numpy.arange(len(first)), first], rows[numpy.arange(len(first)), second] = 1.0, -1.0
    means = numpy.repeat([1 / len(x), -1 / len(y)], [len(x), len(y)])
    free = [(0.0, 0.0)] + [(None, None)] * (len(points) - 1)
    return -linprog(-means, A_ub=rows, b_ub=distance[first, second], bounds=free).fun


@claim("error.statistical_lipschitz")
@lie("it falls like n^(-1/2) in every dimension", rate=in_any_dimension)
@lie("functions with twice the slope deviate no more", slope=2.0)
def lipschitz_functions_deviate(draw, rate=by_dimension, slope=1.0):
    """Transport against a linear program over functions, its mean over samples of many sizes, and the witness below."""
    pairs = [(draw.uniform(7, 2), draw.uniform(7, 2)) for _ in range(4)]
    sizes, slopes, witness, transport = [32, 64, 128, 256], [], [], []
    for dimensions, repeats in ((1, 120), (3, 12), (5, 6)):
        means = []
        for n in sizes:
            found = []
            for _ in range(repeats * (1 if n > 64 else 3)):
                x, y = draw.uniform(n, dimensions), draw.uniform(n, dimensions)
                found.append(lipschitz_deviation(x, y))
                witness.append(torch.cdist(y, x).amin(1).mean())
            transport += found
            means.append(float(torch.stack(found).mean()))
        slopes.append(slope_is(sizes, means, rate(dimensions), within=0.06))
    return all_of(
        close(
            [lipschitz_deviation(slope * x, slope * y) for x, y in pairs], [supremum(x, y) for x, y in pairs], ulps=1e6
        ),
        at_most(torch.stack(witness), torch.stack(transport), ulps=1e6),
        *slopes,
    )
