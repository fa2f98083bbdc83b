"""What the claims about definite matrices do not say: exact bounds, scales, bad input, dtypes, shapes, gradients."""

import math
from fractions import Fraction

import mpmath
import pytest
import torch

from lemmata.certified.definiteness import EXACT, DefinitenessCertificate, certify_definiteness, cholesky_floor
from lemmata.certified.rounding import fractions


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
    mean = product.double() / 2 + product.double().mT / 2
    answer, same = certify_definiteness(product), certify_definiteness(mean)
    assert answer.floor == same.floor
    assert answer.ceiling == same.ceiling


def test_of_an_asymmetric_matrix_both_triangles_count():
    # eigh would read one triangle, whose eigenvalues are positive; those of the mean of both are not.
    n, off = 400, 0.99 * 1600 * 2.0**-23
    matrix = torch.diag(torch.full((n,), 0.03)) - torch.triu(torch.full((n, n), off), 1)
    matrix[0, 0] = 1.0
    answer = certify_definiteness(matrix)
    assert torch.linalg.eigvalsh(matrix.mT.double(), UPLO="U")[0] > 0.029
    assert answer.violated
    assert answer.floor <= torch.linalg.eigvalsh((matrix + matrix.mT).double() / 2)[0] <= answer.ceiling


def test_a_singular_matrix_is_semidefinite_and_not_definite():
    for matrix in (torch.ones(3, 3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0.0]))):
        answer = certify_definiteness(matrix)
        assert answer.semidefinite
        assert answer.floor == answer.ceiling == 0
        assert not answer.definite
    large = torch.ones(EXACT + 1, EXACT + 1)
    answer = certify_definiteness(large)
    assert not answer.semidefinite  # more rows than are decided in fractions: neither is proved
    assert not answer.violated
    assert certify_definiteness(large, tolerance=1e-12).semidefinite
    assert certify_definiteness(torch.zeros(99, 99)).semidefinite


def test_tolerance_zero_counts_every_proved_violation():
    matrix = torch.diag(torch.tensor([1.0, -1e-12], dtype=torch.float64))
    assert certify_definiteness(matrix, tolerance=0).violated
    assert certify_definiteness(matrix, tolerance=1e-11).semidefinite
    assert not certify_definiteness(matrix, tolerance=1e-11).violated


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
        (
            lambda: certify_definiteness(torch.tensor([[1, 2], [3, 1]])),
            ValueError,
            "matrix must be symmetric, but diff",
        ),
        (lambda: certify_definiteness(torch.zeros(0, 0)), ValueError, "matrix must not be empty"),
        (lambda: certify_definiteness(torch.zeros(0, 0).int()), ValueError, "matrix must not be empty"),
        (lambda: certify_definiteness(torch.eye(2) + 0j), TypeError, "matrix must be floating point"),
        (lambda: certify_definiteness([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: certify_definiteness(torch.eye(2) * math.nan), ValueError, "matrix must be finite"),
        (lambda: certify_definiteness(torch.eye(2), tolerance=-1.0), ValueError, "tolerance must be >= 0, got -1.0"),
        (lambda: certify_definiteness(torch.eye(2), tolerance="0"), TypeError, "tolerance must be a number"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


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
    rows = fractions(matrix)
    # A - t I is semidefinite if no principal minor is negative; written out for three rows.
    (a, b, c), (_, d, e), (_, _, f) = [[v - floor * (i == j) for j, v in enumerate(row)] for i, row in enumerate(rows)]
    determinant = a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d)
    assert min(a, d, f, a * d - b * b, a * f - c * c, d * f - e * e, determinant) >= 0
    x = fractions(answer.witness)
    assert ceiling == 0 or sum(x[i] * rows[i][j] * x[j] for i in range(3) for j in range(3)) <= ceiling * sum(
        v * v for v in x
    )
    assert 0 <= answer.ceiling - answer.floor <= 1e-13 * (1 + matrix.norm())
    # Three rows are always decided.
    assert answer.definite or answer.violated or answer.floor == answer.ceiling == 0


def test_scales_change_the_bounds_by_their_own_size_and_batches_nothing():
    batch = matrices()[:-1] * 2.0**450
    together, small = certify_definiteness(batch), certify_definiteness(batch * 2.0**-900)
    assert together.floor.equal(2.0**900 * small.floor)
    assert together.ceiling.equal(2.0**900 * small.ceiling)
    alone = torch.stack([certify_definiteness(matrix).floor for matrix in batch])
    torch.testing.assert_close(together.floor, alone, rtol=0.0, atol=256 * 2.0**-52 * float(alone.abs().max()))


@pytest.mark.parametrize(
    ("matrix", "tolerance"),
    [
        (torch.diag(torch.tensor([1.0, -1e-7])), 1.1e-7),
        (torch.diag(torch.cat([torch.ones(99), torch.tensor([-1e-4])])), 1.1e-4),
        (torch.diag(torch.tensor([1.0, 1.0, 1.0, -2e-3])).half(), 2.1e-3),
        (torch.diag(torch.tensor([1.0, 1.0, 1.0, -1e-2])).bfloat16(), 1.1e-2),
    ],
)
def test_no_violation_is_forgiven_unless_the_caller_says_so(matrix, tolerance):
    assert certify_definiteness(matrix).violated
    assert not certify_definiteness(matrix).semidefinite
    assert certify_definiteness(matrix, tolerance).semidefinite
    assert certify_definiteness(matrix, tolerance / 2).violated


SCALES = [5e-324, 1e-322, 1e-318, 1e-312, 1e-308, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1.7e308]


@pytest.mark.parametrize("scale", SCALES)
def test_at_no_scale_is_a_bound_false(scale):
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        half = torch.rand(3, 3, generator=generator, dtype=torch.float64) - 0.5
        matrix = (half + half.mT) * scale
        answer = certify_definiteness(matrix)
        with mpmath.workdps(60):
            least = min(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True))
            assert mpmath.mpf(answer.floor.item()) <= least <= mpmath.mpf(answer.ceiling.item())
        assert not answer.curvature.isnan()


def test_what_is_too_large_for_a_float_is_bounded_all_the_same():
    answer = certify_definiteness(torch.tensor([[1.0, 1.7e308], [1.7e308, -1.7e308]], dtype=torch.float64))
    assert answer.floor == -math.inf  # the eigenvalue is -2.75e308
    assert answer.ceiling == -torch.finfo(torch.float64).max


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_least_integer_of_every_width_is_negative(dtype):
    least = torch.iinfo(dtype).min
    assert certify_definiteness(torch.full((1, 1), least, dtype=dtype)).violated
    assert certify_definiteness(torch.diag(torch.tensor([-(least + 1), 1])).to(dtype)).definite


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_integers_without_a_sign_are_taken_for_what_they_are(dtype):
    assert certify_definiteness(torch.tensor([[1, 2], [2, 1]]).to(dtype)).violated
    assert certify_definiteness(torch.tensor([[2, 1], [1, 2]]).to(dtype)).definite
    assert certify_definiteness(torch.ones(2, 2).bool()).semidefinite


def test_integers_that_no_float_holds_are_decided_by_their_last_digit():
    big = 2**53
    for last, sign in ((-1, -1), (0, 0), (1, 1)):  # of which the determinant is this multiple of 2^53 + 1
        answer = certify_definiteness(torch.tensor([[big + 1, big + 1], [big + 1, big + 1 + last]]))
        assert (bool(answer.definite), bool(answer.violated)) == (sign > 0, sign < 0)


def test_the_sign_of_a_near_tie_is_computed_in_fractions():
    for last in (-1, 0, 1):
        matrix = torch.tensor([[1.0, 1 - 2.0**-52], [1 - 2.0**-52, 1 - 2.0**-51]], dtype=torch.float64)
        matrix[0, 0] += last * 2.0**-52
        (a, b), (_, c) = fractions(matrix)
        exact = a * c - b * b  # -2^-104 for the one in the middle
        answer = certify_definiteness(matrix)
        assert (bool(answer.definite), bool(answer.violated)) == (exact > 0, exact < 0)
        assert abs(answer.ceiling) < 1e-14


def test_graded_numbers_keep_their_signs():
    for sign in (1.0, -1.0):
        graded = torch.diag(torch.tensor([1.0, 1e-100, 1e-200, sign * 1e-300], dtype=torch.float64))
        answer = certify_definiteness(graded)
        assert (bool(answer.definite), bool(answer.violated)) == (sign > 0, sign < 0)
    # The vector below zero leans on two rows: neither diagonal entry is negative, and one pivot is zero.
    answer = certify_definiteness(torch.tensor([[0.0, 1e-30], [1e-30, 1.0]], dtype=torch.float64))
    assert answer.violated
    assert -1e-59 < answer.ceiling < 0


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
    assert 6 <= (-1 - float(floor)) / eps <= 8  # (n + 2) units of a trace of 2, and one more for the difference


def test_a_floor_of_zero_proves_semidefiniteness_alone():
    number = torch.zeros(1, dtype=torch.float64)
    answer = DefinitenessCertificate(number, number, torch.ones(1, 1).double(), number)
    assert not answer.definite
    assert answer.semidefinite
    assert not answer.violated


@pytest.mark.parametrize("exponent", [-52, -50, -40])
def test_a_floor_found_in_fractions_is_below_the_smallest_eigenvalue_and_near_it(exponent):
    """The eigenvalues are 2 - e and e, of which double precision cannot tell the second from zero."""
    e = 2.0**exponent
    found = certify_definiteness(torch.tensor([[1.0, 1.0 - e], [1.0 - e, 1.0]], dtype=torch.float64))
    assert found.definite
    assert 0.99 * e < found.floor.item() <= e <= found.ceiling.item()


def test_the_matrix_of_a_factorisation_is_given_back_as_it_was():
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    before, zero = matrix.clone(), torch.zeros((), dtype=torch.float64)
    floor = cholesky_floor(matrix, zero, zero + 0.125)
    assert matrix.equal(before)
    assert -0.126 < floor.item() < -0.125
