"""What the claims about definite matrices do not say: exact bounds, scales, bad input, dtypes, shapes, gradients."""

import math
from fractions import Fraction

import pytest
import torch

from lemmata.measure.definiteness import (
    DefinitenessCertificate,
    certify_definiteness,
    cholesky_floor,
    power_of_two,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept_and_bounds_are_double(dtype):
    matrix = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=dtype)
    answer = certify_definiteness(matrix)
    assert answer.curvature.dtype is dtype
    assert {answer.floor.dtype, answer.ceiling.dtype, answer.witness.dtype} == {torch.float64}


def test_batches_of_any_shape_are_answered():
    answer = certify_definiteness(torch.eye(3).expand(4, 5, 3, 3))
    assert answer.floor.shape == answer.semidefinite.shape == (4, 5)
    assert answer.witness.shape == (4, 5, 3)


def test_a_matrix_that_is_symmetric_but_for_rounding_is_taken():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 20, 20, generator=generator)
    product = a @ b @ b.mT @ a.mT
    assert not product.equal(product.mT)
    assert certify_definiteness(product).semidefinite


def test_a_singular_matrix_is_semidefinite_and_not_definite():
    for matrix in (torch.ones(3, 3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0.0]))):
        answer = certify_definiteness(matrix)
        assert answer.semidefinite
        assert not answer.definite


def test_tolerance_zero_counts_every_proved_violation():
    matrix = torch.diag(torch.tensor([1.0, -1e-12], dtype=torch.float64))
    assert not certify_definiteness(matrix, tolerance=0).semidefinite
    assert certify_definiteness(matrix, tolerance=1e-11).semidefinite


def test_large_matrices_are_bounded_tightly():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(120, 150, generator=generator, dtype=torch.float64)
    answer = certify_definiteness(factor @ factor.mT)
    assert answer.definite
    assert answer.ceiling - answer.floor < 1e-8


def test_gradients_agree_with_differences():
    half = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    # The witness is held fixed: the first derivative is that of the eigenvalue.
    value = certify_definiteness(half + half.mT).curvature
    (found,) = torch.autograd.grad(value, half)
    (expected,) = torch.autograd.grad(torch.linalg.eigvalsh(half + half.mT)[0], half)
    torch.testing.assert_close(found, expected)


def test_parity_with_torch():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(7, 7, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT
    torch.testing.assert_close(certify_definiteness(matrix).curvature, torch.linalg.eigvalsh(matrix)[0])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: certify_definiteness(torch.ones(2, 2).triu()), ValueError, "matrix must be symmetric, but differs"),
        (lambda: certify_definiteness(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: certify_definiteness(torch.ones(2)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: certify_definiteness(torch.eye(2).long()), TypeError, "matrix must be floating point"),
        (lambda: certify_definiteness(torch.eye(2) * math.nan), ValueError, "matrix must be finite"),
        (lambda: certify_definiteness(torch.eye(2), tolerance=-1.0), ValueError, "tolerance must be >= 0, got -1.0"),
        (lambda: certify_definiteness(torch.eye(2), tolerance="0"), TypeError, "tolerance must be a number"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_unit_of_a_matrix_is_set_by_its_largest_entry_whatever_the_sign():
    batch = torch.tensor([[[-9.0, 1.0]], [[0.5, 3.0]], [[0.25, -0.25]]])
    assert power_of_two(batch).tolist() == [power_of_two(matrix).item() for matrix in batch] == [8.0, 2.0, 0.25]


def matrices():
    """Symmetric ones of all kinds: indefinite, singular, definite, hardly indefinite, zero."""
    generator = torch.Generator().manual_seed(0)
    half, factor = (torch.randint(-3, 4, (4, 3, 3), generator=generator).double() for _ in range(2))
    singular = factor.clone()
    singular[:, -1] = singular[:, 0]
    hardly = torch.tensor([[50.0, 51.0, 0.0], [51.0, 52.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    products = [singular @ singular.mT, factor @ factor.mT + torch.eye(3)]
    return torch.cat([half + half.mT, *products, 0.1 * (half + half.mT), hardly[None], torch.zeros(1, 3, 3)])


@pytest.mark.parametrize("matrix", matrices(), ids=range(len(matrices())))
def test_the_bounds_hold_without_rounding_and_are_tight(matrix):
    answer = certify_definiteness(matrix)
    floor, ceiling = Fraction(answer.floor.item()), Fraction(answer.ceiling.item())
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    # A - t I is semidefinite if no principal minor is negative; written out for three rows.
    (a, b, c), (_, d, e), (_, _, f) = [[v - floor * (i == j) for j, v in enumerate(row)] for i, row in enumerate(rows)]
    determinant = a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d)
    assert min(a, d, f, a * d - b * b, a * f - c * c, d * f - e * e, determinant) >= 0
    x = [Fraction(entry) for entry in answer.witness.tolist()]
    assert sum(x[i] * rows[i][j] * x[j] for i in range(3) for j in range(3)) <= ceiling * sum(v * v for v in x)
    assert 0 < answer.ceiling - answer.floor <= 1e-13 * (1 + matrix.norm())


def test_scales_change_the_bounds_by_their_own_size_and_batches_nothing():
    batch = matrices()[:-1] * 2.0**450  # the zero matrix has no scale
    together, small = certify_definiteness(batch), certify_definiteness(batch * 2.0**-900)
    assert together.floor.equal(2.0**900 * small.floor)
    assert together.ceiling.equal(2.0**900 * small.ceiling)
    alone = torch.stack([certify_definiteness(matrix).floor for matrix in batch])
    torch.testing.assert_close(together.floor, alone, rtol=0.0, atol=256 * 2.0**-52 * float(alone.abs().max()))


def test_violations_below_the_tolerance_are_forgiven():
    rounded = torch.tensor([[1.0, 0.0], [0.0, -1e-6]])
    assert certify_definiteness(torch.tensor([[1.0, 0.0], [0.0, -1e-7]])).semidefinite  # rounding of single precision
    assert not certify_definiteness(rounded).semidefinite
    assert certify_definiteness(rounded, tolerance=2e-6).semidefinite
    assert not certify_definiteness(rounded, tolerance=0.5e-6).semidefinite


def test_bounds_are_no_narrower_than_rounding_and_not_much_wider():
    n, u = 150, torch.finfo(torch.float64).eps / 2
    values = torch.ones(n, dtype=torch.float64)
    values[0] = 0
    answer = certify_definiteness(16 * torch.diag(values)[None, None])
    size, total = 16 * math.sqrt(n - 1), 16.0 * (n - 1)
    assert (n + 1) * u * total <= -answer.floor <= 8 * (n + 1) * u * total
    assert 3 * (n + 2) * u * size <= answer.ceiling <= 6 * (n + 2) * u * size
    # Off a multiple of the identity, whose trace above the floor is nothing: the shift and the rounding of forms.
    floor = certify_definiteness(torch.eye(n, dtype=torch.float64)).floor
    assert 1 - floor >= 6 * (n + 2) * u * math.sqrt(n)
    torch.testing.assert_close(answer.tolerance.flatten()[0].item(), 2 * n * u * size)


def test_a_guess_far_too_high_still_gives_a_floor():
    pair = torch.stack([torch.diag(torch.tensor([0.5, 1.0])), torch.eye(2)]).double()
    guesses, slack = torch.tensor([0.9, 1.0], dtype=torch.float64), torch.full((2,), 1e-3, dtype=torch.float64)
    floors = cholesky_floor(pair, guesses, slack)
    assert -3 < floors[0] < 0.5
    assert 0.998 < floors[1] < 1


def test_allowances_are_those_that_were_derived():
    eps = torch.finfo(torch.float64).eps
    one = torch.full((1, 1), 16.0, dtype=torch.float64)
    above = (float(certify_definiteness(one).ceiling) - 16) / (16 * eps)
    assert 5 <= above <= 7  # 2 (n + 2) units of rounding
    floor = cholesky_floor(one / 16, torch.tensor(-1.0).double(), torch.tensor(0.0).double())
    assert 5 <= (-1 - float(floor)) / eps <= 7  # (n + 2) units of a trace of 2


def test_a_floor_of_zero_proves_nothing():
    number = torch.zeros(1, dtype=torch.float64)
    answer = DefinitenessCertificate(number, number, torch.ones(1, 1).double(), number, number)
    assert not answer.definite
    assert answer.semidefinite
