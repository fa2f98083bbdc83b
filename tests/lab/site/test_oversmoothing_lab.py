"""The oversmoothing lab: nothing is left above the bound, limits are reached, and scripts agree with the page."""

import io
import json
import re
import runpy
from contextlib import redirect_stdout

import pytest
import torch

from lemmata.geometric.gcn import normalized_adjacency
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import oversmoothing_lab as lab
from lemmata.lab.site.work.lab import perform

GRAPHS = ["karate", "debian"]
MIXES = ["coupling", "mean"]
SKIPS = ["none", "residual", "initial"]


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("skip", SKIPS)
def test_what_is_left_is_below_the_bound_at_every_depth(graph, mix, skip):
    here = state(graph=graph, mix=mix, skip=skip, alpha=0.2)
    left, bound = lab.left(here, lab.layers(here)), lab.bound(here)
    assert left.shape == bound.shape == (65,)
    assert left[0] == pytest.approx(1)
    assert bool((left <= bound * (1 + 1e-9)).all())
    # Deep down one wave is left, that of the second eigenvalue: both fall by the same factor.
    assert float(left[60] / left[59]) == pytest.approx(float(bound[60] / bound[59]), rel=1e-3)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("skip", "rate"), [("none", lambda v: v), ("residual", lambda v: (1 + v) / 2)])
def test_the_bound_is_a_power_of_the_second_eigenvalue(graph, skip, rate):
    second = float(lab.scene(graph).values[:-1].abs().max())
    wanted = rate(second) ** torch.arange(65).double()
    torch.testing.assert_close(lab.bound(state(graph=graph, skip=skip)), wanted, rtol=1e-9, atol=0)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("skip", SKIPS)
def test_layers_go_to_the_limit(graph, mix, skip):
    here = state(graph=graph, mix=mix, skip=skip)
    features = lab.layers(here)
    end = lab.limit(here, features[0])
    gaps = (features - end).abs().amax((1, 2))
    assert bool((gaps[32:].diff() < 0).all())
    assert float(gaps[64]) < 0.05 * float(gaps[1])
    spread = float((end - end[0]).abs().max())
    assert (spread < 1e-12) == (mix == "mean" and skip != "initial")  # means alone end in one point
    if mix == "coupling" and skip != "initial":  # on one line, by the root of the degree
        root = (lab.scene(graph).graph.degrees(dtype=torch.float64) + 1).sqrt()
        torch.testing.assert_close(end / root[:, None], (end / root[:, None])[:1].expand_as(end), rtol=1e-9, atol=1e-14)


def test_the_start_of_every_layer_is_solved_for():
    here = state(skip="initial", alpha=0.3)
    start = lab.layers(here)[0]
    coupling = normalized_adjacency(lab.scene("karate").graph, torch.float64).dense(torch.float64)
    wanted = 0.3 * torch.linalg.solve(torch.eye(34).double() - 0.7 * coupling, start)
    torch.testing.assert_close(lab.limit(here, start), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"depth": 0}, 2),
        ({"depth": 4}, 33),
        ({"depth": 64}, 17),
        ({"depth": 64, "mix": "mean"}, 17),
        ({"depth": 64, "skip": "initial"}, 33),
        ({"graph": "debian", "depth": 0}, 2),
        ({"graph": "debian", "depth": 3}, 54),
        ({"graph": "debian", "depth": 40}, 31),
    ],
)
def test_a_few_layers_tell_the_groups_and_many_do_not(given, right):
    told = lab.show(state(**given))
    assert told["right"] == right
    heard = [share for share in told["shares"] if share != 0]
    if given["depth"] == 0:
        assert sorted(heard) == [-1, 1]
    if right in (17, 31):
        assert all(share < 0 for share in heard)  # all of them say the same


def test_half_of_the_input_only_delays():
    rates = [lab.show(state(depth=64, skip=skip))["left"] for skip in SKIPS]
    assert rates[0] < rates[1] / 4
    assert rates[1] < rates[2] / 4


def test_words_name_the_first_of_the_best_depths():
    assert lab.show(state())["best"] == [33, 3]
    assert lab.show(state(graph="debian"))["best"] == [54, 2]


def test_nodes_are_drawn_apart_with_their_names():
    for graph in GRAPHS:
        told = lab.show(state(graph=graph))
        places = torch.tensor(told["places"])
        assert len(places) == len(told["names"]) == len(told["y"]) == len(told["x"]) == len(told["end"])
        assert float(places.abs().max()) <= 1
        assert float((torch.cdist(places, places) + torch.eye(len(places))).min()) > 0.06
    assert [told["names"][node] for node in told["known"]] == ["ghostscript", "imagemagick"]
    assert [told["y"][node] for node in told["known"]] == [0, 1]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"graph": "debian", "depth": 3, "mix": "mean"},
        {"depth": 9, "skip": "residual"},
        {"graph": "debian", "depth": 2, "skip": "initial", "alpha": 0.25},
    ],
)
def test_the_script_says_the_same(given, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(lab.python(state(**given)))
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script))
    rows, right = printed.getvalue().rsplit("dtype=torch.float64)", 1)
    numbers = [float(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", rows)]
    here = state(**given)
    assert numbers == pytest.approx(lab.layers(here)[here.depth].flatten().tolist(), abs=1e-4)
    assert int(right) == lab.show(here)["right"]


@pytest.mark.parametrize("given", [{"depth": 65}, {"depth": -1}, {"alpha": 0}, {"alpha": "nan"}, {"graph": "cora"}])
def test_what_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("skip", SKIPS)
def test_answers_are_small_enough_for_a_hand_that_drags(graph, skip):
    told = perform({"lab": "oversmoothing", "state": {"graph": graph, "skip": skip}, "brief": "wide"}, print)
    assert len(json.dumps(told)) < 32_000
