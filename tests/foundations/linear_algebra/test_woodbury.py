"""What the claim about Woodbury's identity does not say: bad input, dtypes, shapes, gradients."""

import pytest
import torch

from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank

DIAGONAL, LEFT, RIGHT = (
    torch.tensor([1.0, 2.0, 4.0]),
    torch.tensor([[1.0], [0.0], [1.0]]),
    torch.tensor([[0.0, 1.0, 1.0]]),
)
MATRIX = DiagonalPlusLowRank(DIAGONAL, LEFT, RIGHT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    matrix = DiagonalPlusLowRank(DIAGONAL.to(dtype), LEFT.to(dtype), RIGHT.to(dtype))
    for value in (matrix.solve(DIAGONAL.to(dtype)), matrix.inverse(), matrix.dense(), *matrix.slogdet()):
        assert value.dtype is dtype


def test_batches_of_matrices_and_of_sides_broadcast():
    matrix = DiagonalPlusLowRank(DIAGONAL.expand(4, 1, 3), LEFT, RIGHT.expand(5, 1, 3))
    assert matrix.solve(torch.ones(3)).shape == (4, 5, 3)
    assert matrix.solve(torch.ones(3, 2)).shape == (4, 5, 3, 2)
    assert (matrix @ torch.ones(5, 3, 2)).shape == (4, 5, 3, 2)
    assert matrix.inverse().shape == matrix.dense().shape == (4, 5, 3, 3)
    assert matrix.slogdet()[1].shape == (4, 5)


def test_products_solves_and_inverses_are_those_of_the_formed_matrix():
    generator = torch.Generator().manual_seed(0)
    diagonal, left, right, columns = (
        torch.randn(size, dtype=torch.float64, generator=generator) for size in ((2, 4), (4, 2), (2, 4), (2, 4, 3))
    )
    diagonal = diagonal.sign() * (3 + diagonal.abs())
    matrix = DiagonalPlusLowRank(diagonal, left, right)
    dense, vector = torch.diag_embed(diagonal) + left @ right, columns[0, :, 0]
    for found, expected in (
        (matrix.dense(), dense),
        (matrix @ columns, dense @ columns),
        (matrix @ vector, dense @ vector),
        (matrix.solve(columns), torch.linalg.solve(dense, columns)),
        (matrix.solve(vector), torch.linalg.solve(dense, vector.expand(2, 4))),
        (matrix.inverse(), torch.linalg.inv(dense)),
        (torch.stack(matrix.slogdet()), torch.stack(torch.linalg.slogdet(dense))),
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("gap", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize(("n", "k"), [(5, 2), (8, 8), (3, 7), (1, 1)])
def test_solves_and_determinants_near_to_singular(n, k, gap):
    generator = torch.Generator().manual_seed(n)
    small = min(n, k)
    values = torch.rand(small, generator=generator, dtype=torch.float64)
    values[0] = gap - 1  # an eigenvalue of I + UV is the gap
    left, right = torch.eye(n, k, dtype=torch.float64), torch.zeros(k, n, dtype=torch.float64)
    right[:small, :small] = torch.diag(values)
    turn = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    signs = torch.ones(n, dtype=torch.float64)
    signs[-1] = -1
    diagonal = signs * 10 ** (2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1)
    matrix = DiagonalPlusLowRank(diagonal, turn @ left, right @ turn.mT * diagonal)  # (I + UV) D
    dense = torch.diag(diagonal) + turn @ left @ right @ turn.mT * diagonal
    columns = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    x, eps = matrix.solve(columns), torch.finfo(torch.float64).eps
    torch.testing.assert_close(matrix.dense(), dense)
    # A residual is the rounding of the terms that are added up in it, whatever the condition of the matrix.
    terms = diagonal.abs().max() * (1 + left.norm() * right.norm())
    assert ((dense @ x - columns).abs() <= 64 * eps * terms * x.norm()).all()
    sign, logarithm = torch.linalg.slogdet(dense)
    assert matrix.slogdet()[0] == sign
    torch.testing.assert_close(matrix.slogdet()[1], logarithm, rtol=0.0, atol=64 * eps * n / gap)


def test_a_second_solve_removes_the_residual_of_the_first():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    # Of a diagonal of 1e-6 beside a term of rank 3 a single solve would leave a residual of 1e-9.
    matrix = DiagonalPlusLowRank(torch.full((20,), 1e-6, dtype=torch.float64), factor, factor.T)
    wanted = factor @ torch.randn(3, generator=generator, dtype=torch.float64)
    x = matrix.solve(wanted)
    assert ((matrix @ x - wanted).abs() <= 64 * 2.0**-52 * factor.norm() ** 2 * x.norm()).all()


def test_reflections_turn_the_sign_and_singular_matrices_have_determinant_zero():
    u, v = torch.eye(3, 1), -torch.eye(1, 3)
    singular, reflection = (DiagonalPlusLowRank(torch.ones(3), u, factor * v) for factor in (1, 3))
    assert reflection.slogdet()[0] == -1
    assert [value.item() for value in singular.slogdet()] == [0, -torch.inf]


def test_the_large_matrix_is_never_formed():
    n = 200_000  # whose square would take 300 GB
    matrix = DiagonalPlusLowRank(torch.full((n,), 2.0), torch.full((n, 2), 1e-3), torch.full((2, n), 1e-3))
    x = matrix.solve(torch.ones(n))
    torch.testing.assert_close(matrix @ x, torch.ones(n))


def test_gradients_agree_with_differences():
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(size, dtype=torch.float64, generator=generator) for size in ((4,), (4, 2), (2, 4), (4,))]
    parts[0] = parts[0].abs() + 3
    inputs = tuple(part.requires_grad_() for part in parts)
    assert torch.autograd.gradcheck(lambda d, u, v, b: DiagonalPlusLowRank(d, u, v).solve(b), inputs)
    assert torch.autograd.gradcheck(lambda d, u, v, b: DiagonalPlusLowRank(d, u, v).slogdet()[1], inputs)


def test_it_shows_its_size():
    assert repr(MATRIX) == "DiagonalPlusLowRank(n=3, rank=1)"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DiagonalPlusLowRank(torch.zeros(3), LEFT, RIGHT), ValueError, "diagonal must hold no zero"),
        (lambda: DiagonalPlusLowRank(torch.ones(2), LEFT, RIGHT), ValueError, "diagonal must be .* to fit left"),
        (lambda: DiagonalPlusLowRank(DIAGONAL, LEFT, LEFT), ValueError, r"right must be a \(..., 1, 3\) tensor to fit"),
        (lambda: DiagonalPlusLowRank(DIAGONAL, LEFT[:, 0], RIGHT), ValueError, r"left must be a \(..., n, k\) tensor"),
        (
            lambda: DiagonalPlusLowRank(DIAGONAL.double(), LEFT, RIGHT),
            TypeError,
            "diagonal must have the dtype of left",
        ),
        (
            lambda: DiagonalPlusLowRank(DIAGONAL.expand(2, 3), LEFT.expand(4, 3, 1), RIGHT),
            ValueError,
            "diagonal and left and right must have leading axes that broadcast",
        ),
        (lambda: DiagonalPlusLowRank(-DIAGONAL[:1], LEFT[:1], LEFT[:1]).solve(torch.ones(1)), ValueError, "singular"),
        (lambda: MATRIX.solve(torch.ones(2)), ValueError, r"b must be a \(3,\) or \(..., 3, columns\) tensor"),
        (lambda: MATRIX.solve(torch.tensor(1.0)), ValueError, r"b must be a \(3,\) or \(..., 3, columns\) tensor"),
        (lambda: MATRIX @ torch.ones(3).double(), TypeError, "x must have the dtype of left"),
        (lambda: MATRIX.solve(torch.ones(3) * torch.nan), ValueError, "b must be finite"),
        (
            lambda: DiagonalPlusLowRank(DIAGONAL, LEFT.expand(2, 3, 1), RIGHT).solve(torch.ones(4, 3, 1)),
            ValueError,
            "b and left must have leading axes that broadcast",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
