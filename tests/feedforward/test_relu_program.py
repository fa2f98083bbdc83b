"""What networks become: exact units are those of the forward pass, leaky units, fixed normalisations, and refusals."""

import itertools
from fractions import Fraction
from itertools import chain

import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP, DenselyConnectedBlock, ResidualLayer, ResidualMLP, linear_regions
from lemmata.feedforward.relu_program import Affine, Coefficients, ExactUnits, program


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
    from lemmata.feedforward.relu_program import _combine_rows

    tenth = Fraction(0.1)  # a double, hence an integer over a power of two
    rows = [[Fraction(1, 2), tenth], [Fraction(3), Fraction(5, 8)], [Fraction(7), Fraction(9)]]
    weights = [tenth, Fraction(-1, 4), Fraction(0)]
    found = _combine_rows(weights, rows, Fraction(1, 16))
    wanted = [sum(w * row[term] for w, row in zip(weights, rows, strict=True)) for term in range(2)]
    assert found == [wanted[0], wanted[1] + Fraction(1, 16)]
    assert _combine_rows([Fraction(0)] * 3, rows, Fraction(2)) == [0, 2]


def test_a_hook_on_a_projection_is_refused_and_so_is_one_that_adds_a_constant():
    hooked, biased = ResidualLayer(2, outputs=3), ResidualLayer(2, outputs=3)
    hooked.projection.register_forward_hook(lambda *parts: 0 * parts[-1])
    biased.projection = nn.Linear(2, 3)
    for layer, message in ((hooked, "Linear has a hook"), (biased, "projection must be a Linear without a bias")):
        with pytest.raises(ValueError, match=message):
            linear_regions(layer, [(-1, 1)] * 2)


@torch.no_grad()
def leaky(sizes, slope):
    """Linear layers, each normalised with fixed statistics and then leaky, but for the last."""
    parts = []
    for inputs, width in itertools.pairwise(sizes):
        norm = nn.BatchNorm1d(width, affine=width % 2 == 0)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
        parts += [nn.Linear(inputs, width), norm, nn.LeakyReLU(slope)]
    model = nn.Sequential(*parts[:-2]).double().eval()
    for values in model.parameters():
        values.normal_()
    return model


@pytest.mark.parametrize("sizes", [(1, 7, 1), (1, 8, 9, 2), (2, 5, 1), (2, 8, 7, 1)])
@pytest.mark.parametrize("slope", [0.01, 0.25, -1.0, 2.0])
def test_leaky_units_and_fixed_normalisations_are_piecewise_affine(sizes, slope):
    torch.manual_seed(len(sizes))
    model = leaky(sizes, slope)
    regions = linear_regions(model, [(-2, 2)] * sizes[0])
    own = torch.arange(regions.corners.shape[1]) < regions.sizes[:, None]
    middle = (regions.corners * own[..., None]).sum(1) / regions.sizes[:, None]
    value = torch.einsum("roi,ri->ro", regions.slopes, middle) + regions.constants
    assert torch.allclose(value, model(middle), atol=1e-9)

    def active(x):
        found, hidden = [], x
        for part in model:
            found += [hidden > 0] if isinstance(part, nn.LeakyReLU) else []
            hidden = part(hidden)
        return torch.cat(found, dim=1)

    mine = torch.cat(regions.patterns, dim=1)
    assert torch.equal(active(middle), mine)
    points = torch.rand(20_000, sizes[0], dtype=torch.float64) * 4 - 2
    seen = torch.unique(active(points), dim=0)
    assert len(torch.unique(torch.cat([mine, seen]), dim=0)) == len(torch.unique(mine, dim=0)) == len(regions)


@pytest.mark.parametrize("inputs", [1, 2])
def test_our_networks_of_leaky_units_count_like_the_plain_ones(inputs):
    torch.manual_seed(inputs)
    ours = MLP(inputs, 1, widths=(5, 4), activation="leaky_relu").double()
    for layer in ours.layers:
        nn.init.normal_(layer.bias)
    first, second, last = ours.layers
    plain = nn.Sequential(first, nn.LeakyReLU(), second, nn.LeakyReLU(), last)
    box = [(-2, 2)] * inputs
    assert torch.equal(linear_regions(ours, box).slopes, linear_regions(plain, box).slopes)
    assert len(linear_regions(ours, box)) > 4
    for block in (ResidualLayer(inputs, 3, activation="leaky_relu"), DenselyConnectedBlock(inputs, 2, 2, "leaky_relu")):
        block = nn.Sequential(block.double())
        regions = linear_regions(block, box)
        middle = regions.corners[:, :2].mean(1)  # of a side, or of an interval
        value = torch.einsum("roi,ri->ro", regions.slopes, middle) + regions.constants
        assert torch.allclose(value, block(middle), atol=1e-9)


def test_a_normalisation_that_sees_batches_is_refused():
    for norm in (nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False).eval()):
        with pytest.raises(ValueError, match=r"BatchNorm1d that sees whole batches .*: use model\.eval\(\)"):
            linear_regions(nn.Sequential(nn.Linear(1, 2), norm), [(0, 1)])


def exactly(rows):
    return [[Fraction(v) for v in row] for row in rows.tolist()]


def mapped(weight, bias, rows):
    """W times the rows, and b to their constants, in fractions."""
    found = []
    for ws, b in zip(exactly(weight), bias.tolist(), strict=True):
        row = [sum(w * row[t] for w, row in zip(ws, rows, strict=True)) for t in range(len(rows[0]))]
        found.append([*row[:-1], row[-1] + Fraction(b)])
    return found


def layers(coarse, seed):
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        if coarse:
            return torch.randint(-5, 6, shape, generator=generator).double() / 8
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return [Affine(drawn(4, 2), drawn(4)), Affine(drawn(3, 4), drawn(3)), drawn(3, 2)]


@pytest.mark.parametrize("coarse", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.25, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_coefficients_are_within_their_bounds_and_exact_where_they_say_so(coarse, slope, seed):
    first, second, skip = layers(coarse, seed)
    active = torch.tensor([[True, False, True, False], [False, True, True, True]])
    start = Coefficients.of_input(2, torch.device("cpu"))
    hidden = start.affine(first)[torch.tensor([0, 0])].rectified(active, slope)
    found = hidden.affine(second).plus(start[torch.tensor([0, 0])], skip)
    for region in range(2):
        identity = [[Fraction(int(i == j)) for j in range(3)] for i in range(2)]
        rows = mapped(first.weight, first.bias, identity)
        kept = [
            [v * (1 if on else Fraction(slope)) for v in row]
            for row, on in zip(rows, active[region].tolist(), strict=True)
        ]
        added = mapped(skip, torch.zeros(3), identity)
        wanted = [
            [a + b for a, b in zip(x, y, strict=True)]
            for x, y in zip(mapped(second.weight, second.bias, kept), added, strict=True)
        ]
        values, bounds = exactly(found.value[region]), exactly(found.bound[region])
        for value, bound, true in zip(*map(chain.from_iterable, (values, bounds, wanted)), strict=True):
            assert abs(value - true) <= bound
            assert bound <= Fraction(1, 10**13)
            if coarse and slope != 0.1:  # eighths and quarters are never rounded
                assert bound == 0
                assert (value / Fraction(found.grain)).denominator == 1


def test_errors_are_carried_through_layers_sums_and_slopes():
    """Bounds that are given come out as the largest that signs of the errors could make of them, hardly more."""
    first, second, skip = layers(False, 7)
    bound = torch.rand(1, 4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 1e-3
    given = Coefficients(first.weight.new_ones(1, 4, 3), bound, 1.0)
    wanted = second.weight.abs() @ bound[0]
    torch.testing.assert_close(given.affine(second).bound[0], wanted, rtol=1e-9, atol=0)
    both = given.affine(second).plus(given.affine(second), None)
    torch.testing.assert_close(both.bound[0], 2 * wanted, rtol=1e-9, atol=0)
    projected = given.affine(second).plus(Coefficients(given.value[:, :2], bound[:, :2], 1.0), skip)
    torch.testing.assert_close(projected.bound[0], wanted + skip.abs() @ bound[0, :2], rtol=1e-9, atol=0)
    on = torch.tensor([[True, False, True, False]])
    leaky = given.rectified(on, -0.3)
    torch.testing.assert_close(leaky.bound[0], torch.where(on[0, :, None], bound[0], 0.3 * bound[0]), rtol=1e-9, atol=0)
    assert given.rectified(on).bound[0, 1].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="layers must fit: one takes 2 values, but is given 4"):
        given.plus(given, skip)


@pytest.mark.parametrize("bits", [50, 53])
def test_sums_are_exact_up_to_the_digits_of_a_double(bits):
    """1 + 2^-bits fits into 53 digits, or just not."""
    given = Coefficients(torch.ones(1, 2, 2, dtype=torch.float64), torch.zeros(1, 2, 2, dtype=torch.float64), 1.0)
    weight = torch.tensor([[1.0, 2.0**-bits]], dtype=torch.float64)
    found = given.affine(Affine(weight, torch.zeros(1, dtype=torch.float64)))
    assert (found.bound == 0).all() == (bits == 50)
    assert abs(Fraction(found.value[0, 0, 0].item()) - 1 - Fraction(2) ** -bits) <= Fraction(
        found.bound[0, 0, 0].item()
    )


def test_known_units_are_forgotten_before_they_fill_the_memory():
    exact = ExactUnits([Affine(torch.ones(1, 1).double(), torch.zeros(1).double())], dimensions=1)
    exact.known = dict.fromkeys(((number,),) for number in range(5000))
    assert exact.units(()) == [[1, 0]]
    assert list(exact.known) == [()]


def alone(value, grain):
    return Coefficients(torch.full((1, 1, 2), value, dtype=torch.float64), torch.zeros(1, 1, 2).double(), grain)


@pytest.mark.parametrize("bits", [50, 53])
@pytest.mark.parametrize("small_first", [True, False])
def test_adding_what_was_remembered_is_exact_up_to_the_digits_of_a_double(bits, small_first):
    pair = [alone(2.0**-bits, 2.0**-bits), alone(1.0, 1.0)]
    first, second = pair if small_first else pair[::-1]
    found = first.plus(second, None)
    bound = Fraction(found.bound[0, 0, 0].item())
    assert (bound == 0) == (bits == 50)
    assert abs(Fraction(found.value[0, 0, 0].item()) - 1 - Fraction(2) ** -bits) <= bound <= Fraction(2) ** -50
    assert found.grain == 2.0**-bits


def test_a_slope_below_zero_rounds_within_its_bound():
    found = alone(3.0, 1.0).rectified(torch.tensor([[False]]), 0.1)
    error = abs(Fraction(found.value[0, 0, 0].item()) - 3 * Fraction(0.1))
    assert 0 < error <= Fraction(found.bound[0, 0, 0].item()) <= Fraction(2) ** -52
    assert alone(3.0, 1.0).rectified(torch.tensor([[False]]), 0.25).bound.tolist() == [[[0, 0]]]
    assert alone(3.0, 1.0).rectified(torch.tensor([[True]]), 0.1).bound.tolist() == [[[0, 0]]]
