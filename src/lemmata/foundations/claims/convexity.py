"""Convex sets and functions: the four characterisations, what keeps convexity, and what it does for minima."""

import math

import torch
import torch._dynamo  # which the first use of torch.func would import anyway, on the clock of a claim

from lemmata.foundations.convexity import (
    chord_gap,
    gradient_monotony,
    is_convex,
    is_convex_set,
    jensen_gap,
    least_curvature,
    tangent_gap,
)
from lemmata.foundations.function_values import batch_gradients, batch_values
from lemmata.foundations.quadratic_functions import QuadraticFunction
from lemmata.foundations.regions import Box, box_region
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie

SLACK = 1e-10  # of values of size 1 to 100 in double precision
# Why some changes stay true.
MULTIPLE = "any positive multiple of the gap has its sign"
WEIGHT = "any weight that is not negative will do"
RISING = "all powers from 1 on are convex"
CONVEX_TOO = "with a positive eigenvalue it is convex too"


def squares(x):
    return x.square().sum()


def exponentials(x):
    return torch.exp(x).sum()


def log_sum_exp(x):
    return torch.logsumexp(x, 0)


def one_norm(x):
    return x.abs().sum()


def two_norm(x):
    return x.norm()


def softplus(x):
    return torch.nn.functional.softplus(x).sum()


def fourth_powers(x):
    return (x**4).sum()


def cubes(x):
    return (x**3).sum()


def sines(x):
    return torch.sin(x).sum()


def saddle(x):
    return x[0] ** 2 - x[1:].square().sum()


def double_wells(x):
    return (x**4 - x**2).sum()


CONVEX = (squares, exponentials, log_sum_exp, one_norm, two_norm, softplus)


def spectrum(draw, *eigenvalues):
    """A symmetric matrix with these eigenvalues along random directions."""
    q = draw.orthogonal(len(eigenvalues))
    return (q * torch.tensor(eigenvalues, dtype=torch.float64)) @ q.T


def logistic(draw, ridge, count=20, features=3):
    """A regularised logistic loss, whose curvature is at least the ridge."""
    x, y = draw.normal(count, features), draw.signs(count)
    return lambda w: torch.nn.functional.softplus(-y * (x @ w)).mean() + ridge / 2 * w.square().sum()


def cube(n, size=1.0):
    return -size * torch.ones(n, dtype=torch.float64), size * torch.ones(n, dtype=torch.float64)


def not_negative(gaps):
    return at_least(gaps + SLACK, torch.zeros_like(gaps))


@claim("convex.set")
@lie("a ball with a hole is convex", loose="a hole of negative radius is none", inner=0.5)
@lie("a sphere, as thin as a sample of points can show, is convex", loose="as above", inner=0.95)
@lie("the union of two balls is convex", apart=1.2)
def segments_between_members_of_a_convex_set_stay_inside(draw, inner=0.0, apart=0.0):
    """Segments in a ball, a box, half-spaces and the whole space; those that leave an annulus are shown."""

    def shell(x):
        return (x.norm(dim=1) <= 1) & (x.norm(dim=1) >= inner)

    def two_balls(x):
        return torch.minimum(
            (x - torch.tensor([apart / 2, 0.0])).norm(dim=1), (x + torch.tensor([apart / 2, 0.0])).norm(dim=1)
        ).le(0.5)

    normals, offsets = draw.unit(3, 2), draw.uniform(3, low=0.2, high=0.6)
    sets = [
        shell,
        lambda x: (x - torch.tensor([0.4, 0.4])).norm(dim=1) <= 0.5,
        two_balls,
        lambda x: (x.abs() <= torch.tensor([0.3, 0.8])).all(1),
        lambda x: (x @ normals.T <= offsets).all(1),
        lambda x: torch.ones(len(x), dtype=torch.bool),
    ]

    def annulus(x):
        return (x.norm(dim=1) <= 1) & (x.norm(dim=1) >= 0.5)

    hole = is_convex_set(annulus, cube(2), generator=draw.generator)
    x, y, weight = hole.witness
    found = [is_convex_set(members, cube(2), generator=draw.generator) for members in sets]
    # The tops of the two balls have the most room between them: the segment there leaves the union first.
    tops = torch.tensor([[apart / 2, 0.5], [0.0, 0.5], [-apart / 2, 0.5]], dtype=torch.float64)
    return all_of(
        always(two_balls(tops)),
        always([one.value for one in found]),
        always([not one.certified for one in found]),
        always([not hole.value, hole.certified, bool(annulus(torch.stack([x, y])).all())]),
        always(~annulus((weight * x + (1 - weight) * y)[None]), detail="the witness leaves the annulus"),
        *boxes(draw),
    )


def boxes(draw):
    """Boxes, the convex sets in which functions are searched: samples, corners, nearest points and the search."""
    low = 10 * draw.normal(8)
    widths = torch.tensor([1.0, 5.0, 1.0, 1.0, 1.0, 2.0, 3.0, 0.5], dtype=torch.float64)
    box = Box(low, low + widths)
    sample, corners, far = box.sample(500, draw.generator), box.corners(), box.centre + 5 * draw.normal(100, 8)
    nearest = box.clip(far)
    small, share = Box(low[:3], (low + widths)[:3]), draw.uniform(3, low=0.1, high=0.9)
    found = small.worst(lambda x: -((x - small.low) / small.width - share).abs().amax(1), 64, draw.generator)
    direction = draw.normal(8)
    unit = direction / direction.norm()
    pairs = [box.pair(place, 3 * direction, 0.3) for place in (box.centre, *corners[:3])]
    first, second = box.pair(box.centre, torch.eye(8, dtype=torch.float64)[2])
    one, other = box_region((torch.tensor(1.0), torch.tensor(3.0))).pair(torch.tensor([1.9]), torch.ones(1))
    places = draw.uniform(20, 1, low=1.1, high=1.9)
    near, beside = map(
        torch.cat, zip(*(box_region((1.0, 2.0)).pair(x, torch.ones(1).double()) for x in places), strict=True)
    )
    return [
        always((box.clip(sample) == sample).all(1)),
        close((sample.amin(0) - low) / widths, torch.zeros(8).double(), within=0.05),
        close((sample.amax(0) - low) / widths, torch.ones(8).double(), within=0.05),
        exactly(len({tuple(corner) for corner in corners.tolist()}), 64),
        always((corners[:, :6] == low[:6]) | (corners[:, :6] == (low + widths)[:6])),
        # Every corner has its opposite, and both have the centre between them.
        close((corners + corners.flip(0)) / 2, box.centre.expand(64, 8)),
        close(box.centre - low, low + widths - box.centre, scale=100.0),
        # The nearest point of a convex set: seen from there, no point of the set lies towards what was projected.
        at_most(((far - nearest)[:, None] * (sample - nearest[:, None])).sum(-1), 1e-9),
        at_most(((found - small.low) / small.width - share).abs(), 5e-3),
        always([bool((box.clip(end) == end).all()) for pair in pairs for end in pair]),
        close([second - first for first, second in pairs], (2 * 0.3 * 0.5 * unit).expand(4, 8), scale=100.0),
        close((pairs[0][0] + pairs[0][1]) / 2, box.centre),
        exactly((second - first) != 0, torch.arange(8) == 2),
        # Quotients of the square lose to rounding alone, those of the third power to bending too.
        close((other**2 - one**2) / (other - one), other + one, within=1e-3),
        close((beside**2 - near**2) / (beside - near), 2 * places[:, 0], within=1e-11),
        close((beside**3 - near**3) / (beside - near), 3 * places[:, 0] ** 2, within=1e-6),
    ]


@claim("convex.function")
@lie("the graph of a convex function lies above its chords", regime=MULTIPLE, loose=MULTIPLE, sign=-1.0)
@lie("every convex function is strictly convex", strict=one_norm)
@lie("the sine is convex from -3 to 3", expected=True)
def the_graph_of_a_convex_function_lies_below_its_chords(draw, sign=1.0, strict=squares, expected=False):
    """Random chords of six convex functions; strictly below for one; and the chords that refute sin and -x²."""
    x, y, weight = draw.normal(1000, 3), draw.normal(1000, 3), draw.uniform(1000)
    wave = is_convex(sines, (-3.0, 3.0))
    fallen, uneven = is_convex(falling, (0.0, 5.0)), is_convex(steep_beside_shallow, (-1.0, 1.0))
    inner = draw.uniform(1000, low=0.1, high=0.9)
    line = torch.linspace(-1.5, 1.5, 61, dtype=torch.float64)
    ends = torch.tensor([-1.0, 1.2], dtype=torch.float64)
    figure = Figure(
        "A chord over the graph of exp", "x", "f(x)",
        [Line(line, line.exp(), "exp"), Line(ends, ends.exp(), "chord")],
    )  # fmt: skip
    return all_of(
        *(not_negative(sign * chord_gap(f, x, y, weight)).showing(figure) for f in CONVEX),
        always(chord_gap(strict, x, y, inner) > SLACK),
        exactly(wave.value, expected),
        always([wave.certified, float(chord_gap(sines, *wave.witness)) < -0.5]),
        close(wave.seen, chord_gap(sines, *wave.witness)),
        close(chord_gap(squares, x, y, weight), weight * (1 - weight) * (x - y).square().sum(1)),
        exactly(is_convex(lambda t: -squares(t), (-1.0, 1.0)).value, False),
        close(fallen.seen, chord_gap(falling, *fallen.witness)),
        always([not fallen.value, not uneven.value, abs(float(fallen.witness[2]) - 0.5) > 0.2]),
    )


def falling(t):
    return -torch.exp(t).sum()


def steep_beside_shallow(t):
    """Convex but for a kink among the negative numbers, where the values are small."""
    return (1e12 * torch.relu(t) - 1e-6 * torch.relu(-t - 0.5)).sum()


@claim("convex.first_order")
@lie("a convex function lies below its tangents", regime=MULTIPLE, loose=MULTIPLE, sign=-1.0)
@lie("a quadratic with a negative eigenvalue lies above its tangents", loose=CONVEX_TOO, least=-0.5)
@lie("it lies above the planes of twice the slope", slope=2.0)
def a_convex_function_lies_above_its_tangents(draw, sign=1.0, least=0.0, slope=1.0):
    """Random pairs with autograd's gradients; a saddle has pairs on either side."""
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    quadratic = QuadraticFunction(spectrum(draw, least, 1.0, 2.0), draw.normal(3))

    def steeper(f):
        """The gap to the plane of a multiple of the slope, from the gap to the tangent."""
        return (slope - 1) * (batch_gradients(f, x) * (y - x)).sum(1)

    return all_of(
        *(not_negative(sign * (tangent_gap(f, x, y) - steeper(f))) for f in (log_sum_exp, softplus, exponentials)),
        not_negative(sign * tangent_gap(quadratic, x, y)),
        close(tangent_gap(squares, x.reshape(10, 100, 3), y.reshape(10, 100, 3)).flatten(), (x - y).square().sum(1)),
        always([float(tangent_gap(saddle, x, y).min()) < -1, float(tangent_gap(saddle, x, y).max()) > 1]),
    )


@claim("convex.monotone_gradient")
@lie("the gradient of a convex function turns against the step", regime=MULTIPLE, loose=MULTIPLE, sign=-1.0)
@lie("the gradient of x³ is monotone", extra=cubes)
@lie("the gradient of a quadratic with eigenvalue -0.2 is monotone", loose=CONVEX_TOO, least=-0.2)
def the_gradient_of_a_convex_function_is_monotone(draw, sign=1.0, extra=fourth_powers, least=0.0):
    """Random pairs; for a quadratic the product is the quadratic form of the step."""
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    matrix = spectrum(draw, least, 0.5, 3.0)
    form = (((x - y) @ matrix) * (x - y)).sum(1)
    quadratic = QuadraticFunction(matrix, draw.normal(3))
    return all_of(
        *(not_negative(sign * gradient_monotony(f, x, y)) for f in (exponentials, log_sum_exp, softplus, extra)),
        not_negative(sign * gradient_monotony(quadratic, x, y)),
        close(gradient_monotony(quadratic, x.reshape(10, 100, 3), y.reshape(10, 100, 3)).flatten(), form, ulps=256),
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
        return [bool((gaps >= -1e-8).all()) for gaps in tests]

    convex = [verdicts(f) for f in (log_sum_exp, quadratic, logistic(draw, 0.0))]
    others = [verdicts(f) for f in (saddle, double_wells, sines, lambda t: -0.01 * squares(t))]
    # The sine bends upwards around -pi/2, and only there.
    around = -math.pi / 2 + spread * draw.uniform(200, 1, low=-1.0)
    wave = bool((least_curvature(sines, around) >= -1e-8).all())
    bowl = is_convex(lambda t: squares(t) + 0.1 * sines(t), cube(2), points=64)
    kinked = is_convex(lambda t: squares(t) + one_norm(t), cube(2), points=64)
    dents = [is_convex(lambda t, d=d: dented(t, d), cube(len(d)), points=512) for d in DENTS]
    tilted = [is_convex(QuadraticFunction(torch.diag(torch.tensor(d)).double(), constant=1.0), cube(2)) for d in FLAT]
    # What rounding alone puts above a chord is no answer: a steep line, and the zero function.
    lines = [is_convex(lambda t, s=s: s * torch.relu(t + 2).sum(), (-1.0, 1.0), points=64) for s in (1e9, 0.0)]
    waving = is_convex(lambda t: squares(t) + 4 * sines(t), cube(2), points=64)
    return all_of(
        always([answer for answers in convex for answer in answers]),
        always([not answer for answers in others for answer in answers]),
        exactly(wave, is_convex(sines, (-3.0, 3.0), points=64).value),
        close(least_curvature(quadratic, x[:5]), torch.full((5,), least, dtype=torch.float64), scale=4.0),
        always([bowl.value, bowl.certified, not waving.value, waving.certified]),
        always([kinked.value, not kinked.certified]),
        close(kinked.seen, chord_gap(lambda t: squares(t) + one_norm(t), *kinked.witness)),
        close(bowl.seen, chord_gap(lambda t: squares(t) + 0.1 * sines(t), *bowl.witness)),
        always(["least curvature" in bowl.reason, "no chord" in kinked.reason]),
        exactly([(found.value, found.certified) for found in dents], [(False, True)] * 2),
        exactly([(found.value, found.certified) for found in lines], [(True, False)] * 2),
        exactly([(found.value, found.certified) for found in tilted], [(True, True), (True, False)]),
        exactly((is_convex(QuadraticFunction(torch.eye(2).double()), cube(2)).certified, True), (True, True)),
    )


# Directions across which a bowl has a narrow dent: of one variable away from the middle, of two near it.
DENTS = (torch.tensor([3.0]), torch.tensor([0.6, 0.8]))
FLAT = ((0.0, 0.0), (-1e-12, 1.0))  # convex, and not so by less than can be seen


def dented(t, direction):
    """A bowl of curvature 2 with a ridge of curvature -4 across a line, a hundredth wide."""
    across = t @ direction.to(t) - (1.0 if len(direction) == 1 else 0.05)
    width = 0.01 * direction.norm()
    return t.square().sum() + 4 * 0.01**2 * torch.exp(-((across / width) ** 2) / 2)


@claim("convex.cone")
@lie("any real combination of convex functions is convex", regime=WEIGHT, loose=WEIGHT, sign=-1.0)
@lie("x² - 2x² is convex", regime="x² - ax² is convex up to a = 1", loose=WEIGHT, second=-2.0)
def combinations_with_positive_weights_stay_convex(draw, sign=1.0, second=2.0):
    """Chords of random combinations of two convex functions, with weights from 0 to 5."""
    gaps = []
    for _ in range(30):
        f, g = draw.choice(CONVEX), draw.choice(CONVEX)
        a, b = draw.uniform(2, high=5.0)
        x, y, weight = draw.normal(50, 3), draw.normal(50, 3), draw.uniform(50)
        gaps.append(chord_gap(lambda t, f=f, g=g, a=a, b=b: a * f(t) + sign * b * g(t), x, y, weight))
    fixed = chord_gap(lambda t: squares(t) + second * squares(t), x, y, weight)
    return all_of(not_negative(torch.stack(gaps)), not_negative(fixed))


@claim("convex.maximum")
@lie("the minimum of two convex functions is convex", share=0.0)
@lie("a mixture of 0.3 of the maximum and 0.7 of the minimum is convex", share=0.3)
def the_maximum_of_convex_functions_is_convex(draw, share=1.0):
    """Chords of the maximum of random affine and quadratic pairs, and of x and -x, which is |x|."""

    def combined(f, g):
        return lambda t: share * torch.maximum(f(t), g(t)) + (1 - share) * torch.minimum(f(t), g(t))

    gaps = []
    for _ in range(20):
        one, two = (QuadraticFunction(spectrum(draw, 0.0, 0.5, 1.0), 2 * draw.normal(3)) for _ in range(2))
        slope, other = draw.normal(2, 3)
        x, y, weight = 2 * draw.normal(100, 3), 2 * draw.normal(100, 3), draw.uniform(100)
        gaps.append(chord_gap(combined(one, two), x, y, weight))
        gaps.append(chord_gap(combined(lambda t, a=slope: t @ a, lambda t, a=other: t @ a), x, y, weight))
    absolute = combined(torch.sum, lambda t: -torch.sum(t))
    points = draw.normal(100, 1)
    return all_of(not_negative(torch.stack(gaps)), close(batch_values(absolute, points), points[:, 0].abs()))


@claim("convex.composition")
@lie("the outer function need not be monotone: u² of x² - 1", loose="above x² + 1 the square rises", shift=1.0)
@lie("the outer function need not be convex: the root of a norm", regime=RISING, loose=RISING, power=0.5)
def an_increasing_convex_function_of_a_convex_one_is_convex(draw, shift=0.0, power=2.0):
    """Chords of exp, softplus and ReLU of a quadratic and a norm; of u², which is increasing only where u ≥ 0."""
    x, y, weight = draw.normal(500, 3), draw.normal(500, 3), draw.uniform(500)
    x[250:], y[250:] = x[250:] / 20, -x[250:] / 20  # through 0, where the square of x² - shift first has a hump
    quadratic = QuadraticFunction(spectrum(draw, 0.0, 0.2, 0.4), 0.3 * draw.normal(3), constant=-0.5)
    outer = (torch.exp, torch.nn.functional.softplus, torch.relu)
    composed = [lambda t, g=g, f=f: g(f(t)) for g in outer for f in (quadratic, two_norm)]
    powers = [lambda t: (squares(t) - shift) ** 2, lambda t: two_norm(t) ** power]  # x² - shift is at least -shift
    return all_of(*(not_negative(chord_gap(f, x, y, weight)) for f in [*composed, *powers]))


@claim("convex.jensen")
@lie("the value at the mean is at least the mean of the values", regime=MULTIPLE, loose=MULTIPLE, sign=-1.0)
@lie("equality holds for every convex function", bend=0.1)
@lie("the logarithm has a Jensen gap of the same sign", regime=MULTIPLE, loose=MULTIPLE, concave=-1.0)
def the_mean_of_the_values_is_at_least_the_value_at_the_mean(draw, sign=1.0, bend=0.0, concave=1.0):
    """Five hundred random finite laws; reversed for concave functions, equal for affine ones, a variance for x²."""
    points, weights = draw.uniform(500, 6, 1, low=0.1, high=4.0), draw.uniform(500, 6)
    weights = weights / weights.sum(1, keepdim=True)
    points, weights = points.reshape(5, 100, 6, 1), weights.reshape(5, 100, 6)
    mean = (weights * points[..., 0]).sum(-1, keepdim=True)
    variance = (weights * (points[..., 0] - mean) ** 2).sum(-1)
    minus_log, log, root = (lambda t: -torch.log(t).sum()), (lambda t: torch.log(t).sum()), lambda t: t.sqrt().sum()
    line = torch.linspace(-2.0, 2.0, 81, dtype=torch.float64)
    dots = torch.tensor([-1.5, -0.5, 1.8], dtype=torch.float64)
    centre = dots.mean()
    figure = Figure(
        "The centre of mass lies above the curve", "x", "f(x)",
        [Line(line, line**2, "x²"), Line([*dots, dots[0]], [*dots**2, dots[0] ** 2], "points"),
         Line([centre, centre], [centre**2, (dots**2).mean()], "gap")],
    )  # fmt: skip
    return all_of(
        *(
            not_negative(sign * jensen_gap(f, points, weights)).showing(figure)
            for f in (exponentials, squares, minus_log)
        ),
        *(not_negative(-concave * jensen_gap(f, points, weights)) for f in (log, root)),
        close(jensen_gap(squares, points, weights), variance, within=1e-12),
        close(jensen_gap(squares, points[0, 0], weights[0, 0]), variance[0, 0], within=1e-12),
        close(jensen_gap(lambda t: (3 * t + bend * t**2).sum() - 1, points, weights), 0.0, within=1e-12),
    )
