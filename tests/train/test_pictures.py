"""Pictures of classifiers: the map lies the right way up, and labels tell the truth."""

import pytest
import torch

from lemmata.data import Examples
from lemmata.train import confusion_matrix, decision_map, filter_pictures, labelled_pictures

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


def test_rows_of_the_confusion_matrix_are_the_true_classes_and_what_is_right_is_left_out():
    truth, predicted = torch.tensor([0, 0, 0, 2, 2]), torch.tensor([0, 1, 1, 0, 0])
    heat = confusion_matrix(predicted, truth, "abc")
    assert heat.values == [[None, 66.7, 0.0], [0.0, None, 0.0], [100.0, 0.0, None]]
    assert heat.rows == heat.columns == ["a", "b", "c"]


def test_kernels_are_enlarged_and_go_from_black_to_white():
    weight = torch.zeros(20, 2, 3, 5)
    weight[0, 0] = torch.linspace(-2, 1, 15).reshape(3, 5)
    weight[1, 1] = torch.rand(3, 5)  # of another channel: not shown
    images = filter_pictures(weight)
    assert len(images) == 16
    assert images[0].label == "kernel 1"
    pixels = torch.tensor(images[0].pixels)
    assert pixels.shape == (15, 25)
    assert torch.equal(pixels[::5, ::5], pixels[4::5, 4::5])
    torch.testing.assert_close(pixels[::5, ::5].flatten(), torch.linspace(0, 1, 15), rtol=0, atol=0.001)
    assert set(torch.tensor(images[1].pixels).flatten().tolist()) == {0.0}
    assert len(filter_pictures(torch.rand(1, 1, 40, 40))[0].pixels) == 40


def test_only_kernels_of_pictures_are_shown():
    with pytest.raises(ValueError, match=r"weight must be \(outputs, inputs, height, width\), got shape \(3, 4\)"):
        filter_pictures(torch.zeros(3, 4))
