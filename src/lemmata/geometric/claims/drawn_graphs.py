"""Graphs that the claims of this chapter share, as adjacency matrices or graphs: famous ones, and drawn at random."""

import itertools

import torch
from scipy.sparse.csgraph import connected_components, shortest_path

from lemmata.geometric.graph import Graph


def graph_of(matrix):
    """The graph of an adjacency matrix: an edge for each entry that is not zero."""
    return Graph(matrix.nonzero().mT.contiguous(), len(matrix))


def drawn_matrix(draw, nodes, chance=0.4):
    """A symmetric matrix of zeros and ones with a zero diagonal, each pair joined with this chance."""
    upper = (draw.uniform(nodes, nodes) < chance).triu(1)
    return (upper | upper.mT).double()


def connected_matrix(draw, nodes, chance=0.3):
    """As `drawn_matrix`, and a path through all nodes in a random order: every node can be reached."""
    order, joined = draw.permutation(nodes), drawn_matrix(draw, nodes, chance)
    joined[order[:-1], order[1:]] = joined[order[1:], order[:-1]] = 1.0
    return joined


def joined(*pairs):
    """The adjacency matrix of these edges."""
    return Graph([list(pair) for pair in pairs]).undirected().dense(torch.float64)


# --- Famous ones, each by the number of its nodes ---


def path(nodes):
    return joined(*itertools.pairwise(range(nodes)))


def cycle(nodes):
    return joined(*[(k, (k + 1) % nodes) for k in range(nodes)])


def complete(nodes):
    return torch.ones(nodes, nodes, dtype=torch.float64) - torch.eye(nodes, dtype=torch.float64)


def star(nodes):
    return joined(*[(0, leaf) for leaf in range(1, nodes)])


def side_by_side(*matrices):
    """Several graphs as one, without edges between them."""
    return torch.block_diag(*matrices)


def bipartite(one, other):
    """Every node of one side joined to every node of the other."""
    sides = torch.arange(one + other) < one
    return (sides[:, None] != sides).double()


def components(matrix):
    """How many parts a graph falls into, by SciPy."""
    return int(connected_components(matrix.numpy(), directed=False)[0])


def distances(matrix):
    """How many steps lie between each pair of nodes, by SciPy."""
    return torch.from_numpy(shortest_path(matrix.numpy(), unweighted=True, directed=False))


# --- Many small ones, on which statements are tried ---


def random_graph(draw, n, fraction=0.3, weighted=False):
    """Each pair is joined with the probability `fraction`; weights are integers, with which sums are exact."""
    there = torch.triu(draw.uniform(n, n) < fraction, 1).nonzero().mT.contiguous()
    weights = draw.integers(1, 4, there.shape[1]).double() if weighted else None
    return Graph(there, n, edge_weights=weights).undirected()


def without_isolated(graph):
    """The graph with a path through all its nodes where one of them had no edge."""
    if bool((graph.degrees() > 0).all()):
        return graph
    both = torch.cat([graph.edges, graph_of(path(graph.nodes)).edges], 1)
    weights = (
        None
        if graph.edge_weights is None
        else torch.cat([graph.edge_weights, torch.ones(2 * graph.nodes - 2).double()])
    )
    return Graph(both, graph.nodes, edge_weights=weights).simple("amax")


def small_graphs(draw, weighted=True):
    """Trees, odd and even cycles, complete and random graphs; some in several pieces, some with nodes without edges."""
    apart = Graph([(0, 1), (2, 3), (3, 4), (4, 2)], 6).undirected()
    known = [graph_of(each) for each in (path(2), path(7), cycle(5), cycle(6), star(6), complete(5))]
    known += [apart, graph_of(bipartite(3, 3))]
    return known + [random_graph(draw, 5 + i % 6, 0.15 + 0.1 * (i % 4), weighted and i % 2 == 1) for i in range(12)]
