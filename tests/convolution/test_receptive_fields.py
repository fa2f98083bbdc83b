"""Receptive fields: against where gradients are not zero, in layers of every kind, known networks, and bad input."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution import (
    TCN,
    VGG,
    AlexNet,
    GoogLeNet,
    Pool,
    ResNet,
    UNet,
    gradient_field,
    receptive_field,
)  # fmt: skip


class Function(nn.Module):
    """A function as a module, with a convolution before it."""

    def __init__(self, function, channels=4, axes=1):
        super().__init__()
        kind = (nn.Conv1d, nn.Conv2d)[axes - 1]
        self.before, self.function = kind(2, channels, 3, stride=2), function

    def forward(self, x):
        return self.function(self.before(x))


class Shortcut(nn.Module):
    """A block whose input goes around it."""

    def __init__(self, block, across):
        super().__init__()
        self.block, self.across = block, across

    def forward(self, x):
        return self.block(x) + self.across(x)


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def conv(k, s=1, p=0, d=1, channels=2):
    return nn.Conv1d(channels, 2, k, s, p, d)


def up(k, s, p=0, d=1):
    return nn.ConvTranspose1d(2, 2, k, s, p, dilation=d)


STACKS = {
    "strides": nn.Sequential(conv(3, 2, 1), conv(2, 3), conv(2, 1, 1, 2)),
    "poolings": nn.Sequential(conv(3), nn.AvgPool1d(3, 2, 1), conv(2), nn.AvgPool1d(2)),
    "shortcut": nn.Sequential(conv(3, 2, 1), Shortcut(nn.Sequential(conv(5, 1, 2), conv(3, 1, 1)), nn.Identity())),
    "projected": Shortcut(nn.Sequential(conv(3, 2, 1), conv(3, 1, 1)), conv(1, 2)),
    "branches": nn.Sequential(Branches(conv(1), conv(3, 1, 1), conv(5, 1, 4, 2)), conv(2, 2, channels=6)),
    "lopsided": Branches(nn.Sequential(nn.ConstantPad1d((4, 0), 0.0), conv(5)), conv(1)),
    "upwards": nn.Sequential(conv(3, 2, 1), up(4, 2, 1), conv(2)),
    "upwards by three": nn.Sequential(conv(3, 3), up(5, 3, 1), up(3, 2), conv(3, 2)),
    "spread with holes": nn.Sequential(up(1, 2), conv(2)),
    "dilated upwards": nn.Sequential(conv(2, 2), up(3, 2, 1, 2)),
    "nearest": nn.Sequential(conv(3, 2), nn.Upsample(scale_factor=2), conv(2)),
    "nearest by three halves": nn.Sequential(conv(3, 2), nn.Upsample(size=21), conv(2)),
    "linear": nn.Sequential(conv(3, 2), nn.Upsample(scale_factor=2, mode="linear"), conv(2)),
    "linear by three": nn.Sequential(conv(3, 2), nn.Upsample(scale_factor=3, mode="linear"), conv(2)),
    "linear to one": nn.Sequential(conv(3, 2), nn.Upsample(size=1, mode="linear")),
    "linear to one corner": nn.Sequential(conv(3, 2), nn.Upsample(size=1, mode="linear", align_corners=True)),
    "linear from corner to corner": nn.Sequential(
        conv(3, 2), nn.Upsample(size=27, mode="linear", align_corners=True), conv(2)
    ),
    "down and up": Shortcut(nn.Sequential(conv(3, 2, 1), conv(3, 1, 1), up(3, 2, 1)), conv(1)),
    "softmax pooling": nn.Sequential(conv(2), Pool(3, stride=2, beta=0.1), conv(2)),
    "adaptive": nn.Sequential(conv(2), nn.AdaptiveAvgPool1d(5)),
    "adaptive by halves": nn.Sequential(conv(2, 2), nn.AdaptiveAvgPool1d(6)),
    "causal": nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), conv(3), nn.ConstantPad1d((4, -1), 0.0), conv(3, d=2)),
}


def positive(model):
    """No gradient cancels where all weights are positive."""
    torch.manual_seed(0)
    for values in model.parameters():
        values.data = torch.rand_like(values) + 0.5
    return model.double()


def extent(found):
    """The first and one past the last place that is not zero, along each axis."""
    sides = [found.movedim(axis, 0).flatten(1).sum(1) if found.ndim > 1 else found for axis in range(found.ndim)]
    places = [side.nonzero().flatten() for side in sides]
    return tuple(slice(int(p[0]), int(p[-1]) + 1) if len(p) else slice(0, 0) for p in places)


def seen_by_gradients(model, shape):
    """What every unit's gradient reaches: its field, or a part of it where that sticks out of the input."""
    model = positive(model)
    field, inside = receptive_field(model, shape), 0
    x = torch.rand(1, *shape, dtype=torch.float64) + 0.5
    for unit in itertools.product(*map(range, field.shape[1:])):
        reached, told = extent(gradient_field(model, x, unit)), field.of(*unit)
        whole = [reach.at(u) or (0, -1) for reach, u in zip(field.reaches, unit, strict=True)]
        if all(first >= 0 and last < n for (first, last), n in zip(whole, shape[1:], strict=True)):
            inside += 1
            seen = [part.stop - part.start for part in told]
            assert reached == told or (min(seen) == 0 and reached[0].stop == reached[0].start), unit
        for one, other in zip(reached, told, strict=True):
            assert one.start == one.stop or other.start <= one.start < one.stop <= other.stop, unit
    assert inside


@pytest.mark.parametrize("name", STACKS)
def test_units_see_what_their_gradients_reach(name):
    seen_by_gradients(STACKS[name], (2, 29))


FUNCTIONS = {
    "parts": (lambda y: y[:, :2, 1:-1:2] * y.chunk(2, 1)[1][:, :, 2::2][:, :, :6], (2, 29)),
    "a part in the middle": (lambda y: y.split([3, 4, 7], 2)[1], (2, 29)),
    "the other way round": (lambda y: y.flip(2), (2, 29)),
    "axes exchanged": (lambda y: functional.linear(y.transpose(1, 2), y.new_ones(3, 4)).permute(0, 2, 1), (2, 29)),
    "channels regrouped": (lambda y: y.view(1, 2, 2, -1).transpose(1, 2).reshape(1, 4, -1), (2, 29)),
    "stacked": (lambda y: torch.stack([y, y.relu()], 2).sum(2), (2, 29)),
    "beside nothing": (lambda y: torch.cat([y.new_zeros(1, 4, 3), y], 2), (2, 29)),
    "summed with einsum": (lambda y: torch.einsum("bct,cd->bdt", y, y.new_ones(4, 3)), (2, 29)),
    "in place": (lambda y: y.add_(1).relu_(), (2, 29)),
    "the mean of the channels": (lambda y: y.mean(1, keepdim=True) + y, (2, 29)),
    "softmax over channels": (lambda y: y.softmax(1) * y, (2, 29)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_without_a_module_are_followed(name):
    function, shape = FUNCTIONS[name]
    seen_by_gradients(Function(function), shape)


def test_pictures_have_a_field_for_each_axis():
    model = nn.Sequential(
        nn.Conv2d(2, 2, (3, 2), (2, 1), (1, 0)), nn.PixelShuffle(1), nn.AvgPool2d((2, 3), (1, 2), (1, 1)),
        nn.PixelUnshuffle(1), nn.Upsample(scale_factor=2, mode="bilinear"),
    )  # fmt: skip
    seen_by_gradients(model, (2, 9, 8))
    shuffled = nn.Sequential(nn.Conv2d(2, 8, 3), nn.PixelShuffle(2), nn.Conv2d(2, 1, 3), nn.PixelUnshuffle(2))
    seen_by_gradients(shuffled, (2, 7, 8))
    seen_by_gradients(nn.Sequential(nn.Conv2d(2, 1, 3), nn.AdaptiveAvgPool2d((3, 4))), (2, 9, 8))
    rows = nn.Conv2d(2, 1, (3, 1))
    seen_by_gradients(nn.Sequential(rows, nn.ConstantPad2d((1, 2, 0, 1), 0.0), nn.Upsample(size=(12, 13))), (2, 9, 8))


@pytest.mark.parametrize("axes", [2, 3])
def test_a_linear_layer_over_channels_that_come_last_sees_its_own_place(axes):
    layer = nn.Linear(3, 2)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.layer = (nn.Conv2d, nn.Conv3d)[axes - 2](2, 3, 3), layer

        def forward(self, x):
            rows = self.before(x).movedim(1, -1)  # (batch, *space, channels)
            return (self.layer(rows) + functional.linear(input=rows, weight=self.layer.weight)).movedim(-1, 1)

    seen_by_gradients(Last(), (2, 6, 5, 4)[: axes + 1])


@pytest.mark.parametrize("corners", [False, True])
def test_cubic_interpolation_reads_two_units_on_either_side(corners):
    up = nn.Upsample(size=(13, 12), mode="bicubic", align_corners=corners)
    seen_by_gradients(nn.Sequential(nn.Conv2d(2, 1, 2), up), (2, 8, 7))


def test_volumes_have_a_field_for_each_axis():
    for pool in (nn.AvgPool3d((2, 1, 3), (2, 1, 1), (1, 0, 1)), nn.AdaptiveAvgPool3d((2, 3, 2))):
        seen_by_gradients(nn.Sequential(nn.Conv3d(2, 1, (1, 2, 2), (1, 1, 2)), pool), (2, 5, 4, 7))
    up = nn.Upsample(size=(5, 3, 4), mode="trilinear")
    seen_by_gradients(nn.Sequential(nn.ConvTranspose3d(2, 1, (1, 2, 1), (1, 2, 1)), up), (2, 3, 2, 3))
    seen_by_gradients(nn.Upsample(scale_factor=2), (2, 2, 3, 2))


def test_a_circular_border_may_be_asked_for_by_name():
    found = receptive_field(Function(lambda y: functional.pad(y, pad=(1, 1), mode="circular")), (2, 29))
    assert (found.size, found.start) == ((3,), (-2,))


def test_gradients_are_added_up_over_channels_and_examples():
    layer = nn.Conv1d(2, 3, 2).double()
    found = gradient_field(layer, torch.rand(5, 2, 6).double(), (3,))
    wanted = 5 * layer.weight.detach().sum(0).abs().sum(0)  # (outputs, inputs, taps): of each tap
    torch.testing.assert_close(found, functional.pad(wanted, (3, 1)))


def test_what_is_seen_whole():
    flat = Function(lambda y: y.flatten(1))
    found = receptive_field(flat, (2, 29))
    assert (found.size, found.stride, found.start, found.shape) == ((29,), (0.0,), (0,), (56,))
    assert receptive_field(Function(lambda y: y.mean(2)), (2, 29)).size == (29,)
    assert receptive_field(Function(lambda y: y.max(2).values), (2, 30)).size == (29,)
    assert receptive_field(Function(lambda y: y.softmax(2)), (2, 29)).stride == (0.0,)
    assert receptive_field(Function(lambda y: y @ y.transpose(1, 2)), (2, 29)).size == (29,)
    assert receptive_field(Function(lambda y: y[:, :, -1]), (2, 29)).of(0) == (slice(26, 29),)
    assert receptive_field(Function(lambda y: y[:, :, -1]), (2, 29)).size == (3,)
    for norm, whole in ((nn.GroupNorm(2, 4), True), (nn.InstanceNorm1d(4), True), (nn.BatchNorm1d(4), False)):
        size = receptive_field(nn.Sequential(nn.Conv1d(2, 4, 3), norm), (2, 29)).size
        assert size == ((29,) if whole else (3,))
    assert receptive_field(nn.Sequential(nn.Conv1d(2, 4, 3), nn.LayerNorm(27)), (2, 29)).size == (29,)
    rows = Function(lambda y: functional.layer_norm(y.transpose(1, 2), (4,)))
    assert receptive_field(rows, (2, 29)).size == (3,)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes_change_nothing_far_from_the_border(mode):
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1, padding_mode=mode), nn.Conv2d(2, 1, 5, padding=2, padding_mode=mode)
    )
    found = receptive_field(model, (1, 16, 16))
    assert (found.size, found.start, found.shape) == ((7, 7), (-3, -3), (1, 16, 16))
    reached = gradient_field(positive(model), torch.rand(1, 1, 16, 16).double(), (8, 7))
    assert extent(reached) == found.of(8, 7) == (slice(5, 12), slice(4, 11))


def test_known_networks():
    # Araujo et al. (2019) have 195 for AlexNet and 212 for VGG-16; ResNets as in torchvision.
    pictures = (3, 224, 224)
    assert receptive_field(AlexNet(device="meta").features, pictures).size == (195, 195)
    vgg = receptive_field(VGG(device="meta").features, pictures)
    assert (vgg.size, vgg.stride, vgg.shape) == ((212, 212), (32.0, 32.0), (512, 7, 7))
    for depth, size in ((18, 435), (50, 427)):
        layers = receptive_field(ResNet(depth=depth, device="meta"), pictures).layers
        last = [layer for layer in layers if layer.name.startswith("layer4")][-1]
        assert (last.size, last.shape[1:]) == ((size, size), (7, 7))
    assert receptive_field(GoogLeNet(device="meta"), pictures).shape == (1000,)


def test_shortcuts_of_a_whole_unet_and_a_residual_network():
    narrow = UNet(1, 1, width=1, levels=1)
    seen_by_gradients(narrow, (1, 22, 20))
    blocks = ResNet(channels=1, classes=2, depth=18, width=1).layer2
    positive(blocks)
    field = receptive_field(blocks, (1, 24, 24))
    found = gradient_field(blocks.eval(), torch.rand(1, 1, 24, 24).double() + 0.5, (5, 6))
    assert extent(found) == field.of(5, 6)


def test_temporal_networks_look_back_only():
    field = receptive_field(TCN(2, 3), (64, 2), channels=-1)
    assert field.size == (TCN(2, 3).receptive_field,)
    assert field.start[0] == 1 - field.size[0]
    assert field.of(63)[0].stop == 64


def test_a_model_stays_as_it_was():
    model = nn.Sequential(nn.Conv1d(1, 1, 3), nn.BatchNorm1d(1), nn.Dropout())
    model[2].eval()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    receptive_field(model, (1, 8))
    assert [part.training for part in model] == [True, True, False]
    assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())
    assert not model._forward_hooks
    assert not model[0]._forward_pre_hooks


def test_layers_are_told_in_their_order():
    shared = nn.Conv1d(1, 1, 3)
    found = receptive_field(nn.Sequential(shared, nn.ReLU(), shared), (1, 9))
    assert [(layer.name, layer.size, layer.shape) for layer in found.layers] == [
        ("0", (3,), (1, 7)), ("1", (3,), (1, 7)), ("0", (5,), (1, 5)),
    ]  # fmt: skip
    assert (found.name, found.center, found.start) == ("output", (2.0,), (0,))
    assert str(found).splitlines()[-1].split() == ["output", "1", "x", "5", "5", "1", "0"]


def test_tokens_have_no_channels():
    model = nn.Sequential(nn.Embedding(7, 4), Rows(nn.Conv1d(4, 2, 3)))
    found = receptive_field(model, (12,), channels=None)
    assert (found.size, found.shape) == ((3,), (2, 10))


class Rows(nn.Module):
    """A layer for (batch, time, channels)."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.transpose(1, 2))


class Written(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y[..., 1:] = x[..., :-1]
        return y


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (nn.LSTM(2, 2), (3, 2), "receptive_field does not know the operation"),
        (nn.Sequential(nn.Conv1d(2, 2, 1), Function(lambda y: y.cumsum(2))), (2, 9), "operation cumsum in layer '1'"),
        (Written(), (2, 9), "cannot follow copy, which writes into a part of a tensor"),
        (Function(lambda y: y * float(y.sum())), (2, 9), "without looking at numbers"),
        (nn.Conv1d(2, 2, 3), (3, 9), r"model must run on one example of shape \(3, 9\)"),
        (nn.Conv1d(2, 2, 3), (2,), r"shape must be \(channels, \*space\), got \(2,\)"),
        (nn.Conv1d(2, 2, 3), (2, 0), "shape must be >= 1, got 0"),
        (Function(lambda y: torch.zeros(1)), (2, 9), "model must give a tensor that is computed from its input"),
        (nn.Upsample(scale_factor=1.5), (2, 9), "operation upsample_nearest1d"),
    ],
)
def test_what_cannot_be_told_is_named(unchecked, model, shape, message):
    with pytest.raises(ValueError, match=message):
        receptive_field(model, shape)


def test_what_a_hook_does_before_the_model_is_in_no_layer(unchecked):
    model = nn.Conv1d(2, 2, 3)
    model.register_forward_pre_hook(lambda module, args: (args[0].cumsum(2),))
    with pytest.raises(ValueError, match="does not know the operation cumsum: ask for the layers before it"):
        receptive_field(model, (2, 9))


def test_bad_units_and_inputs_are_named(unchecked):
    with pytest.raises(ValueError, match="channels must be 0, -1 or None, got 1"):
        receptive_field(nn.Conv1d(1, 1, 3), (1, 8), channels=1)
    with pytest.raises(TypeError, match=r"model must be an nn\.Module, got function"):
        receptive_field(lambda x: x, (1, 8))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shape must be a row of numbers, that of one example, got 8"):
        receptive_field(nn.Conv1d(1, 1, 3), 8)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shape must be an integer, got float"):
        receptive_field(nn.Conv1d(1, 1, 3), (1, 8.5))  # type: ignore[list-item]
    field = receptive_field(nn.Conv1d(1, 1, 3), (1, 8))
    with pytest.raises(ValueError, match=r"unit must be 1 numbers, one for each axis of space, got \(1, 2\)"):
        field.of(1, 2)
    with pytest.raises(ValueError, match="unit must be >= 0, got -1"):
        field.of(-1)
    with pytest.raises(ValueError, match=r"unit must be a place of the output's \(6,\), got \(6,\)"):
        gradient_field(nn.Conv1d(1, 1, 3), torch.rand(1, 1, 8), (6,))
    with pytest.raises(ValueError, match=r"got \(1, 1\)"):
        gradient_field(nn.Conv1d(1, 1, 3), torch.rand(1, 1, 8), (1, 1))
    with pytest.raises(TypeError, match="unit must be a row of numbers, one for each axis of space, got 1"):
        gradient_field(nn.Conv1d(1, 1, 3), torch.zeros(1, 1, 8), 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="model must give a tensor that is computed from its input, got none"):
        gradient_field(Function(torch.ones_like), torch.zeros(1, 2, 8), (1,))
    with pytest.raises(TypeError, match="shape must be a row of numbers, that of one example, got 'ab'"):
        receptive_field(nn.Conv1d(1, 1, 3), "ab")
    with pytest.raises(ValueError, match="x must be floating point"):
        gradient_field(nn.Conv1d(1, 1, 3), torch.ones(1, 8), (1,))


def test_a_unit_that_sees_the_padding_alone_sees_nothing_of_the_input():
    field = receptive_field(nn.Conv1d(1, 1, 1, padding=3), (1, 8))
    x = torch.arange(8)
    assert [x[field.of(unit)].tolist() for unit in (0, 2, 3, 10, 13)] == [[], [], [0], [7], []]


@pytest.mark.parametrize("model", [nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), ResNet(width=8)])
def test_a_shape_with_a_batch_is_told_to_leave_it_out(model):
    with pytest.raises(
        ValueError, match=r"one example of shape \(1, 3, 32, 32\).*leave the batch out, shape=\(3, 32, 32\)"
    ):
        receptive_field(model, (1, 3, 32, 32))
    with pytest.raises(ValueError, match=r"one example of shape \(4, 32, 32\)") as refused:
        receptive_field(model, (4, 32, 32))
    assert "leave the batch" not in str(refused.value)
