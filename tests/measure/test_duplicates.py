"""Duplicates: exact ones in every dtype, copies told from chance, near twins by a law without a scale."""

import math

import pytest
import torch

from lemmata.measure.duplicates import agreement_of_rest, equal_groups, near_twins


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_equal_rows_have_equal_numbers(dtype):
    rows = torch.tensor([[[0, 1], [1, 1]], [[1, 0], [1, 1]], [[0, 1], [1, 1]], [[0, 0], [0, 0]]]).to(dtype)
    assert equal_groups(rows).tolist() == [0, 1, 0, 2]


def test_all_columns_count():
    x, y = torch.tensor([[1.0], [1.0], [1.0]]), torch.tensor([5, 6, 5])
    assert equal_groups(x).tolist() == [0, 0, 0]
    assert equal_groups(x, y).tolist() == [0, 1, 0]


def test_it_agrees_with_unique_and_sees_the_last_bit():
    rows = torch.randint(0, 3, (500, 4), generator=torch.Generator().manual_seed(0)).float()
    groups = equal_groups(rows)
    _, inverse = rows.unique(dim=0, return_inverse=True)
    assert torch.equal(groups[:, None] == groups, inverse[:, None] == inverse)
    near = torch.stack([rows[0] + 1, torch.nextafter(rows[0] + 1, torch.tensor(9.0))])
    assert equal_groups(near).tolist() == [0, 1]


def test_columns_of_different_lengths():
    with pytest.raises(ValueError, match="columns must have one row an example"):
        equal_groups(torch.zeros(2, 1), torch.zeros(3, 1))


def test_copies_agree_in_the_rest_and_chance_does_not():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(400, 8, generator=generator)
    assert agreement_of_rest(noise[:300], noise[200:]) == 1.0  # a hundred are in both
    bits = torch.randint(0, 2, (2000, 10), generator=generator)
    # Of fair bits that agree in five places 2^-5 agree in the other five.
    assert agreement_of_rest(bits[:1000], bits[1000:]) == pytest.approx(2**-5, rel=0.2)
    assert agreement_of_rest(bits[:, :1], bits[:, :1]) == 0.0  # one feature has no halves


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dimension", [2, 5, 20])
def test_near_twins_are_found_and_nothing_else(scale, dimension):
    generator = torch.Generator().manual_seed(0)
    x = scale * torch.rand(1200, dimension, generator=generator)
    points = x[:300].clone()
    points[:20] += 1e-6 * scale * torch.randn(20, dimension, generator=generator)
    others = torch.cat([x[:20], x[300:]])
    found = near_twins(points, others)
    assert found.twin[20:].sum() == 0
    # In two dimensions a twin must be far nearer than the next, (300 / 0.001)^(1/2) = 550 times, to be no chance; the
    # next is at about 1 / sqrt(900) / 2 = 0.017, so that 1e-6 is near enough.
    assert found.twin[:20].all()


def test_where_all_are_twins_the_dimension_must_be_given():
    x = torch.rand(500, 6, generator=torch.Generator().manual_seed(0))
    usual = near_twins(x, x, own=torch.arange(500)).dimension
    assert near_twins(x + 1e-4, x, dimension=usual).twin.all()


def test_the_dimension_is_that_of_the_points():
    generator = torch.Generator().manual_seed(0)
    plane = torch.rand(4000, 2, generator=generator) @ torch.randn(2, 10, generator=generator)
    found = near_twins(plane[:1000], plane[1000:])
    # The median of 1000 ratios: log 2 / D with a relative standard error of 1 / (log 2 sqrt(1000)) = 0.046.
    assert found.dimension == pytest.approx(2, rel=4 * 0.046)
    assert not found.twin.any()


def test_a_point_is_not_its_own_twin():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    assert not near_twins(x, x, own=torch.arange(200)).twin.any()


def test_nothing_is_said_on_a_lattice():
    grid = torch.cartesian_prod(*[torch.arange(6.0)] * 3)
    found = near_twins(grid + 0.25, grid)
    assert found.dimension < math.inf or not found.twin.any()
    assert not near_twins(grid, grid, own=torch.arange(len(grid))).twin.any()


def test_bad_input(unchecked):
    with pytest.raises(ValueError, match="others must hold at least 3 points, got 2"):
        near_twins(torch.zeros(4, 2), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="points must be a"):
        near_twins(torch.zeros(4), torch.zeros(5, 2))
