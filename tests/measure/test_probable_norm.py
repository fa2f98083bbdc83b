"""What the claim about the spectral norm does not say of random starts: how rarely they miss, bad input, dtypes."""

import math

import mpmath
import pytest
import scipy.special
import torch

from lemmata.measure import probable_norm
from lemmata.measure.probable_norm import (
    _iteration_plan,
    _row_blocks,
    krylov_miss_probability,
    krylov_steps,
    probable_spectral_norm,
)


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
    expected = math.sqrt(2 * size / math.pi) / math.cosh((steps - 1) * angle)
    assert expected <= krylov_miss_probability(size, steps, error) <= expected * (1 + 2e-12)
    assert krylov_miss_probability(size, 1, error) == 1


@pytest.mark.parametrize("size", [500, 601, 702, 803, 1000])
def test_one_step_less_would_not_do(size):
    steps = krylov_steps(size, 0.05, failure=1e-6)
    assert krylov_miss_probability(size, steps, 0.05) <= 1e-6 < krylov_miss_probability(size, steps - 1, 0.05)


def test_no_more_steps_than_dimensions():
    assert [krylov_steps(7, 1e-6), krylov_steps(1, 0.5), krylov_steps(2, 1 - 1e-6, failure=0.01)] == [7, 1, 2]
    assert 1e-10 < krylov_miss_probability(4096, krylov_steps(4096, 0.02), 0.02) <= 1e-9


def test_bounds_wide_and_tall_coarse_and_fine_huge_and_zero():
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(3, 20, 60, generator=generator, dtype=torch.float64)
    exact = torch.linalg.svdvals(wide)[..., 0]
    coarse, fine = probable_spectral_norm(wide, generator=generator), probable_spectral_norm(wide.mT, 1e-6)
    huge = probable_spectral_norm(2.0**1000 * wide, 1e-6)
    for bounds, width in ((coarse, 1.01), (fine, 1 + 1e-6)):
        assert ((bounds.lower <= exact) & (exact <= bounds.upper)).all()
        torch.testing.assert_close(bounds.upper / bounds.lower, torch.full_like(exact, width), rtol=1e-11, atol=0.0)
    torch.testing.assert_close(fine.value, exact, rtol=2e-11, atol=0.0)
    torch.testing.assert_close(huge.value, 2.0**1000 * exact, rtol=2e-11, atol=0.0)
    torch.testing.assert_close(huge.upper / 2.0**1000, fine.upper, rtol=2e-11, atol=0.0)
    assert huge.lower.isfinite().all()
    stretched = (coarse.left[..., None, :] @ wide @ coarse.right[..., None])[..., 0, 0]
    torch.testing.assert_close(stretched, coarse.value)
    torch.testing.assert_close(coarse.value, exact)
    for vectors in (coarse.right, fine.left):
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(3, dtype=torch.float64))
    assert probable_spectral_norm(torch.zeros(2, 3)).upper.item() == 0


def test_batches_hold_matrices_of_all_sizes():
    wide = torch.randn(3, 20, 60, generator=torch.Generator().manual_seed(0))
    sizes = torch.tensor([2.0**-140, 1.0, 2.0**120])
    bounds, exact = probable_spectral_norm(wide * sizes[:, None, None]), sizes * torch.linalg.svdvals(wide)[..., 0]
    torch.testing.assert_close(bounds.lower / exact, torch.ones(3, dtype=torch.float64), rtol=0.0, atol=1e-3)
    torch.testing.assert_close(bounds.upper / exact, torch.full((3,), 1.01).double(), rtol=0.0, atol=1e-3)


@pytest.mark.parametrize(
    "scale", [5e-324, 1e-320, 1e-308, 1e-200, 1e-120, 1e-30, 1e-12, 1e11, 1e30, 1e120, 1e200, 1.7e308]
)
def test_the_promise_is_kept_at_every_scale(scale):
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        matrix = (2 * torch.rand(9, 7, generator=generator, dtype=torch.float64) - 1) * scale
        bounds = probable_spectral_norm(matrix, generator=generator)
        with mpmath.workdps(40):
            exact = mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False)[0]
            assert mpmath.mpf(bounds.lower.item()) <= exact <= mpmath.mpf(bounds.upper.item())
            if 1e-300 < scale < 1e300:
                assert mpmath.mpf(bounds.upper.item()) < 1.011 * exact
        assert not bounds.value.isnan()


@pytest.mark.parametrize(("size", "top", "tolerance"), [(1000, 1.0012, 1e-3), (300, 1.0012, 1e-3), (1200, 1.02, 1e-2)])
def test_the_promise_is_kept_on_flat_spectra(size, top, tolerance):
    matrix = torch.eye(size)
    matrix[0, 0] = top
    for seed in range(3):
        bounds = probable_spectral_norm(matrix, tolerance, generator=torch.Generator().manual_seed(seed))
        assert bounds.lower <= matrix[0, 0].double() <= bounds.upper


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_numbers_are_widened(dtype):
    scales = torch.tensor([torch.finfo(dtype).tiny / 4, 1.0, torch.finfo(dtype).max / 64]).double()
    drawn = torch.rand(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = ((2 * drawn - 1) * scales[:, None, None]).to(dtype)
    bounds, exact = probable_spectral_norm(matrix), torch.linalg.matrix_norm(matrix.double(), 2)
    assert ((bounds.lower <= exact) & (exact <= bounds.upper)).all()
    assert bounds.value.dtype is dtype


def test_where_rounding_leaves_no_room_for_the_tolerance_there_are_more_starts_and_then_wider_bounds():
    assert _iteration_plan(4096, 4096, 1e-2, 1e-9)[:3] == (pytest.approx(1e-2), 3, 43)
    apart, starts, *_ = _iteration_plan(20000, 20000, 1e-3, 1e-9)
    assert apart == pytest.approx(1e-3)
    assert 3 < starts <= 8
    apart, starts, steps, lost = _iteration_plan(20000, 20000, 1e-5, 1e-9)
    assert starts == 8
    assert 1e-5 < apart < 1e-3
    chance = 1e-9 ** (1 / 8)
    # A start misses by chance or by rounding; what it may miss is what the bounds are apart.
    error = 1 - (1 + apart) ** -2
    missed = krylov_miss_probability(20000, steps, error) + math.sqrt(2 * 20000 / math.pi) * 2 * lost / error
    assert missed <= chance
    assert _iteration_plan(7, 5, 1e-14, 1e-9)[1:3] == (3, 5)
    # Two products with m and n terms, and k vectors made orthogonal twice; of all that twice as much is allowed.
    *_, steps, lost = _iteration_plan(300, 200, 1e-2, 1e-9)
    u, k = 2.0**-53, math.sqrt(steps)
    assert lost == pytest.approx(2 * u * k * ((300 + 200) * math.sqrt(200) + 4 * 200 * k), rel=1e-12, abs=0)


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
@pytest.mark.parametrize("shape", [(700, 530), (530, 700), (2, 300, 250)])
def test_a_large_matrix_is_multiplied_in_blocks(shape, scale):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bounds, exact = probable_spectral_norm(scale * drawn, 1e-3), torch.linalg.matrix_norm(drawn, 2)
    assert ((bounds.lower / scale <= exact) & (exact <= bounds.upper / scale)).all()
    torch.testing.assert_close(bounds.upper / bounds.lower, torch.full_like(exact, 1 + 1e-3), rtol=1e-8, atol=0.0)
    torch.testing.assert_close(bounds.value / scale, exact, rtol=1e-3, atol=0.0)


def test_blocks_of_a_batch_are_scaled_each_by_its_own_size():
    drawn = torch.randn(2, 300, 250, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scales = torch.tensor([1.0, 2.0**-800], dtype=torch.float64)
    bounds, exact = probable_spectral_norm(drawn * scales[:, None, None], 1e-3), torch.linalg.matrix_norm(drawn, 2)
    assert ((bounds.lower / scales <= exact) & (exact <= bounds.upper / scales)).all()


@pytest.mark.parametrize(("rows", "whole"), [(4, True), (4000, False)])
def test_a_matrix_that_fits_is_scaled_once_and_a_larger_one_block_by_block(rows, whole, monkeypatch):
    monkeypatch.setattr(probable_norm, "CACHED", 1000)  # numbers for each thread, of which there may be many
    drawn, unit = torch.randn(1, rows, 250, dtype=torch.float64), torch.full((1, 1, 1), 2.0, dtype=torch.float64)
    before, blocks = drawn / 2, _row_blocks(drawn, unit)
    assert torch.cat([part.clone() for part in blocks()], 1).equal(before)
    drawn.zero_()  # of which only who reads it again can know
    parts = [part.clone() for part in blocks()]
    assert (len(parts) == 1) == whole
    assert torch.cat(parts, 1).equal(before if whole else drawn)


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
        (lambda: probable_spectral_norm(torch.zeros(0, 2)), ValueError, "matrix must not be empty"),
        (lambda: probable_spectral_norm(torch.eye(2).int()), TypeError, "matrix must be floating point"),
        (lambda: probable_spectral_norm(torch.eye(2) * math.nan), ValueError, "matrix must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
