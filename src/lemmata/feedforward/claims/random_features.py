"""Universal approximation: which activations reach every continuous function, and that ridge functions suffice."""

import itertools
import math

import torch

from lemmata.feedforward.random_features import RandomFeatures
from lemmata.feedforward.uniform_distances import uniform_distance
from lemmata.feedforward.uniform_fits import uniform_fit
from lemmata.foundations.activations import ACTIVATION_TABLE, activation
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def _square_feature(z):
    return z**2


def _cubic_feature(z):
    return z**3 - z


def _sixth_power_feature(z):
    return (z / 8) ** 6 + z / 8


def _line_points(points=801):
    return torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]


def _plane_points(side=33):
    return torch.cartesian_prod(*[torch.linspace(-1, 1, side, dtype=torch.float64)] * 2)


def _error_bound(function, x, network, steepest=1.0):
    """An upper bound of the distance from a function, fitted at points x, on the whole of [-1, 1] or its square."""
    network.fit(x, function(x), ridge=1e-7)
    # The largest slope of every activation here is at 0 or at an end of where it is used, and both are looked at.
    reach = float(network.hidden(x).abs().max())
    slopes = torch.func.vmap(torch.func.grad(network.activation))(reach * _line_points()[:, 0]).abs()
    weights = network.readout.weight[0].detach().abs() * network.hidden.weight.norm(dim=1)
    units = float(weights.sum() * slopes.max())
    ends = torch.ones(x.shape[1], dtype=torch.float64)
    return uniform_distance(
        function, lambda x: network(x)[:, 0], (-ends, ends), steepest + units, tolerance=0.005
    ).upper


def _kink_function(x):
    return x[:, 0].abs()


def _repeated_derivative(function, times):
    """The derivative with respect to a number at 0, so many times."""
    for _ in range(times):
        function = torch.func.grad(function)
    return function(torch.zeros((), dtype=torch.float64))


WIDTHS = ((16, 8.0), (64, 16.0), (256, 32.0))  # more units, and steeper ones


@claim("approx.leshno")
@lie("the square is universal", phi=_square_feature)
@lie("a polynomial of degree 6 is universal", phi=_sixth_power_feature)
@lie("a polynomial of degree k spans k dimensions", more=0)
@lie("the derivative brings one power of x more", extra=1)
def units_that_are_no_polynomials_reach_every_function_of_one_variable(draw, phi=torch.sigmoid, more=1, extra=0):
    """Random units fitted to |x|, ever more of them; what polynomials span, however many; derivatives by autograd."""
    x = _line_points()

    def units(f, hidden, scale=4.0):
        return RandomFeatures(1, hidden, activation=f, scale=scale, generator=draw.generator, dtype=x.dtype)

    def dimension(span):
        return int(torch.linalg.matrix_rank(span, rtol=1e-9))

    smooth = [phi, torch.tanh, torch.sin]
    errors = torch.tensor(
        [[_error_bound(_kink_function, x, units(f, *size)) for size in WIDTHS] for f in smooth], dtype=x.dtype
    )
    stuck = {_square_feature: 2, _cubic_feature: 3, lambda z: z**5 + z: 5, _sixth_power_feature: 6}
    spans = [units(f, hidden).features(x) for hidden in (40, 160) for f in stuck]
    powers = [x ** torch.arange(k + 1) for k in stuck.values()] * 2
    at, b = draw.uniform(2, low=0.5, high=1.5)
    orders = range(5)
    found = [_repeated_derivative(lambda a: torch.sin(a * at + b), k) for k in orders]
    predicted = [at ** (k + extra) * torch.sin(b + k * math.pi / 2) for k in orders]
    return all_of(
        # What is nearer than 0.02 to |x| is no polynomial of a degree below 14.
        at_most(errors[:, -1], torch.minimum(errors[:, 0] / 2, torch.full((3,), 0.02, dtype=torch.float64))),
        at_least([dimension(units(f, 64, 64.0).features(x)) for f in smooth], 50),
        exactly([dimension(span) for span in spans], [k + more for k in stuck.values()] * 2),
        close(*([uniform_fit(y, _kink_function(x)).distance for y in each] for each in (spans, powers)), within=1e-6),
        close(uniform_fit(spans[0], _kink_function(x)).distance, 1 / 8, within=1e-6),
        close(torch.stack(found), torch.stack(predicted)),
    )


def _all_directions(weight):
    return weight


def _turned_to_axes(weight):
    """Each direction turned to the axis next to it."""
    return weight * (weight.abs() == weight.abs().amax(1, keepdim=True))


def _turned_to_eight(weight):
    """Each direction of the plane turned to the next of eight at equal angles."""
    if weight.shape[1] != 2:
        return weight
    angle = (torch.atan2(weight[:, 1], weight[:, 0]) * 8 / math.pi).round() * math.pi / 8
    return weight.norm(dim=1, keepdim=True) * torch.stack([angle.cos(), angle.sin()], 1)


def _petal_function(x):
    """The imaginary part of (x_1 + i x_2)^8: sixteen petals, as high as they are deep."""
    return (torch.complex(x[:, 0], x[:, 1]) ** 8).imag


def _disc_points(side):
    """Points of the unit disc, with the tips of the sixteen petals among them."""
    x, tips = _plane_points(side), (torch.arange(16, dtype=torch.float64) + 0.5) * math.pi / 8
    return torch.cat([x[x.square().sum(1) <= 1], torch.stack([tips.cos(), tips.sin()], 1)])


def _product_function(x):
    return x[:, 0] * x[:, 1]


def _bump_function(x):
    return torch.exp(-2 * x.square().sum(1))


def _monomial_coefficients(weight, degree):
    """The coefficients of (w^T x)^k, a product of weights for each monomial, times how often it occurs: by its root, so
    that unit vectors stay unit vectors."""
    inputs = range(weight.shape[1])
    columns = []
    for chosen in itertools.combinations_with_replacement(inputs, degree):
        often = math.factorial(degree) // math.prod(math.factorial(chosen.count(i)) for i in inputs)
        columns.append(math.sqrt(often) * weight[:, list(chosen)].prod(1))
    return torch.stack(columns, dim=1)


@claim("approx.lifting")
@lie("directions along the axes suffice", directions=_turned_to_axes)
@lie("finitely many directions suffice", directions=_turned_to_eight)
@lie("one dimension fewer is counted", less=2)
@lie("along finitely many directions the distance is one half", apart=0.5)
def ridge_functions_lift_what_holds_on_the_line_to_more_variables(draw, directions=_all_directions, less=1, apart=1.0):
    """Fits in the plane by ever more units; the dimension that powers of linear functions span; and the best fits by
    units along two and eight directions, whose largest errors are at the corners and at the tips of the petals."""

    def units(hidden, turned, scale):
        net = RandomFeatures(2, hidden, 1, "tanh", scale, 1.5, draw.generator, dtype=torch.float64)
        net.hidden.weight.copy_(turned(net.hidden.weight))
        return net

    cases = (_product_function, math.sqrt(2)), (_bump_function, 1.3)
    errors = [
        _error_bound(function, _plane_points(), units(128, directions, 2.0), steepest) for function, steepest in cases
    ]
    x = _disc_points(41)
    left = [
        (units(hidden, directions, 4.0).fit(x, _petal_function(x), ridge=1e-9)(x)[:, 0] - _petal_function(x))
        .detach()
        .abs()
        .max()
        for hidden in (32, 128, 512)
    ]
    sizes = [(2, 3), (3, 3), (3, 4), (4, 3), (5, 2), (1, 6), (2, 12), (2, 24)]
    ranks = [
        int(torch.linalg.matrix_rank(_monomial_coefficients(directions(draw.unit(200, n)), k), rtol=1e-9))
        for n, k in sizes
    ]
    stuck = (_turned_to_axes, _product_function, _plane_points(9)), (_turned_to_eight, _petal_function, _disc_points(9))
    away = [uniform_fit(units(60, turned, 4.0).features(x), function(x)).distance for turned, function, x in stuck]
    return all_of(
        at_most(errors, 0.3),
        at_most(torch.stack([left[1] / left[0], left[2] / left[1], 10 * left[2]]), 0.5),
        exactly(ranks, [math.comb(n + k - less, k) for n, k in sizes]),
        close(away, [apart] * 2, within=1e-6),
    )


@claim("approx.universal_mlp")
@lie("relu is bounded", printed="002/1", bounded=("sigmoid", "relu"))
@lie("one of the activations is a polynomial", third=_cubic_feature)
@lie("eight units are always enough", most=8, regime="an error of 0.02 asks for some dozen", loose="more come nearer")
def one_hidden_layer_reaches_every_error(draw, bounded=("sigmoid", "tanh"), third=torch.sin, most=256):
    """Widths are doubled until the error is small enough; the range of what is called bounded; a cubic stays away."""
    left = []
    activations = ["relu", "sigmoid", "tanh", third]
    # Polynomials of degrees below 14 are further than 0.02 from a kink. Such small errors need steep units.
    cases = ((0.1, 1, 8.0), (0.02, 1, 32.0), (0.3, 2, 2.0))
    for phi, (epsilon, inputs, scale) in itertools.product(activations, cases):
        x, function, steepest = (
            (_line_points(), _kink_function, 1.0) if inputs == 1 else (_plane_points(), _bump_function, 1.3)
        )
        hidden, error = 4, math.inf
        while error > epsilon and hidden < most:
            hidden *= 2
            net = RandomFeatures(inputs, hidden, 1, phi, scale, float(inputs), draw.generator, dtype=torch.float64)
            error = _error_bound(function, x, net, steepest)
        left.append(error / epsilon)
    cubic = RandomFeatures(1, most, activation=_cubic_feature, generator=draw.generator, dtype=torch.float64).features(
        _line_points()
    )
    ranges = [activation(name).range for name in bounded]
    z = torch.tensor([-1e6, 1e6], dtype=torch.float64)
    return all_of(
        at_most(left, 1.0),
        at_least(uniform_fit(cubic, _kink_function(_line_points())).distance, 1 / 8 - 1e-6),
        always([math.isfinite(r.high - r.low) for r in ranges]),
        at_most(torch.stack([ACTIVATION_TABLE[name](z).abs() for name in bounded]), 1.0),
    )
