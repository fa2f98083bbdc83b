"""What the claims about rectifiers do not say: tails, dtypes, shapes, bad input."""

import pytest
import torch

from lemmata.foundations.activations.rectifiers import (
    gelu,
    gelu_derivative,
    gelu_tanh,
    gelu_tanh_derivative,
    relu,
    relu_derivative,
)

ELEMENTWISE = [relu, relu_derivative, gelu, gelu_derivative, gelu_tanh, gelu_tanh_derivative]


def test_relu_is_the_positive_part():
    z = torch.tensor([-1e300, -5e-324, 0.0, 5e-324, 1e300], dtype=torch.float64)
    assert relu(z).equal(torch.where(z > 0, z, 0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [gelu, gelu_tanh])
def test_gelu_is_nothing_or_its_input_far_out(function, dtype):
    z = torch.tensor([-1e30, -30.0, 30.0, 1e30], dtype=dtype)
    assert function(z).equal(torch.tensor([0.0, 0.0, 30.0, 1e30], dtype=dtype))


def test_the_slope_of_gelu_keeps_the_precision_of_its_tails():
    z = torch.tensor([-30.0, 30.0], dtype=torch.float64)
    assert gelu_derivative(z)[1] == 1
    # Phi(z) is -phi(z)/z (1 - 1/z^2 + 3/z^4 - ...); beside z phi(z) the next term, 15/z^6, is 2e-11.
    density = torch.exp(-(z[0] ** 2) / 2) / (2 * torch.pi) ** 0.5
    expected = density * (z[0] - (1 - 1 / 900 + 3 / 900**2) / z[0])
    torch.testing.assert_close(gelu_derivative(z)[0], expected, rtol=1e-9, atol=0.0)


def test_the_slope_of_the_approximation_is_that_of_autograd():
    z = torch.linspace(-8, 8, 161, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(gelu_tanh(z).sum(), z)
    torch.testing.assert_close(gelu_tanh_derivative(z.detach()), slope, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_elementwise_functions_keep_shape_and_dtype_and_take_floats_alone(function, unchecked):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert function(torch.zeros(2, 0, 3, dtype=dtype)).shape == (2, 0, 3)
        assert function(torch.full((1,), 0.3, dtype=dtype)).dtype == dtype
    with pytest.raises(TypeError, match=r"z must be floating point, got torch\.int64"):
        function(torch.ones(2, dtype=torch.int64))
    with pytest.raises(TypeError, match="z must be a tensor, got float"):
        function(0.5)
