"""Backward passes of a layer: against autograd in every setting, second derivatives, dtypes, and bad input."""

import itertools
from typing import Any

import pytest
import torch

from cases import for_each
from lemmata.convolution import conv_input_gradient, conv_nd, conv_weight_gradient

# A sum of at most 2 * 2 * 9 * 8 products of normal numbers (each below 36), rounded after every step.
WITHIN = 288 * 36 * 64 * torch.finfo(torch.float64).eps
GRID = list(itertools.product([1, 2, 3], [1, 2, 3], [0, 1, 2], [1, 2], [1, 2]))


def example(axes, groups=1):
    torch.manual_seed(axes + 10 * groups)
    x = torch.randn(2, 4, *[9, 8, 7][:axes], dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 4 // groups, *[3, 2, 3][:axes], dtype=torch.float64, requires_grad=True)
    return x, weight


@for_each(("axes", "stride", "padding", "dilation", "groups"), GRID)
def test_both_gradients_are_those_of_autograd(axes, stride, padding, dilation, groups):
    x, weight = example(axes, groups)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = conv_nd(x, weight, method="torch", **settings)
    delta = torch.randn_like(y)
    by_input, by_weight = torch.autograd.grad(y, (x, weight), delta)
    found = conv_input_gradient(x.shape[2:], weight, delta, **settings)
    torch.testing.assert_close(found, by_input, rtol=0, atol=WITHIN)
    found = conv_weight_gradient(x, weight.shape[2:], delta, **settings)
    torch.testing.assert_close(found, by_weight, rtol=0, atol=WITHIN)


@pytest.mark.parametrize("method", ["auto", "definition", "im2col", "torch", "fft"])
def test_every_method_and_different_numbers_for_each_axis(method):
    x, weight = example(2)
    settings = {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 3), "method": method}
    y = conv_nd(x, weight, **settings)
    delta = torch.randn_like(y)
    by_input, by_weight = torch.autograd.grad(y, (x, weight), delta)
    found = conv_input_gradient(x.shape[2:], weight, delta, **settings)
    torch.testing.assert_close(found, by_input, rtol=0, atol=WITHIN)
    torch.testing.assert_close(conv_weight_gradient(x, (3, 2), delta, **settings), by_weight, rtol=0, atol=WITHIN)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_paddings_with_a_name(padding):
    x, weight = example(2)  # one axis of the kernel is even, so that one side is padded more
    y = conv_nd(x, weight, padding=padding)
    delta = torch.randn_like(y)
    by_input, by_weight = torch.autograd.grad(y, (x, weight), delta)
    found = conv_input_gradient(x.shape[2:], weight, delta, padding=padding)
    torch.testing.assert_close(found, by_input, rtol=0, atol=WITHIN)
    found = conv_weight_gradient(x, weight.shape[2:], delta, padding=padding)
    torch.testing.assert_close(found, by_weight, rtol=0, atol=WITHIN)


def test_four_dimensions():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 3, 4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 2, 2, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    y = conv_nd(x, weight, stride=2, padding=1)
    delta = torch.randn_like(y)
    by_input, by_weight = torch.autograd.grad(y, (x, weight), delta)
    found = conv_input_gradient((4, 3, 4, 3), weight, delta, stride=2, padding=1)
    torch.testing.assert_close(found, by_input, rtol=0, atol=WITHIN)
    found = conv_weight_gradient(x, 2, delta, stride=2, padding=1)
    torch.testing.assert_close(found, by_weight, rtol=0, atol=WITHIN)


def test_gradients_of_the_gradients():
    x, weight = example(1, groups=2)
    delta = torch.randn(2, 6, 5, dtype=torch.float64, requires_grad=True)
    settings: dict[str, Any] = {"stride": 2, "padding": 1, "groups": 2}
    assert torch.autograd.gradcheck(lambda w, d: conv_input_gradient(9, w, d, **settings), (weight, delta))
    assert torch.autograd.gradcheck(lambda x, d: conv_weight_gradient(x, 3, d, **settings), (x, delta))


def test_whole_numbers_are_exact_and_low_precision_stays():
    big, weight = torch.tensor([[[2**40, 1, 3]]]), torch.tensor([[[1, 2]]])
    assert conv_input_gradient(4, weight, big).tolist() == [[[2**40, 2**41 + 1, 5, 6]]]
    assert conv_weight_gradient(big, 2, torch.tensor([[[1, 1]]])).tolist() == [[[2**40 + 1, 4]]]
    delta = torch.ones(1, 1, 3, dtype=torch.bfloat16)
    assert conv_input_gradient(4, weight.bfloat16(), delta).dtype == torch.bfloat16


def test_one_graph_and_shapes_without_numbers(unchecked):
    torch.compiler.reset()
    x, weight = (values.detach() for values in example(2))
    delta = torch.randn(2, 6, 4, 4, dtype=torch.float64)
    whole = torch.compile(conv_input_gradient, fullgraph=True, backend="eager")((9, 8), weight, delta, stride=2)
    torch.testing.assert_close(whole, conv_input_gradient((9, 8), weight, delta, stride=2), rtol=0, atol=WITHIN)
    assert conv_weight_gradient(x.to("meta"), (3, 2), delta.to("meta"), stride=2).shape == weight.shape


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weight": torch.zeros(2, 3)}, r"weight must be \(outputs, inputs / groups, \*kernel\), got shape \(2, 3\)"),
        ({"delta": torch.zeros(1, 2, 4)}, r"delta must be \(batch, 2, 3\), the shape of the layer's output, got shape"),
        ({"delta": torch.zeros(1, 3, 3)}, r"delta must be \(batch, 2, 3\)"),
        ({"delta": torch.zeros(1, 2, 3, 1)}, r"delta must be \(batch, 2, 3\)"),
        ({"size": 2}, "must hold the kernel's 3 places"),
        ({"size": (5, 5)}, "size must be a number or 1 of them"),
        ({"stride": 0}, "stride must be >= 1, got 0"),
        ({"groups": 3}, "groups must divide the 2 channels of weight, got 3"),
    ],
)
def test_bad_input_is_named(unchecked, changed, message):
    with pytest.raises(ValueError, match=message):
        conv_input_gradient(**{"size": 5, "weight": torch.zeros(2, 1, 3), "delta": torch.zeros(1, 2, 3), **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": torch.zeros(2, 5)}, r"x must be \(batch, inputs, \*space\), got shape \(2, 5\)"),
        ({"delta": torch.zeros(1, 2, 4)}, r"delta must be \(batch, outputs, 3\), the shape of the layer's output"),
        ({"delta": torch.zeros(2, 2, 3)}, "delta must have the 1 examples of x, got 2"),
        ({"kernel_size": 0}, "kernel_size must be >= 1"),
        ({"groups": 2}, "groups must divide the 3 channels of x, got 2"),
        ({"groups": 3}, "groups must divide the 2 channels of delta, got 3"),
    ],
)
def test_bad_input_of_the_kernels_gradient_is_named(unchecked, changed, message):
    with pytest.raises(ValueError, match=message):
        conv_weight_gradient(**{"x": torch.zeros(1, 3, 5), "kernel_size": 3, "delta": torch.zeros(1, 2, 3), **changed})


def test_gradients_of_another_dtype_are_named(unchecked):
    with pytest.raises(TypeError, match=r"delta must have the dtype of weight, torch.float32, got torch.float64"):
        conv_input_gradient(5, torch.zeros(2, 1, 3), torch.zeros(1, 2, 3).double())
    with pytest.raises(TypeError, match=r"delta must have the dtype of x, torch.float32, got torch.float64"):
        conv_weight_gradient(torch.zeros(1, 3, 5), 3, torch.zeros(1, 2, 3).double())
