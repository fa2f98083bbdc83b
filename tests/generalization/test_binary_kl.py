"""The binary divergence and its inverses against 660 digits: never on the wrong side, never far from the true one."""

import itertools
import math
import random

import mpmath
import pytest
import torch

from lemmata.generalization import bernoulli_kl, kl_inverse
from lemmata.generalization.binary_kl import ROUNDING

DIGITS = 660  # probabilities as small as 1e-290 beside one
RATES = [0.0, 1e-12, 0.05, 0.3, 0.597, 0.999999, 1.0]
DIVERGENCES = [0.0, 1e-20, 1e-12, 1e-3, 0.1, 5.0, 2850.0]


def divergence(q, p):
    """By its definition."""
    q, p = mpmath.mpf(q), mpmath.mpf(p)
    heads = q * mpmath.log(q / p) if q else mpmath.mpf(0)
    return heads + ((1 - q) * mpmath.log((1 - q) / (1 - p)) if q < 1 else mpmath.mpf(0))


def hard_rates(seed, number):
    """Pairs near 0, near 1, near one another and far apart."""
    rng = random.Random(seed)
    for _ in range(number):
        q = rng.choice([0.0, 1.0, rng.random(), 10 ** rng.uniform(-280, 0), 1 - 10 ** rng.uniform(-15, 0)])
        near = q + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, 0) * max(min(q, 1 - q), 1e-12)
        p = rng.choice([near, rng.random(), 10 ** rng.uniform(-280, 0), 1 - 10 ** rng.uniform(-15, 0)])
        if 1e-285 < p < 1:
            yield q, p


@pytest.mark.rounding
def test_the_divergence_is_exact_to_a_quarter_of_what_is_allowed():
    pairs = list(hard_rates(0, 250))
    found = bernoulli_kl(*(torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True)))
    with mpmath.workdps(DIGITS):
        for (q, p), ours in zip(pairs, found.tolist(), strict=True):
            true = divergence(q, p)
            sizes = abs(true)
            if abs(p - q) >= 0.5 * min(q, 1 - q):  # where two terms of different sign are added
                heads = q * mpmath.log(mpmath.mpf(q) / p) if q else 0
                sizes = abs(heads) + abs(true - heads)
            assert abs(ours - true) <= ROUNDING / 4 * sizes + 1e-300, (q, p)


@pytest.mark.rounding
@pytest.mark.parametrize("side", ["above", "below"])
def test_what_is_returned_is_never_on_the_wrong_side(side):
    rng = random.Random(1)
    cases = [*itertools.product(RATES, DIVERGENCES)]
    cases += [(q, 10 ** rng.uniform(-18, 3)) for q, _ in hard_rates(2, 200)]
    q, c = (torch.tensor(each, dtype=torch.float64) for each in zip(*cases, strict=True))
    end = 1.0 if side == "above" else 0.0
    for dtype in (torch.float64, torch.float32):
        rounded = q.to(dtype)
        found = kl_inverse(rounded, c, side)
        assert found.dtype == dtype
        with mpmath.workdps(DIGITS):
            for rate, allowed, ours in zip(rounded.tolist(), c.tolist(), found.tolist(), strict=True):
                assert ours >= rate if side == "above" else ours <= rate
                assert ours == end or divergence(rate, ours) >= allowed, (rate, allowed)


@pytest.mark.rounding
@pytest.mark.parametrize(("q", "c"), [*itertools.product([0.0, 1e-12, 0.05, 0.3, 0.597], [1e-12, 1e-3, 0.1, 5.0])])
def test_it_is_no_farther_than_rounding_asks_for(q, c):
    with mpmath.workdps(60):
        low, high = mpmath.mpf(q), mpmath.mpf(1)
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(q, middle) <= c else (low, middle)
        ours = float(kl_inverse(q, c))
        assert 0 <= ours - low <= 1e-12 * float(high) + 1e-10 * float(high - q)


def test_the_ends():
    assert kl_inverse(0.2, 0.0).item() == kl_inverse(0.2, 0.0, "below").item() == 0.2
    assert kl_inverse(1.0, 0.3).item() == 1.0
    assert kl_inverse(0.0, 0.3, "below").item() == 0.0
    assert kl_inverse(0.0, 0.3).item() == pytest.approx(-math.expm1(-0.3), rel=1e-12)
    assert kl_inverse(0.597, 2850.0).item() == 1.0
    assert bernoulli_kl(0.3, 0.3).item() == 0.0
    assert bernoulli_kl(0.3, 1.0).item() == bernoulli_kl(0.3, 0.0).item() == math.inf


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("side", ["above", "below"])
def test_gradients_are_those_of_the_implicit_function(side):
    q = torch.tensor([0.02, 0.3, 0.8], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([0.03, 0.2, 0.05], dtype=torch.float64, requires_grad=True)
    solve = lambda q, c: kl_inverse(q, c, side)  # noqa: E731
    assert torch.autograd.gradcheck(solve, (q, c), eps=1e-7, atol=1e-5)
    assert torch.autograd.gradgradcheck(solve, (q, c), eps=1e-6, atol=1e-3)
    mapped = torch.func.vmap(torch.func.grad(kl_inverse, argnums=(0, 1)))(q.detach(), c.detach())
    found = torch.autograd.grad(kl_inverse(q, c).sum(), (q, c))
    assert all(torch.equal(one, other) for one, other in zip(mapped, found, strict=True))


def test_gradients_at_the_ends():
    q = torch.tensor([0.0, 0.3, 1.0, 0.5], requires_grad=True)
    c = torch.tensor([0.1, 0.0, 0.1, 3000.0], requires_grad=True)
    kl_inverse(q, c).sum().backward()
    assert q.grad.tolist() == [math.inf, 1.0, 1.0, 0.0]
    assert c.grad[1:].tolist() == [math.inf, 0.0, 0.0]
    assert c.grad[0] == pytest.approx(math.exp(-0.1))


def test_the_divergence_has_its_own_gradient():
    q = torch.tensor([0.2, 0.3, 0.99], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([0.21, 0.9, 0.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(bernoulli_kl, (q, p), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kl_inverse(1.3, 0.1), "q must lie between 0 and 1, got 1.3"),
        (lambda: kl_inverse(torch.tensor([0.1, -0.2]), 0.1), "q must lie between 0 and 1, got -0.2"),
        (lambda: kl_inverse(torch.tensor(math.nan), 0.1), "q must lie between 0 and 1, got nan"),
        (lambda: kl_inverse(0.1, -0.1), "divergence must be >= 0, got -0.1"),
        (lambda: kl_inverse(0.1, math.nan), "divergence must be >= 0, got nan"),
        (lambda: kl_inverse(0.1, 0.1, "up"), "side must be one of above, below, got 'up'"),
        (lambda: bernoulli_kl(0.1, 2.0), "p must lie between 0 and 1, got 2"),
    ],
)
def test_bad_input_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()
