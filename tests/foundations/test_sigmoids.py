"""The sigmoid far from 0, where naive formulas lose their digits; the rest is in claims and in test_activations."""

import math

import torch

from lemmata.foundations.sigmoids import sigmoid, sigmoid_derivative, sigmoid_second_derivative, tanh_derivative

FAR = torch.tensor([-700.0, -650.0, -600.0], dtype=torch.float64)


def test_the_left_tail_of_the_sigmoid_and_of_its_slopes_is_the_exponential():
    for function in (sigmoid, sigmoid_derivative, sigmoid_second_derivative):
        torch.testing.assert_close(function(FAR).log(), FAR, rtol=1e-14, atol=0.0)
    assert sigmoid(-FAR).eq(1).all()


def test_the_tail_of_the_slope_of_tanh_keeps_its_size():
    slopes = tanh_derivative(torch.tensor([-100.0, 100.0], dtype=torch.float64))
    torch.testing.assert_close(slopes.log(), torch.full_like(slopes, math.log(4) - 200), rtol=1e-14, atol=0.0)
