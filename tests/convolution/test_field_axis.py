"""Reaches along one axis, and what is seen where tensors with different fields meet."""

import pytest
import torch
from torch import nn

from lemmata.convolution import receptive_field
from lemmata.convolution.field_axis import Field, Reach, hull, joined

EVERY_SECOND = Reach(2, ((-1, 1),))  # a convolution with three taps, stride 2 and padding 1
SPREAD = Reach(3, ((0, 2), None))  # two phases, one of which sees nothing


def test_units_that_lie_a_period_apart_see_places_that_lie_the_advance_apart():
    assert [EVERY_SECOND.at(unit) for unit in (0, 1, 5, -1)] == [(-1, 1), (1, 3), (9, 11), (-3, -1)]
    assert [SPREAD.at(unit) for unit in (0, 1, 2, 3, 4)] == [(0, 2), None, (3, 5), None, (6, 8)]
    assert (EVERY_SECOND.stride, EVERY_SECOND.size) == (2, 3)
    assert (SPREAD.stride, SPREAD.size) == (1.5, 3)
    assert Reach(0, (None,)).size == 0


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 1), (1, 2), (2, 3), (6, 4), (3, 3)])
@pytest.mark.parametrize("reach", [EVERY_SECOND, SPREAD, Reach(4, ((0, 1), (1, 5), None))])
def test_reading_units_is_seeing_what_they_see(reach, inputs, outputs):
    def reads(v):
        first = v * inputs // outputs
        return range(first, first + 2)

    found = reach.read(reads, inputs, outputs)
    for v in range(-10, 20):
        assert found.at(v) == hull(reach.at(unit) for unit in reads(v)), v
    assert found.stride == reach.stride * inputs / outputs


def test_all_units_together():
    assert EVERY_SECOND.all(4) == Reach(0, ((-1, 7),))
    assert SPREAD.all(1) == SPREAD.all(2) == Reach(0, ((0, 2),))
    assert EVERY_SECOND.all(4).at(9) == (-1, 7)


def test_reaches_that_move_alike_are_joined_unit_by_unit():
    one, other = Reach(3, ((0, 2), None)), Reach(6, ((5, 5), (1, 1), None, (7, 9)))
    both = one.join(other)
    assert both is not None
    assert [both.at(u) for u in range(6)] == [hull([one.at(u), other.at(u)]) for u in range(6)]
    assert both.at(2) == (3, 5)
    assert one.join(EVERY_SECOND) is None


def test_fields_that_do_not_move_alike_are_seen_whole_at_every_unit():
    one: Field = ((EVERY_SECOND, 2),)
    other: Field = ((Reach(4, ((0, 0),)), 2),)
    shape = (1, 3, 5)
    assert joined([(one, shape), (other, shape)], shape) == ((Reach(0, ((-1, 16),)), None),)
    still: Field = ((Reach(0, ((-9, 3),)), None),)
    for pair in ([(one, shape), (still, shape)], [(still, shape), (one, shape)]):
        assert joined(pair, shape) == ((Reach(0, ((-9, 9),)), None),)
    assert joined([], shape) is None


class Function(nn.Module):
    """A function of what a convolution gives: 4 channels, 14 places of size 3 and stride 2."""

    def __init__(self, function):
        super().__init__()
        self.before, self.function = nn.Conv1d(2, 4, 3, stride=2), function

    def forward(self, x):
        return self.function(self.before(x))


MEETINGS = {
    "gates by the mean of all places": (lambda y: y * y.mean(2, keepdim=True).sigmoid(), 29, 0),
    "one place beside all": (lambda y: y + y[:, :, 3:4], 29, 0),
    "another stride": (lambda y: y[:, :, :7] + y[:, :, ::2], 27, 0),  # to the end of unit 12
    "the same places without channels": (lambda y: y + y.mean((0, 1)), 3, 2),
    "the next place": (lambda y: y[:, :, 1:] + y[:, :, :-1], 5, 2),
    "one that knows nothing": (lambda y: y + torch.ones_like(y), 3, 2),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_where_tensors_meet(name):
    function, size, stride = MEETINGS[name]
    found = receptive_field(Function(function), (2, 29))
    assert (found.size, found.stride, found.start) == ((size,), (float(stride),), (0,))
