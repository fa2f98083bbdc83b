"""Interval arithmetic against exact ranges: every operation encloses what it should, and not much more."""

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
import torch

from lemmata.certified.intervals import LARGEST_ANGLE, TINY, Interval
from lemmata.certified.jets import half_tanh, sigmoid_slope, softplus, tanh_slope

EPS = torch.finfo(torch.float64).eps
# All patterns of signs, points too; and points inside them, with 0 among these wherever it lies inside.
LOWS, HIGHS = torch.tensor(
    [[1.0, -2.0, -1.0, -2.0, 0.0, -1.0, 0.5, -0.5, -0.5], [2.0, -1.0, 2.0, 1.0, 1.0, 0.0, 0.5, -0.5, 0.5]],
    dtype=torch.float64,
)
INSIDE = LOWS + (HIGHS - LOWS) * torch.linspace(0.0, 1.0, 31, dtype=torch.float64)[:, None]
APART = (LOWS > 0) | (HIGHS < 0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def normal(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def is_range(found, values):
    """The smallest interval that holds the values, up to rounding outwards."""
    low, high = values.amin(0), values.amax(0)
    assert ((found.low <= low) & (high <= found.high)).all()
    assert (low - found.low).max() <= 512 * EPS
    assert (found.high - high).max() <= 512 * EPS


def test_sums_and_products_of_all_signs():
    one, two = Interval(LOWS, HIGHS)[:, None], Interval(LOWS, HIGHS)[None]
    x, y = INSIDE[:, None, :, None], INSIDE[None, :, None, :]
    is_range(one + two, (x + y).flatten(0, 1))
    is_range(one * two, (x * y).flatten(0, 1))


@pytest.mark.parametrize("exponent", range(6))
def test_powers_of_all_signs(exponent):
    is_range(Interval(LOWS, HIGHS).power(exponent), INSIDE**exponent)


def test_functions_of_one_variable():
    is_range(-Interval(LOWS, HIGHS), -INSIDE)
    is_range(Interval(LOWS, HIGHS)[APART].reciprocal(), 1 / INSIDE[:, APART])
    is_range(Interval(LOWS, HIGHS).increasing(torch.exp), INSIDE.exp())
    is_range(Interval(LOWS, HIGHS).even_falling(lambda u: 1 / (1 + u**2)), 1 / (1 + INSIDE**2))


def test_the_cosine_reaches_one_where_a_turn_lies_inside(generator):
    low, width, some = torch.rand((3, 150), generator=generator, dtype=torch.float64)
    low = 24 * low - 12
    high = low + 8 * width * (some < 0.9)  # a tenth are points
    values = torch.cos(low + (high - low) * torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)[:, None])
    found = Interval(low, high).cosine()
    assert ((found.low <= values.amin(0)) & (values.amax(0) <= found.high)).all()
    # The grid misses an extreme by half a step: 0.002² / 2.
    assert (values.amin(0) - found.low).max() <= 3e-6
    assert (found.high - values.amax(0)).max() <= 3e-6


def holds(found, exact):
    """Whether each interval holds its fraction."""
    ends = zip(found.low.tolist(), exact, found.high.tolist(), strict=True)
    return all(Fraction(low) <= middle <= Fraction(high) for low, middle, high in ends)


@pytest.mark.parametrize(
    ("size", "other"), [(1.0, 1.0), (1e10, 1e10), (1e-10, 1e-10), (1e200, 1e-200), (1e-200, 1e-200)]
)
def test_sums_and_products_hold_the_exact_fraction(generator, size, other):
    a, b = size * normal(generator, 60), other * normal(generator, 60)
    pairs = [(Fraction(p), Fraction(q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert holds(Interval(a) + Interval(b), [p + q for p, q in pairs])
    assert holds(Interval(a) * Interval(b), [p * q for p, q in pairs])


@pytest.mark.parametrize("error", [-6, 6])
def test_functions_may_err_by_six_units(generator, error):
    x = 20 * normal(generator, 200)
    image = Interval(x).increasing(lambda u: u.exp() * (1 + error * EPS))
    assert ((image.low <= x.exp()) & (x.exp() <= image.high)).all()
    assert ((image.high - image.low) / x.exp()).max() <= 32 * EPS


def test_sums_in_which_all_digits_cancel_but_the_last(generator):
    great = 2.0**52 * normal(generator, 40, 1).round()
    terms = torch.cat([great, normal(generator, 40, 6), -great], dim=1)
    exact = [sum(map(Fraction, row), Fraction(0)) for row in terms.tolist()]
    found = Interval(terms).sum(1)
    assert holds(found, exact)
    assert holds(Interval(terms.T).mapped(torch.ones(1, 8).double())[0], exact)
    assert (found.high - found.low <= 64 * EPS * terms.abs().sum(1)).all()


def test_images_under_a_matrix_take_the_ends_by_sign(generator):
    low, matrix = normal(generator, 5, 3), normal(generator, 4, 5)
    high = low + torch.rand((5, 3), generator=generator, dtype=torch.float64)
    weight = matrix[..., None]
    least, most = ((weight * torch.where(weight > 0, *ends)).sum(1) for ends in ((low, high), (high, low)))
    mapped, total = Interval(low, high).mapped(matrix), Interval(low, high).sum(0)
    assert ((mapped.low <= least) & (most <= mapped.high)).all()
    for found, exact in (
        (mapped.low, least), (mapped.high, most), (total.low, low.sum(0)), (total.high, high.sum(0))
    ):  # fmt: skip
        torch.testing.assert_close(found, exact, rtol=0, atol=512 * EPS)


def domain(low, high):
    """Points between two ends: evenly, by magnitude on both sides of 0, and beside 0. All processes find the same."""
    even = [low + (high - low) / 512 * i for i in range(513)] + [i / 128 for i in range(-512, 513)]
    sizes = [sign * math.ldexp(1 + k % 7 / 7, k) for k in range(-1074, 1024, 4) for sign in (-1, 1)]
    return torch.tensor([point for point in even + sizes if low <= point <= high], dtype=torch.float64)


LARGEST, LEAST = torch.finfo(torch.float64).max, 5e-324
# What jets take from torch, at which points, and the same in many digits.
FUNCTIONS = {
    "exp": (torch.exp, domain(-800.0, 709.78), mpmath.exp),
    "log": (torch.log, domain(LEAST, LARGEST), mpmath.log),
    "sqrt": (torch.sqrt, domain(0.0, LARGEST), mpmath.sqrt),
    "sin": (torch.sin, domain(-LARGEST_ANGLE, LARGEST_ANGLE), mpmath.sin),
    "cos": (torch.cos, domain(-LARGEST_ANGLE, LARGEST_ANGLE), mpmath.cos),
    "tanh": (torch.tanh, domain(-1e300, 1e300), mpmath.tanh),
    "half_tanh": (half_tanh, domain(-1e300, 1e300), lambda u: mpmath.tanh(u / 2)),
    "sigmoid": (torch.sigmoid, domain(-800.0, 800.0), lambda u: 1 / (1 + mpmath.exp(-u))),
    "sigmoid_slope": (sigmoid_slope, domain(-800.0, 800.0), lambda u: 1 / (2 + mpmath.exp(-u) + mpmath.exp(u))),
    "tanh_slope": (tanh_slope, domain(-400.0, 400.0), lambda u: mpmath.sech(u) ** 2),
    "softplus": (softplus, domain(-800.0, 1e300), lambda u: mpmath.log1p(mpmath.exp(-abs(u))) + max(u, 0)),
    "power 2": (lambda u: u**2, domain(-1e150, 1e150), lambda u: u**2),
    "power 3": (lambda u: u**3, domain(-1e100, 1e100), lambda u: u**3),
    "power 7": (lambda u: u**7, domain(-1e40, 1e40), lambda u: u**7),
    "power 50": (lambda u: u**50, domain(-1e6, 1e6), lambda u: u**50),
    "reciprocal": (lambda u: 1 / u, domain(1e-300, LARGEST), lambda u: 1 / u),
}


@pytest.fixture(scope="module")
def in_many_digits():
    """A thousand points of each function take mpmath a tenth of a second."""
    with mpmath.workdps(60):
        return {name: [exact(mpmath.mpf(u)) for u in points.tolist()] for name, (_, points, exact) in FUNCTIONS.items()}


@pytest.mark.parametrize("instructions", ["", "default"])
def test_torch_is_as_exact_as_intervals_assume(instructions, in_many_digits):
    """With this machine's instructions and with the plainest: torch chooses when it starts, so in a process of its own.

    Its vectorised functions promise one unit in the last place; the sum and the quotient of a sigmoid add one, so a
    product of two of them is off by less than five, of the eight that intervals allow.
    """
    own = "import json; from test_intervals import values; print(json.dumps(values()))"
    environment = {name: value for name, value in os.environ.items() if name != "ATEN_CPU_CAPABILITY"}
    if instructions:
        environment["ATEN_CPU_CAPABILITY"] = instructions
    run = subprocess.run([sys.executable, "-c", own], cwd=Path(__file__).parent, env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
    found = json.loads(run.stdout)
    for name, exact in in_many_digits.items():
        with mpmath.workdps(60):
            pairs = zip((mpmath.mpf(float.fromhex(value)) for value in found[name]), exact, strict=True)
            assert all(abs(value - truth) <= 5 * EPS * abs(value) + TINY for value, truth in pairs), name


def values():
    """What torch computes in this process, in all digits."""
    return {name: [value.hex() for value in f(points).tolist()] for name, (f, points, _) in FUNCTIONS.items()}
