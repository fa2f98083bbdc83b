"""Colour refinement: networkx's partition, rounds, graphs that part late, hashes that never change, bad input."""

import pytest
import torch

from lemmata.geometric import Graph, refine_colours, same_colours

STAR = {64646023444320627: 1, 5197578548964807871: 3}


def drawn(nodes, edges, seed):
    generator = torch.Generator().manual_seed(seed)
    return Graph(torch.randint(nodes, (2, edges), generator=generator), nodes).without_self_loops().undirected()


def partition(colours):
    return colours.unique(return_inverse=True)[1]


def refined_by_hand(graph):
    """By dictionaries of sorted tuples, until the number of colours stays."""
    colours, rounds = [0] * graph.nodes, 0
    sources, targets = graph.edges.tolist()
    while True:
        heard = [[] for _ in colours]
        for source, target in zip(sources, targets, strict=True):
            heard[target].append(colours[source])
        kinds = [(own, tuple(sorted(others))) for own, others in zip(colours, heard, strict=True)]
        names = {kind: number for number, kind in enumerate(sorted(set(kinds)))}
        if len(names) == len(set(colours)):
            return torch.tensor(colours), rounds
        colours, rounds = [names[kind] for kind in kinds], rounds + 1


def same_partition(one, other):
    """Two lists of labels divide the nodes alike."""
    pairs = torch.stack([partition(one), partition(other)])
    return pairs.unique(dim=1).shape[1] == len(one.unique()) == len(other.unique())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("nodes", "edges"), [(12, 8), (30, 30), (40, 90)])
def test_colours_divide_the_nodes_as_sorted_tuples_do(nodes, edges, seed):
    graph = drawn(nodes, edges, seed)
    colours, rounds = refined_by_hand(graph)
    found = refine_colours(graph)
    assert same_partition(found.colours, colours)
    assert found.rounds == rounds
    assert sum(found.histogram().values()) == nodes


def test_directed_edges_are_heard_at_their_targets():
    graph = Graph([[0, 1], [1, 2], [3, 2]], nodes=4)
    assert same_partition(refine_colours(graph).colours, refined_by_hand(graph)[0])


def test_rounds_may_be_chosen():
    path = Graph([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]).undirected()
    counts = [len(refine_colours(path, rounds=rounds).histogram()) for rounds in range(5)]
    assert counts == [1, 2, 3, 3, 3]
    assert refine_colours(path).rounds == 2
    assert refine_colours(path, rounds=4).rounds == 4


def test_graphs_that_are_stable_by_themselves_may_part_later():
    """Four nodes of degree 3 and four of degree 2: each graph has these two colours, but their edges run otherwise."""
    matched = [[0, 1], [2, 3]]
    one = Graph(matched + [[a, 4 + (a + step) % 4] for a in range(4) for step in (0, 1)]).undirected()
    other = Graph([[a, (a + 1) % 4] for a in range(4)] + [[a, 4 + a] for a in range(4)] + [[4, 5], [6, 7]]).undirected()
    assert refine_colours(one).rounds == refine_colours(other).rounds == 1
    assert refine_colours(one).histogram() == refine_colours(other).histogram()
    assert not same_colours(one, other)
    assert same_colours(one, one.permuted(torch.tensor([3, 6, 0, 7, 2, 5, 1, 4])))


def test_different_sizes_differ():
    assert not same_colours(Graph([[0, 1]], nodes=2), Graph([[0, 1]], nodes=3))
    assert not same_colours(Graph([[0, 1]]), Graph([[0, 1], [1, 0]]))


def test_features_and_weights_do_not_matter():
    plain = drawn(9, 12, 0)
    dressed = plain.replace(x=torch.rand(9, 2), edge_weights=torch.rand(plain.edges.shape[1]))
    assert same_colours(plain, dressed)


def test_colours_to_begin_with_tell_nodes_apart():
    square = Graph([[0, 1], [1, 2], [2, 3], [3, 0]]).undirected()
    assert len(refine_colours(square).histogram()) == 1
    marked = refine_colours(square, torch.tensor([7, 0, 0, 0]))
    assert partition(marked.colours)[1] == partition(marked.colours)[3]
    assert len(marked.histogram()) == 3


def test_hashes_are_the_same_for_ever():
    """Stored histograms stay comparable: these two numbers are part of what the function promises."""
    star = Graph([[0, 1], [0, 2], [0, 3]]).undirected()
    assert refine_colours(star).histogram() == STAR


def test_hashes_do_not_depend_on_the_order_of_nodes_or_edges():
    graph, order = drawn(20, 30, 3), torch.randperm(20, generator=torch.Generator().manual_seed(0))
    turned = graph.permuted(order)
    assert torch.equal(refine_colours(turned).colours, refine_colours(graph).colours[order])
    shuffled = graph.replace(edges=graph.edges.flip(1))
    assert torch.equal(refine_colours(shuffled).colours, refine_colours(graph).colours)


@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_graphs_without_edges_are_stable_at_once(nodes):
    found = refine_colours(Graph([], nodes=nodes))
    assert found.rounds == 0
    assert list(found.histogram().values()) == ([nodes] if nodes else [])


@pytest.mark.filterwarnings("ignore:The hashes produced")  # networkx tells of its version 3.5
@pytest.mark.parametrize("seed", range(5))
def test_what_networkx_tells_apart_is_told_apart(seed):
    networkx = pytest.importorskip("networkx")
    for first in range(4):
        for second in range(4):
            graphs = [drawn(7, 8, 10 * seed + k) for k in (first, second)]
            theirs = [networkx.Graph(list(zip(*graph.edges.tolist(), strict=True))) for graph in graphs]
            for each in theirs:
                each.add_nodes_from(range(7))
            hashes = [networkx.weisfeiler_lehman_graph_hash(each, iterations=7) for each in theirs]
            assert same_colours(*graphs) == (hashes[0] == hashes[1])


def test_bad_colours_are_answered(unchecked):
    with pytest.raises(ValueError, match=r"colours must be \(2,\) integers, got \(3,\)"):
        refine_colours(Graph([[0, 1]]), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="integers"):
        refine_colours(Graph([[0, 1]]), torch.zeros(2))
    with pytest.raises(ValueError, match="rounds must be >= 0"):
        refine_colours(Graph([[0, 1]]), rounds=-1)
