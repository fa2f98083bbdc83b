"""Neighbour sampling: all neighbours give the whole graph's answer, some are drawn fairly, and memory is bounded."""

import itertools

import pytest
import torch

from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.geometric import GATConvolution, GCNConvolution, Graph, normalized_adjacency
from lemmata.geometric.neighbour_sampling import neighbour_batches, sample_neighbours


def random_graph(nodes=30, edges=120, **parts):
    generator = torch.Generator().manual_seed(nodes)
    ends = torch.randint(nodes - 2, (2, edges), generator=generator)  # two nodes are alone
    return Graph(ends, nodes, torch.randn(nodes, 3, generator=generator, dtype=torch.float64), **parts)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("asked", [[4], [7, 0, 29], []])
def test_all_neighbours_give_what_the_whole_graph_gives(asked):
    graph, nodes = random_graph(), torch.tensor(asked, dtype=torch.int64)
    sample = sample_neighbours(graph, nodes, [None, None])
    assert torch.equal(sample.nodes[: sample.asked], nodes)
    first, second = GATConvolution(3, 4, heads=2, dtype=torch.float64), GATConvolution(8, 2, dtype=torch.float64)
    small = sample.graph
    found = second(first(small.x, small).relu(), small)[: sample.asked]
    expected = second(first(graph.x, graph).relu(), graph)[nodes]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)  # sums in the same order, in other blocks


def test_a_coupled_graph_takes_its_weights_along():
    graph, nodes = normalized_adjacency(random_graph()), torch.tensor([3, 12])
    layer = GCNConvolution(3, 2, dtype=torch.float64)
    sample = sample_neighbours(graph, nodes, [None])
    found = layer(sample.graph.x, sample.graph, normalized=True)[:2]
    torch.testing.assert_close(found, layer(graph.x, graph, normalized=True)[nodes], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fanouts", [[2], [3, 2], [1, 1, 1, 1]])
def test_edges_are_those_of_the_graph_and_few(fanouts):
    graph = random_graph(edge_weights=torch.arange(120.0), edge_features=torch.arange(240.0).reshape(120, 2))
    nodes = torch.tensor([5, 29, 1])
    sample = sample_neighbours(graph, nodes, fanouts, seeded(1))
    small = sample.graph
    assert torch.equal(sample.nodes[small.edges], graph.edges[:, sample.edges])
    assert torch.equal(small.edge_weights, sample.edges.float())
    assert torch.equal(small.edge_features, graph.edge_features[sample.edges])
    assert torch.equal(small.x, graph.x[sample.nodes])
    assert len(sample.edges.unique()) == len(sample.edges)  # without replacement
    assert len(sample.nodes.unique()) == len(sample.nodes)
    degrees = graph.degrees(weighted=False)[nodes].clamp(max=fanouts[0])
    assert torch.equal(small.degrees(weighted=False)[:3], degrees)
    assert small.degrees(weighted=False).max() <= max(fanouts)


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    graph, nodes = random_graph(), torch.arange(10)
    one, same, other = (sample_neighbours(graph, nodes, [2, 2], seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.edges, same.edges)
    assert torch.equal(one.nodes, same.nodes)
    assert not torch.equal(one.edges, other.edges)


def stars(number, leaves):
    """Nodes 0, 1, ..., each with an edge from every leaf; the edges of node i begin at `i * leaves`."""
    centres = torch.arange(number).repeat_interleave(leaves)
    return torch.stack([number + torch.arange(leaves).repeat(number), centres])


def test_every_subset_is_as_likely():
    draws = 20_000
    edges = sample_neighbours(Graph(stars(draws, 5)), torch.arange(draws), [3], seeded(3)).edges
    subsets = (edges.reshape(draws, 3) % 5).sort(1).values.tolist()  # three of five, for each node
    counts = dict.fromkeys(itertools.combinations(range(5), 3), 0)
    for subset in subsets:
        counts[tuple(subset)] += 1
    # Each of ten subsets has mean n/10 and variance 9n/100; the draws follow from the seed, six deviations are room.
    assert all(abs(count - draws / 10) <= 6 * (0.09 * draws) ** 0.5 for count in counts.values())


def test_unbiased_sums_have_the_mean_of_the_whole():
    draws, weights = 20_000, torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    x = torch.cat([torch.zeros(draws, 4), torch.eye(4)]).double()  # each leaf has a feature of its own
    graph = Graph(stars(draws, 4), x=x, edge_weights=weights.repeat(draws))
    nodes = torch.arange(draws)
    for fanout, deviation in ((2, weights), (4, 0 * weights)):
        small = sample_neighbours(graph, nodes, [fanout], seeded(5), unbiased=True).graph
        found = row_sums(small.x, small.incoming, small.outgoing, small.edge_weights)[:draws].mean(0)
        # Of two edges of four each is drawn with probability 1/2 and then counts twice: its deviation is its weight.
        assert ((found - weights).abs() <= 6 * deviation / draws**0.5 + 1e-9).all()
    plain = sample_neighbours(graph.replace(edge_weights=None), nodes[:1], [2], seeded(5), unbiased=True)
    assert plain.graph.edge_weights.tolist() == [2.0, 2.0]


def test_batches_hold_every_node_once_and_follow_from_seed_epoch_and_number():
    graph, nodes = random_graph(), torch.arange(3, 28)
    batches = list(neighbour_batches(graph, nodes, [3, 2], 10, seed=1, epoch=2))
    assert [batch.asked for batch in batches] == [10, 10, 5]
    seen = torch.cat([batch.nodes[: batch.asked] for batch in batches])
    assert torch.equal(seen.sort().values, nodes)
    torch.rand(7)  # what others draw does not matter
    again = list(neighbour_batches(graph, nodes, [3, 2], 10, seed=1, epoch=2))
    assert all(torch.equal(one.edges, other.edges) for one, other in zip(batches, again, strict=True))
    later = next(neighbour_batches(graph, nodes, [3, 2], 10, seed=1, epoch=3))
    assert not torch.equal(later.nodes[:10], batches[0].nodes[:10])


def test_a_hub_costs_no_more_than_its_fanout():
    hub = torch.stack([torch.arange(1, 200_001), torch.zeros(200_000, dtype=torch.int64)])
    sample = sample_neighbours(Graph(hub), torch.tensor([0]), [10, 10], seeded(0))
    assert (sample.graph.nodes, len(sample.edges)) == (11, 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": torch.tensor([0, 0])}, r"nodes must be a row of integers, each once, got \[0, 0\]"),
        ({"nodes": torch.tensor([0.5])}, "nodes must be a row of integers"),
        ({"nodes": torch.tensor([30])}, "nodes must be from 0 to 29, got 30 to 30"),
        ({"nodes": torch.tensor([-1, 2])}, "nodes must be from 0 to 29, got -1 to 2"),
        ({"fanouts": []}, "fanouts must be at least one, got none"),
        ({"fanouts": [0]}, "fanouts must be"),
    ],
)
def test_what_cannot_be_sampled_is_refused(unchecked, change, message):
    with pytest.raises(ValueError, match=message):
        sample_neighbours(**{"graph": random_graph(), "nodes": torch.tensor([0]), "fanouts": [2]} | change)


def test_several_graphs_side_by_side_are_refused():
    several = random_graph().replace(graph_of=torch.zeros(30, dtype=torch.int64))
    with pytest.raises(ValueError, match="use unbatch_graphs"):
        sample_neighbours(several, torch.tensor([0]), [2])
