"""Graphs that the claims of this chapter share: from matrices, drawn at random, and famous ones."""

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


def path(nodes):
    return joined(*itertools.pairwise(range(nodes)))


def cycle(nodes, start=0):
    return joined(*[(start + k, start + (k + 1) % nodes) for k in range(nodes)])


def complete(nodes):
    return torch.ones(nodes, nodes, dtype=torch.float64) - torch.eye(nodes, dtype=torch.float64)


def star(leaves):
    return joined(*[(0, k) for k in range(1, leaves + 1)])


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
