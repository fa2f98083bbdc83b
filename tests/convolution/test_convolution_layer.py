"""The convolution of a layer: every method against torch's, gradients, dtypes, and bad input."""

import math

import pytest
import torch
from torch.nn import functional

from lemmata.convolution import conv_nd, conv_transpose_nd

TORCH = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
METHODS = ("auto", "measured", "definition", "im2col", "torch", "fft")
# A sum of at most 2 * 27 products of normal numbers (each below 6), rounded after every step.
WITHIN = 54 * 36 * 64 * torch.finfo(torch.float64).eps
SETTINGS = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "padding": 2, "groups": 2},
    {"stride": 3, "dilation": 2, "groups": 2},
]


def example(axes, groups=1, dtype=torch.float64):
    torch.manual_seed(axes)
    space, kernel = [9, 8, 7][:axes], [3, 2, 3][:axes]
    x = torch.randn(2, 4, *space, dtype=dtype)
    return x, torch.randn(6, 4 // groups, *kernel, dtype=dtype), torch.randn(6, dtype=dtype)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_method_is_torchs_convolution(axes, method, settings):
    x, weight, bias = example(axes, settings.get("groups", 1))
    found = conv_nd(x, weight, bias, method=method, **settings)
    torch.testing.assert_close(found, TORCH[axes](x, weight, bias, **settings), rtol=0, atol=WITHIN)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_method_is_torchs_transposed_convolution(axes, method, settings):
    groups = settings.get("groups", 1)
    x, weight, _ = example(axes, groups)
    weight, bias = weight.transpose(0, 1).reshape(4, -1, *weight.shape[2:]), torch.randn(6).double()
    for output_padding in range(max(settings.get("stride", 1), settings.get("dilation", 1))):
        more = {**settings, "output_padding": output_padding}
        found = conv_transpose_nd(x, weight[:, : 6 // groups], bias, method=method, **more)
        expected = TRANSPOSED[axes](x, weight[:, : 6 // groups], bias, **more)
        torch.testing.assert_close(found, expected, rtol=0, atol=WITHIN)


def test_a_stride_leaves_room_for_more_padding_than_the_kernel_is_long():
    x, weight = torch.randn(1, 1, 4).double(), torch.randn(1, 1, 1).double()
    expected = functional.conv_transpose1d(x, weight, stride=3, padding=4)  # 10 places less 4 on each side
    torch.testing.assert_close(conv_transpose_nd(x, weight, stride=3, padding=4), expected, rtol=0, atol=WITHIN)
    assert expected.shape[2] == 2


def test_different_numbers_for_each_axis():
    x, weight, bias = example(2)
    settings = {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 3)}
    expected = functional.conv2d(x, weight, bias, **settings)
    for method in METHODS:
        torch.testing.assert_close(conv_nd(x, weight, bias, method=method, **settings), expected, rtol=0, atol=WITHIN)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes_are_those_of_torchs_layer(mode):
    x, _, _ = example(2)
    layer = torch.nn.Conv2d(4, 6, (3, 5), padding="same", padding_mode=mode, dtype=torch.float64)
    found = conv_nd(x, layer.weight, layer.bias, padding="same", padding_mode=mode)
    torch.testing.assert_close(found, layer(x), rtol=0, atol=WITHIN)


def test_four_dimensions_agree_with_one_after_another():
    torch.manual_seed(0)
    x, factors = torch.randn(1, 1, 5, 4, 5, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    weight = torch.einsum("i,j,k,l->ijkl", *factors)[None, None]
    expected = x
    for axis, factor in enumerate(factors):
        shape = [1, 1, *(2 if other == axis else 1 for other in range(4))]
        expected = conv_nd(expected, factor.reshape(shape), method="definition")
    for method in ("auto", "definition", "im2col", "fft"):
        torch.testing.assert_close(conv_nd(x, weight, method=method), expected, rtol=0, atol=WITHIN)


def test_gradients():
    x, weight = torch.randn(2, 2, 5, 4).double().requires_grad_(), torch.randn(4, 1, 2, 3).double().requires_grad_()
    bias = torch.randn(4).double().requires_grad_()
    for method in ("definition", "im2col", "fft"):
        settings = {"stride": 2, "padding": 1, "groups": 2, "method": method}
        assert torch.autograd.gradcheck(
            lambda *given, settings=settings: conv_nd(*given, **settings), (x, weight, bias)
        )
    narrow = torch.randn(2, 1, 2, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *given: conv_transpose_nd(*given, stride=2, method="fft"), (x[:, :, :2, :2], narrow)
    )


def test_whole_numbers_are_exact_and_low_precision_stays():
    x, weight = torch.tensor([[[2**40, 1, -(2**40)]]]), torch.tensor([[[1, 1]]])
    for method in ("auto", "definition", "im2col"):
        assert conv_nd(x, weight, method=method).tolist() == [[[2**40 + 1, 1 - 2**40]]]
    for dtype in (torch.bfloat16, torch.float32):
        long = conv_nd(torch.ones(1, 1, 3000, dtype=dtype), torch.ones(1, 1, 1500, dtype=dtype))
        assert long.dtype == dtype


@pytest.mark.parametrize("method", METHODS)
def test_one_graph_and_shapes_without_numbers(unchecked, method):
    torch.compiler.reset()
    x, weight, bias = example(2)
    settings = {"stride": 2, "padding": 1, "method": method}
    compiled = torch.compile(conv_nd, fullgraph=True, backend="eager")(x, weight, bias, **settings)
    torch.testing.assert_close(compiled, conv_nd(x, weight, bias, **settings), rtol=0, atol=WITHIN)
    shape = conv_nd(x.to("meta"), weight.to("meta"), bias.to("meta"), **settings).shape
    assert shape == compiled.shape


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"weight": torch.zeros(2, 3, 3)}, ValueError, "x must have 3 channels to fit weight, got 2"),
        ({"weight": torch.zeros(2, 2, 3, 3)}, ValueError, "must have as many axes, at least 3"),
        ({"weight": torch.zeros(2, 2, 3).double()}, TypeError, "weight must have the dtype of x"),
        ({"weight": [[[1.0]]]}, TypeError, "weight must be a tensor, got list"),
        ({"weight": torch.tensor(1.0)}, ValueError, "must have as many axes, at least 3"),
        ({"bias": [0.0, 0.0]}, TypeError, "bias must be a tensor, got list"),
        ({"bias": torch.zeros(2).double()}, TypeError, "bias must have the dtype of x, torch.float32, got torch.float"),
        ({"weight": torch.zeros(2, 2, 0)}, ValueError, "weight must not be empty"),
        ({"weight": torch.zeros(2, 2, 7)}, ValueError, "must hold the kernel's 7 places"),
        ({"bias": torch.zeros(3)}, ValueError, r"bias must be a \(2,\) tensor"),
        ({"groups": 3}, ValueError, "groups must divide the 2 channels of weight, got 3"),
        ({"method": "winograd"}, ValueError, "method must be one of auto"),
        ({"x": torch.zeros(1, 2, 5).long(), "weight": torch.zeros(2, 2, 3).long(), "method": "fft"}, TypeError, "fft"),
        ({"x": torch.zeros(1, 2, *[5] * 4), "weight": torch.zeros(2, 2, *[1] * 4), "method": "torch"}, ValueError, "3"),
        ({"stride": 1.5}, TypeError, "stride must be an integer, got float"),
        # Torch would read numbers that are not there.
        (
            {"weight": torch.zeros(2, 2, 3, device="meta")},
            ValueError,
            "weight must be on the device of x, cpu, got meta",
        ),
        ({"bias": torch.zeros(2, device="meta")}, ValueError, r"bias must be on .* got meta: use bias.to\(x\)"),
    ],
)
def test_bad_input_is_named(unchecked, changed, error, message):
    with pytest.raises(error, match=message):
        conv_nd(**{"x": torch.zeros(1, 2, 5), "weight": torch.zeros(2, 2, 3), **changed})


def test_bad_input_of_the_transpose_is_named(unchecked):
    with pytest.raises(ValueError, match="x must have 3 channels to fit weight, got 2"):
        conv_transpose_nd(torch.zeros(1, 2, 5), torch.zeros(3, 2, 3))
    with pytest.raises(ValueError, match="output_padding must be <= 0, got 1"):
        conv_transpose_nd(torch.zeros(1, 2, 5), torch.zeros(2, 2, 3), output_padding=1)
    with pytest.raises(ValueError, match="padding must be a number or 1 of them, one for each axis, got 'same'"):
        conv_transpose_nd(torch.zeros(1, 2, 5), torch.zeros(2, 2, 3), padding="same")


@pytest.mark.parametrize(
    ("blocks", "space", "kernel"), [([8], (29,), (3,)), ([4, 16], (11, 40), (3, 5)), ([16, 4], (9, 13), (2, 3))]
)
@pytest.mark.parametrize(("stride", "dilation", "groups"), [(1, 1, 1), (2, 1, 2), (3, 1, 4), (1, 1, 4)])
def test_blocks_of_a_long_signal_give_what_the_whole_gives(
    monkeypatch, blocks, space, kernel, stride, dilation, groups
):
    monkeypatch.setattr("lemmata.convolution.convolution_layer.block_lengths", lambda x, w: blocks)
    x, weight = torch.randn(2, 4, *space).double(), torch.randn(8, 4 // groups, *kernel).double()
    settings = {"stride": stride, "dilation": dilation, "groups": groups}
    by_blocks = conv_nd(x, weight, **settings, method="fft")
    torch.testing.assert_close(by_blocks, conv_nd(x, weight, **settings, method="definition"), rtol=0, atol=WITHIN)


def test_gradients_through_blocks(monkeypatch):
    monkeypatch.setattr("lemmata.convolution.convolution_layer.block_lengths", lambda x, w: [6])
    x, weight = torch.randn(1, 2, 11).double().requires_grad_(), torch.randn(2, 2, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, weight: conv_nd(x, weight, dilation=2, method="fft"), (x, weight))


def test_a_long_signal_is_cut_and_still_exact():
    x, weight = torch.randn(1, 1, 30_000).double(), torch.randn(1, 1, 100).double()
    wanted = torch.nn.functional.conv1d(x, weight, stride=3)
    torch.testing.assert_close(conv_nd(x, weight, stride=3, method="fft"), wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("expected", "way"), [(0.9, "torch"), (1.1, "fft")])
@pytest.mark.parametrize("method", ["auto", "measured"])
def test_the_way_is_taken_that_is_expected_to_be_quicker(monkeypatch, method, expected, way):
    seen = []
    layer = "lemmata.convolution.convolution_layer"
    monkeypatch.setattr(f"{layer}.expected_ratio", lambda *shapes: expected)
    monkeypatch.setattr(f"{layer}.FAR", 1.0)  # nothing is measured
    monkeypatch.setattr(f"{layer}._TORCH", [lambda x, *how: seen.append("torch") or x])
    monkeypatch.setattr(f"{layer}._HOW", {"fft": lambda x, *how: seen.append("fft") or x})
    conv_nd(torch.randn(1, 1, 9), torch.randn(1, 1, 3), method=method)
    assert seen == [way]


def test_the_quicker_way_is_measured_once_for_each_size(monkeypatch):
    tried = []

    def choice(key, ways):
        tried.append(key)
        return next(iter(ways))

    monkeypatch.setattr("lemmata.convolution.convolution_layer.measured_choice", choice)
    monkeypatch.setattr("lemmata.convolution.convolution_layer.FAR", math.inf)
    x, weight = torch.randn(2, 4, 50), torch.randn(6, 4, 7)
    wanted = torch.nn.functional.conv1d(x, weight, stride=2)
    for _ in range(2):
        assert torch.equal(conv_nd(x, weight, stride=2, method="measured"), wanted)
    conv_nd(x, weight, method="measured")
    conv_nd(x.double(), weight.double(), stride=2, method="measured")
    conv_nd(x, weight[:, :2], stride=2, groups=2, method="measured")
    assert len(tried) == 5
    assert len(set(tried)) == 4
    conv_nd(x.bfloat16(), weight.bfloat16(), method="measured")
    conv_nd(x.to("meta"), weight.to("meta"), method="measured")
    assert len(tried) == 5  # where there is nothing to choose, or nothing to time
    monkeypatch.setattr("lemmata.convolution.convolution_layer.FAR", 1.0)
    conv_nd(x, weight, stride=2, method="measured")
    assert len(tried) == 5  # one of them is expected to be far behind


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("settings", [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 2, 0, 2, 1), (2, 0, 1, 2, 4)])
def test_torchs_kernels_transpose_and_pad_without_a_copy(monkeypatch, axes, settings):
    stride, padding, more, dilation, groups = settings
    x, weight = torch.randn(2, 4, *[7] * axes).double(), torch.randn(4, 3, *[3] * axes).double()
    bias, turned = torch.randn(3 * groups).double(), torch.randn(8, 4 // groups, *[3] * axes).double()
    kernel = getattr(torch.nn.functional, f"conv{axes}d")
    transposed = getattr(torch.nn.functional, f"conv_transpose{axes}d")
    others = conv_transpose_nd(x, weight, bias, stride, padding, more, groups, dilation, method="definition")
    monkeypatch.setattr("lemmata.convolution.convolution_layer.pad_space", None)
    monkeypatch.setattr("lemmata.convolution.convolution_layer._spread_zeros", None)
    found = conv_transpose_nd(x, weight, bias, stride, padding, more, groups, dilation)
    assert torch.equal(found, transposed(x, weight, bias, stride, padding, more, groups, dilation))
    torch.testing.assert_close(found, others, rtol=0, atol=WITHIN)
    found = conv_nd(x, turned, torch.ones(8).double(), stride, padding, dilation, groups)
    assert torch.equal(found, kernel(x, turned, torch.ones(8).double(), stride, padding, dilation, groups))


def test_settings_that_are_equal_to_known_ones_are_refused_all_the_same(unchecked):
    x, weight = torch.ones(1, 1, 5), torch.ones(1, 1, 3)
    for transform in (conv_nd, conv_transpose_nd):
        transform(x, weight, stride=1, dilation=1)
        for wrong in (True, 1.0, [1.0]):
            with pytest.raises((TypeError, ValueError), match="stride must be"):
                transform(x, weight, stride=wrong)
