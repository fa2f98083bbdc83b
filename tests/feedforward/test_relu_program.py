"""The steps of residual and dense blocks: the units that they give without rounding are those of the forward pass."""

from fractions import Fraction

import pytest
import torch
from torch import nn

from lemmata.feedforward import DenselyConnectedBlock, ResidualLayer, ResidualMLP
from lemmata.feedforward.relu_program import ExactUnits, program


def filled(*parts):
    model = nn.Sequential(*parts).double().requires_grad_(False)
    for values in model.parameters():
        nn.init.normal_(values)
    return model


def entering(model, x):
    """What enters each rectifier for one input, as the modules compute it, and the output."""
    found = []
    wanted = [part.linear for part in model.modules() if isinstance(part, ResidualLayer)]
    wanted += [layer for part in model.modules() if isinstance(part, DenselyConnectedBlock) for layer in part.layers]
    handles = [layer.register_forward_hook(lambda *parts: found.append(parts[-1][0])) for layer in wanted]
    output = model(x[None])[0]
    for handle in handles:
        handle.remove()
    return [*found, output]


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize(
    "parts",
    [
        lambda n: [ResidualLayer(n), ResidualLayer(n, 4), ResidualLayer(4), nn.Linear(4, 1)],
        lambda n: [DenselyConnectedBlock(n, 3, 2), ResidualLayer(n + 6, 3), ResidualLayer(3, projection=True)],
        lambda n: [ResidualMLP(n, 2, width=3, depth=3)],
    ],
)
def test_exact_units_are_those_of_the_forward_pass(inputs, parts):
    model = filled(*parts(inputs))
    exact = ExactUnits(program(model), dimensions=inputs)
    for x in torch.randn(5, inputs, dtype=torch.float64):
        units = entering(model, x)
        pattern = tuple(tuple((z > 0).tolist()) for z in units[:-1])
        for layer, expected in enumerate(units):
            rows = [[float(entry) for entry in row] for row in exact.units(pattern[:layer])]
            slopes, constants = torch.tensor(rows, dtype=torch.float64).split([inputs, 1], dim=1)
            torch.testing.assert_close(slopes @ x + constants[:, 0], expected, rtol=1e-10, atol=1e-10)


def test_sums_of_fractions_are_reduced_and_exact():
    from lemmata.feedforward.relu_program import _combined

    tenth = Fraction(0.1)  # a double, hence a whole number over a power of two
    rows = [[Fraction(1, 2), tenth], [Fraction(3), Fraction(5, 8)], [Fraction(7), Fraction(9)]]
    weights = [tenth, Fraction(-1, 4), Fraction(0)]
    found = _combined(weights, rows, Fraction(1, 16))
    wanted = [sum(w * row[term] for w, row in zip(weights, rows, strict=True)) for term in range(2)]
    assert found == [wanted[0], wanted[1] + Fraction(1, 16)]
    assert _combined([Fraction(0)] * 3, rows, Fraction(2)) == [0, 2]
