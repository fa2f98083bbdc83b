"""Cover's count: exact integers, degenerate points, bad input."""

from fractions import Fraction

import pytest
import torch

from lemmata.connectionism.cover import (
    count_dichotomies,
    dichotomies,
    fraction_separable,
    in_general_position,
    separable_labellings,
)
from lemmata.foundations.linear_algebra import dependent_subset


def test_counts_are_integers_of_any_size():
    assert dichotomies(1000, 1000) == 2**1000
    assert fraction_separable(1000, 500) == Fraction(1, 2)


def test_eight_points_in_four_dimensions_have_128_dichotomies():
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    assert count_dichotomies(x) == dichotomies(8, 4) == 128


def test_labellings_are_distinct_and_come_in_opposite_pairs():
    rows = {tuple(row) for row in separable_labellings(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).tolist()}
    assert len(rows) == 6
    assert rows == {tuple(-label for label in row) for row in rows}


def test_points_in_special_position_have_fewer_labellings():
    assert count_dichotomies(torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])) == 4
    assert count_dichotomies(torch.zeros(1, 2)) == 0  # w^T 0 > 0 for no w
    assert count_dichotomies(torch.tensor([[1.0], [0.0]])) == 0
    assert separable_labellings(torch.zeros(3, 2)).shape == (0, 3)
    assert count_dichotomies(torch.zeros(1, 2), bias=True) == 2


def test_labellings_have_the_dtype_of_the_points():
    assert separable_labellings(torch.ones(1, 1, dtype=torch.float64)).dtype == torch.float64
    assert separable_labellings(torch.ones(1, 1)).dtype == torch.float32


def test_general_position_means_no_dependent_subset():
    plane = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert in_general_position(plane[:2])
    assert not in_general_position(plane)
    assert not in_general_position(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    assert not in_general_position(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), bias=True)


@pytest.mark.parametrize("function", [dichotomies, fraction_separable])
@pytest.mark.usefixtures("unchecked")
def test_counts_need_whole_positive_numbers(function):
    with pytest.raises(ValueError, match="points must be >= 1, got 0"):
        function(0, 2)
    with pytest.raises(ValueError, match="dimensions must be >= 0, got -1"):
        function(2, -1)
    with pytest.raises(TypeError, match="points must be an integer, got float"):
        function(2.0, 2)


@pytest.mark.parametrize("function", [count_dichotomies, separable_labellings, in_general_position])
@pytest.mark.usefixtures("unchecked")
def test_points_must_be_a_finite_matrix(function):
    with pytest.raises(ValueError, match=r"x must be a \(points, features\) tensor, got shape \(3,\)"):
        function(torch.zeros(3))
    with pytest.raises(ValueError, match="x must be finite"):
        function(torch.tensor([[float("nan")]]))
    with pytest.raises(ValueError, match="x must not be empty"):
        function(torch.zeros(0, 2))
    with pytest.raises(TypeError, match="x must be floating point"):
        function(torch.zeros(2, 2, dtype=torch.long))


def test_general_position_does_not_depend_on_lengths():
    assert in_general_position(torch.tensor([[1e-20, 0.0], [0.0, 1.0]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("points", "bias", "expected"),
    [
        ([[1e8], [1e8 + 1]], True, True),
        ([[1e15], [1e15 + 1]], True, True),
        ([[1e13, 1.0], [1e13 + 1, 1.0]], False, True),
        ([[1e-20], [0.0]], True, True),
        ([[1e-310], [2e-310]], True, True),
        ([[1e-310], [2e-310]], False, True),
        ([[1e-310, 1.0], [2e-310, 2.0]], False, False),
        ([[1e200, 1e-200], [1e-200, 1e200]], False, True),
        ([[1e200, 1e-200], [2e200, 2e-200]], False, False),
        ([[1.0, 1.0], [1.0, 1 + 1e-15]], False, True),
        ([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [1.0, 0.0, 0.0]], False, True),  # 0.3 is not three times 0.1 in binary
        ([[0.1, 0.2, 0.4], [1.0, 2.0, 4.0], [1.0, 0.0, 0.0]], False, False),
        ([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], False, False),  # fewer points than features
        ([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0 + 1e-15]], False, True),
        ([[0.0]], False, False),
        ([[5e-324]], False, True),
        ([[0.0]], True, True),
    ],
)
def test_general_position_is_decided_on_the_numbers_as_they_are_stored(points, bias, expected):
    x = torch.tensor(points, dtype=torch.float64)
    assert in_general_position(x, bias) is expected
    assert (dependent_subset(x, affine=bias) is None) is expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_neighbours_in_short_types_are_two_points(dtype):
    x = torch.tensor([[1.0], [1 + torch.finfo(dtype).eps], [torch.finfo(dtype).tiny]], dtype=dtype)
    assert in_general_position(x, bias=True)
    assert count_dichotomies(x, bias=True) == dichotomies(3, 1, bias=True)


def test_general_position_agrees_with_exact_ranks():
    generator = torch.Generator().manual_seed(0)
    answers = []
    for trial in range(60):
        x = torch.randint(-4, 5, (5, 1 + trial % 3), generator=generator).double() * 0.1 + [0.0, 1e9, 1e-9][trial % 3]
        answers.append(in_general_position(x, bias=True))
        assert answers[-1] is (dependent_subset(x, affine=True) is None)
    assert 5 < sum(answers) < 55


@pytest.mark.parametrize(
    ("points", "bias", "expected"),
    [
        ([[1.0, 1.0], [1.0, 1 + 1e-14]], False, 4),
        ([[1e13], [1e13 + 1], [1e13 + 2]], True, 6),
        ([[1e10], [1e10 + 1], [1e10 + 2]], True, 6),
        ([[1e-310], [2e-310], [3e-310]], True, 6),
        ([[1e200], [2e200], [-1e200]], True, 6),
        ([[1.0, 3.0], [0.5, 1.5]], False, 2),
        ([[0.0]], True, 2),
        ([[0.0]], False, 0),
    ],
)
def test_points_next_to_each_other_are_counted_apart(points, bias, expected):
    assert count_dichotomies(torch.tensor(points, dtype=torch.float64), bias) == expected


def test_too_many_subsets_are_refused():
    with pytest.raises(ValueError, match="fewer points: 60 of them have 75,394,027,566 subsets"):
        in_general_position(torch.randn(60, 10))
