"""Measures of a matrix of accuracies: by hand, for one task, and for matrices that are none."""

import pytest
import torch

from lemmata.continual import average_accuracy, backward_transfer, forgetting, forward_transfer, gradient_cosine

MATRIX = torch.tensor([
    [0.1, 0.2, 0.3],
    [0.9, 0.3, 0.3],
    [0.95, 0.8, 0.5],
    [0.7, 0.85, 0.6],
])  # fmt: skip


def test_each_measure_by_hand():
    assert average_accuracy(MATRIX) == pytest.approx((0.7 + 0.85 + 0.6) / 3)
    assert forgetting(MATRIX) == pytest.approx(((0.95 - 0.7) + (0.8 - 0.85)) / 2)  # best before the last task
    assert backward_transfer(MATRIX) == pytest.approx(((0.7 - 0.9) + (0.85 - 0.8)) / 2)
    assert forward_transfer(MATRIX) == pytest.approx(((0.3 - 0.2) + (0.5 - 0.3)) / 2)


def test_one_task_has_nothing_to_forget():
    one = torch.tensor([[0.1], [0.9]])
    assert average_accuracy(one) == pytest.approx(0.9)
    assert forgetting(one) == backward_transfer(one) == forward_transfer(one) == 0.0


@pytest.mark.parametrize("measure", [average_accuracy, forgetting, backward_transfer, forward_transfer])
@pytest.mark.parametrize("shape", [(3, 3), (1, 0), (4,), (2, 3)])
def test_other_shapes_are_refused(measure, shape):
    with pytest.raises((ValueError, TypeError), match="accuracies"):
        measure(torch.rand(shape))


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_the_cosine_is_that_of_directions_alone(scale):
    first, second = torch.tensor([3.0, 4.0]) * scale, torch.tensor([4.0, 3.0])
    assert float(gradient_cosine(first, second)) == pytest.approx(24 / 25, rel=1e-5)
    assert float(gradient_cosine(first, -second)) == pytest.approx(-24 / 25, rel=1e-5)


def test_gradients_of_other_lengths_are_refused():
    with pytest.raises((ValueError, TypeError), match=r"vectors of one length|second"):
        gradient_cosine(torch.ones(2), torch.ones(3))
