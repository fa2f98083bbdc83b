"""Graphs and what respects them: the adjacency matrix, equivariance, and message passing."""

import itertools

import torch
from torch import nn

from lemmata.geometric.chebyshev_convolution import ChebyshevConvolution
from lemmata.geometric.claims.drawn_graphs import drawn_matrix, graph_of, joined, star
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gcn import GCN
from lemmata.geometric.gin import GINConvolution
from lemmata.geometric.graph import Graph
from lemmata.geometric.graph_batches import batch_graphs, pool_nodes
from lemmata.geometric.message_passing import REDUCTIONS, MessagePassing
from lemmata.judge import Domain, all_of, claim, close, exactly, lie, same_everywhere
from lemmata.recurrent.claims.recall import with_drawn_weights

PAIRS = list(itertools.combinations(range(4), 2))


@claim("graph.definition")
@lie("an edge counts at one of its ends", ends=1)
@lie("edges have a direction", made=Graph.simple)
@lie("each node is its own neighbour", diagonal=1)
def adjacency_tells_edges(draw, ends=2, made=Graph.undirected, diagonal=0):
    """All 64 graphs of four nodes, entry by entry; then degrees and edges of larger ones, sparse to complete."""

    def graph(chosen):
        return made(Graph([list(PAIRS[k]) for k in chosen], nodes=4, x=torch.zeros(4, 2)))

    def told(chosen):
        """One for each pair that is chosen, whichever of the two comes first."""
        edges = {frozenset(PAIRS[k]) for k in chosen}
        return torch.tensor([[diagonal if n == m else int({n, m} in edges) for m in range(4)] for n in range(4)])

    degrees, found, sums = [], [], []
    for nodes, chance in ((1, 0.0), (6, 0.0), (9, 0.3), (12, 0.7), (8, 1.0)):
        pairs = drawn_matrix(draw, nodes, chance).triu().nonzero()
        large = made(Graph(pairs.mT, nodes))
        degrees.append(large.degrees())
        found.append(large.dense().sum(0))  # d_m, the sum of column m
        sums.append(int(large.degrees().sum()) - ends * len(pairs))
    return all_of(
        same_everywhere(Domain.subsets(6), lambda chosen: graph(chosen).dense().long(), told),
        exactly(torch.cat(degrees), torch.cat(found)),
        exactly(sums, [0] * 5, detail="degrees add up to twice the number of edges"),
    )


def networks(draw):
    """One of each kind, with drawn weights: 3 features in, 2 out."""
    perceptron = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    passing = [MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2), reduce) for reduce in REDUCTIONS]
    attention = GATConvolution(3, 1, heads=2)
    others = [GCN(3, [4], 2), attention, GINConvolution(perceptron, eps=0.3), ChebyshevConvolution(3, 2, degree=3)]
    return [with_drawn_weights(network, draw).requires_grad_(False) for network in (*others, *passing)]


@claim("graph.invariance")
@lie("relabelled outputs are relabelled once more", printed="003/1", undone=torch.clone)
@lie("the permutation is not transposed", printed="001/2", undone=torch.clone)
@lie("features are permuted and edges stay", edges="A")
@lie("what is read from one node is invariant", read="first")
def outputs_travel_with_their_nodes(draw, undone=torch.adjoint, edges="PAP", read="sum"):
    """Nine networks, all 120 orders of the five nodes of a drawn graph, three-cycles among them."""
    matrix, x = draw.until(lambda: drawn_matrix(draw, 5, 0.5), lambda a: 3 <= a.sum() / 2 <= 7), draw.normal(5, 3)
    orders = torch.tensor(list(itertools.permutations(range(5))))
    p = torch.eye(5, dtype=torch.float64)[orders]  # (orders, 5, 5): row i of P X is row order[i] of X
    turned = p @ matrix @ p.mT if edges == "PAP" else matrix.expand_as(p)
    graph = batch_graphs([graph_of(each) for each in turned])
    equivariant, invariant = [], []
    for network in networks(draw):
        before, after = network(x, graph_of(matrix)), network((p @ x).flatten(0, 1), graph)  # (5, 2), (orders * 5, 2)
        equivariant.append(undone(p) @ after.unflatten(0, (-1, 5)) - before)
        pooled = pool_nodes(graph, after) if read == "sum" else after[::5]
        invariant.append(pooled - (before.sum(0) if read == "sum" else before[0]))
    # Sums of at most a few dozen terms of size about ten, in another order.
    return all_of(
        close(torch.stack(equivariant), 0.0, within=1e-11),
        close(torch.stack(invariant), 0.0, within=1e-11),
    )


def all_of_them(messages):
    return messages


def each_once(messages):
    return messages.unique(dim=0)


JOIN = {
    "sum": lambda m: m.sum(0),
    "mean": lambda m: m.mean(0),
    "max": lambda m: m.amax(0),
    "min": lambda m: m.amin(0),
    "softmax": lambda m: (m.softmax(0) * m).sum(0),
}


@claim("graph.message_passing")
@lie("neighbours form a set, equal ones count once", heard=each_once)
@lie("the update does not see the node's own features", own=0.0)
@lie("a node hears itself", itself=True)
def nodes_hear_a_multiset(draw, heard=all_of_them, own=1.0, itself=False, layer=MessagePassing):
    """Five ways to join messages, written out node by node; leaves with equal features; isomorphic graphs."""
    tree = torch.block_diag(star(5), torch.zeros(1, 1).double())  # four leaves, and a node without neighbours
    x = torch.cat([draw.normal(1, 3), draw.normal(2, 3).repeat(2, 1), draw.normal(1, 3)])  # leaves are alike in pairs
    cases = [(tree, x), (drawn_matrix(draw, 9, 0.4), draw.normal(9, 3)), (joined((0, 1)), draw.normal(2, 3))]
    found, written, there, back = [], [], [], []
    for reduce in REDUCTIONS:
        message, update = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(7, 2), nn.Tanh())
        network = with_drawn_weights(layer(message, update, reduce), draw).requires_grad_(False)
        for matrix, features in cases:
            found.append(network(features, graph_of(matrix)))
            near = matrix + itself * torch.eye(len(matrix)).double()
            for m in range(len(matrix)):
                messages = heard(message(features[near[m] > 0]))
                joined_up = JOIN[reduce](messages) if len(messages) else torch.zeros(4).double()
                written.append(update(torch.cat([own * features[m], joined_up])))
            order = draw.permutation(len(matrix))
            there.append(network(features[order], graph_of(matrix[order][:, order])))
            back.append(found[-1][order])
    return all_of(
        close(torch.cat(found), torch.stack(written), ulps=256),
        close(torch.cat(there), torch.cat(back), ulps=256, detail="isomorphic graphs"),
    )
