"""Means, covariances and the bounds they give, on random distributions with finitely many atoms."""

import math

import torch

from lemmata.foundations.information.discrete import mutual_information
from lemmata.foundations.probability.claims.finite_laws import FiniteDistribution
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, mean_is


def laws(draw, batch, atoms, features):
    """Random distributions with skewed weights, away from 0."""
    weights = draw.uniform(batch, atoms) ** 2
    return FiniteDistribution(draw.normal(batch, atoms, features) + 1.5, weights / weights.sum(-1, keepdim=True))


@claim("probability.cauchy_schwarz")
@lie(
    "the means of X and Y bound it, instead of their squares' means",
    loose="higher moments may be negative",
    moment=1,
)
@lie("half of the product bounds it", factor=0.5)
def the_squared_mean_of_a_product_is_at_most_the_product_of_mean_squares(draw, moment=2, factor=1.0):
    """Random pairs on 25 atoms of all sizes; the last hundred of them are proportional: equality, for each of these."""
    law = laws(draw, 500, 25, 2)
    proportional = law.points[400:, :, :1] * torch.tensor([1.0, -3.0], dtype=torch.float64)
    sizes = 10.0 ** draw.uniform(500, 1, 2, low=-50.0, high=50.0)
    law = FiniteDistribution(torch.cat([law.points[:400], proportional]) * sizes, law.weights)
    product = law.second_moment[:, 0, 1].square()
    means = law.expectation(lambda points: points**moment)
    bound = factor * means.prod(-1) ** (2 / moment)
    return all_of(at_most(product, bound), close(product[400:] / bound[400:], torch.ones(100, dtype=torch.float64)))


@claim("probability.covariance")
@lie("the product of the means is added", sign=1.0)
@lie("the means are multiplied to a number, E[x]' E[x]", product=torch.inner)
@lie("the atoms are not weighted", weighted=False)
def the_covariance_is_the_mean_product_less_the_product_of_means(draw, sign=-1.0, product=torch.outer, weighted=True):
    """Random distributions in space against torch.cov; a variable with itself; a pair of numbers by hand."""
    pairs, variances, others = [], [], []
    for _ in range(20):
        law = FiniteDistribution(draw.normal(10, 3) + 1, torch.softmax(draw.normal(10), 0))
        shown = law if weighted else FiniteDistribution(law.points)
        pairs.append(torch.stack([shown.covariance, law.second_moment + sign * product(law.mean, law.mean)]))
        variances.append(law.expectation(lambda x, law=law: (x - law.mean).square()))
        others.append(torch.cov(law.points.T, correction=0, aweights=law.weights))
    known = torch.stack(others)
    # X in {0, 2}, Y in {0, 4}, both low or both high with probability 3/4.
    points = torch.cartesian_prod(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 4.0])).double()
    hand = FiniteDistribution(points, torch.tensor([3.0, 1.0, 1.0, 3.0], dtype=torch.float64) / 8).covariance
    return all_of(
        close(torch.stack(pairs), known[:, None].expand(20, 2, 3, 3), scale=10.0),
        close(torch.stack(variances), known.diagonal(dim1=1, dim2=2), scale=10.0),
        close(hand, torch.tensor([[1.0, 1.0], [1.0, 4.0]], dtype=torch.float64)),
    )


@claim("probability.variance_identity")
@lie("the squared mean is not subtracted", times=0.0)
@lie("the variance may be negative", least=-1.0)
def the_variance_is_the_mean_square_less_the_squared_mean(draw, times=1.0, least=0.0):
    """Random distributions, and one without spread, whose variance is 0; the variance of samples."""
    law = laws(draw, 200, 12, 1)
    points = law.points.clone()
    points[0] = 2.0
    law = FiniteDistribution(points, law.weights)
    square = law.expectation(lambda points: points.square())
    one = FiniteDistribution(torch.tensor([[0.0], [1.0], [4.0]]).double(), torch.tensor([0.5, 0.25, 0.25]).double())
    sampled = mean_is(
        lambda x: (x[:, 0] - one.mean).square(),
        lambda n: one.sample(n, draw.generator),
        17 / 4 - times * (5 / 4) ** 2,
        effect=0.1,
    )
    return all_of(
        close(law.variance, square - times * law.mean.square(), scale=square.max()),
        at_least(law.variance.round(decimals=12), least, attained=True),
        sampled,
    )


@claim("probability.uncorrelated")
@lie("zero covariance means independence: X and X² share no information", shared=0.0)
@lie("X is uncorrelated with its cube too", power=3)
@lie("X need not be symmetric around 0", lowest=-2.0)
def independent_variables_are_uncorrelated_but_not_conversely(draw, shared=1.0, power=2, lowest=-1.0):
    """Product tables with random values; X uniform on -1, 0, 1 and Y = X², whose shared information is that of Y."""
    px, py = torch.softmax(draw.normal(50, 4), -1), torch.softmax(draw.normal(50, 5), -1)
    tables = px[:, :, None] * py[:, None, :]
    grids = torch.stack([torch.cartesian_prod(draw.normal(4), draw.normal(5)) for _ in range(50)])
    independent = FiniteDistribution(grids, tables.flatten(1)).covariance[:, 0, 1]
    x = torch.tensor([lowest, 0.0, 1.0], dtype=torch.float64)
    dependent = FiniteDistribution(torch.stack([x, x**power], -1))
    values, places = torch.unique(x**power, return_inverse=True)
    joint = torch.zeros(3, len(values), dtype=torch.float64)
    joint[range(3), places] = 1 / 3
    return all_of(
        close(mutual_information(joint), shared * (math.log(3) - 2 / 3 * math.log(2)), scale=1.0),
        close(dependent.covariance[0, 1], 0.0, scale=1.0),
        close(independent, torch.zeros(50, dtype=torch.float64), scale=10.0),
        at_most(mutual_information(tables).abs(), 1e-14),
    )


@claim("probability.gram_psd")
@lie("X X is positive semidefinite for every square X", transposed=False)
@lie("X X' is positive definite", least=1e-6)
def a_matrix_times_its_transpose_is_positive_semidefinite(draw, transposed=True, least=0.0):
    """Smallest eigenvalues of X X' and of covariances; 0 for those of rank one, and for a quarter turn of the plane."""
    turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    x = torch.cat([draw.normal(100, 3, 3), draw.normal(99, 3, 1) @ draw.normal(99, 1, 3), turn[None]])
    gram = x @ (x.mT if transposed else x)
    gram = (gram + gram.mT) / 2  # what x' G x sees of a matrix that is not symmetric
    covariances = FiniteDistribution(x).covariance
    smallest = [torch.linalg.eigvalsh(each)[:, 0] / each.abs().amax((1, 2)) for each in (gram, covariances)]
    # Of one number and of many, tiny and huge, from few samples and from many.
    sizes = (1, 1, 2), (1e-100, 3, 40), (1e100, 20, 3), (1.0, 2, 1000)
    others = [FiniteDistribution(size * draw.normal(count, n)).covariance for size, n, count in sizes]
    smallest.append(torch.stack([torch.linalg.eigvalsh(each)[0] / each.abs().max() for each in others]))
    return all_of(
        *(at_least(each + 1e-13, least) for each in smallest),
        close(
            smallest[0][100:], torch.full((100,), least, dtype=torch.float64), scale=1.0, detail="of rank one or two"
        ),
    )


@claim("probability.variance_affine")
@lie("the transposes stand on the other sides, A' Var A", order="first")
@lie("the variance grows with the factor, not its square", power=1.0)
@lie("the offset adds to the variance", offset=1.0)
def the_variance_of_an_affine_image_is_a_var_a(draw, order="last", power=2.0, offset=0.0):
    """Covariances of images whose atoms were moved one by one, against the formula."""
    law = laws(draw, 40, 10, 3)
    a, b = draw.normal(40, 3, 3), draw.uniform(40, 1, 3, low=0.5, high=1.0)
    image = law.affine(a, b)
    by_formula = a @ law.covariance @ a.mT if order == "last" else a.mT @ law.covariance @ a
    factor, single = draw.uniform(40, 1, 1, low=1.5, high=2.5), FiniteDistribution(law.points[..., :1], law.weights)
    line = single.affine(-factor, b[..., :1])
    predicted = factor[..., 0] ** power * single.variance + offset * b[..., 0]
    return all_of(
        close(image.covariance, by_formula, scale=100.0),
        close(line.variance, predicted, scale=100.0),
    )


@claim("probability.variance_sum")
@lie("the variances alone add up", pairs=0.0)
@lie("the coefficients are not squared", power=1.0)
def the_variance_of_a_sum_counts_every_covariance_twice(draw, pairs=2.0, power=2.0):
    """The distribution of the sum, atom by atom, against the sum over variances and pairs."""
    law = laws(draw, 100, 12, 3)
    a = draw.normal(100, 3)
    total = law.affine(a[:, None, :]).variance[:, 0]
    cov = law.covariance
    predicted = sum(a[:, i].abs() ** power * cov[:, i, i] for i in range(3))
    predicted = predicted + pairs * sum(a[:, i] * a[:, j] * cov[:, i, j] for i in range(3) for j in range(i + 1, 3))
    return close(total, predicted, scale=100.0)


@claim("probability.chebyshev")
@lie("half of the variance bounds it", factor=0.5)
@lie("the deviation bounds it, instead of the variance", power=1.0)
def far_from_the_mean_is_at_most_as_likely_as_the_variance_allows(draw, factor=1.0, power=2.0):
    """Random distributions at the distance of each atom; the one on -e, 0, e, for which the bound is attained."""
    law = laws(draw, 500, 6, 1)
    distance = (law.points[..., 0] - law.mean).abs()  # one for each atom, (500, 6)
    tails = law.probability(lambda x: (x - law.mean[:, None]).abs() >= distance[:, None, :])
    bound = factor * law.variance ** (power / 2) / distance**2
    # Dyadic numbers: no rounding decides whether an atom at the distance e counts.
    weights = torch.tensor([0.125, 0.75, 0.125], dtype=torch.float64)
    sharp = FiniteDistribution(torch.tensor([[-4.0], [0.0], [4.0]]).double(), weights)
    outside = sharp.probability(lambda x: x[:, 0].abs() >= 4)
    return all_of(
        at_most(outside, factor * sharp.variance ** (power / 2) / 4.0**2, attained=True),
        at_most(tails, bound),
    )


@claim("probability.markov")
@lie("the variable may be negative", lowest=-1.0)
@lie("half the mean bounds it", factor=0.5)
def a_threshold_is_reached_with_at_most_mean_over_threshold(draw, lowest=0.0, factor=1.0):
    """Random distributions of positive numbers at each atom; the one on 0 and t, for which the bound is attained."""
    law = laws(draw, 500, 6, 1)
    law = FiniteDistribution(law.points.abs() + 0.01, law.weights)
    thresholds = law.points[..., 0]
    tails = law.probability(lambda x: x >= thresholds[:, None, :])
    sharp = FiniteDistribution(torch.tensor([[lowest], [4.0]]).double(), torch.tensor([0.75, 0.25]).double())
    reached = sharp.probability(lambda x: x[:, 0] >= 4)
    return all_of(
        at_most(reached, factor * sharp.mean / 4.0, attained=True),
        at_most(tails, factor * law.mean / thresholds),
    )
