"""Weisfeiler and Lehman's colours: what they tell apart among all small graphs, and that no network tells more."""

import itertools
import math

import torch
from torch import nn

from lemmata.geometric.claims.drawn_graphs import bipartite, cycle, drawn_matrix, graph_of, path, side_by_side
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gcn import GCN
from lemmata.geometric.gin import GINConvolution
from lemmata.geometric.graph import Graph
from lemmata.geometric.message_passing import REDUCTIONS, MessagePassing
from lemmata.geometric.weisfeiler_lehman import refine_colours, same_colours
from lemmata.judge import Figure, Line, Points, all_of, always, at_most, claim, close, exactly, lie
from lemmata.recurrent.claims.recall import with_drawn_weights


def all_graphs(nodes):
    """Every graph on so many labelled nodes, side by side: 2 to the number of pairs of them."""
    pairs = torch.tensor(list(itertools.combinations(range(nodes), 2)))
    number, pair = ((torch.arange(2 ** len(pairs))[:, None] >> torch.arange(len(pairs))) & 1).nonzero().unbind(1)
    edges = (pairs[pair] + nodes * number[:, None]).mT
    return Graph(torch.cat([edges, edges.flip(0)], 1), nodes * 2 ** len(pairs))


def isomorphism_classes(nodes):
    """How many graphs there are up to relabelling, by Burnside: the mean over orders of 2 to the cycles of pairs."""
    pairs = [frozenset(pair) for pair in itertools.combinations(range(nodes), 2)]
    total = 0
    for order in itertools.permutations(range(nodes)):
        left, cycles = set(pairs), 0
        while left:
            cycles, pair = cycles + 1, next(iter(left))
            while pair in left:
                left.remove(pair)
                pair = frozenset(order[v] for v in pair)
        total += 2**cycles
    return total // math.factorial(nodes)


def colour_classes(nodes, rounds=None):
    """How many histograms of colours come among all graphs on so many nodes."""
    kinds, ranks = refine_colours(all_graphs(nodes), rounds=rounds).colours.unique(return_inverse=True)
    # Sorted ranks as the digits of one number: 936 kinds at most, and 936^6 < 2^63.
    digits = len(kinds) ** torch.arange(nodes)
    return len((ranks.view(-1, nodes).sort(1).values * digits).sum(1).unique())


def _refined_colours(matrix, rounds):
    return refine_colours(graph_of(matrix), rounds=rounds).colours


def _undecided_pair(rounds):
    """Two graphs that so many rounds of colours do not tell apart, their nodes in circles and by colour."""
    triangle = cycle(3)
    pairs = [(path(5), side_by_side(triangle, path(2)), (3, 2)), (cycle(6), side_by_side(triangle, triangle), (3, 3))]
    alike = [pair for pair in pairs if torch.equal(*[_refined_colours(m, rounds).sort().values for m in pair[:2]])]
    first, second, sizes = alike[0]
    turns = [2 * math.pi * torch.arange(size) / size for size in (len(first), *sizes)]
    middles = torch.tensor([[-1.7, 0.0], [0.8, 0.0], [3.0, 0.0]])
    places = torch.cat([m + torch.stack([t.sin(), t.cos()], 1) for m, t in zip(middles, turns, strict=True)])
    colours = torch.cat([_refined_colours(first, rounds), _refined_colours(second, rounds)])
    ends = places[side_by_side(first, second).triu().nonzero()]  # (edges, 2, 2)
    lines = torch.cat([ends, torch.full_like(ends[:, :1], torch.nan)], 1).reshape(-1, 2)  # and a gap after each
    marks: list[Line | Points] = [Line(lines[:, 0], lines[:, 1], "edges")]
    for number, colour in enumerate(colours.unique(), 1):
        mine = places[colours == colour]
        marks.append(Points(mine[:, 0], mine[:, 1], f"colour {number}"))
    return Figure("Two graphs whose colours are the same", marks=marks)


def own_and_neighbours(own, heard):
    return own, heard


def neighbours_alone(own, heard):
    return heard


def recoloured(matrix, colours, hashed):
    """One round with pairs in place of hashes: the number of the first node with the same."""
    found = [hashed(own, sorted(colours[n] for n in row.nonzero())) for own, row in zip(colours, matrix, strict=True)]
    return [found.index(pair) for pair in found]


def partition(colours):
    """The number of the first node with the same colour, for each."""
    colours = colours.tolist()
    return [colours.index(colour) for colour in colours]


@claim("graph.wl")
@lie("the test decides whether two graphs are isomorphic", printed="003/1", undecided=0)
@lie("one round is enough", rounds=1)
@lie("a hexagon is told from two triangles", told=True)
@lie("the neighbours' colours alone are hashed", hashed=neighbours_alone)
def colours_prove_that_graphs_differ(
    draw, undecided=4, rounds=None, told=False, hashed=own_and_neighbours, same=same_colours
):
    """Histograms of all graphs with up to six nodes, by Burnside's lemma; drawn ones relabelled, and coloured."""
    kept, most, found, written = [], [], [], []
    for _ in range(40):
        matrix = drawn_matrix(draw, int(draw.integers(1, 20, 1)), 0.3)
        order, coloured = draw.permutation(len(matrix)), draw.integers(0, 3, len(matrix))
        expected = coloured.tolist()
        for count in (1, 2):
            expected = recoloured(matrix, expected, hashed)
            found += partition(refine_colours(graph_of(matrix), coloured, count).colours)
            written += expected
        kept.append(same(graph_of(matrix), graph_of(matrix[order][:, order])))
        most.append(refine_colours(graph_of(matrix)).rounds - len(matrix))
    return all_of(
        always(kept, detail="isomorphic graphs are never told apart"),
        exactly(found, written, detail="from drawn colours, once and twice"),
        exactly([colour_classes(n, rounds) for n in range(2, 6)], [isomorphism_classes(n) for n in range(2, 6)]),
        exactly(156 - colour_classes(6, rounds), undecided, detail="of the 156 graphs of six nodes"),
        exactly(isomorphism_classes(6), 156),
        exactly(not same(graph_of(cycle(6)), graph_of(side_by_side(cycle(3), cycle(3)))), told),
        at_most(most, -1, detail="rounds, less the number of nodes"),
    ).showing(_undecided_pair(rounds))


PRISM = torch.kron(torch.eye(2), torch.ones(3, 3) - torch.eye(3)).double() + torch.eye(6).double().roll(3, 0)


def torus(steps):
    """Sixteen nodes on a square whose sides are glued, joined to those at these steps."""
    places = [(a, b) for a in range(4) for b in range(4)]
    near = [[((c - a) % 4, (d - b) % 4) in steps for c, d in places] for a, b in places]
    return torch.tensor(near).double()


ROOK = torus({(0, k) for k in (1, 2, 3)} | {(k, 0) for k in (1, 2, 3)})
SHRIKHANDE = torus({(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)})
TRIANGLES = side_by_side(cycle(3), cycle(3))
CHORD = torch.zeros(6, 6).double()
CHORD[0, 3] = CHORD[3, 0] = 1.0  # across the hexagon, and from one triangle to the other
SAME = [
    (cycle(6), TRIANGLES),
    (cycle(6) + CHORD, TRIANGLES + CHORD),
    (bipartite(3, 3), PRISM),
    (ROOK, SHRIKHANDE),
]


def deep(layers):
    """Message-passing layers one after the other, with a bend between them."""

    def network(x, graph):
        for layer in layers:
            x = layer(x, graph).tanh()
        return x

    return network


def of_each_kind(draw):
    """Networks of three layers with drawn weights, from two features to two."""
    kinds = [lambda: GCN(2, [4], 2), lambda: GATConvolution(2, 1, heads=2)]
    kinds.append(lambda: GINConvolution(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))))
    kinds += [lambda r=r: MessagePassing(nn.Linear(2, 3), nn.Linear(5, 2), r) for r in REDUCTIONS]
    for kind in kinds:
        yield deep([with_drawn_weights(kind(), draw).requires_grad_(False) for _ in range(3)])


def alike(draw, nodes):
    return torch.ones(nodes, 2, dtype=torch.float64)


def told_apart(draw, nodes):
    return draw.normal(nodes, 2)


def networks_classes(draw, reduce, nodes=5):
    """How many of all graphs on so many nodes drawn networks tell apart, by the sum of one output over the nodes."""
    layers = [MessagePassing(nn.Linear(1, 8), nn.Sequential(nn.Linear(9, 8), nn.Tanh(), nn.Linear(8, 1)), reduce)]
    layers += [MessagePassing(nn.Linear(1, 8), nn.Sequential(nn.Linear(9, 8), nn.Tanh(), nn.Linear(8, 1)), reduce)]
    network = deep([with_drawn_weights(layer, draw).requires_grad_(False) for layer in layers * 2])
    graphs = all_graphs(nodes)
    pooled = network(torch.ones(graphs.nodes, 1).double(), graphs).view(-1, nodes).sum(1).sort().values
    return 1 + int((pooled.diff() > 1e-9).sum())  # rounding moves them by some 1e-15


def by_colour(features, matrix):
    """The nodes' features in the order of their colours: nodes of one colour are to have the same."""
    return features[refine_colours(graph_of(matrix)).colours.argsort(stable=True)]


@claim("graph.wl.bound")
@lie("features that differ from node to node change nothing", start=told_apart)
@lie("means tell as much as sums", reduce="mean")
@lie("maxima tell as much as sums", reduce="max")
@lie("GIN's layer weighs a node as its neighbours", own=0.0)
@lie("GIN's layer has the weight ε for a node itself", one=0.0)
def networks_tell_no_more_than_colours(draw, start=alike, reduce="sum", one=1.0, own=1.0, gin=GINConvolution):
    """Four pairs that colours do not tell apart, eight kinds of networks; all graphs of five nodes; one layer."""
    left, right = [], []
    for network in of_each_kind(draw):
        for first, second in SAME:
            left.append(by_colour(network(start(draw, len(first)), graph_of(first)), first))
            right.append(by_colour(network(start(draw, len(second)), graph_of(second)), second))
    matrix, x, perceptron = drawn_matrix(draw, 9, 0.4), draw.normal(9, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh())
    layer = with_drawn_weights(gin(perceptron, eps=0.25), draw).requires_grad_(False)
    return all_of(
        always([same_colours(graph_of(first), graph_of(second)) for first, second in SAME]),
        close(torch.cat(left), torch.cat(right), within=1e-12),
        close(layer(x, graph_of(matrix)), perceptron((one + own * 0.25) * x + matrix @ x), ulps=256),
        exactly(networks_classes(draw, reduce), colour_classes(5)),
    )
