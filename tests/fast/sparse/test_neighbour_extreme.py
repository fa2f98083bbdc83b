"""The largest and smallest of each row against torch's own, with gradients, ties, and what is not a number."""

import pytest
import torch

from lemmata.fast.sparse.neighbour_extreme import row_extremes
from lemmata.fast.sparse.rows import rows_of


def patterns(r, c, rows, columns):
    return rows_of(r, c, rows), rows_of(c, r, columns)


FEW = patterns(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 2]), 2, 3)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("features", [0, 1, 16, 37])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_it_is_the_extreme_of_each_row_and_its_gradient_goes_to_the_first_that_won(way, dtype, features, largest):
    r, c = torch.randint(6, (40,)), torch.randint(9, (40,))
    rows, turned = patterns(r, c, 8, 9)  # two rows without entries
    x = torch.randint(-3, 4, (9, features)).to(dtype).requires_grad_()  # with many ties
    grad = torch.randint(-8, 9, (8, features)).to(dtype)
    found = row_extremes(x, rows, turned, largest)
    expected, pulled = torch.zeros(8, features, dtype=dtype), torch.zeros(9, features, dtype=dtype)
    for number in range(6):
        own = rows.columns[rows.pointers[number] : rows.pointers[number + 1]]
        for f in range(features if len(own) else 0):
            values = x[own, f].tolist()
            best = (max if largest else min)(values)
            expected[number, f] = best
            pulled[own[values.index(best)], f] += grad[number, f]
    assert torch.equal(found, expected)
    assert torch.equal(torch.autograd.grad(found, x, grad)[0], pulled)


def test_first_and_second_derivatives_where_there_are_no_ties(way):
    x = torch.randperm(12).reshape(3, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: row_extremes(x, *FEW), (x,))
    assert torch.autograd.gradgradcheck(lambda x: row_extremes(x, *FEW) ** 2, (x,))


@pytest.mark.parametrize("largest", [True, False])
def test_infinities_count_and_what_is_not_a_number_wins(way, largest):
    inf = -torch.inf if largest else torch.inf
    x = torch.tensor([[inf, 1.0], [inf, torch.nan], [inf, 3.0]])
    found = row_extremes(x, *FEW, largest)
    assert (found[:, 0] == inf).all()
    assert found[:, 1].isnan().all()


@pytest.mark.parametrize("largest", [True, False])
def test_the_largest_numbers_there_are_can_be_told_apart(way, largest):
    top = torch.finfo(torch.float32).max
    x = torch.tensor([0.8, 0.9, 1.0])[:, None] * (top if largest else -top)
    assert torch.equal(row_extremes(x, *FEW, largest), x[1:])


def test_empty_graphs_compile_and_the_meta_device():
    none = torch.zeros(0, dtype=torch.int64)
    assert torch.equal(row_extremes(torch.ones(2, 3), *patterns(none, none, 4, 2)), torch.zeros(4, 3))
    assert torch.equal(row_extremes(torch.ones(0, 3), *patterns(none, none, 4, 0)), torch.zeros(4, 3))
    assert row_extremes(torch.ones(0, 3), *patterns(none, none, 0, 0)).shape == (0, 3)
    x = torch.randn(3, 4, requires_grad=True)
    whole = torch.compile(lambda x: row_extremes(2 * x, *FEW), backend="aot_eager", fullgraph=True)
    (found,), (expected,) = (torch.autograd.grad(f(x).sum(), x) for f in (whole, lambda x: row_extremes(2 * x, *FEW)))
    assert torch.equal(found, expected)
    assert torch.ops.lemmata.row_extremes(x.to("meta"), 1.0, *(part.to("meta") for part in FEW[0])).shape == (2, 4)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (4, 4), (3, 4, 1)])
def test_what_is_not_there_is_not_read(shape):
    with pytest.raises(ValueError, match=r"x must be \(3, features\), got shape \("):
        row_extremes(torch.ones(shape), *FEW)


@pytest.mark.parametrize("largest", [True, False])
def test_extremes_of_whole_numbers(way, largest):
    x = torch.tensor([[2**40, -3], [2**40 + 1, 4], [7, 4]])
    right = [[2**40 + 1, 4], [2**40 + 1, 4]] if largest else [[2**40, -3], [7, 4]]
    assert row_extremes(x, *FEW, largest).tolist() == right


def test_gradients_of_halves_are_added_up_in_single_precision():
    r, c = torch.arange(700), torch.zeros(700, dtype=torch.int64)
    x = torch.ones(1, 2, dtype=torch.bfloat16, requires_grad=True)
    row_extremes(x, rows_of(r, c, 700), rows_of(c, r, 1)).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 700))  # one by one, bfloat16 stops at 256
