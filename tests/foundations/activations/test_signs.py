"""The two signs, value by value; dtypes and bad input."""

import math

import pytest
import torch

from lemmata.foundations.activations.signs import hopfield_sign, perceptron_sign


def test_they_differ_at_zero_and_only_there():
    z = torch.tensor([-3.0, -5e-324, -0.0, 0.0, 5e-324, 3.0], dtype=torch.float64)
    assert perceptron_sign(z).tolist() == [-1, -1, 0, 0, 1, 1]
    assert hopfield_sign(z).tolist() == [-1, -1, 1, 1, 1, 1]


@pytest.mark.parametrize("sign", [perceptron_sign, hopfield_sign])
def test_signs_keep_the_dtype_and_refuse_nan(sign):
    assert sign(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(ValueError, match="z must be finite"):
        sign(torch.tensor([math.nan]))
