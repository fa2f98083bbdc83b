"""Gradients pulled back through layers: parity with torch, batches, bad input."""

import pytest
import torch

from lemmata.foundations.matrix_calculus.pullbacks import (
    elementwise_pullback,
    linear_pullback,
    slope_of,
    softmax_jacobian,
    softmax_pullback,
)

G = torch.Generator().manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_linear_layer_agrees_with_torch_nn(dtype):
    layer = torch.nn.Linear(4, 3, bias=False, dtype=dtype)
    x = torch.randn(5, 4, generator=G, dtype=dtype, requires_grad=True)
    upstream = torch.randn(5, 3, generator=G, dtype=dtype)
    layer(x).backward(upstream)
    by_weight, by_input = linear_pullback(layer.weight.detach(), x.detach(), upstream)
    torch.testing.assert_close(by_weight, layer.weight.grad)
    torch.testing.assert_close(by_input, x.grad)


def test_the_softmax_pull_back_agrees_with_torch_for_large_logits():
    x = (100 * torch.randn(6, 5, generator=G, dtype=torch.float64)).requires_grad_()
    upstream = torch.randn(6, 5, generator=G, dtype=torch.float64)
    x.softmax(-1).backward(upstream)
    torch.testing.assert_close(softmax_pullback(upstream, x.detach()), x.grad)


def test_the_softmax_jacobian_of_a_batch_is_that_of_its_points():
    x = torch.randn(2, 3, 5, generator=G, dtype=torch.float64) * torch.tensor([2.0, 1e3])[:, None, None]
    points = [torch.autograd.functional.jacobian(lambda p: p.softmax(-1), point) for point in x.flatten(0, 1)]
    found = softmax_jacobian(x)
    torch.testing.assert_close(found, torch.stack(points).reshape(2, 3, 5, 5))
    assert found.equal(found.mT)


def test_a_linear_layer_sums_over_all_axes_of_a_batch():
    weight, x, upstream = (torch.randn(size, generator=G) for size in ((6, 2), (2, 3, 2), (2, 3, 6)))
    by_weight, by_input = linear_pullback(weight, x, upstream)
    points = [linear_pullback(weight, *pair) for pair in zip(x.flatten(0, 1), upstream.flatten(0, 1), strict=True)]
    torch.testing.assert_close(by_weight, sum(point[0] for point in points))
    torch.testing.assert_close(by_input.flatten(0, 1), torch.stack([point[1] for point in points]))


def test_one_class_has_nothing_to_learn():
    assert softmax_jacobian(torch.tensor([3.0])).item() == 0
    assert softmax_pullback(torch.tensor([1.0]), torch.tensor([3.0])).item() == 0


def test_gradients_flow_through_the_softmax_jacobian():
    x = torch.randn(2, 3, generator=G, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(softmax_jacobian, x)


def test_slopes_come_as_a_tensor_or_as_a_function():
    x, upstream = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    by_function = elementwise_pullback(upstream, x, torch.cos)
    assert torch.equal(by_function, elementwise_pullback(upstream, x, x.cos()))
    torch.testing.assert_close(slope_of(torch.sin, x), x.cos())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_pullback(torch.ones(3, 4), torch.ones(3), torch.ones(3)), r"x must be a \(\.\.\., 4\) tensor"),
        (
            lambda: linear_pullback(torch.ones(3, 4), torch.ones(4), torch.ones(4)),
            r"upstream must have the shape \(3,\)",
        ),
        (lambda: linear_pullback(torch.ones(4), torch.ones(4), torch.ones(4)), "weight must be a"),
        (lambda: elementwise_pullback(torch.ones(3), torch.ones(2), torch.cos), "upstream, x and slope must have one"),
        (lambda: softmax_jacobian(torch.tensor(1.0)), "x must be a .* got one number"),
        (lambda: softmax_pullback(torch.ones(2), torch.ones(3)), r"upstream must have the shape \(3,\) of x"),
        (lambda: softmax_pullback(torch.ones(3), torch.ones(3) / 0), "x must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
