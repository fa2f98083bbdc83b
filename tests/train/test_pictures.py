"""Pictures of classifiers: the map lies the right way up, and labels tell the truth."""

import pytest
import torch

from lemmata.data import Examples
from lemmata.train import decision_map, labelled_pictures

SQUARE = Examples(x=torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]), y=torch.tensor([0, 1, 1, 0]))


def test_rows_of_the_map_are_heights_and_columns_are_places():
    seen = []

    def right_of_three(x):
        seen.append(x)
        share = (x[:, 0] > 3).float()
        return torch.stack([1 - share, share], 1)

    heat = decision_map(right_of_three, SQUARE, ["left", "right"]).marks[0]
    assert heat.x[0] == pytest.approx(-0.4)
    assert heat.x[-1] == pytest.approx(4.4)
    assert heat.y[0] == pytest.approx(-0.2)
    assert [value > 0 for value in heat.values[0]] == [x > 3 for x in heat.x]
    assert all(row == heat.values[0] for row in heat.values)
    assert heat.label == "right − left"
    assert seen[0].shape == (3600, 2)


def test_of_many_classes_the_likeliest_is_shown():
    heat = decision_map(lambda x: torch.tensor([[0.2, 0.5, 0.3]]).repeat(len(x), 1), SQUARE, "abc").marks[0]
    assert {value for row in heat.values for value in row} == {0.5}


def test_points_of_one_place_still_have_a_map():
    one = Examples(x=torch.zeros(3, 2), y=torch.tensor([0, 0, 1]))
    figure = decision_map(lambda x: torch.full((len(x), 2), 0.5), one, "ab")
    assert len(figure.marks) == 3


def test_only_points_of_the_plane_have_a_map():
    with pytest.raises(ValueError, match=r"examples must be points in the plane, got x of shape \(2, 3\)"):
        decision_map(lambda x: x, Examples(x=torch.zeros(2, 3), y=torch.zeros(2).long()), "ab")


def test_pixels_are_kept_within_the_greys():
    figure = labelled_pictures(torch.tensor([[[-1.0, 0.25], [2.0, 1.0]]]), torch.tensor([1]), torch.tensor([0]), "ab")
    assert figure.marks[0].pixels == [[0.0, 0.25], [1.0, 1.0]]
    assert figure.marks[0].label == "b, is a"
