"""Graph attention: shares over the neighbours, written out with matrices."""

import torch
from torch.nn import functional

from lemmata.geometric.claims.drawn_graphs import connected_matrix, graph_of, side_by_side
from lemmata.geometric.gat import GATConvolution
from lemmata.judge import all_of, at_least, claim, close, lie
from lemmata.recurrent.claims.recall import with_drawn_weights


def over_neighbours(scores, allowed):
    """Scores elsewhere are minus infinity."""
    return scores.masked_fill(~allowed, -torch.inf).softmax(-1)


def over_all(scores, allowed):
    """The softmax over all nodes, and the shares of those that are no neighbours left out."""
    return scores.softmax(-1) * allowed


def written_out(layer, x, graph, allowed, softmax, slope, edge_part):
    """Shares (heads, i, j) of node i in node j and outputs, with a matrix of scores for all pairs; who hears whom."""
    heads, width = layer.heads, layer.outputs
    v = layer.lin(x).view(len(x), heads, width)  # V x_j
    to, source = (v * layer.att_dst).sum(-1), (v * layer.att_src).sum(-1)  # u split into the part of i and that of j
    scores = to.mT[:, :, None] + source.mT[:, None]  # (heads, i, j)
    if layer.lin_edge is not None:
        feature = layer.lin_edge(graph.edge_features).view(-1, heads, width)
        part = torch.zeros_like(scores)
        part[:, graph.edges[1], graph.edges[0]] = (feature * layer.att_edge).sum(-1).mT
        scores = scores + edge_part * part
    shares = softmax(functional.leaky_relu(scores, slope), allowed)
    return shares, torch.einsum("hij,jhw->ihw", shares, v).flatten(1) + layer.bias


@claim("graph.gat")
@lie("the softmax runs over all nodes, and the adjacency is multiplied afterwards", softmax=over_all)
@lie("scores are not bent", slope=1.0)
@lie("scores below zero are cut", slope=0.0)
@lie("edge features do not count", edge_part=0.0)
@lie("the shares of a node add up to two", total=2.0)
def neighbours_share_attention(
    draw, softmax=over_neighbours, slope=0.2, edge_part=1.0, total=1.0, layer=GATConvolution
):
    """One head and three, with and without edge features, edges to oneself and a node without neighbours."""
    outputs, formula, shares, matrices, sums = [], [], [], [], []
    for heads, edge_inputs, loops in ((1, 0, True), (3, 0, False), (2, 4, False)):
        matrix = connected_matrix(draw, 8)
        if loops:
            matrix = side_by_side(matrix, torch.zeros(1, 1).double())
        graph, x = graph_of(matrix), draw.normal(len(matrix), 3)
        if edge_inputs:
            graph = graph.replace(edge_features=draw.normal(graph.edges.shape[1], edge_inputs))
        network = with_drawn_weights(layer(3, 2, heads, self_loops=loops, edge_inputs=edge_inputs), draw)
        y, attended, q = network.requires_grad_(False).with_weights(x, graph)
        near = (matrix + loops * torch.eye(len(matrix)).double()) > 0
        matrix_of_shares, expected = written_out(network, x, graph, near, softmax, slope, edge_part)
        outputs += [y.flatten(), network(x, graph).flatten()]
        formula += [expected.flatten()] * 2
        told = torch.zeros_like(matrix_of_shares)
        told[:, attended.edges[1], attended.edges[0]] = q.mT
        shares.append(told.flatten())
        matrices.append(matrix_of_shares.flatten())
        sums.append(torch.zeros(len(x), heads).double().index_add(0, attended.edges[1], q).flatten())
    return all_of(
        close(torch.cat(outputs), torch.cat(formula), ulps=1024),
        close(torch.cat(shares), torch.cat(matrices), ulps=1024),
        at_least(torch.cat(shares), 0.0),
        close(torch.cat(sums), total),
    )
