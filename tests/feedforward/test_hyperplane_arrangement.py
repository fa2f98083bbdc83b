"""Regions of hyperplanes in any position, for every kind of number."""

import pytest
import torch

from lemmata.feedforward import arrangement_regions, most_regions


@pytest.mark.parametrize(
    ("rows", "regions"),
    [
        ([[1, 0, 0]], 2),
        ([[1, 0, 0], [2, 0, 0]], 2),  # twice the same
        ([[1, 0, 0], [-1, 0, 0]], 2),
        ([[1, 0, 0], [1, 0, 1], [1, 0, 2]], 4),  # parallel
        ([[1, 0, 0], [0, 1, 0]], 4),
        ([[1, 0, 0], [0, 1, 0], [1, 1, 0]], 6),  # through one point
        ([[1, 0, 0], [0, 1, 0], [1, 1, -1]], 7),
        ([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]], 9),  # a grid
        ([[0, 0, 1], [0, 0, 0]], 1),  # nowhere, everywhere
    ],
)
def test_lines_in_every_position(rows, regions):
    planes = torch.tensor(rows)
    for dtype in (torch.int64, torch.int8, torch.float64, torch.float32, torch.float16):
        assert arrangement_regions(planes[:, :2].to(dtype), planes[:, 2].to(dtype)) == regions


def test_planes_through_one_line_and_coordinate_planes_in_space():
    assert arrangement_regions(torch.eye(3), torch.zeros(3)) == 8
    book = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [1, -1, 0]])
    assert arrangement_regions(book, torch.zeros(4)) == 8
    braid = torch.tensor([[1, -1, 0], [1, 0, -1], [0, 1, -1]])  # x_i = x_j: one region for each order
    assert arrangement_regions(braid, torch.zeros(3)) == 6


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_a_miss_by_the_last_digit_is_a_miss(scale):
    weight = scale * torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    bias = scale * torch.tensor([-1 / 3, -1 / 3, -2 / 3], dtype=torch.float64)
    assert arrangement_regions(weight, torch.stack([bias[0], bias[0], 2 * bias[0]])) == 6
    bias[2] = torch.nextafter(2 * bias[0], torch.tensor(0.0, dtype=torch.float64))
    assert arrangement_regions(weight, torch.stack([bias[0], bias[0], bias[2]])) == 7


def test_no_hyperplane_leaves_one_region():
    assert arrangement_regions(torch.zeros(0, 2), torch.zeros(0)) == most_regions(0, dimensions=2) == 1


def test_bad_input_is_refused_in_words(unchecked):
    with pytest.raises(ValueError, match=r"got \(2, 2\) and \(3,\)"):
        arrangement_regions(torch.zeros(2, 2), torch.zeros(3))
    with pytest.raises(ValueError, match="must be finite"):
        arrangement_regions(torch.tensor([[torch.nan, 1.0]]), torch.zeros(1))
    with pytest.raises(ValueError, match="dimensions must be >= 1"):
        most_regions(3, dimensions=0)
    with pytest.raises(ValueError, match="hyperplanes must be >= 0"):
        most_regions(-1, dimensions=1)


@pytest.mark.usefixtures("unchecked")
def test_lists_are_no_hyperplanes():
    with pytest.raises(TypeError, match=r"weight must be a tensor, got list: use torch\.as_tensor\(weight\)"):
        arrangement_regions([[1, 0]], torch.tensor([0]))
