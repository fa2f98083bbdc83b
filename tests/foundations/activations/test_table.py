"""Activations: parity with torch in value and gradient, dtypes, and what the table refuses."""

import math

import mpmath
import pytest
import torch
from torch.nn import functional

from lemmata.foundations import ACTIVATION_TABLE, ValueRange, activation

PEERS = {
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
    "silu": functional.silu,
    "softplus": functional.softplus,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softsign": functional.softsign,
    "identity": torch.nn.Identity(),
}


def test_the_table_has_a_peer_for_every_entry():
    assert set(PEERS) == set(ACTIVATION_TABLE)
    assert all(entry.name == name for name, entry in ACTIVATION_TABLE.items())


@pytest.mark.parametrize("name", sorted(PEERS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradient_are_those_of_torch(name, dtype):
    z = torch.cat([torch.linspace(-9, 9, 73), torch.zeros(1)]).to(dtype)
    ours, theirs = z.clone().requires_grad_(), z.clone().requires_grad_()
    entry = ACTIVATION_TABLE[name]
    value, expected = entry(ours), PEERS[name](theirs)
    value.sum().backward()
    expected.sum().backward()
    close = {torch.float32: 2e-6, torch.float64: 1e-12}[dtype]
    assert value.dtype == dtype
    assert entry.derivative(z).dtype == dtype
    torch.testing.assert_close(value, expected, atol=close, rtol=close)
    torch.testing.assert_close(ours.grad, theirs.grad, atol=close, rtol=close)
    torch.testing.assert_close(entry.derivative(z), theirs.grad, atol=close, rtol=close)


@pytest.mark.parametrize("name", sorted(PEERS))
def test_derivatives_are_right_to_second_order_away_from_kinks(name):
    z = torch.tensor([-2.3, -0.4, 0.7, 3.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ACTIVATION_TABLE[name].value, z)
    assert torch.autograd.gradgradcheck(ACTIVATION_TABLE[name].value, z)


def test_the_gains_are_those_of_the_multilayer_perceptron():
    assert activation("relu").gain == math.sqrt(2)
    assert activation("tanh").gain == 1.0


WIDE = torch.linspace(-40, 40, 8001, dtype=torch.float64)


@pytest.mark.parametrize("name", [name for name, entry in ACTIVATION_TABLE.items() if entry.inverse is not None])
def test_inverses_lead_back(name):
    entry, z = activation(name), torch.linspace(-6, 6, 49, dtype=torch.float64)  # 0, a kink of some, is on the grid
    # An inverse loses what the slope is flat: a rounding of y moves z by eps/slope.
    allowed = 512 * torch.finfo(z.dtype).eps / entry.derivative(z).clamp(max=1.0)
    assert ((entry.invert(entry(z)) - z).abs() <= allowed).all()


@pytest.mark.parametrize("entry", ACTIVATION_TABLE.values(), ids=lambda entry: entry.name)
def test_ranges_and_monotony_are_those_of_the_values(entry):
    values, low, high = entry(WIDE), entry.range.low, entry.range.high
    assert ((values >= low) & (values <= high)).all()
    lowest = 40 * 0.01 if entry.name == "leaky_relu" else 40  # a line that falls for ever has got so far
    assert values.min() == pytest.approx(max(low, -lowest), abs=0.03)
    assert values.max() == pytest.approx(min(high, 40), abs=0.03)
    assert bool((values.diff() >= 0).all()) == entry.monotone
    # Where the values fall towards the left they never reach the infimum; else they have been there.
    assert bool(entry(torch.tensor([-6.0, -5.75])).diff() <= 0) == entry.range.attained
    assert [value in entry.range for value in (low, high, float(values[4001]))] == [entry.range.attained, False, True]
    assert low - 1 not in entry.range
    assert high + 1 not in entry.range


@pytest.mark.parametrize("name", ["relu", "identity"])
def test_gains_keep_the_mean_square_of_what_a_layer_passes_on(name):
    entry = activation(name)
    normal = torch.exp(-(WIDE**2) / 2) / math.sqrt(2 * math.pi)
    assert float(torch.trapezoid(normal * (entry.gain * entry(WIDE)) ** 2, WIDE)) == pytest.approx(1, abs=1e-9)


def _sigmoid(z):
    return 1 / (1 + mpmath.exp(-z))


def _gelu_tanh(z):
    return z * _sigmoid(mpmath.sqrt(8 / mpmath.pi) * (z + mpmath.mpf(0.044715) * z**3))


def _turn(slope, near):
    """Where a slope is largest, or a function least: a root of the derivative."""
    return mpmath.findroot(lambda z: mpmath.diff(slope, z), near)


def _silu_slope(z):
    return _sigmoid(z) * (1 + z * _sigmoid(-z))


# The slope of each and the place where it is largest (right of a kink at 0), to as many digits as are asked for.
STEEPEST = {
    "relu": (lambda z: mpmath.mpf(1), lambda: 0),
    "leaky_relu": (lambda z: mpmath.mpf(1), lambda: 0),
    "elu": (mpmath.exp, lambda: 0),
    "gelu": (lambda z: mpmath.ncdf(z) + z * mpmath.npdf(z), lambda: mpmath.sqrt(2)),
    "gelu_tanh": (lambda z: mpmath.diff(_gelu_tanh, z), lambda: _turn(lambda z: mpmath.diff(_gelu_tanh, z), 1.4)),
    "silu": (_silu_slope, lambda: _turn(_silu_slope, 2.4)),
    "softplus": (_sigmoid, lambda: mpmath.inf),
    "tanh": (lambda z: mpmath.sech(z) ** 2, lambda: 0),
    "sigmoid": (lambda z: _sigmoid(z) * _sigmoid(-z), lambda: 0),
    "softsign": (lambda z: (1 + abs(z)) ** -2, lambda: 0),
    "identity": (lambda z: mpmath.mpf(1), lambda: 0),
}
LEAST = {
    "gelu": (lambda z: z * mpmath.ncdf(z), -0.75),
    "gelu_tanh": (_gelu_tanh, -0.75),
    "silu": (lambda z: z * _sigmoid(z), -1.3),
}


@pytest.mark.parametrize("name", sorted(ACTIVATION_TABLE))
def test_lipschitz_constants_are_rounded_up_to_the_next_float(name):
    """To 50 digits: the float stored bounds the steepest slope, and the float below it does not."""
    slope, place = STEEPEST[name]
    constant = activation(name).lipschitz
    with mpmath.workdps(50):
        largest = mpmath.mpf(slope(place()))
        assert mpmath.mpf(math.nextafter(constant, 0.0)) < largest <= mpmath.mpf(constant)
    # And no slope of ours is steeper, up to its own rounding.
    assert float(activation(name).derivative(WIDE).abs().max()) <= constant * (1 + 8 * torch.finfo(torch.float64).eps)


@pytest.mark.parametrize("name", sorted(LEAST))
def test_least_values_are_rounded_down_to_the_next_float(name):
    function, near = LEAST[name]
    low = activation(name).range.low
    with mpmath.workdps(50):
        least = function(_turn(function, near))
        assert mpmath.mpf(low) <= least < mpmath.mpf(math.nextafter(low, math.inf))


def test_an_unknown_name_gets_the_nearest_or_the_list():
    with pytest.raises(ValueError, match="unknown activation 'sigmiod': did you mean sigmoid"):
        activation("sigmiod")
    with pytest.raises(ValueError, match="known are relu, leaky_relu"):
        activation("zzzz")


def test_inverses_refuse_what_the_function_never_takes():
    with pytest.raises(ValueError, match="relu has no inverse"):
        activation("relu").invert(torch.ones(1))
    with pytest.raises(ValueError, match=r"y must lie in \(-1, 1\), the range of tanh, got 1.5"):
        activation("tanh").invert(torch.tensor([0.0, 1.5]))
    with pytest.raises(ValueError, match=r"y must lie in \(0, inf\), the range of softplus, got -2"):
        activation("softplus").invert(torch.tensor([1.0, -2.0]))


def test_a_range_knows_its_ends():
    closed = ValueRange(0.0, attained=True)
    assert 0.0 in closed
    assert 0.0 not in ValueRange(0.0)
    assert math.inf not in closed
    assert 1.0 not in ValueRange(0.0, 1.0)
