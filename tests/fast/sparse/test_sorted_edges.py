"""Edges sorted by counting: what sorting each order gives, edges to oneself, and ends that are no node."""

import pytest
import torch

from lemmata.fast.sparse import sorted_edges as module
from lemmata.fast.sparse.rows import rows_of
from lemmata.fast.sparse.sorted_edges import counted_edges, sorted_edges


@pytest.fixture(autouse=True)
def _compiler():
    if module._sorting_library() is None:
        pytest.skip("no C compiler")


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize(("nodes", "number"), [(1, 0), (1, 3), (7, 0), (7, 1), (7, 40), (300, 900)])
def test_both_orders_are_those_of_a_stable_sort(nodes, number, looped):
    edges = torch.randint(nodes, (2, number), generator=torch.Generator().manual_seed(nodes + number))
    wanted = edges
    if looped:
        wanted = torch.cat([edges[:, edges[0] != edges[1]], torch.arange(nodes).expand(2, -1)], 1)
    kept, incoming, outgoing = counted_edges(edges, nodes, looped)
    assert torch.equal(kept, wanted)
    by_sorting = (*rows_of(wanted[1], wanted[0], nodes), *rows_of(wanted[0], wanted[1], nodes))
    assert all(map(torch.equal, (*incoming, *outgoing), by_sorting))


def test_strided_edges_are_read_where_they_are():
    pairs = torch.tensor([[0, 1], [2, 0], [1, 2]])
    assert torch.equal(counted_edges(pairs.mT, 3)[1].columns, torch.tensor([2, 0, 1]))


@pytest.mark.parametrize("ends", [(-1, 0), (0, -1), (3, 0), (0, 3), (2**62, 0)])
def test_ends_that_are_no_node_are_left_to_the_caller(ends):
    assert counted_edges(torch.tensor(ends)[:, None], 3) is None


def test_other_numbers_and_devices_are_left_to_the_caller():
    assert counted_edges(torch.zeros(2, 1, dtype=torch.int32), 3) is None
    assert counted_edges(torch.zeros(2, 1, dtype=torch.int64, device="meta"), 3) is None


def test_graphs_are_the_same_without_it(monkeypatch):
    edges = torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 1]])
    counted = [sorted_edges(edges, 5, looped) for looped in (False, True)]
    monkeypatch.setattr(module, "counted_edges", lambda *arguments: None)
    for found, looped in zip(counted, (False, True), strict=True):
        kept, incoming, outgoing = sorted_edges(edges, 5, looped)
        assert torch.equal(found[0], kept)
        assert all(map(torch.equal, (*found[1], *found[2]), (*incoming, *outgoing)))


@pytest.mark.parametrize("looped", [False, True])
def test_the_operator_gives_the_same_where_values_cannot_be_looked_at(looped):
    edges = torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 3, 1]])  # one of them from a node to itself
    kept, incoming, outgoing = sorted_edges(edges, 5, looped)
    found = torch.ops.lemmata.sort_edges(edges, 5, looped, 1)
    assert all(map(torch.equal, (kept, *incoming, *outgoing), found))
    tested = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lemmata.sort_edges, (edges, 5, looped, 1), test_utils=tested)
    there = sorted_edges(edges.to("meta"), 5, looped, loops=1)
    assert [part.shape for part in there[1]] == [part.shape for part in incoming]


def test_another_number_of_loops_is_refused_by_the_operator():
    with pytest.raises(ValueError, match="loops must be the number of edges from a node to itself, got 2"):
        torch.ops.lemmata.sort_edges(torch.tensor([[0, 1], [1, 1]]), 2, True, 2)


@pytest.mark.parametrize(
    ("shape", "nodes", "said"),
    [
        ((2, 0), -1, "nodes must be >= 0, got -1"),  # compiled code would move memory that is not there
        ((1, 9), 3, "edges must be a dense .2, edges., got shape .1, 9."),
        ((3, 4, 5), 3, "edges must be a dense .2, edges., got shape .3, 4, 5."),
    ],
)
@pytest.mark.parametrize("call", [lambda *given: torch.ops.lemmata.sort_edges(*given, False, 0), sorted_edges])
def test_what_is_no_list_of_edges_is_refused_by_hand_too(call, shape, nodes, said):
    with pytest.raises(ValueError, match=said):
        call(torch.zeros(shape, dtype=torch.int64), nodes)
