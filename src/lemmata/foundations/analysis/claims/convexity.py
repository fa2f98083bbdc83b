"""Convex sets and functions: the four characterisations, what keeps convexity, and what it does for minima."""

import math

import torch

from lemmata.foundations.analysis.claims.functions import (
    CONVEX,
    SLACK,
    chord_gap,
    cubes,
    double_wells,
    exponentials,
    fourth_powers,
    gradient_monotony,
    least_curvature,
    log_sum_exp,
    logistic,
    one_norm,
    saddle,
    sines,
    softplus,
    spectrum,
    squares,
    tangent_gap,
    two_norm,
)
from lemmata.foundations.analysis.convexity import is_convex
from lemmata.foundations.analysis.function_values import batch_gradients, batch_values
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie

CONVEX_TOO = "with a positive eigenvalue it is convex too"  # why some changes stay true


def leaves_the_set(draw, contains, parts):
    """Whether mixtures of so many members of a set in [-1, 1]² leave it, or the middle of two opposite ones does."""
    members = draw.uniform(4096, 2, low=-1.0)
    members = members[contains(members)]
    chosen = torch.stack([members[draw.permutation(len(members))] for _ in range(parts)])
    weights = torch.nn.functional.normalize(draw.uniform(parts, len(members), 1), p=1, dim=0)
    opposite = members[contains(-members)]
    return not bool(contains(torch.cat([(weights * chosen).sum(0), (opposite + -opposite) / 2])).all())


@claim("convex.set")
@lie("a ball with a hole is convex", loose="a hole of negative radius is none", inner=0.5)
@lie("the union of two balls is convex", apart=1.2)
def segments_between_members_of_a_convex_set_stay_inside(draw, inner=0.0, apart=0.0):
    """Segments, and what they imply, mixtures of three and of eight: in balls, boxes and half-spaces, not in a ring."""

    def shell(x, inner=inner):
        return (x.norm(dim=1) <= 1) & (x.norm(dim=1) >= inner)

    def two_balls(x):
        centre = torch.tensor([apart / 2, 0.0], dtype=torch.float64)
        return torch.minimum((x - centre).norm(dim=1), (x + centre).norm(dim=1)).le(0.5)

    normals, offsets = draw.unit(3, 2), draw.uniform(3, low=0.2, high=0.6)
    sets = [
        shell,
        lambda x: (x - torch.tensor([0.4, 0.4], dtype=torch.float64)).norm(dim=1) <= 0.5,
        two_balls,
        lambda x: (x.abs() <= torch.tensor([0.3, 0.8], dtype=torch.float64)).all(1),
        lambda x: (x @ normals.T <= offsets).all(1),
        lambda x: torch.ones(len(x), dtype=torch.bool),
    ]
    # The tops of the two balls have the most room between them: the segment there leaves the union first.
    tops = torch.tensor([[apart / 2, 0.5], [0.0, 0.5], [-apart / 2, 0.5]], dtype=torch.float64)
    return all_of(
        always([not leaves_the_set(draw, members, parts) for members in sets for parts in (2, 3, 8)]),
        always(two_balls(tops)),
        always([leaves_the_set(draw, lambda x: shell(x, 0.5), parts) for parts in (2, 3, 8)]),
    )


@claim("convex.function")
@lie("the graph of a convex function lies above its chords", relation=at_least)
@lie("every convex function is strictly convex", strict=one_norm)
@lie("the sine is convex from -3 to 3", sine=True)
def the_graph_of_a_convex_function_lies_below_its_chords(draw, relation=at_most, strict=squares, sine=False):
    """Random chords of six convex functions; strictly below for one; and a chord that refutes the sine."""
    x, y, weight = draw.normal(1000, 3), draw.normal(1000, 3), draw.uniform(1000)
    gaps = torch.stack([chord_gap(f, x, y, weight) for f in CONVEX])
    wave = is_convex(sines, (-3.0, 3.0))
    return all_of(
        relation(-gaps, SLACK),
        always(chord_gap(strict, x, y, 0.1 + 0.8 * weight) > SLACK),
        exactly(wave.value, sine),
        at_most(chord_gap(sines, *wave.witness), -0.5, detail="the chord that refutes the sine"),
        close(chord_gap(squares, x, y, weight), weight * (1 - weight) * (x - y).square().sum(1)),
    )


@claim("convex.first_order")
@lie("a convex function lies below its tangents", relation=at_most)
@lie("a quadratic with a negative eigenvalue lies above its tangents", loose=CONVEX_TOO, least=-0.5)
@lie("it lies above the planes of twice the slope", slope=2.0)
def a_convex_function_lies_above_its_tangents(draw, relation=at_least, least=0.0, slope=1.0):
    """Random pairs with autograd's gradients; a saddle has pairs on either side."""
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    quadratic = QuadraticFunction(spectrum(draw, least, 1.0, 2.0), draw.normal(3))

    def gap(f):
        """To the plane of a multiple of the slope, from the gap to the tangent."""
        return tangent_gap(f, x, y) - (slope - 1) * (batch_gradients(f, x) * (y - x)).sum(1)

    return all_of(
        relation(torch.stack([gap(f) for f in (log_sum_exp, softplus, exponentials, quadratic)]), -SLACK),
        close(tangent_gap(squares, x, y), (x - y).square().sum(1)),
        always([float(tangent_gap(saddle, x, y).min()) < -1, float(tangent_gap(saddle, x, y).max()) > 1]),
    )


@claim("convex.monotone_gradient")
@lie("the gradient of a convex function turns against the step", relation=at_most)
@lie("the gradient of x³ is monotone", extra=cubes)
@lie("the gradient of a quadratic with eigenvalue -0.2 is monotone", loose=CONVEX_TOO, least=-0.2)
def the_gradient_of_a_convex_function_is_monotone(draw, relation=at_least, extra=fourth_powers, least=0.0):
    """Random pairs; for a quadratic the product is the quadratic form of the step."""
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    matrix = spectrum(draw, least, 0.5, 3.0)
    quadratic = QuadraticFunction(matrix, draw.normal(3))
    products = [gradient_monotony(f, x, y) for f in (exponentials, log_sum_exp, softplus, extra, quadratic)]
    return all_of(
        relation(torch.stack(products), -SLACK),
        close(products[-1], (((x - y) @ matrix) * (x - y)).sum(1), ulps=256),
    )


@claim("convex.second_order")
@lie(
    "a Hessian without negative eigenvalues at one point suffices",
    regime="the sine bends upwards as far as π/2 from -π/2",
    loose="a wider stretch shows more of it",
    spread=0.0,
)
@lie("f(y) ≥ f(x) + ∇f(x)(y - x) + ½|y - x|² is equivalent too", extra=0.5)
@lie("the Hessian may have the eigenvalue -0.3", loose=CONVEX_TOO, least=-0.3)
def the_four_tests_of_convexity_agree(draw, spread=3.0, extra=0.0, least=0.0):
    """Chords, tangents, gradients and Hessians give one verdict on three convex functions and four others."""
    x, y, weight = draw.normal(2000, 3), draw.normal(2000, 3), draw.uniform(2000)
    quadratic = QuadraticFunction(spectrum(draw, least, 1.0, 4.0))

    def verdicts(f):
        tests = (
            chord_gap(f, x, y, weight),
            tangent_gap(f, x, y) - extra * (x - y).square().sum(1),
            gradient_monotony(f, x, y),
            least_curvature(f, x[:200]),
        )
        return torch.tensor([bool((gaps >= -1e-8).all()) for gaps in tests])

    # The sine bends upwards around -pi/2, and only there.
    around = -math.pi / 2 + spread * draw.uniform(200, 1, low=-1.0)
    wave = bool((least_curvature(sines, around) >= -1e-8).all())
    return all_of(
        always(torch.cat([verdicts(f) for f in (log_sum_exp, quadratic, logistic(draw, 0.0))])),
        always(torch.cat([~verdicts(f) for f in (saddle, double_wells, sines, lambda t: -0.01 * squares(t))])),
        exactly(wave, is_convex(sines, (-3.0, 3.0), points=64).value),
        close(least_curvature(quadratic, x[:5]), torch.full((5,), least, dtype=torch.float64), scale=4.0),
    )


@claim("convex.cone")
@lie("any real combination of convex functions is convex", loose="fewer weights are allowed", least=-1.0)
def combinations_with_positive_weights_stay_convex(draw, least=0.0):
    """Chords of random combinations of two convex functions, with weights up to 5 and the least ones among them."""
    gaps = []
    for index in range(30):
        f, g = draw.choice(CONVEX), draw.choice(CONVEX)
        a, b = draw.uniform(2, low=least, high=5.0) if index else (0.0, least)
        x, y, weight = draw.normal(50, 3), draw.normal(50, 3), draw.uniform(50)
        gaps.append(chord_gap(lambda t, f=f, g=g, a=a, b=b: a * f(t) + b * g(t), x, y, weight))
    return at_least(torch.stack(gaps), -SLACK)


@claim("convex.maximum")
@lie("the minimum of two convex functions is convex", combine=torch.minimum)
@lie("the product of two convex functions is convex", combine=torch.mul)
def the_maximum_of_convex_functions_is_convex(draw, combine=torch.maximum):
    """Chords of the maximum of random affine and quadratic pairs, and of x and -x, which is |x|."""
    gaps = []
    for _ in range(20):
        one, two = (QuadraticFunction(spectrum(draw, 0.0, 0.5, 1.0), 2 * draw.normal(3)) for _ in range(2))
        slope, other = draw.normal(2, 3)
        x, y, weight = 2 * draw.normal(100, 3), 2 * draw.normal(100, 3), draw.uniform(100)
        gaps.append(chord_gap(lambda t, f=one, g=two: combine(f(t), g(t)), x, y, weight))
        gaps.append(chord_gap(lambda t, a=slope, b=other: combine(t @ a, t @ b), x, y, weight))
    points = draw.normal(100, 1)
    absolute = batch_values(lambda t: combine(t.sum(), -t.sum()), points)
    return all_of(at_least(torch.stack(gaps), -SLACK), close(absolute, points[:, 0].abs()))


@claim("convex.composition")
@lie("the outer function need not be monotone: u² of x² - 1", loose="above x² + 1 the square rises", shift=-1.0)
@lie("the outer function need not be convex: the root of a norm", loose="powers above 1 are convex too", power=0.5)
def an_increasing_convex_function_of_a_convex_one_is_convex(draw, shift=0.0, power=1.0):
    """Chords of exp, softplus and ReLU of a quadratic and a norm; of u², which is increasing only where u ≥ 0."""
    x, y, weight = draw.normal(500, 3), draw.normal(500, 3), draw.uniform(500)
    x[250:], y[250:] = x[250:] / 20, -x[250:] / 20  # through 0, where the square of x² + shift first has a hump
    quadratic = QuadraticFunction(spectrum(draw, 0.0, 0.2, 0.4), 0.3 * draw.normal(3), constant=-0.5)
    outer = (torch.exp, torch.nn.functional.softplus, torch.relu)
    composed = [lambda t, g=g, f=f: g(f(t)) for g in outer for f in (quadratic, two_norm)]
    powers = [lambda t: (squares(t) + shift) ** 2, lambda t: two_norm(t) ** power]
    return at_least(torch.stack([chord_gap(f, x, y, weight) for f in [*composed, *powers]]), -SLACK)


@claim("convex.jensen")
@lie("the value at the mean is at least the mean of the values", relation=at_least)
@lie("equality holds for every convex function", bend=0.1)
@lie("the logarithm has a Jensen gap of the same sign", concave=at_most)
def the_mean_of_the_values_is_at_least_the_value_at_the_mean(draw, relation=at_most, bend=0.0, concave=at_least):
    """Five hundred finite distributions; reversed for concave functions, equal for affine ones, a variance for x²."""
    points, weights = draw.uniform(500, 6, 1, low=0.1, high=4.0), draw.uniform(500, 6)
    weights = weights / weights.sum(1, keepdim=True)
    mean = (weights * points[..., 0]).sum(-1, keepdim=True)
    variance = (weights * (points[..., 0] - mean) ** 2).sum(-1)

    def gaps(*functions):
        """How far the mean of the values lies above the value at the mean."""
        return torch.stack([(weights * batch_values(f, points)).sum(1) - batch_values(f, mean) for f in functions])

    return all_of(
        relation(-gaps(exponentials, squares, lambda t: -torch.log(t).sum()), SLACK),
        concave(-gaps(lambda t: torch.log(t).sum(), lambda t: t.sqrt().sum()), -SLACK),
        close(gaps(squares)[0], variance, within=1e-12),
        close(gaps(lambda t: (3 * t + bend * t**2).sum() - 1), 0.0, within=1e-12, detail="an affine function"),
    )
