"""Small undirected graphs on which statements are tried: the classic ones and random ones."""

import torch

from lemmata.geometric.graph import Graph


def path(n):
    return Graph([(i, i + 1) for i in range(n - 1)], n).undirected()


def cycle(n):
    return Graph([(i, (i + 1) % n) for i in range(n)], n).undirected()


def star(n):
    return Graph([(0, i) for i in range(1, n)], n).undirected()


def complete(n):
    return Graph([(i, j) for i in range(n) for j in range(i)], n).undirected()


def random_graph(draw, n, share=0.3, weighted=False):
    """Each pair is joined with the probability `share`; weights are whole numbers, with which sums are exact."""
    there = torch.triu(draw.uniform(n, n) < share, 1).nonzero().mT.contiguous()
    weights = draw.integers(1, 4, there.shape[1]).double() if weighted else None
    return Graph(there, n, edge_weights=weights).undirected()


def without_isolated(graph):
    """The graph with a path through all its nodes where one of them had no edge."""
    if bool((graph.degrees() > 0).all()):
        return graph
    both = torch.cat([graph.edges, path(graph.nodes).edges], 1)
    weights = (
        None
        if graph.edge_weights is None
        else torch.cat([graph.edge_weights, torch.ones(2 * graph.nodes - 2).double()])
    )
    return Graph(both, graph.nodes, edge_weights=weights).simple("amax")


def small_graphs(draw, weighted=True):
    """Trees, odd and even cycles, complete and random graphs; some in several pieces, some with nodes without edges."""
    apart = Graph([(0, 1), (2, 3), (3, 4), (4, 2)], 6).undirected()
    bipartite = Graph([(i, j) for i in range(3) for j in range(3, 6)]).undirected()
    known = [path(2), path(7), cycle(5), cycle(6), star(6), complete(5), apart, bipartite]
    return known + [random_graph(draw, 5 + i % 6, 0.15 + 0.1 * (i % 4), weighted and i % 2 == 1) for i in range(12)]
