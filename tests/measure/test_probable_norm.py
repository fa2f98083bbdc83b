"""What the claim about the spectral norm does not say of random starts: how rarely they miss, bad input, dtypes."""

import math

import pytest
import scipy.special
import torch

from lemmata.measure.probable_norm import krylov_miss_probability, krylov_steps, probable_spectral_norm


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept_and_bounds_are_double(dtype):
    bounds = probable_spectral_norm(torch.eye(3, 2, dtype=dtype))
    assert bounds.value.dtype is dtype
    assert bounds.upper.dtype is torch.float64


def test_the_same_generator_gives_the_same_bounds():
    matrix = torch.randn(30, 20)
    first, second = (probable_spectral_norm(matrix, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert first.lower.equal(second.lower)


def test_parity_with_torch_for_batches_of_any_shape():
    generator = torch.Generator().manual_seed(0)
    for shape in ((1, 1), (1, 9), (9, 1), (4, 5, 6, 3), (2, 30, 40)):
        matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
        exact = torch.linalg.matrix_norm(matrix, 2)
        for tolerance in (1e-2, 1e-8):
            bounds = probable_spectral_norm(matrix, tolerance, generator=generator)
            assert ((bounds.lower <= exact) & (exact <= bounds.upper)).all()


def test_the_probability_of_a_miss_is_that_of_a_start_nearly_orthogonal():
    # The square of one entry of a random unit vector follows a beta law, below whose density at 0 the bound stays.
    for n in (2, 5, 50):
        for t in (0.001, 0.1, 0.5):
            assert scipy.special.betainc(0.5, (n - 1) / 2, t * t) <= t * math.sqrt(2 * n / math.pi)
    size, steps, error = 50, 8, 0.15
    angle = math.acosh((1 + error) / (1 - error))
    expected = math.sqrt((1 - error) / error) / math.cosh((steps - 1) * angle) * math.sqrt(2 * size / math.pi)
    assert krylov_miss_probability(size, steps, error) == pytest.approx(expected, rel=1e-12)
    assert krylov_miss_probability(size, 1, error) == 1


@pytest.mark.parametrize("size", [500, 601, 702, 803, 1000])
def test_one_step_less_would_not_do(size):
    steps = krylov_steps(size, 0.05, failure=1e-6)
    assert krylov_miss_probability(size, steps, 0.05) <= 1e-6 < krylov_miss_probability(size, steps - 1, 0.05)


def test_no_more_steps_than_dimensions_and_one_where_one_does():
    assert [krylov_steps(7, 1e-6), krylov_steps(1, 0.5), krylov_steps(2, 1 - 1e-6, failure=0.01)] == [7, 1, 1]
    assert 1e-10 < krylov_miss_probability(4096, krylov_steps(4096, 0.02), 0.02) <= 1e-9


def test_bounds_wide_and_tall_coarse_and_fine_huge_and_zero():
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(3, 20, 60, generator=generator, dtype=torch.float64)
    exact = torch.linalg.svdvals(wide)[..., 0]
    coarse, fine = probable_spectral_norm(wide, generator=generator), probable_spectral_norm(wide.mT, 1e-6)
    huge = probable_spectral_norm(2.0**1000 * wide, 1e-6)
    for bounds, width in ((coarse, 1.01), (fine, 1 + 1e-6)):
        assert ((bounds.lower <= exact) & (exact <= bounds.upper)).all()
        torch.testing.assert_close(bounds.upper / bounds.lower, torch.full_like(exact, width), rtol=3e-12, atol=0.0)
    torch.testing.assert_close(fine.value, exact, rtol=2e-11, atol=0.0)
    torch.testing.assert_close(huge.value, 2.0**1000 * exact, rtol=2e-11, atol=0.0)
    torch.testing.assert_close(huge.upper / 2.0**1000, fine.upper, rtol=2e-11, atol=0.0)
    assert huge.lower.isfinite().all()
    stretched = (coarse.left[..., None, :] @ wide @ coarse.right[..., None])[..., 0, 0]
    torch.testing.assert_close(stretched, coarse.value)
    # The vector is found in single precision, whose rounding of 1e-3 in it is squared in the value.
    torch.testing.assert_close(coarse.value, exact, rtol=0.0, atol=1e-3)
    for vectors in (coarse.right, fine.left):
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(3, dtype=torch.float64))
    assert probable_spectral_norm(torch.zeros(2, 3)).upper.item() == 0


def test_numbers_too_large_or_small_for_squares_in_single_precision():
    wide = torch.randn(3, 20, 60, generator=torch.Generator().manual_seed(0))
    sizes = torch.tensor([2.0**-90, 1.0, 2.0**90])
    bounds, exact = probable_spectral_norm(wide * sizes[:, None, None]), sizes * torch.linalg.svdvals(wide)[..., 0]
    torch.testing.assert_close(bounds.lower / exact, torch.ones(3, dtype=torch.float64), rtol=0.0, atol=1e-3)
    torch.testing.assert_close(bounds.upper / exact, torch.full((3,), 1.01).double(), rtol=0.0, atol=1e-3)


def test_a_large_matrix_is_multiplied_in_pieces():
    long = torch.randn(600, 500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bounds, exact = probable_spectral_norm(long, 1e-3), torch.linalg.svdvals(long)[0]
    assert bounds.lower <= exact <= bounds.upper
    assert float(bounds.upper / bounds.lower) == pytest.approx(1 + 1e-3, rel=3e-12)


def test_the_gradient_is_that_of_the_norm():
    matrix = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(probable_spectral_norm(matrix, tolerance=1e-12).value, matrix)
    (expected,) = torch.autograd.grad(torch.linalg.matrix_norm(matrix, 2), matrix)
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: krylov_miss_probability(0, 3, 0.1), ValueError, "size must be >= 1, got 0"),
        (lambda: krylov_miss_probability(5, 3, 1.0), ValueError, "error must lie between 0 and 1, got 1.0"),
        (lambda: krylov_miss_probability(5, 0, 0.1), ValueError, "steps must be >= 1, got 0"),
        (lambda: krylov_steps(5, 0.1, failure=0.0), ValueError, "failure must lie between 0 and 1, got 0.0"),
        (lambda: krylov_steps(5, -0.1), ValueError, "error must lie between 0 and 1, got -0.1"),
        (lambda: probable_spectral_norm(torch.ones(3)), ValueError, r"matrix must be a \(..., rows, columns\) tensor"),
        (lambda: probable_spectral_norm(torch.eye(2), tolerance=0), ValueError, "tolerance must be > 0, got 0"),
        (lambda: probable_spectral_norm(torch.eye(2), failure=2.0), ValueError, "failure must lie between 0 and 1"),
        (lambda: probable_spectral_norm(torch.eye(2) * math.nan), ValueError, "matrix must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
