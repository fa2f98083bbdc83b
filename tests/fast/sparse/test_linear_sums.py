"""Sums and a linear map as one node of autograd: the same as one after the other, and what else it must let through."""

import pytest
import torch
from torch.nn import functional

from lemmata.fast.sparse.linear_sums import linear_row_sums
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.rows import rows_of


def given(outputs, dtype=torch.float64, bias=True):
    """Five inputs of nine columns, six rows with forty entries."""
    generator = torch.Generator().manual_seed(outputs)
    r, c = torch.randint(6, (40,), generator=generator), torch.randint(9, (40,), generator=generator)
    shapes = [(9, 5), (outputs, 5), (outputs,), (40,)]
    values = [torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]
    values[2] = values[2] if bias else None
    return values, (rows_of(r, c, 6), rows_of(c, r, 9))


def one_after_the_other(x, matrix, bias, weights, rows, transposed):
    found = functional.linear(row_sums(x, rows, transposed, weights), matrix)
    return found if bias is None else found + bias


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [3, 5, 8])  # the outputs go along the entries where they are not more
def test_it_is_one_after_the_other_and_so_are_its_gradients(outputs, bias):
    values, rows = given(outputs, bias=bias)
    x, matrix, b, weights = values
    found, wanted = linear_row_sums(x, matrix, b, *rows, weights), one_after_the_other(*values, *rows)
    torch.testing.assert_close(found, wanted)
    leaves = [value for value in values if value is not None]
    probe = torch.randn_like(found)
    gradients = (torch.autograd.grad(y, leaves, probe) for y in (found, wanted))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("outputs", [3, 8])
def test_gradients_and_gradients_of_gradients_are_those_of_finite_differences(outputs):
    values, rows = given(outputs)

    def map_and_add(x, matrix, bias, weights):
        return linear_row_sums(x, matrix, bias, *rows, weights)

    assert torch.autograd.gradcheck(map_and_add, values)
    assert torch.autograd.gradgradcheck(map_and_add, values)


@pytest.mark.parametrize("outputs", [3, 8])
@pytest.mark.parametrize("wanted", [0, 1, 2, 3])
def test_each_gradient_comes_alone(outputs, wanted):
    values, rows = given(outputs)
    whole = torch.autograd.grad(one_after_the_other(*values, *rows).square().sum(), values[wanted])
    alone = [value.detach().requires_grad_(index == wanted) for index, value in enumerate(values)]
    x, matrix, bias, weights = alone
    linear_row_sums(x, matrix, bias, *rows, weights).square().sum().backward()
    torch.testing.assert_close(alone[wanted].grad, whole[0])


def test_autocast_computes_the_map_in_half_precision():
    values, rows = given(3, torch.float32)
    x, matrix, bias, weights = values
    with torch.autocast("cpu", torch.bfloat16):
        found = linear_row_sums(x, matrix, bias, *rows, weights)
        wanted = row_sums(functional.linear(x, matrix), *rows, weights) + bias
    assert torch.equal(found, wanted)


def test_wrong_shapes_are_refused():
    (x, matrix, bias, weights), rows = given(3)
    with pytest.raises(ValueError, match=r"x must be \(9, features\), got shape \(8, 5\)"):
        linear_row_sums(x[:8], matrix, bias, *rows, weights)
    with pytest.raises(ValueError, match=r"weights must have shape \(40,\), got \(39,\)"):
        linear_row_sums(x, matrix, bias, *rows, weights[:39])
