"""Rectifiers where no claim looks: the slope that is asked for at 0, and GELU's tails and its approximation's slope."""

import torch

from lemmata.foundations.rectifiers import gelu, gelu_tanh, gelu_tanh_derivative, relu, relu_derivative


def test_the_slope_at_zero_is_the_one_asked_for():
    z = torch.tensor([-1.0, 0.0, 2.0])
    for slope in (0, 0.25, 1):
        assert relu_derivative(z, at_zero=slope).tolist() == [0.0, slope, 1.0]


def test_relu_is_the_positive_part():
    z = torch.tensor([-1e300, -5e-324, 0.0, 5e-324, 1e300], dtype=torch.float64)
    assert relu(z).equal(torch.where(z > 0, z, 0.0))


def test_gelu_keeps_the_precision_of_its_tails():
    z = torch.tensor([-30.0, 30.0], dtype=torch.float64)
    assert gelu(z)[1] == 30
    # z Phi(z) is -phi(z) (1 - 1/z^2 + 3/z^4 - ...), and the next term is 15/z^6 = 2e-8.
    expected = -torch.exp(-(z[0] ** 2) / 2) / (2 * torch.pi) ** 0.5 * (1 - 1 / 900 + 3 / 900**2)
    torch.testing.assert_close(gelu(z)[0], expected, rtol=1e-7, atol=0.0)


def test_the_slope_of_the_approximation_is_that_of_autograd():
    z = torch.linspace(-8, 8, 161, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(gelu_tanh(z).sum(), z)
    torch.testing.assert_close(gelu_tanh_derivative(z.detach()), slope, rtol=0.0, atol=1e-12)
