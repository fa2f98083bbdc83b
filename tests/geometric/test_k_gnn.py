"""Graph networks of higher order: PyTorch Geometric's layer, sets of labelled nodes, batches, training, bad input."""

import itertools
import math

import pytest
import torch
from torch import nn

from lemmata.geometric import (
    KGNN,
    GINConvolution,
    Graph,
    GraphClassifier,
    GraphConvolution,
    batch_graphs,
    node_sets,
    same_colours,
    same_set_colours,
)
from lemmata.testing import check_equivariance

RING = Graph([[k, (k + 1) % 5] for k in range(5)]).undirected()
PATH, STAR = Graph([[0, 1], [1, 2], [2, 3]]).undirected(), Graph([[0, 1], [0, 2], [0, 3]]).undirected()
SIZES = [1, 2, 3]


def drawn(nodes, edges, seed):
    generator = torch.Generator().manual_seed(seed)
    return Graph(torch.randint(nodes, (2, edges), generator=generator), nodes).undirected()  # loops among them


def test_numbers_are_those_of_pytorch_geometric_and_weights_go_both_ways():
    geometric = pytest.importorskip("torch_geometric.nn")
    theirs, ours = geometric.GraphConv(5, 3).double(), GraphConvolution(5, 3, dtype=torch.float64)
    graph, x = drawn(10, 24, 0), torch.randn(10, 5, dtype=torch.float64)
    for source, target in ((theirs, ours), (ours, theirs)):
        nn.init.normal_(source.lin_rel.weight)
        target.load_state_dict(source.state_dict())
        torch.testing.assert_close(ours(x, graph), theirs(x, graph.edges), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_neighbours_exchange_a_node_for_an_adjacent_one(size):
    graph = drawn(7, 9, 1)
    sets, near = node_sets(graph, size), graph.dense()
    members = [set(each) for each in sets.members.tolist()]
    assert sorted(map(sorted, members)) == [list(each) for each in itertools.combinations(range(7), size)]
    found = {(source, target) for source, target in sets.graph.edges.T.tolist()}
    assert len(found) == sets.graph.edges.shape[1]
    for (one, s), (other, t) in itertools.permutations(enumerate(members), 2):
        exchanged = len(s & t) == size - 1 and bool(near[*(s - t), *(t - s)])
        assert ((one, other) in found) == exchanged


@pytest.mark.parametrize("size", SIZES)
def test_any_exchange_makes_a_neighbour_where_it_may(size):
    sets = node_sets(PATH, size, local=False)
    assert sets.graph.degrees().tolist() == [size * (4 - size)] * math.comb(4, size)


@pytest.mark.parametrize("size", SIZES)
def test_graphs_side_by_side_are_answered_as_each_alone(size):
    network = KGNN(inputs=3, outputs=2, size=size, width=8).double()
    graphs = [PATH, RING, Graph([], nodes=1), STAR, Graph([], nodes=0)]
    x = torch.randn(14, 3, dtype=torch.float64)
    found = network(x, batch_graphs(graphs))
    alone = [network(part, graph) for part, graph in zip(x.split([4, 5, 1, 4, 0]), graphs, strict=True)]
    torch.testing.assert_close(found, torch.cat(alone), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_order_of_nodes_does_not_matter(size):
    # Smaller graphs than the sets are answered too, by a constant: then nothing is left that depends on the inputs.
    network = KGNN(inputs=3, outputs=2, size=size, width=8)
    check_equivariance(network, "permutation", graph=RING, inputs=3, output="invariant", skip=["sizes"])


def labelled_sets(size):
    """All graphs on so many nodes with one of two labels each: the canonical form of each, and its features."""
    pairs = list(itertools.combinations(range(size), 2))
    for edges in itertools.product([0, 1], repeat=len(pairs)):
        for labels in itertools.product([0, 1], repeat=size):
            there = [pair for pair, joined in zip(pairs, edges, strict=True) if joined]
            forms = []
            for order in itertools.permutations(range(size)):
                moved = sorted(tuple(sorted((order[a], order[b]))) for a, b in there)
                forms.append((tuple(labels[order.index(k)] for k in range(size)), tuple(moved)))
            graph = Graph(there, size).undirected()
            x = nn.functional.one_hot(torch.tensor(labels), 2).float()
            network = KGNN(inputs=2, outputs=1, size=size, width=1)
            yield min(forms), tuple(network.set_features(x, node_sets(graph, size))[0].tolist())


@pytest.mark.parametrize("size", [2, 3])
def test_sets_start_with_what_they_are_up_to_isomorphism(size):
    found = set(labelled_sets(size))
    assert len({form for form, _ in found}) == len({features for _, features in found}) == len(found)


def test_pairs_tell_apart_what_colours_of_nodes_do():
    graphs = [drawn(6, 7, seed).without_self_loops() for seed in range(12)]
    for one, other in itertools.combinations(graphs, 2):
        assert same_colours(one, other) or not same_set_colours(one, other)
    order = torch.tensor([3, 5, 0, 2, 1, 4])
    assert all(same_set_colours(graph, graph.permuted(order), size) for graph in graphs for size in SIZES)


def test_one_ring_is_learnt_to_be_told_from_two():
    """Six to twelve nodes in one ring or in two of the half: a network of nodes answers with a coin."""
    rings = []
    for half in range(3, 7):
        rings.append(Graph([[k, (k + 1) % (2 * half)] for k in range(2 * half)]).undirected())
        two = [[k + s, (k + 1) % half + s] for k in range(half) for s in (0, half)]
        rings.append(Graph(two).undirected())
    graph, y = batch_graphs(rings), torch.tensor([0, 1] * 4)
    x = torch.ones(graph.nodes, 1)
    torch.manual_seed(0)
    sizes = [KGNN(1, 2, size=2, width=16, depth=6), GraphClassifier("gin", 1, 2, width=16, depth=6)]
    right = []
    for network in sizes:
        optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
        for _ in range(200):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x, graph), y).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        right.append(int((network(x, graph).argmax(1) == y).sum()))
    assert right == [8, 4]


def test_sets_are_found_once_for_a_graph():
    graph = drawn(6, 8, 2)
    assert node_sets(graph, 2) is node_sets(graph.replace(x=torch.ones(6, 2)), 2)
    assert GINConvolution(nn.Identity())(torch.ones(15, 1), node_sets(graph, 2).graph).shape == (15, 1)


@pytest.mark.parametrize("size", SIZES)
def test_every_weight_is_learnt(size):
    network = KGNN(inputs=3, outputs=2, size=size, width=8, depth=2)
    network(torch.randn(8, 3), batch_graphs([PATH, STAR])).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_different_sizes_differ():
    assert not same_set_colours(PATH, RING)


def test_bad_input_is_answered(unchecked):
    with pytest.raises(ValueError, match=r"graph must have each edge in both directions.*use graph\.undirected\(\)"):
        node_sets(Graph([[0, 1]]))
    with pytest.raises(ValueError, match="size must be"):
        node_sets(PATH, 4)
    with pytest.raises(ValueError, match="size must be"):
        KGNN(3, 2, size=0)
    with pytest.raises(ValueError, match=r"x must be \(4, 3\), got shape"):
        KGNN(3, 2)(torch.zeros(4, 2), PATH)
    with pytest.raises(ValueError, match=r"x must be \(4, 3\), got shape"):
        GraphConvolution(3, 2)(torch.zeros(4, 2), PATH)
