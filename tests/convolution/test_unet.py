"""U-Net alone: sizes that fit and that do not, what a pixel can see, one picture, gradients, compiled and exported."""

import re

import pytest
import torch
from torch.nn import functional

from lemmata.convolution.unet import UNet, UNetConfig, _crop_maps


def small(**chosen):
    torch.manual_seed(0)
    return UNet(**{"channels": 2, "classes": 3, "width": 2, "levels": 2, "dtype": torch.float64} | chosen)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_same_sizes_are_kept_for_all_multiples(levels):
    network, unit = small(levels=levels), 2**levels
    for rows, columns in [(unit, unit), (unit, 3 * unit), (5 * unit, 2 * unit)]:
        assert network(torch.zeros(1, 2, rows, columns, dtype=torch.float64)).shape == (1, 3, rows, columns)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("same", [True, False])
def test_a_size_is_taken_or_refused_as_the_layers_themselves_would(levels, same):
    network = small(levels=levels, same=same, device="meta")
    for side in range(1, 61):
        left, halves = side - (0 if same else 4), True
        for _ in range(levels):
            halves &= left > 0 and left % 2 == 0
            left = left // 2 - (0 if same else 4)
        for _ in range(levels):
            left = 2 * left - (0 if same else 4)
        x = torch.empty(1, 2, side, 60 if not same else 4, device="meta", dtype=torch.float64)
        if halves and left > 0:
            assert network(x).shape[2] == left, side
        else:
            with pytest.raises(ValueError, match=re.escape(f"got {side} x {x.shape[3]}: pad or crop it")):
                network(x)


def test_odd_sides_can_be_padded_and_cropped():
    network = small(levels=2)
    x = torch.randn(1, 2, 13, 10, dtype=torch.float64)
    wanted = "x must have sides that are multiples of 4, got 13 x 10: pad or crop it"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        network(x)
    assert network(functional.pad(x, (0, 2, 0, 3)))[:, :, :13, :10].shape == (1, 3, 13, 10)


@pytest.mark.parametrize(("size", "like"), [(9, 5), (8, 5), (6, 6)])
def test_the_middle_of_what_was_seen_is_kept(size, like):
    maps = torch.arange(size * size).reshape(1, 1, size, size)
    start = (size - like) // 2
    wanted = maps[:, :, start : start + like, start : start + like]
    assert torch.equal(_crop_maps(maps, torch.empty(1, 1, like, like)), wanted)


def test_without_padding_an_output_is_that_of_the_middle_with_more_around_it():
    """Valid convolutions know no border: a shift of the input by a whole unit of pooling shifts the output."""
    network = small(levels=2, same=False)
    x = torch.randn(1, 2, 52, 48, dtype=torch.float64)
    lower = network(x[:, :, 4:])
    torch.testing.assert_close(network(x[:, :, :-4])[:, :, 4:], lower[:, :, :-4], rtol=0, atol=1e-12)


def test_what_was_seen_on_the_way_down_reaches_the_output_unpooled():
    """With the way up cut off, a pixel still sees its neighbours through the connection across, and nothing else."""
    network = small(width=8, levels=1)
    for part in (network.up[0].weight, network.up[0].bias):
        part.data.zero_()
    x = torch.randn(1, 2, 16, 16, dtype=torch.float64, requires_grad=True)
    network(x)[0, :, 8, 8].sum().backward()
    assert x.grad is not None
    seen = x.grad.abs().sum((0, 1)) > 0
    rows, columns = seen.nonzero(as_tuple=True)
    assert rows.min() >= 4  # four 3 x 3 convolutions reach four pixels far
    assert rows.max() <= 12
    assert columns.min() >= 4
    assert columns.max() <= 12
    assert seen.sum() > 9


def test_every_level_is_used():
    network = small(levels=3)
    x = torch.randn(2, 2, 16, 16, dtype=torch.float64)
    before = network(x)
    for name, values in network.named_parameters():
        kept = values.data.clone()
        values.data += 0.1
        assert not torch.equal(network(x), before), name
        values.data = kept


@pytest.mark.parametrize("same", [True, False])
def test_gradients_are_those_of_finite_differences(same):
    network = small(channels=1, classes=2, width=1, levels=1, same=same)
    x = torch.randn(1, 1, 4 if same else 18, 4 if same else 18, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(network, x)


def test_initial_weights_are_hes():
    torch.manual_seed(0)
    network = UNet(channels=3, classes=2, width=32, levels=2)
    fans = {"down.1.2": 9 * 64, "join.0.0": 9 * 128, "up.0": 128, "head": 32}
    for name, fan_in in fans.items():
        part = network.get_submodule(name)
        spread = part.weight.std().item()
        # The standard deviation of n draws is off by 1 / sqrt(2 n); five of those, and at least 64 weights.
        slack = 5 / (2 * part.weight.numel()) ** 0.5
        assert spread == pytest.approx((2 / fan_in) ** 0.5, rel=slack), name
        assert not part.bias.any()


def test_weights_are_drawn_anew():
    network = small()
    network.head.bias.data.fill_(3.0)
    before = {name: values.clone() for name, values in network.state_dict().items()}
    network.reset_parameters()
    assert not network.head.bias.any()
    kept = [
        name
        for name, values in network.state_dict().items()
        if "bias" not in name and torch.equal(values, before[name])
    ]
    assert kept == []


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"width": 0}, ValueError, "width must be >= 1, got 0"),
        ({"levels": 9}, ValueError, "levels must be <= 8, got 9"),
        ({"same": 1}, TypeError, "same must be True or False, got 1"),
    ],
)
def test_choices_that_cannot_be_are_refused(given, error, message, unchecked):
    with pytest.raises(error, match=re.escape(message)):
        UNetConfig(**given)


def test_it_tells_its_choices():
    assert "width=2, levels=2, same=True" in repr(small())
