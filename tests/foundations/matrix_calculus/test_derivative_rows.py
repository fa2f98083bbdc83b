"""Rows of the table of derivatives: bad arguments, dtypes, several points, rows of one's own."""

import dataclasses
import math

import pytest
import torch

from lemmata.foundations.matrix_calculus.derivative_rows import check_derivative
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of, derivative_table

X = torch.tensor([1.0, 2.0])
A = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
QUADRATIC = derivative_of("x^T A x")


@pytest.mark.parametrize("row", derivative_table(), ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_row_keeps_its_dtype_and_agrees_with_autograd(row, dtype):
    arguments = row.example(generator=torch.Generator().manual_seed(1), dtype=dtype)
    x, *others = arguments.values()
    assert row.derivative(x, *others).dtype == dtype
    assert check_derivative(row, **arguments) < 1e3 * torch.finfo(dtype).eps


@pytest.mark.parametrize("row", derivative_table(), ids=lambda row: row.name)
def test_every_row_works_with_all_lengths_one(row):
    arguments = row.example(dict.fromkeys(row.letters(), 1), generator=torch.Generator().manual_seed(2))
    assert check_derivative(row, **arguments) < 1e-12


def test_the_rows_have_names_of_their_own():
    rows = derivative_table()
    assert len({row.name for row in rows}) == len({row.written for row in rows}) == len(rows)


def test_examples_repeat_with_the_same_generator():
    first, second = (QUADRATIC.example(generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first["A"], second["A"])


def test_examples_of_functions_are_smooth_and_never_zero():
    arguments = derivative_of("u(x) v(x)").example({"n": 3}, generator=torch.Generator().manual_seed(5))
    points = 10 * torch.randn(500, 3, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    for name in ("u", "v"):
        values = torch.stack([arguments[name](point) for point in points])
        assert 1 <= values.min() < 1.1
        assert 2.9 < values.max() <= 3
        assert arguments[name](torch.zeros(3).double()) != 2  # no symmetry about 0


def test_several_points_are_taken_one_by_one():
    found = QUADRATIC.at_each(torch.stack([X, -X]), A=A)
    assert torch.equal(found, torch.stack([QUADRATIC.at(X, A=A), QUADRATIC.at(-X, A=A)]))


def test_a_row_of_ones_own_is_checked():
    row = dataclasses.replace(QUADRATIC, derivative=lambda x, A: 2 * A @ x)
    assert check_derivative(row, x=X, A=A) == 4.0


def test_a_row_that_is_wrong_is_off_by_its_largest_error():
    x, matrix = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 2.0]])
    wide, upstream = torch.arange(15.0).reshape(5, 3), torch.tensor([1.0, -1.0, 2.0, 0.0, 3.0])
    number = dataclasses.replace(QUADRATIC, derivative=lambda x, A: (A @ x).sum())
    assert check_derivative(number, x=x, A=matrix) == math.inf  # of a wrong shape
    times = dataclasses.replace(derivative_of("A x"), layout="both")
    assert check_derivative(times, x=x, A=matrix) == (matrix - matrix.mT).abs().max()
    assert check_derivative(times, x=x, A=wide) == math.inf
    columns = dataclasses.replace(times, layout="denominator", derivative=lambda x, A: A.mT)
    assert check_derivative(columns, x=x, A=wide) == 0
    assert columns.pull_back(upstream, x, A=wide).equal(upstream @ wide)
    assert columns.example()["A"].shape == (4, 3)
    assert columns.example({"m": 7})["A"].shape == (7, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: QUADRATIC.at(X, A=torch.ones(3, 3)), ValueError, r"A must have shape \(n=2, n=2\), got \(3, 3\)"),
        (lambda: QUADRATIC.at(X, A=torch.ones(2)), ValueError, r"A must have shape \(n=2, n=2\), got \(2,\)"),
        (lambda: QUADRATIC.at(torch.ones(2, 2), A=A), ValueError, r"x must have shape \(n=2\), got \(2, 2\)"),
        (lambda: QUADRATIC.at(X, B=A), TypeError, "quadratic form takes x, A, got x, B"),
        (lambda: QUADRATIC.at(X, A=A * float("inf")), ValueError, "A must be finite"),
        (lambda: derivative_of("u(x) v(x)").at(X, u=1.0, v=torch.sum), TypeError, "u must be a function, got float"),
        (lambda: derivative_of("|x|").at(torch.tensor(0.0)), ValueError, "x must not be 0: |x| has no derivative"),
        (lambda: derivative_of("quadratic from"), ValueError, "no row 'quadratic from': did you mean 'quadratic form'"),
        (lambda: derivative_of("%%%"), ValueError, "see derivative_table"),
        (lambda: dataclasses.replace(QUADRATIC, layout="row"), ValueError, "layout must be 'numerator', 'denominator'"),
        (lambda: dataclasses.replace(QUADRATIC, shapes={}), ValueError, "shapes must name at least the variable"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
