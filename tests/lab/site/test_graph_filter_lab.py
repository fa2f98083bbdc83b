"""The graph filter lab: what is shown is the library's filter, polynomials see as far as they may, scripts agree."""

import io
import json
import re
import runpy
from contextlib import redirect_stdout

import pytest
import torch

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import graph_filter_lab as lab
from lemmata.lab.site.work.lab import perform

GRAPHS = ["karate", "grid", "ring", "path"]


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("signal", ["groups", "noise", "impulse"])
def test_everything_that_passes_is_there_again(graph, signal):
    told = lab.show(state(graph=graph, signal=signal, response="all", degree=0))
    assert told["after"] == pytest.approx(told["before"], abs=2e-3)
    assert told["kept"] == pytest.approx(1)
    assert told["apart"] < 1e-12
    nothing = lab.show(state(graph=graph, signal=signal, gains="0,0,0,0,0,0,0,0,0"))
    assert not any(nothing["after"])
    assert nothing["kept"] == 0


@pytest.mark.parametrize("graph", GRAPHS)
def test_low_and_high_frequencies_are_the_whole_together(graph):
    low, high = (
        lab.filtered(state(graph=graph, gains=gains)) for gains in ("10,8,6,4,2,1,0,0,0", "0,2,4,6,8,9,10,10,10")
    )
    for way in (0, 1):
        torch.testing.assert_close(low[way] + high[way], lab.signal(state(graph=graph)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("response", list(lab.RESPONSES))
def test_a_polynomial_comes_nearer_with_its_degree(graph, response):
    errors = [lab.show(state(graph=graph, response=response, degree=degree))["apart"] for degree in (0, 20)]
    assert errors[1] < 0.1
    assert errors[1] <= errors[0] + 1e-12


@pytest.mark.parametrize(("degree", "reached"), [(0, 1), (1, 3), (2, 5), (5, 11)])
def test_a_polynomial_reaches_as_many_steps_as_its_degree(degree, reached):
    told = lab.show(state(graph="ring", signal="impulse", degree=degree, by="polynomial", gains="10,3,7,-2,8,1,0,5,-9"))
    assert told["reached"] == reached
    assert sum(value != 0 for value in told["after"]) <= reached
    assert lab.show(state(graph="ring", degree=degree))["reached"] is None


def test_the_drawn_response_is_straight_between_frequencies():
    gains = state(gains="10,0,-10,0,0,0,0,0,5").drawn()
    found = lab.passed(torch.tensor([0.0, 0.125, 0.25, 0.5, 1.875, 2.0, 2.0 + 1e-12, -1e-12]).double(), gains)
    assert found.tolist() == pytest.approx([1, 0.5, 0, -1, 0.25, 0.5, 0.5, 1], abs=1e-8)
    polynomial = lab.fitted(state(response="heat", degree=20), torch.linspace(0, 2, 9).double())
    assert polynomial.tolist() == pytest.approx(state(response="heat").drawn().tolist(), abs=0.05)


def test_a_graph_is_drawn_with_all_its_nodes_apart():
    for graph in GRAPHS:
        told = lab.show(state(graph=graph))
        places = torch.tensor(told["places"])
        assert len(places) == len(told["before"]) == len(told["after"]) >= 34
        assert float(places.abs().max()) <= 1
        assert float((torch.cdist(places, places) + torch.eye(len(places))).min()) > 0.06  # dots do not hide each other
        assert max(node for edge in told["edges"] for node in edge) == len(places) - 1


def test_the_last_node_stands_for_those_that_a_graph_has_not():
    assert lab.show(state(signal="impulse", node=35))["before"].index(1) == 33
    assert lab.show(state(signal="impulse", node=35, graph="grid"))["before"].index(1) == 35


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"graph": "grid", "signal": "groups", "response": "band", "degree": 7},
        {"graph": "ring", "signal": "impulse", "node": 5, "gains": "10,-3,0,1,2,3,4,5,-10"},
        {"graph": "path", "signal": "noise", "degree": 0},
    ],
)
def test_the_script_says_the_same(given, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(lab.python(state(**given)))
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script))
    numbers = [
        float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", printed.getvalue().replace("float64", ""))
    ]
    wanted = [value for values in lab.filtered(state(**given)) for value in values.tolist()]
    assert numbers == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("gains", ["1,2", "11,0,0,0,0,0,0,0,0", "0,0,0,0,0,0,0,0,0,0", "a,0,0,0,0,0,0,0,0"])
def test_a_response_that_cannot_be_is_refused(gains):
    with pytest.raises(ValueError, match="gains: not written as this lab writes it"):
        state(gains=gains)


@pytest.mark.parametrize("graph", GRAPHS)
def test_answers_are_small_enough_for_a_hand_that_drags(graph):
    told = perform({"lab": "graph_filter", "state": {"graph": graph}, "brief": "wide"}, print)
    assert len(json.dumps(told)) < 32_000
