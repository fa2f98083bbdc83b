"""A proof in double precision of where eigenvalues lie, against the same in integers."""

import pytest
import torch

from lemmata.recurrent.unit_circle import _by_polynomial, _by_quadratic_form, _integer_matrix, place_of


def drawn(kind, generator):
    size = int(torch.randint(1, 6, (), generator=generator))
    matrix = torch.randn(size, size, generator=generator, dtype=torch.float64)
    if kind == "near the circle":
        off = 10.0 ** -float(torch.randint(1, 16, (), generator=generator))
        side = float(torch.randint(-1, 2, (), generator=generator))
        return matrix / torch.linalg.eigvals(matrix).abs().max() * (1 + side * off)
    if kind == "whole":
        return torch.randint(-2, 3, (size, size), generator=generator).double()
    if kind == "graded":
        steps = 2.0 ** torch.randint(-40, 41, (size, 1), generator=generator).double()
        return matrix * steps / steps.mT
    return (matrix / size).half().double()


@pytest.mark.parametrize("kind", ["near the circle", "whole", "graded", "half"])
def test_what_double_precision_proves_is_what_whole_numbers_say(kind):
    generator, proved = torch.Generator().manual_seed(0), 0
    for _ in range(40):
        matrix = drawn(kind, generator)
        quick, (exact, _) = _by_quadratic_form(matrix), _by_polynomial(*_integer_matrix(matrix))
        assert quick in (None, exact), matrix
        assert place_of(matrix)[0] == place_of(matrix.mT)[0] == exact, matrix
        proved += quick is not None
    assert proved > 8


def test_of_large_matrices_no_fractions_are_made():
    assert place_of(torch.ones(400, 400).double() / 400) == (None, None)  # eigenvalue 1, once
