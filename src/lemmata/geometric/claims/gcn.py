"""Graph convolutional networks: their normalised adjacency, its norm, and what two layers compute and learn."""

import torch
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.geometric.claims.drawn_graphs import (
    bipartite,
    complete,
    components,
    connected_matrix,
    cycle,
    drawn_matrix,
    graph_of,
    path,
    side_by_side,
    star,
)
from lemmata.geometric.gcn import GCN, GCNConvolution, normalized_adjacency
from lemmata.geometric.graph import Graph
from lemmata.geometric.message_passing import aggregate_neighbours
from lemmata.judge import all_of, at_least, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.recall import with_drawn_weights

ALONE = torch.zeros(1, 1, dtype=torch.float64)


def adjacency(graph):
    return normalized_adjacency(graph, torch.float64).dense(torch.float64)


def mean_of_neighbourhood(graph, x):
    return aggregate_neighbours(x, graph.with_self_loops(), "mean")


def normalised_sum(graph, x):
    return adjacency(graph) @ x


@claim("graph.gcn.coupling")
@lie("the normalised adjacency averages over a node and its neighbours", printed="000/1", average=normalised_sum)
@lie("degrees do not count the node itself", own=0.0)
@lie("divided by both degrees, without a root", power=1.0)
def adjacency_is_normalised_on_both_sides(draw, own=1.0, power=0.5, average=mean_of_neighbourhood):
    """Entries of drawn graphs, a single node and stars; rows of regular and other graphs; means written out."""
    matrices = [connected_matrix(draw, 7), connected_matrix(draw, 12), star(101), path(2), ALONE]
    found, entries, means, written = [], [], [], []
    for matrix in matrices:
        graph, degrees, x = graph_of(matrix), own + matrix.sum(0), draw.normal(len(matrix), 2)
        found.append(adjacency(graph).flatten())
        looped = matrix + torch.eye(len(matrix)).double()
        entries.append((looped / (degrees[:, None] * degrees) ** power).flatten())
        means.append(average(graph, x))
        written.append(torch.stack([x[row > 0].mean(0) for row in looped]))
    regular = side_by_side(cycle(5), complete(4), bipartite(3, 3), ALONE)
    others = [adjacency(graph_of(matrix)).sum(1) for matrix in (path(3), star(6), connected_matrix(draw, 8, 0.2))]
    return all_of(
        close(torch.cat(found), torch.cat(entries)),
        close(adjacency(graph_of(regular)).sum(1), 1.0, detail="rows, each component regular"),
        at_least([(rows - 1).abs().max() for rows in others], 0.05, detail="rows, degrees differ"),
        close(torch.cat(means), torch.cat(written)),
    )


def not_normalised(graph):
    return graph.with_self_loops().dense(torch.float64)


def without_loops(graph):
    """Normalised by the degrees, and no edge from a node to itself; nodes without neighbours get a one."""
    matrix = graph.dense(torch.float64)
    scale = matrix.sum(0).clamp(min=1).rsqrt()
    return scale[:, None] * matrix * scale + torch.diag((matrix.sum(0) == 0).double())


@claim("graph.gcn.spectral_norm")
@lie("the norm is below one", norm=0.95)
@lie("the adjacency itself has norm one", made=not_normalised)
@lie("without edges to oneself no eigenvalue is near -1", made=without_loops)
@lie("eigenvalues keep further away from -1", gap=2.5)
@lie("one is an eigenvalue once, however many components there are", once=True)
def normalised_adjacency_has_norm_one(draw, norm=1.0, made=adjacency, gap=2.0, once=False):
    """Eigenvalues of 60 drawn graphs of 1 to 12 nodes, sparse to dense, of bipartite ones, cycles, and a large star."""
    matrices = [drawn_matrix(draw, 1 + k % 12, float(draw.uniform(1))) for k in range(60)]
    matrices += [bipartite(1, 1), bipartite(3, 3), cycle(6), cycle(7), star(201), side_by_side(path(3), cycle(4))]
    norms, left, lowest, least, ones, parts = [], [], [], [], [], []
    for matrix in matrices:
        found, degrees = made(graph_of(matrix)), 1 + matrix.sum(0)
        eigenvalues = torch.linalg.eigvalsh(found)
        norms.append(eigenvalues.abs().max())
        top = functional.normalize(degrees.sqrt(), dim=0)
        left.append((found @ top - top).abs().max())
        lowest.append(eigenvalues[0])
        least.append(gap / degrees.max())
        ones.append(int((eigenvalues > 1 - 1e-9).sum()))  # the next one is at least 1/M^2 below for at most M = 12
        parts.append(1 if once else components(matrix))
    # Eigenvalues of a symmetric matrix of norm one and at most 201 rows are off by a few hundred rounding units.
    return all_of(
        close(norms, norm, ulps=1000),
        close(left, 0.0, within=1e-13),
        at_least(1 + torch.stack(lowest), torch.stack(least), attained=True, ulps=1000, detail="away from -1"),
        exactly(ones, parts),
    )


def features_of(x):
    return x.shape[1]


def nodes_of(x):
    return x.shape[0]


def learned_club(hidden):
    return GCN(34, [hidden], 2)


def learn_club(model, generator, edges):
    """Two labels, the leaders', and fifty steps of Adam on the whole graph."""
    club = load("karate")
    graph = Graph(club.edges if edges else club.edges[:, :0], 34)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-3)
    for _ in range(50):
        optimizer.zero_grad()
        chosen = club.train.node
        functional.cross_entropy(model(club.x, graph)[chosen], club.y[chosen]).backward()
        optimizer.step()


def club_accuracy(draw, edges):
    """Of the 32 members who do not lead."""
    club, model = load("karate"), draw.trained(learned_club, learn_club, hidden=16, edges=edges)
    graph = Graph(club.edges if edges else club.edges[:, :0], 34)
    found = model(club.x, graph).argmax(1)[club.test.node]
    return float((found == club.test.y).double().mean())


@claim("graph.gcn")
@lie("W has a row for each node", raises=ValueError, rows=nodes_of)
@lie("no rectifier stands between the layers", between=torch.clone)
@lie("the nodes are mixed once", layers=1)
@lie("the nodes learn without their edges", edges=False)
def two_layers_mix_nodes_and_features(
    draw, rows=features_of, between=torch.relu, layers=2, edges=True, layer=GCNConvolution
):
    """One layer and two against the formula with matrices; the karate club from the labels of its two leaders."""
    matrix, x = side_by_side(connected_matrix(draw, 9), ALONE), draw.normal(10, 3)
    graph, mix = graph_of(matrix), adjacency(graph_of(matrix))
    narrow, wide = (with_drawn_weights(layer(rows(x), width), draw).requires_grad_(False) for width in (2, 5))
    network = with_drawn_weights(GCN(rows(x), [6], 4), draw).requires_grad_(False)
    found = network(x, graph).softmax(1)  # (nodes, classes)
    first, second = (layer for layer in network.layers if isinstance(layer, GCNConvolution))
    inner = between(mix @ x @ first.lin.weight.mT + first.bias)
    outer = inner @ second.lin.weight.mT
    logits = (mix @ outer if layers == 2 else outer) + second.bias
    return all_of(
        *[close(one(x, graph), mix @ x @ one.lin.weight.mT + one.bias, ulps=256) for one in (narrow, wide)],
        close(found, logits.softmax(1), ulps=1024),
        reaches(club_accuracy(draw, edges), 0.9),
    )
