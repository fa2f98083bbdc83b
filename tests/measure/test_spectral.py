"""What the claim about the spectral norm does not say: bad input, dtypes, gradients, and a search that goes wrong."""

import math

import mpmath
import pytest
import torch

from lemmata.certified.definiteness import certify_definiteness
from lemmata.measure import spectral
from lemmata.measure.spectral import certified_spectral_norm, length_at_least


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_keep_their_dtype_and_bounds_are_double(dtype):
    bounds = certified_spectral_norm(torch.eye(3, 2, dtype=dtype))
    assert bounds.value.dtype is dtype
    assert {bounds.lower.dtype, bounds.upper.dtype, bounds.left.dtype, bounds.right.dtype} == {torch.float64}
    assert bounds.left.shape == (3,)
    assert bounds.right.shape == (2,)


def test_parity_with_torch_for_batches_of_any_shape():
    generator = torch.Generator().manual_seed(0)
    for shape in ((1, 1), (1, 9), (9, 1), (4, 5, 6, 3), (2, 30, 40)):
        matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
        bounds, exact = certified_spectral_norm(matrix), torch.linalg.matrix_norm(matrix, 2)
        assert ((bounds.lower <= exact) & (exact <= bounds.upper)).all()
        assert (bounds.upper - bounds.lower <= 2e-6 * exact).all()
        torch.testing.assert_close(bounds.value, exact)


@pytest.mark.parametrize("size", [1.7e308, 1e-300, 5e-324])
def test_the_largest_and_smallest_numbers_are_bounded(size):
    bounds = certified_spectral_norm(torch.full((1, 1), size, dtype=torch.float64))
    assert bounds.lower <= size <= bounds.upper


def exact_norm(matrix):
    """The largest singular value to 60 digits, as a number of mpmath."""
    with mpmath.workdps(60):
        return mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False)[0]


@pytest.mark.parametrize("scale", [5e-324, 1e-322, 1e-318, 1e-312, 1e-308, 1e-200, 1e-30, 1e30, 1e200, 1.7e308])
def test_at_no_scale_is_a_bound_false(scale):
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        matrix = (2 * torch.rand(3, 3, generator=generator, dtype=torch.float64) - 1) * scale
        bounds, exact = certified_spectral_norm(matrix), exact_norm(matrix)
        assert mpmath.mpf(bounds.lower.item()) <= exact <= mpmath.mpf(bounds.upper.item())
        assert bounds.lower.isfinite()
        assert not bounds.value.isnan()
        if 1e-300 < scale < 1e300:
            assert bounds.upper < (1 + 2e-6) * bounds.lower


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_numbers_are_widened(dtype):
    generator = torch.Generator().manual_seed(0)
    for scale in (torch.finfo(dtype).tiny / 4, 1.0, torch.finfo(dtype).max / 8):
        matrix = (2 * torch.rand(4, 3, generator=generator, dtype=torch.float64) - 1).mul(scale).to(dtype)
        bounds, exact = certified_spectral_norm(matrix), exact_norm(matrix.double())
        assert mpmath.mpf(bounds.lower.item()) <= exact <= mpmath.mpf(bounds.upper.item())
        assert bounds.value.dtype is dtype
        assert (
            bounds.value.item() == pytest.approx(float(exact), rel=8 * torch.finfo(dtype).eps, abs=1e-300) or scale < 1
        )


@pytest.mark.parametrize("size", [50, 1100])
def test_flat_spectra_are_bounded_tightly(size):
    flat = torch.ones(size)
    flat[0] = 1.0012
    bounds, exact = certified_spectral_norm(torch.diag(flat)), flat[0].double()
    assert bounds.lower <= exact <= bounds.upper < (1 + 2e-6) * bounds.lower


def test_no_random_state_is_touched_and_the_answer_is_always_the_same():
    matrix, before = torch.randn(20, 20), torch.get_rng_state()
    first, second = certified_spectral_norm(matrix), certified_spectral_norm(matrix)
    assert torch.get_rng_state().equal(before)
    assert first.upper.equal(second.upper)


def test_a_search_that_misses_the_largest_value_costs_width_and_not_truth(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    exact = torch.linalg.matrix_norm(matrix, 2)
    monkeypatch.setattr(spectral, "_top_eigenvector", lambda gram, tolerance: torch.eye(30, dtype=gram.dtype)[0])
    bounds = certified_spectral_norm(matrix)
    assert bounds.lower < 0.9 * exact
    assert exact <= bounds.upper <= 3 * exact


def test_a_search_cut_short_still_gives_bounds(monkeypatch):
    monkeypatch.setattr(spectral, "MAX_STEPS", 3)
    matrix = torch.randn(60, 60, dtype=torch.float64)
    bounds, exact = certified_spectral_norm(matrix), torch.linalg.matrix_norm(matrix, 2)
    assert bounds.lower <= exact <= bounds.upper


def test_the_gradient_is_that_of_the_norm():
    matrix = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(certified_spectral_norm(matrix, tolerance=1e-12).value, matrix)
    (expected,) = torch.autograd.grad(torch.linalg.matrix_norm(matrix, 2), matrix)
    torch.testing.assert_close(found, expected)


def bounds_from_above(matrix, number):
    """Whether the norm is at most a number: the block matrix [s I, A; A^T, s I] is semidefinite, without rounding."""
    block = number * torch.eye(sum(matrix.shape), dtype=torch.float64)
    block[: len(matrix), len(matrix) :], block[len(matrix) :, : len(matrix)] = matrix, matrix.mT
    return bool(certify_definiteness(block).semidefinite)  # decided in fractions, as test_definiteness tests


def small_matrices():
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(size, generator=generator, dtype=torch.float64) for size in ((2, 2), (2, 3), (3, 2), (3, 1))]
    turn = torch.linalg.qr(drawn[0]).Q
    return [*drawn, torch.eye(2).double(), torch.zeros(2, 2).double(), drawn[3][:2] @ drawn[3][:2].mT, 3 * turn]


@pytest.mark.parametrize("tolerance", [1e-4, 1e-15])
@pytest.mark.parametrize("matrix", small_matrices(), ids=range(8))
def test_the_bounds_hold_without_rounding_and_are_tight(matrix, tolerance):
    bounds = certified_spectral_norm(matrix, tolerance)
    lower, upper = bounds.lower.item(), bounds.upper.item()
    assert bounds_from_above(matrix, upper)
    assert not bounds_from_above(matrix, math.nextafter(lower, -1.0))
    assert upper - lower <= 2 * (tolerance + 1e-13) * upper


def test_scales_wide_and_tall_and_vectors():
    large = torch.randn(2, 40, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    both, singular = certified_spectral_norm(large), torch.linalg.svdvals(large)[..., 0]
    huge, tiny = certified_spectral_norm(2.0**900 * large), certified_spectral_norm(2.0**-900 * large.mT)
    torch.testing.assert_close(huge.upper, 2.0**900 * both.upper, rtol=1e-14, atol=0.0)
    torch.testing.assert_close(tiny.lower, 2.0**-900 * both.lower, rtol=1e-14, atol=0.0)
    for vectors in (both.left, both.right, tiny.left, tiny.right):
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(2, dtype=torch.float64))
    # The vectors are found to 1e-6, the value to the square of that.
    stretched = (both.left[..., None, :] @ large @ both.right[..., None])[..., 0, 0]
    torch.testing.assert_close(stretched, singular, rtol=2e-11, atol=0.0)


def test_the_norm_of_zero_is_zero():
    assert certified_spectral_norm(torch.zeros(2, 2)).upper == 0


def test_many_columns_are_multiplied_in_strips():
    generator = torch.Generator().manual_seed(0)
    m, n = 530, 515
    left, right = (torch.randn(size, generator=generator, dtype=torch.float64) for size in (m, n))
    left, right = left / left.norm(), right / right.norm()
    matrix = torch.zeros(m, n, dtype=torch.float64)
    matrix.diagonal().copy_(torch.linspace(0, 3, n))
    matrix = matrix - 2 * left[:, None] * (left @ matrix)  # reflected: no columns are orthogonal, the norm stays 3
    matrix = matrix - 2 * (matrix @ right)[:, None] * right
    bounds = certified_spectral_norm(matrix)
    assert bounds.lower <= 3 <= bounds.upper < (1 + 2e-6) * bounds.lower


def test_a_matrix_made_against_the_fixed_start_is_bounded_all_the_same():
    n = 48
    generator = torch.Generator().manual_seed(1)
    # The largest value, 2, belongs to a vector that is orthogonal to where the search begins.
    start = torch.randn(2, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[0]
    drawn = torch.randn(n, n - 1, generator=generator, dtype=torch.float64)
    others = torch.linalg.qr(torch.cat([start[:, None], drawn], dim=1)).Q
    turn = torch.linalg.qr(drawn[:-1]).Q
    turned = torch.cat([others[:, :-1] @ turn, others[:, -1:]], dim=1)
    values = torch.cat([torch.ones(1), 0.6 * torch.rand(n - 2, generator=generator), torch.full((1,), 2.0)])
    hidden = torch.stack([(turned * values) @ turned.T, torch.eye(n, dtype=torch.float64)])
    bounds = certified_spectral_norm(hidden, 1e-2)
    assert bounds.lower[0] <= 1.1  # it was missed
    assert 2 <= bounds.upper[0] <= 6
    assert bounds.lower[1] <= 1 <= bounds.upper[1] <= 1.1


def test_bounds_are_no_narrower_than_rounding_and_not_much_wider():
    u, (m, n) = torch.finfo(torch.float64).eps / 2, (120, 60)
    flat = torch.cat([torch.eye(n), torch.zeros(m - n, n)]).double()  # all singular values are 1
    tight, frobenius = certified_spectral_norm(flat[None, None], 1e-15), math.sqrt(n)
    assert m * u * frobenius**2 <= tight.upper**2 - 1 <= 8 * m * u * frobenius**2
    lost = n * u * frobenius + (m + n) * u
    assert lost <= 1 - tight.lower <= 4 * lost
    drawn = torch.randn(m, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    coarse = certified_spectral_norm(drawn, 1e-3)
    assert 0.9e-3 <= coarse.upper / coarse.lower - 1 <= 1.1e-3
    thin = torch.ones(m, 4).double() / 16  # of rank 1, so that the Frobenius norm bounds it
    rank_one, length = certified_spectral_norm(thin[None, None], 1e-3), math.sqrt(4 * m) / 16
    assert 4 * m * u <= rank_one.upper / length - 1 <= 16 * m * u
    assert 1 - rank_one.lower / length >= (m + 4) * u


@pytest.mark.parametrize("length", [1.0, 1e3])
def test_sums_of_many_rows_lose_by_the_square_of_the_matrix(length):
    u, rows = torch.finfo(torch.float64).eps / 2, 1000
    norm = torch.tensor(length, dtype=torch.float64)
    upper = spectral._norm_at_most(-(norm**2)[None, None], norm, rows, norm, 1e-16)
    lost = rows * u * length**2  # of a sum of 1000 products
    assert lost <= float(upper) ** 2 - length**2 <= 8 * lost


def test_the_search_asks_for_no_more_than_the_bounds_need(monkeypatch):
    asked, search = [], spectral.largest_ritz_pair

    def watched(product, start, steps, accuracy, generator):
        asked.append(accuracy)
        return search(product, start, steps, accuracy, generator)

    monkeypatch.setattr(spectral, "largest_ritz_pair", watched)
    matrix = torch.randn(40, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bounds = certified_spectral_norm(matrix, 1e-8)
    assert 1e-7 < asked[0] < 1e-5  # a residual, whose square is the error
    assert bounds.upper / bounds.lower - 1 < 2e-8


def test_a_length_loses_what_its_sums_may_lose():
    eps, one = torch.finfo(torch.float64).eps, torch.ones((), dtype=torch.float64)
    assert 8 <= (1 - float(length_at_least(one, 1, 1, 0 * one))) / eps <= 10  # the m + 8 roundings of two lengths
    assert 18 <= (1 - float(length_at_least(one, 1, 5, 2 * one))) / eps <= 20  # and n of each entry's sum
    assert length_at_least(0 * one, 1, 1, one) == 0


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: certified_spectral_norm(torch.ones(3)), ValueError, r"matrix must be a \(..., rows, columns\) tensor"),
        (lambda: certified_spectral_norm(torch.zeros(0, 2)), ValueError, "matrix must not be empty"),
        (lambda: certified_spectral_norm(torch.full((2, 2), math.inf)), ValueError, "matrix must be finite, found 4"),
        (lambda: certified_spectral_norm(torch.eye(2).int()), TypeError, "matrix must be floating point"),
        (lambda: certified_spectral_norm(torch.eye(2), tolerance=0.0), ValueError, "tolerance must be > 0, got 0.0"),
        (lambda: certified_spectral_norm([[1.0]]), TypeError, "matrix must be a tensor, got list"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
