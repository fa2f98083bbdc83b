"""The embedded digits: shape, range, order, and that each call gives fresh tensors."""

import torch

from lemmata.data import digits


def test_there_are_1797_images_of_eight_by_eight_in_the_unit_interval():
    images, labels = digits()
    assert images.shape == (1797, 8, 8)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert images.min() == 0
    assert images.max() == 1


def test_every_digit_is_there_and_images_are_upright():
    images, labels = digits()
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    zeros = images[labels == 0].mean(0)
    assert zeros[3:5, 3:5].mean() < 0.2 < zeros[3:5, 1:3].mean()  # a ring: empty in the middle


def test_writing_into_one_copy_leaves_the_next_untouched():
    images, labels = digits()
    images.zero_()
    labels.zero_()
    again, truth = digits()
    assert again.max() == 1
    assert truth.max() == 9
