"""What depth does to networks on graphs: how far they see, what fades, and what is squashed on the way."""

import math

import torch
from torch.nn import functional

from lemmata.geometric.claims.drawn_graphs import (
    complete,
    connected_matrix,
    cycle,
    distances,
    graph_of,
    joined,
    path,
    star,
)
from lemmata.geometric.gcn import GCN, GCNConvolution, normalized_adjacency
from lemmata.geometric.graph import Graph
from lemmata.geometric.message_passing import aggregate_neighbours
from lemmata.judge import all_of, at_most, claim, close, exactly, lie


def sensitivities(network, x):
    """The derivative of each node's outputs by each node's inputs: (to, outputs, from, inputs)."""
    return torch.autograd.functional.jacobian(network, x)


def diameter(steps):
    return int(steps.max())


def radius(steps):
    return int(steps.amax(1).min())


def positive_network(depth, layer=GCN):
    """One feature, and weights of one: no rectifier is ever at rest, and nothing cancels."""
    network = layer(1, [2] * (depth - 1), 1).double().requires_grad_(False)
    for parameter in network.parameters():
        parameter.fill_(1.0)
    return network


@claim("graph.limit.depth")
@lie("each layer reaches two steps", hops=2)
@lie("a depth of the radius is enough", needed=radius)
@lie("one layer less is enough", more=-1)
def nodes_depend_on_their_ball(draw, hops=1, needed=diameter, more=0, network=positive_network):
    """Which derivatives are not zero, against distances: a path, a star, a cycle, all joined, two drawn graphs."""
    found, balls, least, enough = [], [], [], []
    for matrix in (path(6), star(6), cycle(7), complete(4), connected_matrix(draw, 8, 0.1), connected_matrix(draw, 9)):
        graph, steps, x = graph_of(matrix), distances(matrix), draw.uniform(len(matrix), 1, low=0.5)
        far, depths = int(steps.max()), []
        for depth in range(1, far + 2):
            model = network(depth)
            support = sensitivities(lambda x, m=model, g=graph: m(x, g), x)[:, 0, :, 0] != 0  # (to, from)
            found.append(support.flatten())
            balls.append((steps <= hops * depth).flatten())
            depths.append(bool(support.all()))
        least.append(1 + depths.index(True))
        enough.append(needed(steps) + more)
    return all_of(
        exactly(torch.cat(found), torch.cat(balls), detail="who depends on whom"),
        exactly(least, enough, detail="the least depth at which all depend on all"),
    )


def with_loops(graph):
    return normalized_adjacency(graph, torch.float64)


def without_loops(graph):
    """Normalised by the degrees, and no edge from a node to itself."""
    scale = graph.degrees(dtype=torch.float64).rsqrt()
    return graph.replace(edge_weights=scale[graph.edges[0]] * scale[graph.edges[1]])


def smoothed(x, adjacency, times):
    """So many layers whose weights are the unit matrix, with nothing between them."""
    layer = GCNConvolution(x.shape[1], x.shape[1], bias=False).double().requires_grad_(False)
    torch.nn.init.eye_(layer.lin.weight)
    for _ in range(times):
        x = layer(x, adjacency, normalized=True)
    return x


@claim("graph.limit.oversmoothing")
@lie("all rows become the same", power=0.0)
@lie("rows become multiples of the degree", power=1.0)
@lie("what is left fades with the square of the eigenvalue", rate=2.0)
@lie("the same without edges to oneself", made=without_loops)
def features_fade_to_one_direction(draw, power=0.5, rate=1.0, made=with_loops):
    """150 layers on paths, a star and a drawn graph; what is left after 1 to 12 layers; and averages instead."""
    limits, left, faded, spread = [], [], [], []
    for matrix in (path(2), path(4), star(7), connected_matrix(draw, 8)):
        graph, degrees, one = graph_of(matrix), 1 + matrix.sum(0), torch.eye(len(matrix)).double()
        adjacency, u = made(graph), functional.normalize(degrees**power, dim=0)
        limits.append((smoothed(one, adjacency, 150) - torch.outer(u, u)).abs().max())
        root = functional.normalize(degrees.sqrt(), dim=0)
        second = torch.linalg.eigvalsh(adjacency.dense(torch.float64)).abs().sort().values[-2]
        for k in range(1, 13):
            gap = smoothed(one, adjacency, k) - torch.outer(root, root)
            left.append(torch.linalg.matrix_norm(gap, 2))
            faded.append(second ** (rate * k))
        x, looped = draw.normal(len(matrix), 2), graph.with_self_loops()
        for _ in range(150):
            x = aggregate_neighbours(x, looped, "mean")
        spread.append((x - x[0]).abs().max())
    # Second eigenvalues are at most about 0.9, whose 150th power is 1.4e-7: a path of eight, were it drawn, has 0.93.
    return all_of(
        close(limits, 0.0, within=1e-4),
        close(left, faded, within=1e-12),
        close(spread, 0.0, within=1e-4, detail="averages: all rows the same"),
    )


SLOPES = {
    "relu": (torch.relu, 1.0),
    "tanh": (torch.tanh, 1.0),
    "sigmoid": (torch.sigmoid, 0.25),
    "none": (torch.clone, 1.0),
}


def stacked(draw, depth, width, scale, activation):
    """Layers with drawn orthogonal weights times a scale, an activation after each."""
    layers = [GCNConvolution(width, width, bias=False).double().requires_grad_(False) for _ in range(depth)]
    for layer in layers:
        layer.lin.weight.copy_(scale * draw.orthogonal(width))

    def network(x, graph):
        for layer in layers:
            x = activation(layer(x, graph))
        return x

    return network


def all_hops(adjacency, depth):
    return torch.linalg.matrix_power(adjacency, depth)


def one_hop(adjacency, depth):
    return adjacency


def binary_tree(depth):
    return joined(*[((child - 1) // 2, child) for child in range(1, 2 ** (depth + 1) - 1)])


@claim("graph.limit.oversquashing")
@lie("the normalised adjacency itself bounds what many layers let through", through=one_hop)
@lie("weights and slopes do not count", layers=0.0)
@lie("a leaf's part halves with each level", base=2.0)
def little_comes_through_bottlenecks(draw, through=all_hops, layers=1.0, base=4.0):
    """Norms of derivatives in networks of 1 to 6 layers, four activations, weights 0.5 to 2; and binary trees."""
    norms, bounds, reached = [], [], []
    for depth in range(1, 7):
        for activation, slope in SLOPES.values():
            matrix, scale = connected_matrix(draw, 8, 0.1), (0.5, 1.0, 2.0)[depth % 3]
            graph, network = graph_of(matrix), stacked(draw, depth, 3, scale, activation)
            found = sensitivities(lambda x, f=network, g=graph: f(x, g), draw.normal(8, 3))  # (to, 3, from, 3)
            norms.append(torch.linalg.matrix_norm(found.permute(0, 2, 1, 3), 2).flatten())
            adjacency = normalized_adjacency(graph, torch.float64).dense(torch.float64)
            bounds.append(((slope * scale) ** (layers * depth) * through(adjacency, depth)).flatten())
            if activation is torch.clone:
                reached.append((norms[-1] - bounds[-1]).abs().max() / bounds[-1].max())
    parts = []
    for depth in range(2, 8):
        graph = Graph(binary_tree(depth).nonzero().mT, 2 ** (depth + 1) - 1)
        leaf = torch.zeros(graph.nodes, 1).double()
        leaf[-1] = 1.0
        parts.append(smoothed(leaf, normalized_adjacency(graph, torch.float64), depth)[0, 0])
    return all_of(
        at_most(torch.cat(norms), torch.cat(bounds), ulps=4096),
        at_most(reached, 1e-12, detail="reached without an activation"),
        close(parts, [4 / math.sqrt(6) * base**-depth for depth in range(2, 8)], detail="leaf to root of a tree"),
    )
