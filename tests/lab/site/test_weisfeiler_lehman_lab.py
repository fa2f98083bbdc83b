"""The Weisfeiler-Lehman lab: its colours are the library's, its pairs are what it says, networks tell no more."""

import io
import itertools
import json
import runpy
from contextlib import redirect_stdout

import networkx as nx
import pytest
import torch

from cases import for_each
from lemmata.geometric.weisfeiler_lehman import refine_colours, same_colours
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import weisfeiler_lehman_lab as lab
from lemmata.lab.site.work.drawn_graphs import edges_once
from lemmata.lab.site.work.lab import perform

PAIRS = list(lab.PAIRS)
PARTED = {"hexanes": 2, "nonanes": 3, "star": 1}  # rounds; the others never part


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def networkx_graph(graph):
    made = nx.Graph()
    made.add_nodes_from(range(graph.nodes))
    made.add_edges_from(edges_once(graph).tolist())
    return made


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_said_of_a_pair_is_true(pair):
    one, other, _ = lab.pair(pair)
    assert one.graph.nodes == other.graph.nodes
    assert one.graph.edges.shape == other.graph.edges.shape
    same = nx.is_isomorphic(networkx_graph(one.graph), networkx_graph(other.graph))
    assert lab.PAIRS[pair][1].startswith("they are the same" if same else "they differ")
    assert same_colours(one.graph, other.graph) == (pair not in PARTED)
    told = lab.show(state(pair=pair))
    assert told["parted"] == PARTED.get(pair)
    for side in told["sides"]:
        places = torch.tensor(side["places"])
        assert float(places.abs().max()) <= 1
        assert (
            float((torch.cdist(places, places) + torch.eye(len(places))).min()) > 0.28
        )  # nodes do not hide each other


def test_the_words_about_pairs_are_true():
    graphs = {pair: [networkx_graph(each.graph) for each in lab.pair(pair)[:2]] for pair in PAIRS}
    assert [nx.number_connected_components(graph) for graph in graphs["hexagon"]] == [1, 2]
    assert [sorted(map(len, nx.minimum_cycle_basis(graph))) for graph in graphs["decalin"]] == [[6, 6], [5, 5]]
    assert [max(dict(graph.degree).values()) for graph in graphs["star"]] == [2, 3]
    assert [max(map(len, nx.find_cliques(graph))) for graph in graphs["rook"]] == [4, 3]
    assert all(degree == 6 for graph in graphs["rook"] for _, degree in graph.degree)


@for_each(("pair", "start", "rounds"), itertools.product(PAIRS, ["alike", "marked"], range(7)))
def test_colours_are_those_of_the_library(pair, start, rounds):
    here = state(pair=pair, start=start, rounds=rounds)
    told = lab.show(here)
    hashes = refine_colours(lab.pair(pair)[2], lab.start(here), rounds).colours.tolist()
    assert len(set(zip(hashes, told["colours"], strict=True))) == len(set(hashes)) == len(set(told["colours"]))
    assert set(told["colours"]) == set(range(len(told["counts"])))
    parts = any(left != right for left, right in told["counts"])
    assert parts == (told["parted"] is not None and told["parted"] <= rounds)
    # A network with sums tells what colours tell after as many rounds; the others never more.
    sums, *others = [row[3] for row in told["networks"]]
    assert sums == parts
    assert all(parts or not other for other in others)
    if start == "alike":
        assert not any(others)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_colour_says_where_it_comes_from(pair):
    for rounds in range(1, 7):
        here = state(pair=pair, start="marked", rounds=rounds)
        told, both = lab.show(here), lab.pair(pair)[2]
        seen = []
        for node, now in enumerate(told["colours"]):
            heard = sorted(told["before"][source] for source, target in both.edges.mT.tolist() if target == node)
            assert told["kinds"][now] == [told["before"][node], heard]
            seen.append((told["before"][node], tuple(heard)))
        assert len(set(seen)) == len(told["kinds"])  # as many colours as there are things to see


def test_the_largest_part_of_a_class_keeps_its_colour():
    told = lab.show(state(pair="decalin", rounds=1))
    assert told["counts"] == [[8, 8], [2, 2]]
    assert lab.show(state(pair="decalin", rounds=0))["kinds"] == [[0, []]]
    assert lab.show(state(pair="decalin", rounds=0))["before"] is None


def test_after_nothing_splits_nothing_changes():
    told = [lab.show(state(pair="decalin", rounds=rounds)) for rounds in (2, 3, 6)]
    assert told[0]["stable"] == 2
    assert told[0]["colours"] == told[1]["colours"] == told[2]["colours"]


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({}, True),
        ({"pair": "hexanes", "rounds": 1}, True),
        ({"pair": "hexanes", "rounds": 2}, False),
        ({"pair": "hexagon", "rounds": 2, "start": "marked"}, False),
    ],
)
def test_the_script_says_the_same(given, same, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(lab.python(state(**given)))
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script))
    one, other, last = printed.getvalue().splitlines()
    assert last == str(same)
    counts = lab.show(state(**given))["counts"]
    for text, side in ((one, 0), (other, 1)):
        told = sorted(int(item.split(": ")[1]) for item in text.strip("{}").split(", "))
        assert told == sorted(row[side] for row in counts if row[side])


@pytest.mark.parametrize("given", [{"rounds": 7}, {"rounds": -1}, {"pair": "cube"}, {"start": "none"}])
def test_what_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("pair", PAIRS)
def test_answers_are_small_enough_for_a_hand_that_drags(pair):
    given = {"pair": pair, "rounds": "6", "start": "marked"}
    told = perform({"lab": "weisfeiler_lehman", "state": given, "brief": "wide"}, print)
    assert len(json.dumps(told)) < 32_000
