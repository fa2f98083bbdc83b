"""Pooling: agreement with torch, gradients, padding, dtypes, the layer, and bad input."""

import itertools

import pytest
import torch
from torch.nn import functional

from lemmata.convolution import Pool, pool_nd

MAX = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
AVERAGE = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
KINDS = ("max", "min", "average", "softmax")


def example(axes):
    torch.manual_seed(axes)
    return torch.randn(2, 3, *[9, 8, 7][:axes], dtype=torch.float64)


@pytest.mark.parametrize("method", ["auto", "definition", "torch"])
@pytest.mark.parametrize(("axes", "stride", "padding"), list(itertools.product([1, 2, 3], [None, 1, 2], [0, 1])))
def test_max_min_and_average_are_those_of_torch(axes, stride, padding, method):
    x = example(axes)
    assert torch.equal(pool_nd(x, 3, "max", stride, padding, method=method), MAX[axes](x, 3, stride, padding))
    assert torch.equal(pool_nd(x, 3, "min", stride, padding, method=method), -MAX[axes](-x, 3, stride, padding))
    # A mean of at most 27 normal numbers, each below 6, added in another order.
    close = {"rtol": 0, "atol": 27 * 6 * torch.finfo(x.dtype).eps}
    expected = AVERAGE[axes](x, 3, stride, padding)
    torch.testing.assert_close(pool_nd(x, 3, "average", stride, padding, method=method), expected, **close)


@pytest.mark.parametrize("padding", [0, 1])
def test_dilated_windows_are_those_of_torch(padding):
    x = example(2)
    expected = functional.max_pool2d(x, (3, 2), (2, 1), padding, (2, 3))
    for method in ("auto", "definition"):
        found = pool_nd(x, (3, 2), "max", (2, 1), padding, (2, 3), method=method)
        assert torch.equal(found, expected)
    spread = torch.zeros(1, 1, 5, 4, dtype=x.dtype)
    spread[..., ::2, ::3] = 1 / 6
    constant = functional.conv2d(x.flatten(0, 1)[:, None], spread, stride=2).reshape(2, 3, 3, 3)
    found = pool_nd(x, (3, 2), "average", 2, 0, (2, 3))
    torch.testing.assert_close(found, constant, rtol=0, atol=36 * torch.finfo(x.dtype).eps)


def test_a_window_may_be_larger_than_what_is_not_padded():
    x = torch.randn(1, 2, 9, 1, 7, dtype=torch.float64)
    settings = {"kernel_size": (3, 2, 3), "stride": 2, "padding": (1, 1, 0)}
    flat = functional.avg_pool2d(x.transpose(2, 3).flatten(1, 2), (3, 3), 2, (1, 0)) / 2  # one of two rows is zero
    for method in ("auto", "definition"):
        found = pool_nd(x, kind="average", method=method, **settings)  # type: ignore[arg-type]
        torch.testing.assert_close(found, flat[:, :, :, None].expand(found.shape))


@pytest.mark.parametrize(("kind", "axes"), [("average", 1), ("average", 2), ("max", 1), ("max", 2), ("max", 3)])
def test_torchs_kernels_are_called_for_such_windows_where_they_can_be(kind, axes):
    x = torch.randn(1, 2, 1, *[6, 5][: axes - 1], dtype=torch.float64)
    settings = {"kernel_size": 2, "stride": 1, "padding": [1, 0, 0][:axes], "kind": kind}
    by_torch, by_definition = (pool_nd(x, method=method, **settings) for method in ("torch", "definition"))
    torch.testing.assert_close(by_torch, by_definition)


def test_a_stride_may_be_longer_than_the_axis():
    x = example(1)
    assert torch.equal(pool_nd(x, 3, stride=10), x[:, :, :3].amax(2, keepdim=True))


def test_four_dimensions_are_one_after_another():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 4, 4, 4, dtype=torch.float64)
    pairs = x.reshape(1, 2, 2, 2, 2, 2, 2, 2, 2, 2)
    assert torch.equal(pool_nd(x, 2), pairs.amax((3, 5, 7, 9)))
    torch.testing.assert_close(pool_nd(x, 2, "average"), pairs.mean((3, 5, 7, 9)))


def test_softmax_gives_padded_places_no_weight():
    x = example(2).requires_grad_()
    y = pool_nd(x, 3, "softmax", stride=2, padding=1, beta=-0.7)
    window = x[:, :, :2, :2].flatten(2)  # the first window without its padding
    expected = ((-0.7 * window).softmax(-1) * window).sum(-1)
    torch.testing.assert_close(y[:, :, 0, 0], expected)
    total = torch.autograd.grad(y[0, 0, 0, 0], x)[0].sum()
    torch.testing.assert_close(total, torch.ones_like(total))


def test_softmax_goes_from_smallest_to_largest():
    x = 1e4 * example(2)
    ends = [pool_nd(x, 2, "softmax", beta=beta) for beta in (-1e3, 0.0, 1e3)]
    expected = [pool_nd(x, 2, kind) for kind in ("min", "average", "max")]
    torch.testing.assert_close(torch.stack(ends), torch.stack(expected), rtol=1e-9, atol=0)
    levels = torch.stack([pool_nd(example(1), 3, "softmax", beta=beta) for beta in torch.linspace(-5, 5, 11).tolist()])
    assert (levels.diff(dim=0) > 0).all()


@pytest.mark.parametrize("method", ["auto", "definition"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, method):
    x = (0.1 * torch.randperm(30).double()).reshape(1, 1, 5, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: pool_nd(x, (3, 2), kind, stride=2, padding=1, method=method), x)


def test_of_several_largest_one_has_the_gradient():
    for kind, method in itertools.product(("max", "min"), ("torch", "definition")):
        x = torch.ones(1, 1, 4, requires_grad=True)
        gradient = torch.autograd.grad(pool_nd(x, 4, kind, method=method).sum(), x)[0]
        assert sorted(gradient.flatten().tolist()) == [0, 0, 0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_graphs_and_shapes_without_numbers(unchecked, kind):
    torch.compiler.reset()
    x = example(2)
    for dtype in (torch.float32, torch.bfloat16):
        found = pool_nd(x[:1].to(dtype), 2, kind)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), pool_nd(x[:1], 2, kind), rtol=0, atol=16 * torch.finfo(dtype).eps)
    compiled = torch.compile(pool_nd, fullgraph=True, backend="eager")(x, 3, kind, 2, 1)
    torch.testing.assert_close(compiled, pool_nd(x, 3, kind, 2, 1))
    assert pool_nd(x.to("meta"), 3, kind, 2, 1).shape == compiled.shape


def test_a_layer_learns_its_beta():
    layer = Pool(2, learn_beta=True, beta=0.5, dtype=torch.float64)
    x = example(2)
    assert torch.equal(layer(x), pool_nd(x, 2, "softmax", beta=0.5))
    assert list(layer.state_dict()) == ["beta"]
    assert torch.autograd.gradcheck(lambda beta: pool_nd(x, 2, "softmax", beta=beta), layer.get_parameter("beta"))
    other = Pool(2, learn_beta=True, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    assert Pool(2, learn_beta=True, device="meta")(torch.empty(1, 1, 4, device="meta")).shape == (1, 1, 2)


def test_a_layer_has_its_settings():
    x = example(2)
    assert torch.equal(Pool(3, "max", 2, 1, 2)(x), functional.max_pool2d(x, 3, 2, 1, 2))
    assert not list(Pool(2).parameters())
    assert repr(Pool(2, beta=3.0)) == "Pool(2, kind='softmax', stride=None, beta=3)"
    assert repr(Pool(2, "max", stride=1)) == "Pool(2, kind='max', stride=1)"


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"x": [1.0]}, TypeError, "x must be a tensor, got list"),
        ({"x": torch.zeros(2, 5)}, ValueError, r"x must be \(batch, channels, \*space\) and"),
        ({"x": torch.zeros(1, 0, 5)}, ValueError, "not empty"),
        ({"x": torch.zeros(1, 2, 5).long()}, TypeError, "x must hold floating-point numbers"),
        ({"kind": "median"}, ValueError, "kind must be one of max, min, average, softmax, got 'median'"),
        ({"method": "fast"}, ValueError, "method must be one of auto"),
        ({"kernel_size": 0}, ValueError, "kernel_size must be >= 1, got 0"),
        ({"kernel_size": (2, 2)}, ValueError, "kernel_size must be a number or 1 of them"),
        ({"kernel_size": 6}, ValueError, "must hold the kernel's 6 places"),
        ({"stride": 0}, ValueError, "stride must be >= 1, got 0"),
        ({"padding": 2}, ValueError, "padding must be at most half of kernel_size, 3, got 2"),
        ({"padding": 1, "dilation": 6}, ValueError, "must hold the kernel's 13 places"),
        ({"padding": 1, "kernel_size": 2, "dilation": 6}, ValueError, "dilation must be at most 5, the size of"),
        ({"kind": "softmax", "beta": torch.ones(3)}, ValueError, r"beta must be one number .* got shape \(3,\)"),
        ({"beta": float("nan")}, ValueError, "beta must be finite, got nan"),
        ({"kind": "softmax", "method": "torch"}, ValueError, "method 'torch' knows max, min and undilated average"),
        ({"kind": "average", "dilation": 2, "method": "torch"}, ValueError, r"got average, 1 axes, dilation \(2,\)"),
    ],
)
def test_bad_input_is_named(unchecked, changed, error, message):
    with pytest.raises(error, match=message):
        pool_nd(**{"x": torch.zeros(1, 2, 5), "kernel_size": 3, **changed})


def test_bad_layers_are_named(unchecked):
    for name in ("kernel_size", "stride", "dilation"):
        with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
            Pool(**{"kernel_size": 2, name: (2, 0)})
    with pytest.raises(ValueError, match="padding must be >= 0, got -1"):
        Pool(2, padding=-1)
    assert Pool((2, 3), padding=0)(torch.zeros(1, 1, 4, 6)).shape == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="learn_beta needs kind 'softmax', got 'max'"):
        Pool(2, "max", learn_beta=True)
    with pytest.raises(ValueError, match="kind must be one of"):
        Pool(2, "median")
    with pytest.raises(ValueError, match="beta must be finite"):
        Pool(2, beta=float("inf"))


def test_a_softmax_gives_no_weight_to_what_is_padded_on_one_axis_alone():
    x = torch.rand(1, 1, 4, 6).double()
    pooled = pool_nd(x, 2, "softmax", stride=2, padding=(1, 0))  # (1, 1, 3, 3), the first row from the first row alone
    met = x[0, 0, 0].unfold(0, 2, 2)  # (3, 2)
    torch.testing.assert_close(pooled[0, 0, 0], (met.softmax(1) * met).sum(1))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("kind", "name"), [("max", "max_pool"), ("average", "avg_pool")])
def test_ceil_mode_is_torchs_or_refused(axes, kind, name):
    x = torch.randn(2, 3, *[7] * axes).double()
    wanted = getattr(torch.nn.functional, f"{name}{axes}d")(x, 3, 2, 1, ceil_mode=True)
    assert torch.equal(pool_nd(x, 3, kind, 2, 1, ceil_mode=True), wanted)
    for options in ({"kind": "softmax"}, {"kind": kind, "method": "definition"}):
        with pytest.raises(ValueError, match="ceil_mode is known to torch's kernels alone"):
            pool_nd(x, 3, stride=2, ceil_mode=True, **options)
