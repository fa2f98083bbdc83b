"""Pieces of ReLU networks on a line: against breakpoints in fractions, ends with bounds, and the history of cuts."""

import itertools
from fractions import Fraction

import pytest
import torch
from torch import nn

from lemmata.feedforward.linear_pieces import Ends, History, linear_pieces
from lemmata.feedforward.relu_program import program

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
