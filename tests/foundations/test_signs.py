"""The two signs, value by value."""

import torch

from lemmata.foundations.signs import hopfield_sign, perceptron_sign


def test_they_differ_at_zero_and_only_there():
    z = torch.tensor([-3.0, -5e-324, -0.0, 0.0, 5e-324, 3.0], dtype=torch.float64)
    assert perceptron_sign(z).tolist() == [-1, -1, 0, 0, 1, 1]
    assert hopfield_sign(z).tolist() == [-1, -1, 1, 1, 1, 1]
