"""Regions of ReLU networks: every count is exact, by cutting pieces and polygons without a tolerance."""

import itertools
import math

import torch
from torch import nn

from lemmata.feedforward.folding import folding_network, sawtooth_network
from lemmata.feedforward.hyperplane_arrangement import arrangement_regions, most_regions
from lemmata.feedforward.relu_regions import linear_regions
from lemmata.figure import Figure, Line
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie, slope_is


def _relu_layer(weight, bias):
    layer = nn.Linear(weight.shape[1], len(weight), dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return nn.Sequential(layer, nn.ReLU())


def _points_inside(draw, regions, points=5):
    """Random points of every region: averages of its corners, (regions, points, inputs)."""
    own = torch.arange(regions.corners.shape[1]) < regions.sizes[:, None]  # (regions, corners)
    shares = draw.uniform(len(regions), points, own.shape[1], low=0.1) * own[:, None]
    return shares / shares.sum(-1, keepdim=True) @ regions.corners


def _one_cell(points):
    return points


def _two_cells(points):
    return (points + points.roll(1, dims=0)) / 2


@claim("relu.activation_pattern")
@lie("averages of points of two cells keep the pattern of one", among=_two_cells)
@lie("at most 1.9^m cells", base=1.9)
def cells_are_convex_and_the_layer_is_affine_on_each(draw, among=_one_cell, base=2.0):
    """Averages of a cell's corners have its pattern, and its affine map gives the layer there; with as many units as
    inputs all patterns occur."""
    layer = _relu_layer(draw.normal(5, 2), draw.normal(5))
    cells = linear_regions(layer, [(-3, 3), (-3, 3)])
    x = among(_points_inside(draw, cells))  # (regions, points, 2)
    with torch.no_grad():
        values, pattern = layer(x), layer[0](x) > 0
    affine = torch.einsum("roi,rpi->rpo", cells.slopes, x) + cells.constants[:, None]
    sizes = [(1, 1), (2, 1), (2, 2), (3, 2), (5, 2)]
    counts = [len(linear_regions(_relu_layer(draw.normal(m, n), torch.zeros(m)), [(-1, 1)] * n)) for m, n in sizes]
    return all_of(
        exactly(pattern, cells.patterns[0][:, None].expand_as(pattern)),
        close(affine, values, ulps=256, scale=float(values.abs().max())),
        at_most(counts, [base**m for m, _ in sizes], attained=True),
    )


def _sum_of_binomials(m, n, beyond):
    return sum(math.comb(m, i) for i in range(min(n, m) + beyond + 1))


def _all_patterns(m, n, beyond):
    return 2**m


def _box_around(normals, offsets):
    """A box with twice the extent of all crossings, of one hyperplane on a line or of two in the plane."""
    dimensions = normals.shape[1]
    chosen = torch.combinations(torch.arange(len(normals)), dimensions)  # (crossings, dimensions)
    crossings = torch.linalg.solve(normals[chosen], -offsets[chosen])
    reach = 2 * float(crossings.abs().max())
    return [(-reach, reach)] * dimensions


@claim("relu.zaslavsky")
@lie("all 2^m patterns occur, also for more hyperplanes than dimensions", formula=_all_patterns)
@lie("the sum ends at n - 1", beyond=-1)
def binomials_count_the_regions_of_hyperplanes(draw, formula=_sum_of_binomials, beyond=0):
    """In general position two exact counts meet the sum: one hyperplane after the other, and a ReLU layer's regions in
    a box that holds every crossing. Parallel or concurrent hyperplanes give fewer."""
    sizes = [(1, 1), (4, 1), (2, 2), (3, 2), (5, 2), (6, 2), (2, 3), (4, 3), (7, 3), (5, 4), (64, 2)]
    planes = {(m, n): (draw.normal(m, n), draw.normal(m)) for m, n in sizes}
    counts = [arrangement_regions(*planes[size]) for size in sizes]
    layers = [size for size in sizes if size[1] <= 2]
    cut = [len(linear_regions(_relu_layer(*planes[size]), _box_around(*planes[size]))) for size in layers]
    normals, offsets = draw.normal(4, 2), draw.normal(4)
    parallel = arrangement_regions(torch.cat([normals, normals[:1]]), torch.cat([offsets, offsets[:1] + 1]))
    concurrent = arrangement_regions(draw.integers(1, 100, 5, 2), torch.zeros(5))
    return all_of(
        exactly(counts, [formula(m, n, beyond) for m, n in sizes]),
        exactly(cut, [formula(m, n, beyond) for m, n in layers]),
        exactly([most_regions(m, n) for m, n in sizes], [formula(m, n, beyond) for m, n in sizes]),
        always([parallel < formula(5, 2, beyond), concurrent < formula(5, 2, beyond)]),
    )


def _dead_network(inputs, width, depth):
    """The same network with all weights zero."""
    network = folding_network(inputs, width, depth)
    for values in network.parameters():
        nn.init.zeros_(values)
    return network


@claim("relu.montufar")
@lie("true of every network: all weights are zero", network=_dead_network)
@lie("the last layer folds too", unfolded=0)
@lie("the exponent is L - 1 for any number of inputs", coordinates=0.0)
def folding_multiplies_the_regions_by_every_layer(draw, network=folding_network, unfolded=1, coordinates=1.0):
    """The regions of a folding network in the unit cube, counted exactly: as many as the bound says."""
    sizes = [(1, m, depth) for m in (2, 3, 4) for depth in (1, 2, 3, 4)]
    sizes += [(2, 4, 1), (2, 4, 2), (2, 4, 3), (2, 5, 2), (2, 6, 2), (2, 8, 2)]
    counts = [len(linear_regions(network(n, m, depth), [(0, 1)] * n)) for n, m, depth in sizes]
    powers = [n**coordinates * (depth - unfolded) for n, _, depth in sizes]
    bounds = [(m // n) ** power * most_regions(m, n) for (n, m, _), power in zip(sizes, powers, strict=True)]
    return all_of(at_least(counts, bounds), close(counts, bounds, ulps=64))


def _multiplied_depth(base, depth):
    return base**depth


def _added_depth(base, depth):
    return base * depth


@claim("layers.depth_features")
@lie("compositions add pieces", growth=_added_depth)
@lie("every composition triples them", base=3)
@lie("one layer has at most as many pieces as units", more=0)
def compositions_multiply_pieces(draw, growth=_multiplied_depth, base=2, more=1):
    """Pieces of the sawtooth on [0, 1], and of random networks with as many units in one layer, counted exactly."""
    depths = range(1, 11)
    deep = [len(linear_regions(sawtooth_network(depth), [(0, 1)])) for depth in depths]
    units = [2 * depth for depth in depths]
    # Breakpoints -b/w of every unit lie in the interval: all pieces are there.
    flat = [len(linear_regions(_relu_layer(draw.signs(u, 1), draw.normal(u)), [(-9, 9)])) for u in units]
    figure = Figure(
        "Pieces from two units a layer", "layers", "pieces",
        [Line(list(depths), deep, "deep"), Line(list(depths), flat, "one layer")], y_log=True,
    )  # fmt: skip
    return all_of(
        exactly(deep, [growth(base, depth) for depth in depths]),
        at_most(flat, [u + more for u in units], attained=True),
    ).showing(figure)


def _random_network(draw, width, depth):
    """Normal weights with deviation sqrt(2 / inputs), standard normal biases."""
    sizes = [1, *[width] * depth]
    pairs = itertools.pairwise(sizes)
    return nn.Sequential(*(_relu_layer(draw.normal(b, a) * math.sqrt(2 / a), draw.normal(b)) for a, b in pairs))


def _folding_of_line(draw, width, depth):
    return folding_network(1, width, depth)


@claim("relu.depth_complexity")
@lie("random networks attain the maximum", typical=_folding_of_line)
@lie(
    "the regions of random networks grow as the square of the depth",
    exponent=2.0,
    regime="an exponent fitted to twenty networks of four depths",
    loose="the same",
)
@lie("each layer of a folding network multiplies by one more", more=1)
@lie("three layers grow with the square of their width", degree=2)
def regions_grow_exponentially_at_best_and_linearly_at_random(
    draw, typical=_random_network, exponent=1.0, more=0, degree=3
):
    """Folding networks against powers of the width; random networks of width 16 over their depth, on [-3, 3]."""
    depths = [1, 2, 3, 4]
    best = [len(linear_regions(folding_network(1, 4, depth), [(0, 1)])) for depth in depths]
    widths = [2, 4, 8]
    wider = [len(linear_regions(folding_network(1, width, 3), [(0, 1)])) for width in widths]
    others = [len(linear_regions(typical(draw, 4, 4), [(-3, 3)])) for _ in range(20)]
    means = [
        sum(len(linear_regions(_random_network(draw, 16, depth), [(-3, 3)])) for _ in range(20)) / 20
        for depth in depths
    ]
    figure = Figure(
        "Regions on a line", "layers", "regions",
        [Line(depths, best, "folding, width 4"), Line(depths, means, "random, width 16")], y_log=True,
    )  # fmt: skip
    return all_of(
        exactly(best, [5 * (4 + more) ** (depth - 1) for depth in depths]),
        exactly(wider, [(width + 1) * width ** (degree - 1) for width in widths]),
        at_most(others, best[-1] / 4),
        slope_is(depths, means, exponent, within=0.3),
    ).showing(figure)
