"""Regions of ReLU networks: agreement with dense grids, exact ties, every scale and dtype, and refusals."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP, ResidualLayer, linear_regions
from lemmata.feedforward.linear_pieces import linear_pieces
from lemmata.feedforward.relu_program import Add, Affine, Rectify, Remember


def network(*sizes, seed=0, std=1.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b, dtype=dtype), nn.ReLU()]
    for values in nn.Sequential(*layers).parameters():
        scale = std / values.shape[-1] ** 0.5 if values.ndim == 2 else 0.5 * std
        values.data = (scale * torch.randn(values.shape, generator=generator, dtype=torch.float64)).to(dtype)
    return nn.Sequential(*layers[:-1])


@torch.no_grad()
def patterns(model, x):
    """The active units of every layer, side by side, in double precision."""
    found, hidden = [], x
    for layer in model.double():
        hidden = layer(hidden)
        if isinstance(layer, nn.ReLU):
            found.append(hidden > 0)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 8, 1), (1, 16, 16, 2), (1, 5, 5, 5, 5, 1), (1, 40, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_pieces_on_a_line_are_those_of_a_dense_grid(sizes, dtype):
    model = network(*sizes, seed=len(sizes), dtype=dtype)
    regions = linear_regions(model, [(-3, 3)])
    ends = regions.corners[..., 0]
    assert torch.equal(ends[1:, 0], ends[:-1, 1])
    assert ends[0, 0] == -3
    assert ends[-1, 1] == 3
    assert (ends[:, 1] > ends[:, 0]).all()
    middle = ends.mean(1, keepdim=True)
    assert torch.equal(patterns(model, middle), torch.cat(regions.patterns, dim=1))
    value = (regions.slopes * middle[:, None]).sum(-1) + regions.constants
    assert torch.allclose(value, model.double()(middle), atol=1e-9)
    grid = patterns(model, torch.linspace(-3, 3, 30_001, dtype=torch.float64)[:, None])
    assert len(regions) >= int((grid[1:] != grid[:-1]).any(1).sum()) + 1


@pytest.mark.parametrize("sizes", [(2, 1, 1), (2, 8, 1), (2, 16, 16, 1), (2, 6, 6, 6, 3)])
def test_polygons_tile_the_box_and_have_the_patterns_of_a_grid(sizes):
    model = network(*sizes, seed=3)
    regions = linear_regions(model, [(-2, 2), (-1, 3)])
    x, y = regions.corners.unbind(-1)
    areas = (x * y.roll(-1, 1) - x.roll(-1, 1) * y).sum(1) / 2
    assert (areas > 0).all()
    assert areas.sum().item() == pytest.approx(16, rel=1e-12)
    own = torch.arange(x.shape[1]) < regions.sizes[:, None]
    middle = (regions.corners * own[..., None]).sum(1) / regions.sizes[:, None]
    mine = torch.cat(regions.patterns, dim=1)
    assert torch.equal(patterns(model, middle), mine)
    assert len(torch.unique(mine, dim=0)) == len(regions)
    points = torch.rand(20_000, 2, dtype=torch.float64) * 4 + torch.tensor([-2.0, -1.0])
    seen = torch.unique(patterns(model, points), dim=0)
    assert len(torch.unique(torch.cat([mine, seen]), dim=0)) == len(regions)
    value = torch.einsum("roi,ri->ro", regions.slopes, middle) + regions.constants
    assert torch.allclose(value, model.double()(middle), atol=1e-9)


def through(points, dtype=torch.float64):
    """One unit for each point, which vanishes there; all with the slope 1."""
    layer = nn.Linear(1, len(points), dtype=dtype)
    layer.weight.data.fill_(1.0)
    layer.bias.data = -torch.tensor(points, dtype=dtype)
    return nn.Sequential(layer, nn.ReLU())


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_breakpoints_that_differ_by_the_last_digit_are_two_and_equal_ones_are_one(scale):
    first = torch.tensor(scale, dtype=torch.float64)
    second = torch.nextafter(first, torch.tensor(torch.inf, dtype=torch.float64))
    box = [(-4 * scale, 4 * scale)]
    assert len(linear_regions(through([first.item(), second.item()]), box)) == 3
    assert len(linear_regions(through([first.item(), first.item()]), box)) == 2


def test_thirds_that_no_float_holds_are_told_apart_exactly():
    """3x - 1 and 6x - 2 vanish at one point, 3x - 1 and (3 + 2^-50)x - 1 at two."""
    layer = nn.Linear(1, 2, dtype=torch.float64)
    layer.weight.data = torch.tensor([[3.0], [6.0]], dtype=torch.float64)
    layer.bias.data = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    model = nn.Sequential(layer, nn.ReLU())
    same = linear_regions(model, [(0, 1)])
    assert len(same) == 2
    assert same.exact_decisions > 0
    layer.weight.data[1], layer.bias.data[1] = 3 + 2.0**-50, -1.0
    assert len(linear_regions(model, [(0, 1)])) == 3


def lines(rows):
    layer = nn.Linear(2, len(rows), dtype=torch.float64)
    layer.weight.data = torch.tensor([row[:2] for row in rows], dtype=torch.float64)
    layer.bias.data = torch.tensor([row[2] for row in rows], dtype=torch.float64)
    return nn.Sequential(layer, nn.ReLU())


def test_lines_through_one_point_leave_no_triangle_and_those_that_miss_it_by_the_last_digit_do():
    third = [1.0, 0.0, -1 / 3], [0.0, 1.0, -1 / 3]
    through_it = lines([*third, [1.0, 1.0, -2 * (1 / 3)]])
    assert len(linear_regions(through_it, [(0, 1), (0, 1)])) == 6
    beside = -float(torch.nextafter(torch.tensor(2 / 3, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)))
    assert len(linear_regions(lines([*third, [1.0, 1.0, beside]]), [(0, 1), (0, 1)])) == 7
    assert len(linear_regions(lines([*third, *third]), [(0, 1), (0, 1)])) == 4


def without_biases(*sizes, seed=0):
    model = network(*sizes, seed=seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.bias = None
    return model


@pytest.mark.parametrize("sizes", [(2, 6, 1), (2, 8, 8, 1), (2, 5, 5, 5, 1)])
def test_without_biases_all_lines_meet_in_the_origin_and_nothing_is_in_doubt(sizes):
    model = without_biases(*sizes)
    regions = linear_regions(model, [(-1, 1), (-1, 2)])
    angles = torch.arange(200_000, dtype=torch.float64) * (2 * torch.pi / 200_000) + 1e-6
    around = torch.stack([angles.cos(), angles.sin()], 1)
    assert len(regions) == len(patterns(model, around).unique(dim=0))  # a cone each
    assert regions.exact_decisions == 0


def test_wide_networks_without_biases_are_counted_at_once():
    """2-64-64: two thousand corners at the origin, once forty thousand decisions in fractions."""
    regions = linear_regions(without_biases(2, 64, 64, 1), [(-1, 1), (-1, 1)])
    assert regions.exact_decisions == 0
    assert len(regions) >= 128


def test_lines_that_nearly_meet_in_the_origin_are_told_from_those_that_do():
    """x = -1e-150 and y = -1e-150 cross where products of their coefficients are too small to be stored."""
    model = nn.Sequential(nn.Linear(2, 3, dtype=torch.float64), nn.ReLU())
    model[0].weight.data = torch.tensor([[1e-150, 0], [0, 1e-150], [1, 1]], dtype=torch.float64)
    model[0].bias.data = torch.tensor([1e-300, 1e-300, 0], dtype=torch.float64)
    assert len(linear_regions(model, [(-1, 1), (-1, 1)])) == 7
    model[0].bias.data *= 0
    assert len(linear_regions(model, [(-1, 1), (-1, 1)])) == 6


@pytest.mark.parametrize("weight", [1e-200, 1e-150, 1.0])
def test_on_a_line_a_product_too_small_to_be_stored_still_has_its_sign(weight):
    model = nn.Sequential(nn.Linear(1, 2, dtype=torch.float64), nn.ReLU())
    model[0].weight.data = torch.tensor([[weight], [1.0]], dtype=torch.float64)
    model[0].bias.data = torch.tensor([0.0, 5e-324], dtype=torch.float64)  # the second vanishes just left of the first
    regions = linear_regions(model, [(-1e-150, 1.0)])
    assert [pattern.tolist() for pattern in regions.patterns[0]] == [[False, False], [False, True], [True, True]]


def test_a_line_along_a_side_of_the_box_cuts_nothing():
    model = lines([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]])
    assert len(linear_regions(model, [(0, 1), (0, 1)])) == 1
    assert len(linear_regions(through([0.0, 1.0]), [(0, 1)])) == 1


def test_dead_and_constant_units_cut_nothing():
    for inputs in (1, 2):
        layer = nn.Linear(inputs, 3)
        nn.init.zeros_(layer.weight)
        layer.bias.data = torch.tensor([-1.0, 0.0, 1.0])
        regions = linear_regions(nn.Sequential(layer, nn.ReLU()), [(-1, 1)] * inputs)
        assert len(regions) == 1
        assert regions.patterns[0].tolist() == [[False, False, True]]
        assert regions.constants.tolist() == [[0.0, 0.0, 1.0]]


def test_networks_without_rectifiers_are_one_region():
    regions = linear_regions(nn.Sequential(nn.Linear(2, 3), nn.Identity(), nn.Linear(3, 1)), [(-1, 1), (-1, 1)])
    assert len(regions) == 1
    assert regions.patterns == ()
    assert len(linear_regions(MLP(1, 2, widths=(4,), activation="identity"), [(0, 1)])) == 1


def test_our_own_network_is_known_and_counts_like_the_plain_one():
    torch.manual_seed(5)
    ours = MLP(2, 1, widths=(6, 6), bias=True)
    for layer in ours.layers:
        nn.init.normal_(layer.bias)
    first, second, last = ours.layers
    plain = nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Dropout(0.0), second, nn.ReLU(), last)
    box = [(-1, 1), (-1, 1)]
    assert len(linear_regions(ours, box)) == len(linear_regions(plain, box)) > 10


@pytest.mark.parametrize(
    ("model", "box", "message"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.Tanh()), [(0, 1)] * 2, "Tanh is not known to be piecewise affine: use Lin"),
        (nn.Linear(3, 2), [(0, 1)] * 2, "box must have one .low, high. for each of the 3 inputs, got 2"),
        (nn.Linear(3, 2), [(0, 1)] * 3, "box must have one or two .low, high., got 3"),
        (
            nn.Sequential(nn.Linear(1, 2), nn.Linear(3, 1)),
            [(0, 1)],
            "layers must fit: one takes 3 values, but is given 2",
        ),
        (nn.Sequential(nn.Linear(1, 2), ResidualLayer(3)), [(0, 1)], "layers must fit: one takes 3 values"),
        (nn.Linear(1, 2), [(1, 0)], "must be .low, high. with low < high"),
        (nn.Linear(1, 2), [(0, 0)], "must be .low, high. with low < high"),
        (nn.Linear(1, 2), [(0, float("inf"))], "box must be finite, got inf"),
        (nn.Sequential(nn.Linear(1, 2), nn.Dropout(0.5)), [(0, 1)], "use model.eval"),
        (MLP(1, 2, dropout=0.5), [(0, 1)], "use model.eval"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_words(unchecked, model, box, message):
    with pytest.raises(ValueError, match=message):
        linear_regions(model, box)


def test_hooks_own_forwards_and_subclasses_are_refused():
    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    hooked = nn.Linear(1, 2)
    hooked.register_forward_hook(lambda *parts: 2 * parts[-1])
    patched = nn.ReLU()
    patched.forward = torch.neg
    for model in (Doubled(1, 2), hooked, patched):
        with pytest.raises(ValueError, match=r"hook or a forward of its own|not known to be piecewise affine"):
            linear_regions(nn.Sequential(model), [(0, 1)])
    broken = nn.Linear(1, 2)
    broken.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match="weights must be finite"):
        linear_regions(broken, [(0, 1)])


@pytest.mark.parametrize("box", [(0, 1), [0, 1], 1.0, torch.tensor([0.0, 1.0]), None])
def test_a_box_that_is_no_list_of_pairs_is_refused_with_an_example(unchecked, box):
    with pytest.raises(
        TypeError, match=r"box must be a list of \(low, high\), one for each input, such as \[\(0, 1\)\]"
    ):
        linear_regions(nn.Linear(1, 1), box)
    with pytest.raises(TypeError, match="model must be a module, got NoneType"):
        linear_regions(None, [(0, 1)])


def test_boxes_may_be_tensors_and_arrays():
    model = network(2, 5, 1)
    wanted = len(linear_regions(model, [(-1, 1), (0, 2)]))
    for box in (torch.tensor([[-1, 1], [0, 2]]), torch.tensor([[-1.0, 1.0], [0.0, 2.0]]), np.array([[-1, 1], [0, 2]])):
        assert len(linear_regions(model, box)) == wanted


def test_leaky_units_at_ties_are_decided_in_fractions():
    """Units that vanish at 1/3 on the leaky side, computed on two ways: one breakpoint, which no float holds."""
    first = affine([[1.0], [-1.0]], [-1.0, 1.0])  # x - 1, and its negative
    second = affine([[3.0, 0.0], [0.0, -3.0]], [0.5, 2.0])  # with slope 1/4: 3(x - 1)/4 + 1/2 = 0 at x = 1/3
    pieces, asked = linear_pieces([first, Rectify(0.25), second, Rectify()], -2.0, 0.9, torch.device("cpu"))
    assert asked > 0
    assert len(pieces.left.place) == 2
    assert float(pieces.right.place[0]) == pytest.approx(1 / 3, rel=1e-15)
    almost, _ = linear_pieces([first, Rectify(0.25 + 2.0**-50), second, Rectify()], -2.0, 0.9, torch.device("cpu"))
    assert len(almost.left.place) == 3


def test_breakpoints_that_rounding_eats_stand_where_they_are():
    """The slope of the second layer is the difference of two sums that agree in all digits of a double."""
    third, more, constant = 1 / 3, 3 + 2.0**-51, 2.0**-54
    first, second = affine([[third], [third]], [0.0, 0.0]), affine([[3.0, -more]], [constant])
    wanted = Fraction(constant) / Fraction(third) / (Fraction(more) - 3)  # about 0.375, in the piece from 0 to 1
    pieces, _ = linear_pieces([first, Rectify(), second, Rectify()], -1.0, 1.0, torch.device("cpu"))
    assert pieces.left.place.tolist() == [-1.0, 0.0, float(wanted)]
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1), nn.ReLU()).double()
    for layer, (weight, bias) in zip(
        (model[0], model[2]), (([[third, 0.0]] * 2, [0.0, 0.0]), ([[3.0, -more]], [constant])), strict=True
    ):
        layer.weight.data, layer.bias.data = (torch.tensor(part, dtype=torch.float64) for part in (weight, bias))
    found = linear_regions(model, [(-1, 1), (-1, 1)])
    assert sorted(set(found.corners[..., 0].flatten().tolist())) == [-1.0, 0.0, float(wanted), 1.0]


def affine(weight, bias):
    return Affine(torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64))


def test_a_block_that_adds_its_input_has_the_kinks_of_the_sum():
    """y = x + relu(3x - 1), then units that vanish at y = 0.75 and y = 0.95."""
    block = [Remember(), affine([[3.0]], [-1.0]), Rectify(), Add()]
    pieces, _ = linear_pieces([*block, affine([[1.0], [-2.0]], [-0.75, 1.9]), Rectify()], 0.0, 1.0, torch.device("cpu"))
    ends = [Fraction(1, 3), Fraction(7, 16), Fraction(39, 80)]  # beyond 1/3, y is 4x - 1
    assert pieces.right.place[:-1].tolist() == pytest.approx([float(end) for end in ends], rel=1e-15)
    twice = [*block[:-1], Add(torch.tensor([[2.0]], dtype=torch.float64)), affine([[1.0]], [-1.5]), Rectify()]
    pieces, _ = linear_pieces(twice, 0.0, 1.0, torch.device("cpu"))
    assert pieces.right.place.tolist() == pytest.approx([1 / 3, 1 / 2, 1.0], rel=1e-15)  # 2x + relu(3x - 1) = 1.5


def test_a_module_that_stands_twice_in_a_sequence_is_run_twice():
    torch.manual_seed(0)
    first, second, last, act = nn.Linear(2, 8), nn.Linear(8, 8), nn.Linear(8, 1), nn.ReLU()
    shared = linear_regions(nn.Sequential(first, act, second, act, last), [(-2, 2), (-2, 2)])
    plain = linear_regions(nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last), [(-2, 2), (-2, 2)])
    assert len(shared) == len(plain)
    assert len(shared.patterns) == 2
    tied = nn.Linear(2, 2)
    assert len(linear_regions(nn.Sequential(tied, act, tied, act), [(-2, 2), (-2, 2)]).patterns) == 2


@pytest.mark.parametrize("inputs", [1, 2])
def test_weights_whose_products_overflow_are_counted_like_small_ones(inputs):
    model = network(inputs, 6, 6, 1, seed=2, dtype=torch.float64)
    count = len(linear_regions(model, [(-2, 2)] * inputs))
    with torch.no_grad():
        for layer in (model[0], model[2]):
            layer.weight.mul_(2.0**600)
        model[0].bias.mul_(2.0**600)
        model[2].bias.mul_(0)
    huge = linear_regions(model, [(-2, 2)] * inputs)
    with torch.no_grad():
        for layer in (model[0], model[2]):
            layer.weight.mul_(2.0**-600)
        model[0].bias.mul_(2.0**-600)
    assert len(huge) == len(linear_regions(model, [(-2, 2)] * inputs))
    assert count > 3


def test_inputs_that_are_rectified_themselves_cut_the_plane():
    """1 region left of both axes, where both inputs are 0, and so on: 4 quadrants, of which x + y = 1/2 cuts three."""
    layer = nn.Linear(2, 1, dtype=torch.float64)
    layer.weight.data.fill_(1.0)
    layer.bias.data.fill_(-0.5)
    model = nn.Sequential(nn.ReLU(), layer, nn.ReLU())
    assert len(linear_regions(model, [(-1, 1), (-1, 1)])) == 7
