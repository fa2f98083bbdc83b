"""What the claim about the spectral norm does not say: bad input, dtypes, gradients, and a search that goes wrong."""

import math

import pytest
import torch

from lemmata.foundations import spectral
from lemmata.foundations.definiteness import certify_definiteness
from lemmata.foundations.spectral import certified_spectral_norm


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
    matrix = torch.full((1, 1), size, dtype=torch.float64)
    bounds = certified_spectral_norm(matrix)
    assert bounds.lower <= size <= bounds.upper
    assert certify_definiteness(matrix).semidefinite
    assert not certify_definiteness(-matrix, tolerance=0).semidefinite or size < 1e-300


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
