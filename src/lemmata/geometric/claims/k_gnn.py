"""Sets of nodes in place of nodes: what their colours and networks tell apart, and what not even they do."""

import itertools

import torch

from lemmata.geometric.claims.drawn_graphs import cycle, drawn_matrix, graph_of, joined, path
from lemmata.geometric.claims.drawn_networks import drawn
from lemmata.geometric.claims.weisfeiler_lehman import ROOK, SAME, SHRIKHANDE, partition, recoloured
from lemmata.geometric.k_gnn import KGNN, GraphConvolution, node_sets, same_set_colours
from lemmata.geometric.weisfeiler_lehman import refine_colours, same_colours
from lemmata.judge import all_of, at_most, claim, close, exactly, lie

DECALIN = joined(*[(k, (k + 1) % 10) for k in range(10)], (0, 5))
BICYCLOPENTYL = joined(*[(k + s, (k + 1) % 5 + s) for k in range(5) for s in (0, 5)], (0, 5))
PAIRS = [pair for pair in SAME if pair[0] is not ROOK] + [(DECALIN, BICYCLOPENTYL)]


def between_sets(matrix, size, local):
    """The sets, how many edges each has, and which are neighbours, all by looking at every pair of sets."""
    sets = [set(each) for each in itertools.combinations(range(len(matrix)), size)]
    edges = [int(matrix[list(each)][:, list(each)].sum()) // 2 for each in sets]
    near = torch.zeros(len(sets), len(sets), dtype=torch.float64)
    for (one, s), (other, t) in itertools.permutations(enumerate(sets), 2):
        if len(s & t) == size - 1:
            near[one, other] = matrix[(*(s - t), *(t - s))] if local else 1.0
    return edges, near


def layers_of(model):
    return [layer for layer in model.layers if isinstance(layer, GraphConvolution)]


def own_and_neighbours(own, heard):
    return own, heard


@claim("graph.kgnn")
@lie("networks of nodes tell them apart", size=1)
@lie("all exchanges make neighbours, adjacent or not", local=False)
@lie("pairs tell apart all graphs that differ", alike=False)
@lie("triples do no more than pairs", more=2)
@lie("the layer has no weights for the set itself", own=0.0)
def sets_tell_apart_what_nodes_cannot(draw, size=2, local=True, alike=True, more=3, own=1.0, network=KGNN):
    """Pairs of graphs that colours of nodes do not tell apart; drawn graphs by hand; networks with drawn weights."""
    found, written, left, right = [], [], [], []
    for k in (2, 3):
        for _ in range(4):
            matrix = drawn_matrix(draw, 7, 0.4)
            edges, near = between_sets(matrix, k, local)
            sets = node_sets(graph_of(matrix), k, local)
            found += partition(refine_colours(sets.graph, sets.kinds, 2).colours)
            expected = edges
            for _ in range(2):
                expected = recoloured(near, expected, own_and_neighbours)
            written += [expected.index(colour) for colour in expected]
            (layer,) = layers_of(drawn(draw, network(2, 1, k, width=3, depth=1)))
            x = draw.normal(len(near), layer.inputs)
            left.append(layer(x, sets.graph))
            right.append(layer.lin_rel(near @ x) + own * layer.lin_root(x))
    model = drawn(draw, network(1, 8, size, width=16))
    graphs = [[graph_of(matrix) for matrix in pair] for pair in [*PAIRS, (ROOK, SHRIKHANDE), (cycle(5), path(5))]]
    outputs = torch.cat([model(torch.ones(g.nodes, 1).double(), g) for pair in graphs for g in pair]).view(-1, 2, 8)
    apart = (outputs[:, 0] - outputs[:, 1]).abs().amax(1) / outputs.abs().amax((1, 2))
    return all_of(
        exactly([same_colours(one, other) for one, other in graphs], [True] * 5 + [False]),
        exactly([same_set_colours(one, other, size, local) for one, other in graphs], [False] * 4 + [alike, False]),
        exactly(same_set_colours(graphs[4][0], graphs[4][1], more), False, detail="rook and Shrikhande by triples"),
        exactly(found, written, detail="colours of sets after two rounds"),
        close(torch.cat(left), torch.cat(right), ulps=512),
        at_most(-apart[:4], -1e-3, detail="networks, relative to their outputs"),
        at_most(apart[4], 1e-9, detail="networks of the rook's graph and Shrikhande's"),
    )
