"""What single operations of torch do to receptive fields: poolings, products, sums and statistics."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution import receptive_field


class Function(nn.Module):
    """A function of what a convolution gives: 4 channels, 14 places of size 3 and stride 2."""

    def __init__(self, function):
        super().__init__()
        self.before, self.function = nn.Conv1d(2, 4, 3, stride=2), function

    def forward(self, x):
        return self.function(self.before(x))


def field_of(function):
    return receptive_field(Function(function), (2, 29))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_largest_is_looked_for_where_an_average_would_be_taken(axes):
    largest, average = ((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d), (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d))
    shape, settings = (2, 9, 8, 7)[: axes + 1], {"kernel_size": 3, "stride": 2, "padding": 1}
    fields = [receptive_field(kind[axes - 1](**settings), shape) for kind in (largest, average)]
    assert fields[0].reaches == fields[1].reaches
    gaps = receptive_field(largest[axes - 1](3, 1, 0, 2), shape)
    assert (gaps.size, gaps.stride, gaps.start) == ((5,) * axes, (1.0,) * axes, (0,) * axes)
    theirs = receptive_field(largest[axes - 1](2), shape)
    assert (theirs.size, theirs.stride) == ((2,) * axes, (2.0,) * axes)


PRODUCTS = {
    "mm": lambda y: y[0].T @ y.new_ones(4, 5),
    "mm from the right": lambda y: y.new_ones(5, 4) @ y[0],
    "addmm": lambda y: torch.addmm(y.new_zeros(5), y[0].T, y.new_ones(4, 5)),
    "bmm": lambda y: torch.bmm(y.transpose(1, 2), y.new_ones(1, 4, 5)),
    "baddbmm": lambda y: torch.baddbmm(y.new_zeros(1), y.new_ones(1, 5, 4), y),
    "glu": lambda y: functional.glu(y, 1),
    "expand": lambda y: y[:, :1].expand(1, 3, 14),
    "squeeze": lambda y: y[:, :1].squeeze(1).unsqueeze(0),
    "the larger of two": lambda y: torch.max(y[:, :2], y[:, 2:]),
    "logsumexp": lambda y: y.logsumexp(1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_sums_over_channels_keep_the_place(name):
    found = field_of(PRODUCTS[name])
    assert (found.size, found.stride, found.start) == ((3,), (2.0,), (0,))


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y[0] @ y.new_ones(14, 5),
        lambda y: y.new_ones(5, 14) @ y[0].T,
        lambda y: torch.bmm(y.new_ones(1, 5, 14), y.transpose(1, 2)),
        lambda y: functional.glu(y, 2),
        lambda y: y.logsumexp(2),
        lambda y: y.amin((1, 2)),
        lambda y: y.sum(),
        lambda y: y.reshape(1, 2, -1),
    ],
)
def test_products_and_sums_over_places_see_all_of_them(function):
    found = field_of(function)
    assert (found.size, found.stride, found.start) == ((29,), (0.0,), (0,))


FROM_THE_END = {
    "permute": (lambda y: y.permute(0, -1, -2), lambda y: y.permute(0, 2, 1)),
    "transpose": (lambda y: y.transpose(-1, -2), lambda y: y.transpose(1, 2)),
    "flip": (lambda y: y.flip(-1), lambda y: y.flip(2)),
    "mean": (lambda y: y.mean(-2), lambda y: y.mean(1)),
    "softmax": (lambda y: y.softmax(-2), lambda y: y.softmax(1)),
    "glu": (lambda y: functional.glu(y, -2), lambda y: functional.glu(y, 1)),
    "select": (lambda y: y.select(-2, -1), lambda y: y.select(1, 3)),
    "one place": (lambda y: y.select(-1, -2), lambda y: y.select(2, 12)),
    "slice": (lambda y: y[..., -5:-1], lambda y: y[:, :, 9:13]),
    "split": (lambda y: y.split([3, 11], -1)[1], lambda y: y.split([3, 11], 2)[1]),
    "cat": (lambda y: torch.cat([y[:, :, :0], y], -1), lambda y: torch.cat([y[:, :, :0], y], 2)),
    "stack": (lambda y: torch.stack([y, y], -2), lambda y: torch.stack([y, y], 2)),
    "unfold": (lambda y: y.unfold(-1, 3, 2), lambda y: y.unfold(2, 3, 2)),
}


@pytest.mark.parametrize("name", FROM_THE_END)
def test_axes_may_be_counted_from_the_end(name):
    negative, positive = map(field_of, FROM_THE_END[name])
    assert negative == positive
    assert negative.of(1) == positive.of(1)


@pytest.mark.parametrize(
    ("function", "unit", "seen"),
    [
        (lambda y: y.transpose(1, 2), 4, (8, 11)),
        (lambda y: y.flip(2), 4, (18, 21)),  # place 9 of 14
        (lambda y: y.select(2, 12), 0, (24, 27)),
        (lambda y: y[:, :, 9:13], 1, (20, 23)),
        (lambda y: y.split([3, 11], 2)[1], 1, (8, 11)),
        (lambda y: torch.cat([y.new_zeros(1, 4, 2), y], 2), 3, (2, 5)),
        (lambda y: torch.stack([y, y], 2), 5, (10, 13)),
        (lambda y: y.unfold(2, 3, 2), 2, (8, 15)),  # places 4 to 6
    ],
)
def test_units_know_where_they_came_from(function, unit, seen):
    assert field_of(function).of(unit) == (slice(*seen),)
