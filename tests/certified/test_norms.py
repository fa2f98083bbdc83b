"""What the claims about norms do not say: bad input, dtypes, axes, gradients."""

import math
from fractions import Fraction

import pytest
import torch

from lemmata.certified.norms import frobenius_norm, p_norm

X = torch.tensor([[3.0, -4.0], [0.0, 2.0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_floating_dtype_is_kept(dtype):
    x = X.to(dtype)
    for value in (p_norm(x), p_norm(x, 0), p_norm(x, math.inf), frobenius_norm(x)):
        assert value.dtype is dtype


def test_any_axis_and_any_batch_is_taken():
    x = torch.randn(2, 3, 4)
    assert p_norm(x).shape == (2, 3)
    assert p_norm(x, 1, dim=0).shape == (3, 4)
    assert p_norm(x, 3, dim=1).shape == (2, 4)
    assert frobenius_norm(x).shape == (2,)


@pytest.mark.parametrize("p", [1, 1.5, 2, 7, math.inf])
def test_gradients_agree_with_differences(p):
    x = torch.tensor([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: p_norm(x, p), x)


def test_the_gradient_of_a_zero_vector_is_zero():
    x = torch.zeros(3, requires_grad=True)
    for p in (1, 1.5, 2, 3):
        (gradient,) = torch.autograd.grad(p_norm(x, p), x)
        assert gradient.equal(torch.zeros(3))


def test_norms_that_can_be_represented_do_not_overflow():
    assert p_norm(torch.full((4,), 1e30)) == 2e30
    assert p_norm(torch.full((4,), 1e-30)) == 2e-30
    assert frobenius_norm(torch.full((2, 2), 1e300, dtype=torch.float64)) == 2e300


@pytest.mark.parametrize("size", [2.0**600, 2.0**-600, 0.0])
def test_no_power_of_an_entry_overflows_or_vanishes(size):
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert p_norm(size * x, 3).equal(size * p_norm(x, 3))  # powers of two round nothing


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-200, 1e-30, 1.0, 1e30, 1e200, 3e307])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_power_of_two_is_taken_out_so_that_nothing_is_rounded(size, p):
    x = size * torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64)
    exact = sum(Fraction(entry) ** p for entry in x.tolist())
    # The norm is rounded by some ulps, and by one step where it is subnormal.
    slack, least = Fraction(1 + 2.0**-49), Fraction(5e-324)
    found = Fraction(p_norm(x, p).item())
    assert (found / slack - least) ** p <= exact <= (found * slack + least) ** p


@pytest.mark.parametrize("p", [0.5, 1, 2, 8, 9, 5000])
def test_a_single_entry_is_its_own_norm_at_the_ends_of_the_range(p):
    kind = torch.finfo(torch.float64)
    for entry in (2.0**1023, kind.tiny, 5e-324, 1.0, 0.0):  # powers of two, which round nothing
        assert p_norm(torch.tensor([0.0, -entry], dtype=torch.float64), p).item() == entry


def test_large_exponents_neither_overflow_nor_vanish():
    x = torch.tensor([3.9, -1.0, 0.0], dtype=torch.float64)
    for size in (1e-300, 1.0, 1e300):
        assert p_norm(size * x, 5000).item() == pytest.approx(3.9 * size, rel=1e-14)
    assert p_norm(torch.full((4096,), 3.0).half(), 8).item() == pytest.approx(3 * 4096 ** (1 / 8), rel=2e-3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: p_norm([1.0, 2.0]), TypeError, "x must be a tensor, got list"),
        (lambda: p_norm(torch.tensor([1, 2])), TypeError, "x must be floating point"),
        (lambda: p_norm(torch.tensor([math.nan])), ValueError, "x must be finite, found 1 NaN value"),
        (lambda: p_norm(torch.zeros(0)), ValueError, "x must not be empty"),
        (lambda: p_norm(X, -1), ValueError, "p must be >= 0 or infinity, got -1"),
        (lambda: p_norm(X, math.nan), ValueError, "p must be finite, got nan"),
        (lambda: p_norm(X, "fro"), TypeError, "p must be a number, got str"),
        (lambda: p_norm(X, dim=2), ValueError, r"dim must name an axis of x, got 2 for shape \(2, 2\)"),
        (lambda: p_norm(X, dim=None), TypeError, "dim must be an integer, got NoneType"),
        (lambda: frobenius_norm(torch.ones(2)), ValueError, r"matrix must be a \(..., rows, columns\) tensor"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
