"""What the claims about the sigmoid do not say: tails, dtypes, shapes, vmap, bad input."""

import math

import pytest
import torch

from lemmata.foundations.activations.sigmoids import logit, sigmoid, sigmoid_derivative, tanh_derivative

ELEMENTWISE = [sigmoid, sigmoid_derivative, tanh_derivative]

FAR = torch.tensor([-700.0, -650.0, -600.0], dtype=torch.float64)


def test_the_left_tail_of_the_sigmoid_and_of_its_slope_is_the_exponential():
    for function in (sigmoid, sigmoid_derivative):
        torch.testing.assert_close(function(FAR).log(), FAR, rtol=1e-14, atol=0.0)
    assert sigmoid(-FAR).eq(1).all()


def test_the_tail_of_the_slope_of_tanh_keeps_its_size():
    slopes = tanh_derivative(torch.tensor([-100.0, 100.0], dtype=torch.float64))
    torch.testing.assert_close(slopes.log(), torch.full_like(slopes, math.log(4) - 200), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_elementwise_functions_keep_shape_and_dtype_and_take_floats_alone(function, unchecked):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert function(torch.zeros(2, 0, 3, dtype=dtype)).shape == (2, 0, 3)
        assert function(torch.full((1,), 0.3, dtype=dtype)).dtype == dtype
    with pytest.raises(TypeError, match=r"z must be floating point, got torch\.int64"):
        function(torch.ones(2, dtype=torch.int64))
    with pytest.raises(TypeError, match="z must be a tensor, got float"):
        function(0.5)


def test_elementwise_functions_work_under_vmap():
    z = torch.linspace(-2, 2, 5)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(sigmoid))(z), sigmoid_derivative(z))


def test_the_logit_refuses_what_the_sigmoid_never_takes():
    with pytest.raises(ValueError, match="y must lie strictly between 0 and 1, got 1"):
        logit(torch.tensor([0.5, 1.0]))
    with pytest.raises(ValueError, match="y must be finite, found 1 NaN"):
        logit(torch.tensor([math.nan]))
