"""Pieces of ReLU networks on a line: against breakpoints in fractions, ends with bounds, and the history of cuts."""

import itertools
from fractions import Fraction

import pytest
import torch
from torch import nn

from lemmata.feedforward.linear_pieces import (
    Ends,
    History,
    _crossing_zeros,
    _end_signs,
    _Proof,
    _settle_crossings,
    linear_pieces,
)
from lemmata.feedforward.relu_program import Coefficients, program

CPU = torch.device("cpu")


def network(*sizes, seed, coarse):
    """Weights in quarters, so that breakpoints coincide and units vanish on whole pieces, or drawn ones."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in itertools.pairwise(sizes):
        layer = nn.Linear(a, b, dtype=torch.float64)
        for values in layer.parameters():
            if coarse:
                values.data = torch.randint(-3, 4, values.shape, generator=generator).double() / 4
            else:
                values.data = torch.randn(values.shape, generator=generator, dtype=torch.float64)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers)


def in_fractions(model, low, high):
    """(left, right, pattern, slopes and constants) of every piece, from left to right, by cutting at every zero."""
    pieces = [(Fraction(low), Fraction(high), (), [(Fraction(1), Fraction(0))])]
    for layer in model:
        if isinstance(layer, nn.ReLU):
            continue
        after = []
        for left, right, pattern, rows in pieces:
            units = []
            for ws, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
                slope = sum(Fraction(w) * row[0] for w, row in zip(ws, rows, strict=True))
                units.append((slope, sum(Fraction(w) * row[1] for w, row in zip(ws, rows, strict=True)) + Fraction(b)))
            zeros = {-constant / slope for slope, constant in units if slope}
            places = [left, *sorted(zero for zero in zeros if left < zero < right), right]
            for start, end in itertools.pairwise(places):
                middle = (start + end) / 2
                active = tuple(slope * middle + constant > 0 for slope, constant in units)
                kept = [unit if on else (Fraction(0), Fraction(0)) for unit, on in zip(units, active, strict=True)]
                after.append((start, end, (*pattern, *active), kept))
        pieces = after
    return pieces


@pytest.mark.parametrize("coarse", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_pieces_are_those_of_cutting_in_fractions(seed, coarse):
    model = network(1, 4, 4, 3, seed=seed, coarse=coarse)
    exact = in_fractions(model, -2, 3)
    pieces, _ = linear_pieces(program(model), -2.0, 3.0, CPU)
    patterns = torch.cat(pieces.history.patterns(len(pieces.left.place), CPU), 1).tolist()
    assert [tuple(pattern) for pattern in patterns] == [pattern for _, _, pattern, _ in exact]
    for side, index in ((pieces.left, 0), (pieces.right, 1)):
        for place, bound, piece in zip(side.place.tolist(), side.bound.tolist(), exact, strict=True):
            assert abs(Fraction(place) - piece[index]) <= Fraction(bound)
            assert bound <= 1e-11 * max(1, abs(place))  # and it is known well
    values = pieces.outputs.value.expand(len(exact), -1, -1)
    wanted = torch.tensor([[[float(v) for v in row] for row in rows] for *_, rows in exact], dtype=torch.float64)
    torch.testing.assert_close(values, wanted, rtol=1e-12, atol=1e-12)


def test_structured_networks_need_no_fractions_and_ties_that_rounding_hides_do():
    tent = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    tent[0].weight.data, tent[0].bias.data = torch.tensor([[1.0], [1.0]]), torch.tensor([0.0, -0.5])
    assert linear_pieces(program(tent), 0.0, 1.0, CPU)[1] == 0
    thirds = nn.Sequential(nn.Linear(1, 2, dtype=torch.float64), nn.ReLU())
    thirds[0].weight.data = torch.tensor([[3.0], [6.0]], dtype=torch.float64)
    thirds[0].bias.data = torch.tensor([-1.0, -2.0], dtype=torch.float64)  # both vanish at 1/3, which no float holds
    pieces, asked = linear_pieces(program(thirds), 0.0, 1.0, CPU)
    assert (len(pieces.left.place), asked) == (2, 2)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1.0, 1e100])
def test_the_unit_of_the_outputs_does_not_matter(scale):
    model = network(1, 4, seed=2, coarse=True)
    usual, _ = linear_pieces(program(model), -2.0, 3.0, CPU)
    for values in model.parameters():
        values.data = values.data * scale
    other, _ = linear_pieces(program(model), -2.0, 3.0, CPU)
    torch.testing.assert_close(other.left.place, usual.left.place, rtol=1e-14, atol=0)
    assert torch.equal(other.left.unit, usual.left.unit)


def test_ends_say_which_unit_vanishes_there_and_the_border_none():
    model = network(1, 3, 3, seed=5, coarse=False)
    pieces, _ = linear_pieces(program(model), -2.0, 3.0, CPU)
    left, right = pieces.left, pieces.right
    assert (left.layer[0], left.unit[0], right.layer[-1], right.unit[-1]) == (-1, -1, -1, -1)
    assert (left.place[0], right.place[-1]) == (-2, 3)
    assert torch.equal(left.place[1:], right.place[:-1])
    inside = left.place[1:, None]
    for place, layer, unit in zip(inside, left.layer[1:].tolist(), left.unit[1:].tolist(), strict=True):
        assert layer >= 0
        with torch.no_grad():
            entering = model[: 2 * layer + 1](place[None])[0, unit]
        assert abs(entering) < 1e-13


def test_ends_are_merged_where_they_are_told():
    here = Ends.at(1.0, CPU).merged(torch.tensor([False]), Ends.at(2.0, CPU))
    there = Ends.at(1.0, CPU).merged(torch.tensor([True]), Ends.at(2.0, CPU))
    assert (here.place.item(), there.place.item()) == (2, 1)
    assert (here.bound.item(), here.layer.item(), here.unit.item()) == (0, -1, -1)


def test_a_history_follows_each_piece_back():
    history = History()
    history.layers.append((torch.tensor([0, 0]), torch.tensor([[True, False], [False, True]])))
    history.layers.append((torch.tensor([0, 1, 1]), torch.tensor([[True], [False], [True]])))
    assert history.pattern(2, 2) == ((False, True), (True,))
    assert history.pattern(0, 1) == ((True, False),)
    first, second = history.patterns(3, CPU)
    assert first.tolist() == [[True, False], [False, True], [False, True]]
    assert second.tolist() == [[True], [False], [True]]


@pytest.mark.parametrize("off", [0.0, 2.0**-60, -(2.0**-60), 2.0**-20])
@pytest.mark.parametrize("weight", [1.0, -3.0])
def test_units_that_vanish_at_an_earlier_breakpoint_are_told_from_those_that_nearly_do(off, weight):
    """The first layer breaks at thirds and sevenths, which no float holds; the second vanishes there, or beside."""
    model = network(1, 3, 3, seed=0, coarse=True)
    model[0].weight.data = torch.tensor([[3.0], [-7.0], [6.0]], dtype=torch.float64)
    model[0].bias.data = torch.tensor([-1.0, 3.0, -2.0], dtype=torch.float64)
    model[2].weight.data = weight * torch.tensor([[1.0, 0, 0], [0, 1, 0], [2, 0, -1]], dtype=torch.float64)
    model[2].bias.data = torch.tensor([off, -off, off], dtype=torch.float64)
    exact = in_fractions(model, -2, 3)
    pieces, asked = linear_pieces(program(model), -2.0, 3.0, CPU)
    patterns = torch.cat(pieces.history.patterns(len(pieces.left.place), CPU), 1).tolist()
    assert [tuple(pattern) for pattern in patterns] == [pattern for _, _, pattern, _ in exact]
    assert asked > 0


# --- Rounding: what may have either sign is asked, what may not is not, and zeros lie within their bounds ---


class Answers(_Proof):
    """Stands for the proof in fractions: notes what it is asked, and gives what it was given."""

    layer = 0

    def __init__(self, zeros=()):
        vars(self).update(zeros=zeros, asked=[])

    def sign(self, piece, unit, side):
        self.asked.append((piece, unit, side))
        return 7

    def zero(self, piece, unit):
        self.asked.append((piece, unit))
        return self.zeros[piece][unit]


def one(value):
    return torch.tensor([value], dtype=torch.float64)


def unit_of(slope, constant, slope_bound=0.0, constant_bound=0.0):
    value, bound = (
        torch.tensor([[list(pair)]], dtype=torch.float64) for pair in ((slope, constant), (slope_bound, constant_bound))
    )
    return Coefficients(value, bound, 1.0)


@pytest.mark.parametrize("errors", [(1e-3, 0, 0), (0, 1e-3, 0), (0, 0, 1e-3), (1e-6, 1e-7, 1e-6), (0.5, 0.25, 0.0)])
@pytest.mark.parametrize("slope", [2.0, -0.7])
@pytest.mark.parametrize("place", [1.5, -3.0])
def test_signs_are_asked_for_just_where_errors_could_change_them(errors, slope, place):
    off, slope_bound, constant_bound = errors
    worst = abs(slope) * off + slope_bound * (abs(place) + off) + constant_bound
    ends = Ends(one(place), one(off), torch.tensor([0]), torch.tensor([0]))
    for share, asked in ((0.95, True), (-0.95, True), (1.05, False), (-1.05, False)):
        answers = Answers()
        found = _end_signs(
            unit_of(slope, -slope * place + share * worst, slope_bound, constant_bound), ends, 1, answers
        )
        assert answers.asked == ([(0, 0, 1)] if asked else [])
        assert found.item() == (7 if asked else (1 if share > 0 else -1))


def test_signs_of_what_is_exact_are_not_asked_for_and_those_of_lost_digits_are():
    ends = Ends(one(0.1), one(0.0), torch.tensor([0]), torch.tensor([0]))
    for slope, constant, asked in (
        (4.0, -0.4, False),
        (3.0, -0.3, False),
        (0.1, -(0.1 * 0.1), True),
        (0.0, 0.0, False),
    ):
        answers = Answers()
        found = _end_signs(unit_of(slope, constant), ends, 0, answers).item()
        assert bool(answers.asked) == asked
        true = Fraction(slope) * Fraction(0.1) + Fraction(constant)
        assert found == 7 if asked else found == (true > 0) - (true < 0)


@pytest.mark.parametrize(("slope_bound", "constant_bound"), [(0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3), (1e-9, 1e-8)])
@pytest.mark.parametrize(("slope", "constant"), [(3.0, -1.0), (-0.1, 0.7), (2.0, 1.0)])
def test_zeros_lie_within_their_bounds_which_are_not_much_too_wide(slope, constant, slope_bound, constant_bound):
    index, answers = torch.tensor([0]), Answers()
    zero = _crossing_zeros(unit_of(slope, constant, slope_bound, constant_bound), index, index, answers)
    place, bound = Fraction(zero.place.item()), Fraction(zero.bound.item())
    worst = max(
        abs(
            -(Fraction(constant) + i * Fraction(constant_bound)) / (Fraction(slope) + j * Fraction(slope_bound)) - place
        )
        for i, j in itertools.product((-1, 0, 1), repeat=2)
    )
    assert worst <= bound
    assert bound <= Fraction(101, 100) * worst + Fraction(4, 2**52)
    assert not answers.asked
    assert (zero.layer.item(), zero.unit.item()) == (0, 0)


def test_zeros_that_rounding_cannot_place_are_asked_for():
    index = torch.tensor([0])
    for slope, constant, bounds in ((1.0, 1.0, (2.0, 0.0)), (1e-200, 1e-320, (0.0, 0.0)), (1.0, 0.0, (0.0, 1e-320))):
        answers = Answers([[Fraction(1, 3)]])
        zero = _crossing_zeros(unit_of(slope, constant, *bounds), index, index, answers)
        assert answers.asked == [(0, 0)]
        assert abs(Fraction(zero.place.item()) - Fraction(1, 3)) <= Fraction(zero.bound.item())
    answers = Answers()
    assert _crossing_zeros(unit_of(3.0, 0.0), index, index, answers).bound.item() == 0  # exactly at the origin
    assert not answers.asked


def test_places_in_doubt_are_put_in_order_in_fractions():
    piece, unit = torch.tensor([0, 0, 0, 1, 1, 2, 2]), torch.tensor([0, 1, 2, 0, 1, 0, 1])
    places = torch.tensor([0.3, 0.3, 0.9, 0.5, 0.5, 0.5, 0.7], dtype=torch.float64)
    bounds = torch.tensor([1e-3, 1e-3, 1e-3, 0.0, 0.0, 1e-3, 1e-3], dtype=torch.float64)
    zero = Ends(places, bounds, torch.zeros_like(unit), unit)
    answers = Answers({0: [Fraction(3001, 10000), Fraction(3, 10), Fraction(9, 10)]})
    order, fresh = _settle_crossings(piece, unit, zero, answers)
    assert order.tolist() == [1, 0, 2, 3, 4, 5, 6]
    assert fresh.tolist() == [True, True, True, True, False, True, True]  # equal and exact ones are one
    assert sorted(answers.asked) == [(0, 0), (0, 1), (0, 2)]
    answers = Answers({0: [Fraction(3, 10), Fraction(3, 10), Fraction(9, 10)]})
    assert _settle_crossings(piece, unit, zero, answers)[1].tolist() == [True, False, True, True, False, True, True]


def test_equal_places_of_different_pieces_stay_apart():
    piece, unit = torch.tensor([0, 1]), torch.tensor([0, 0])
    zero = Ends(torch.tensor([0.5, 0.5]).double(), torch.zeros(2).double(), torch.zeros_like(unit), unit)
    answers = Answers()
    assert _settle_crossings(piece, unit, zero, answers)[1].tolist() == [True, True]
    assert not answers.asked


@pytest.mark.parametrize("bounds", [(0.05, 0.0), (0.0, 0.05), (0.006, 0.006)])
def test_places_are_in_doubt_if_either_or_both_could_reach_the_other(bounds):
    piece, unit = torch.tensor([0, 0]), torch.tensor([0, 1])
    zero = Ends(torch.tensor([0.3, 0.31]).double(), torch.tensor(bounds).double(), torch.zeros_like(unit), unit)
    answers = Answers([[Fraction(31, 100), Fraction(3, 10)]])
    assert _settle_crossings(piece, unit, zero, answers)[0].tolist() == [1, 0]
    narrow = Ends(zero.place, zero.bound / 10, zero.layer, unit)
    answers = Answers()
    assert _settle_crossings(piece, unit, narrow, answers)[0].tolist() == [0, 1]
    assert not answers.asked
