"""Universal approximation: which activations reach every continuous function, and that ridge functions suffice."""

import itertools
import math

import torch

from lemmata.feedforward.random_features import RandomFeatures
from lemmata.feedforward.uniform_distances import uniform_distance
from lemmata.feedforward.uniform_fits import uniform_fit
from lemmata.foundations.activations import ACTIVATION_TABLE, activation
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def _square(z):
    return z**2


def _cube(z):
    return z**3 - z


def _line(points=801):
    return torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]


def _plane(side=33):
    return torch.cartesian_prod(*[torch.linspace(-1, 1, side, dtype=torch.float64)] * 2)


def _error(function, x, network, steepest=1.0):
    """An upper bound of the distance from a function, fitted at points x, on the whole of [-1, 1] or its square."""
    network.fit(x, function(x), ridge=1e-7)
    # The largest slope of every activation here is at 0 or at an end of where it is used, and both are looked at.
    reach = float(network.hidden(x).abs().max())
    slopes = torch.func.vmap(torch.func.grad(network.activation))(reach * _line()[:, 0]).abs()
    weights = network.readout.weight[0].detach().abs() * network.hidden.weight.norm(dim=1)
    units = float(weights.sum() * slopes.max())
    ends = torch.ones(x.shape[1], dtype=torch.float64)
    return uniform_distance(
        function, lambda x: network(x)[:, 0], (-ends, ends), steepest + units, tolerance=0.005
    ).upper


def _kink(x):
    return x[:, 0].abs()


def _derivative(function, times):
    """The derivative with respect to a number at 0, so many times."""
    for _ in range(times):
        function = torch.func.grad(function)
    return function(torch.zeros((), dtype=torch.float64))


@claim("approx.leshno")
@lie("the square is universal", phi=_square)
@lie("a polynomial of degree k spans k dimensions", more=0)
@lie("the derivative brings one power of x more", extra=1)
def units_that_are_no_polynomials_reach_every_function_of_one_variable(draw, phi=torch.sigmoid, more=1, extra=0):
    """Random units fitted to |x|; the dimension that polynomials span; derivatives by automatic differentiation."""
    x = _line()
    smooth = [phi, torch.tanh, torch.sin]
    nets = [RandomFeatures(1, 64, activation=f, scale=8.0, generator=draw.generator, dtype=x.dtype) for f in smooth]
    stuck = {_square: 2, _cube: 3, lambda z: z**5 + z: 5}
    spans = [RandomFeatures(1, 40, activation=f, generator=draw.generator, dtype=x.dtype).features(x) for f in stuck]
    at, b = draw.uniform(2, low=0.5, high=1.5)
    orders = range(5)
    found = [_derivative(lambda a: torch.sin(a * at + b), k) for k in orders]
    predicted = [at ** (k + extra) * torch.sin(b + k * math.pi / 2) for k in orders]
    return all_of(
        at_most([_error(_kink, x, net) for net in nets], 0.1),
        exactly([int(torch.linalg.matrix_rank(span, rtol=1e-9)) for span in spans], [k + more for k in stuck.values()]),
        close(uniform_fit(spans[0], _kink(x)).distance, 1 / 8, within=1e-6),
        close(torch.stack(found), torch.stack(predicted)),
    )


def _all(weight):
    return weight


def _axes(weight):
    """Each direction turned to the axis next to it."""
    return weight * (weight.abs() == weight.abs().amax(1, keepdim=True))


def _product(x):
    return x[:, 0] * x[:, 1]


def _bump(x):
    return torch.exp(-2 * x.square().sum(1))


def _monomials(weight, degree):
    """The coefficients of (w^T x)^k: a product of weights for each monomial, times how often it occurs."""
    inputs = range(weight.shape[1])
    columns = []
    for chosen in itertools.combinations_with_replacement(inputs, degree):
        often = math.factorial(degree) // math.prod(math.factorial(chosen.count(i)) for i in inputs)
        columns.append(often * weight[:, list(chosen)].prod(1))
    return torch.stack(columns, dim=1)


@claim("approx.lifting")
@lie("directions along the axes suffice", directions=_axes)
@lie("one dimension fewer is counted", less=2)
@lie("along the axes the distance is one half", apart=0.5)
def ridge_functions_lift_what_holds_on_the_line_to_more_variables(draw, directions=_all, less=1, apart=1.0):
    """Fits of a product and a bump in the plane; the dimension that powers of linear functions span; and the best fit
    of the product by units along the axes, whose largest error is at the corners."""
    errors = []
    for function, steepest in ((_product, math.sqrt(2)), (_bump, 1.3)):
        net = RandomFeatures(
            2, 128, activation="tanh", scale=2.0, radius=1.5, generator=draw.generator, dtype=torch.float64
        )
        net.hidden.weight.copy_(directions(net.hidden.weight))
        errors.append(_error(function, _plane(), net, steepest))
    sizes = [(2, 3), (3, 3), (3, 4), (4, 3), (5, 2), (1, 6)]
    ranks = [int(torch.linalg.matrix_rank(_monomials(directions(draw.unit(60, n)), k), rtol=1e-9)) for n, k in sizes]
    along = RandomFeatures(2, 40, activation="tanh", scale=4.0, generator=draw.generator, dtype=torch.float64)
    along.hidden.weight.copy_(_axes(along.hidden.weight))
    x = _plane(9)
    return all_of(
        at_most(errors, 0.3),
        exactly(ranks, [math.comb(n + k - less, k) for n, k in sizes]),
        close(uniform_fit(along.features(x), _product(x)).distance, apart, within=1e-6),
    )


@claim("approx.universal_mlp")
@lie("relu is bounded", printed="002/1", bounded=("sigmoid", "relu"))
@lie("one of the activations is a polynomial", third=_cube)
@lie("eight units are always enough", most=8, regime="an error of 0.05 asks for some dozen", loose="more come nearer")
def one_hidden_layer_reaches_every_error(draw, bounded=("sigmoid", "tanh"), third=torch.sin, most=256):
    """Widths are doubled until the error is small enough; the range of what is called bounded; a cubic stays away."""
    left = []
    activations = ["relu", "sigmoid", "tanh", third]
    for phi, (epsilon, inputs) in itertools.product(activations, ((0.1, 1), (0.05, 1), (0.3, 2))):
        x, function, steepest = (_line(), _kink, 1.0) if inputs == 1 else (_plane(), _bump, 1.3)
        scale, hidden, error = 8.0 if inputs == 1 else 2.0, 4, math.inf
        while error > epsilon and hidden < most:
            hidden *= 2
            net = RandomFeatures(inputs, hidden, 1, phi, scale, float(inputs), draw.generator, dtype=torch.float64)
            error = _error(function, x, net, steepest)
        left.append(error / epsilon)
    cubic = RandomFeatures(1, most, activation=_cube, generator=draw.generator, dtype=torch.float64).features(_line())
    ranges = [activation(name).range for name in bounded]
    z = torch.tensor([-1e6, 1e6], dtype=torch.float64)
    return all_of(
        at_most(left, 1.0),
        at_least(uniform_fit(cubic, _kink(_line())).distance, 1 / 8 - 1e-6),
        always([math.isfinite(r.high - r.low) for r in ranges]),
        at_most(torch.stack([ACTIVATION_TABLE[name](z).abs() for name in bounded]), 1.0),
    )
