"""The sign of Hopfield networks, value by value, in every floating dtype."""

import math

import pytest
import torch

from lemmata.foundations.activations.signs import hopfield_sign


def test_it_differs_from_that_of_torch_at_zero_and_only_there():
    z = torch.tensor([-3.0, -5e-324, -0.0, 0.0, 5e-324, 3.0], dtype=torch.float64)
    assert hopfield_sign(z).tolist() == [-1, -1, 1, 1, 1, 1]
    assert hopfield_sign(z)[z != 0].equal(torch.sign(z)[z != 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_answer_is_a_state_of_the_dtype_asked(dtype):
    z = torch.tensor([[-math.inf, -0.0], [math.inf, math.nan]], dtype=dtype)
    assert hopfield_sign(z).equal(torch.tensor([[-1, 1], [1, -1]], dtype=dtype))
    assert hopfield_sign(torch.zeros(2, 0, 3, dtype=dtype)).shape == (2, 0, 3)
