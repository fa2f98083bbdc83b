"""What the labs show is what the library does: update for update, flip for flip, bit for bit."""

import base64
import dataclasses
import math
import re
import runpy
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.perceptron import textbook_perceptron
from lemmata.connectionism.separability import Separation
from lemmata.feedforward.mlp import MLPConfig
from lemmata.feedforward.recipes import classify_points
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.lab.figures.svg import svg
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import boundary_lab, hopfield_lab, perceptron_lab, ring_lab, vanishing_lab
from lemmata.recurrent.gradient_flow import measure_gradient_flow
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options

ZEROS = torch.zeros(2, 60, 1, dtype=torch.float64)
SITE = Path(perceptron_lab.__file__).parent.parent
PERCEPTRONS = ["wide", "narrow", "xor", "clouds", "mislabelled"]


def show(lab, run=False, tell=None, **state):
    found = read_state(lab.State, {key: str(value) for key, value in state.items()})
    return lab.run(found, tell or (lambda event: None)) if run else lab.show(found)


# --- Perceptron ---


@pytest.mark.parametrize("example", PERCEPTRONS)
def test_every_correction_is_that_of_the_textbook(example):
    told = show(perceptron_lab, example=example)
    x, y = perceptron_lab.read_points(told["points"])
    sweeps = 1 + sum(b <= a for a, b in pairwise(told["updates"]))
    weight, bias, updates = textbook_perceptron(x, y, sweeps)
    assert told["updates"] == updates
    assert told["path"][-1] == [*weight.tolist(), bias.item()]
    assert told["path"][0] == [0, 0, 0]
    assert len(told["path"]) == len(updates) + 1


@pytest.mark.parametrize("example", ["wide", "narrow"])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_kept_where_a_line_exists(example, seed):
    told = show(perceptron_lab, example=example, seed=seed)
    assert told["status"] == "separated"
    assert told["proof"] is None
    assert told["mistakes"] <= told["bound"]
    lengths = torch.tensor(told["path"]).norm(dim=1)[1:]
    best = torch.tensor(told["path"][-1]) @ torch.tensor(told["best"])
    assert best <= lengths[-1] + 1e-9


def test_a_pair_attains_the_bound():
    told = show(perceptron_lab, points="p1,0n-1,0")  # with the 1 of the bias the two are orthogonal
    assert (told["mistakes"], told["bound"]) == (2, 2)


@pytest.mark.parametrize("example", ["xor", "clouds", "mislabelled"])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_line_the_weights_on_the_points_cancel(example, seed):
    told = show(perceptron_lab, example=example, seed=seed)
    assert told["status"] == "not separable"
    assert told["bound"] is None
    x, y = perceptron_lab.read_points(told["points"])
    weights = torch.tensor(told["proof"]["weights"], dtype=torch.float64)
    assert Separation(False, multipliers=weights).verify(x, y)
    for sign in (1, -1):
        share = weights * (y == sign)
        assert torch.allclose(
            (share[:, None] * x).sum(0) / share.sum(), torch.tensor(told["proof"]["meeting"]).double()
        )


def test_weights_that_come_back_are_noticed():
    told = show(perceptron_lab, example="xor")
    assert told["repeats"]
    assert told["path"][-1] == told["path"][0]


@pytest.mark.parametrize("text", ["", "p1,1", "n-5,5", "p1,1n1,1", "p0.125,-3n4,4.875p1,2"])
def test_points_survive_their_own_spelling(text):
    told = show(perceptron_lab, points=text)
    assert told["points"] == text


@pytest.mark.parametrize("example", PERCEPTRONS)
def test_the_curve_of_the_figure_has_one_vertex_for_each_correction(example):
    """The page's ball rides on it."""
    told = show(perceptron_lab, example=example)
    curves = re.findall(r'd="M([^"]*L[^"]*)"', svg(told["figures"]["squeeze"]))
    assert len(curves[0].split("L")) == len(told["updates"])


# --- Hopfield ---

RECALLS = [
    {"count": 5, "noise": 30},
    {"count": 9, "noise": 20},
    {"count": 9, "noise": 30, "rule": "pseudo-inverse", "seed": 3},
    {"set": "digits", "count": 10, "noise": 25},
    {"set": "random", "count": 30, "noise": 10},
    {"set": "letters", "count": 20, "noise": 30, "rule": "pseudo-inverse", "pick": 12},
]


@pytest.mark.parametrize("state", RECALLS)
def test_the_energy_never_rises(state):
    energies = show(hopfield_lab, **state)["energies"]
    assert all(after <= before + 1e-6 for before, after in pairwise(energies))
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("state", RECALLS)
def test_flip_by_flip_leads_where_the_network_recalls(state):
    told = show(hopfield_lab, **state)
    units = told["side"] ** 2
    memories = torch.stack([hopfield_lab.unpacked(text, units) for text in told["memories"]]).double()
    network = HopfieldNetwork.from_patterns(memories, state.get("rule", "hebb"))
    cue = hopfield_lab.unpacked(told["cue"], units)
    seed = torch.Generator().manual_seed(state.get("seed", 0))
    recall = network.recall(cue[None], generator=seed, trace=True)
    state_of_rest = cue.clone()
    for unit in told["flips"]:
        state_of_rest[unit] *= -1
    assert torch.equal(recall.states[0], state_of_rest.double())
    assert recall.energies is not None
    ends = [told["energies"][k] for k in told["sweeps"]]
    assert torch.allclose(recall.energies[0, 1 : len(ends) + 1], torch.tensor(ends).double(), atol=1e-5)
    assert told["stable"] == network.is_stable(memories).tolist()


def test_each_step_is_the_update_of_one_unit():
    told = show(hopfield_lab, count=5, noise=30)
    memories = torch.stack([hopfield_lab.unpacked(text, 144) for text in told["memories"]])
    network, state = HopfieldNetwork.from_patterns(memories), hopfield_lab.unpacked(told["cue"], 144)
    for unit, energy in zip(told["flips"], told["energies"][1:], strict=True):
        after = network.update(state, unit)
        assert (after != state).nonzero().tolist() == [[unit]]
        assert float(network.energy(after)) == pytest.approx(energy, abs=1e-4)
        state = after


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ({"count": 5, "pick": 4, "noise": 30, "seed": 4}, "memory"),
        ({"count": 5, "noise": 80}, "mirror"),
        ({"count": 5, "noise": 30}, "spurious"),
        ({"count": 6, "noise": 0}, "spurious"),
        ({"count": 9, "noise": 20, "rule": "pseudo-inverse"}, "memory"),
        ({"set": "letters", "count": 20, "rule": "pseudo-inverse", "pick": 12, "noise": 35}, "memory"),
    ],
)
def test_what_the_page_promises_of_its_examples_happens(state, kind):
    assert show(hopfield_lab, **state)["ending"]["kind"] == kind


def test_hebb_forgets_with_the_sixth_picture_and_the_pseudo_inverse_does_not():
    assert all(show(hopfield_lab, count=5)["stable"])
    assert not all(show(hopfield_lab, count=6)["stable"])
    assert all(show(hopfield_lab, count=9, rule="pseudo-inverse")["stable"])


def test_a_picture_can_be_drawn_stored_and_recalled():
    drawn = "0" * 18 + "f" * 18
    told = show(hopfield_lab, count=2, own=drawn, picture=drawn, noise=0)
    assert told["memories"][-1] == told["cue"] == drawn
    assert told["names"][-1] == "yours 1"
    assert told["ending"] == {"kind": "memory", "memory": "yours 1", "overlap": 1.0}
    assert not told["flips"]


@pytest.mark.parametrize("name", ["pictures", "digits", "letters", "random"])
def test_packing_pictures_loses_nothing(name):
    names, memories = hopfield_lab.collection(name)
    assert len(names) == len(memories)
    for memory in memories:
        assert torch.equal(hopfield_lab.unpacked(hopfield_lab.packed(memory), len(memory)), memory)


# --- Decision boundary ---


def test_the_map_is_that_of_the_network_which_the_command_trains():
    events = []
    told = show(boundary_lab, run=True, tell=events.append, width=8, depth=1, epochs=3, lr=0.03, seed=5)
    config = MLPConfig(widths=(8,), activation="tanh")
    options = Options(epochs=3, lr=0.03, seed=5, schedule="cosine", evaluate=3, device="cpu")
    run = run_experiment(classify_points("moons", config, options))
    assert run.scores == told["scores"]
    shown = events[-1]["frame"]
    across, up = boundary_lab.axes(boundary_lab.State().points())
    chance = boundary_lab.probabilities(run.system, torch.cartesian_prod(up, across).flip(1))[:, 1]
    cells = torch.tensor(list(bytes.fromhex(shown["cells"]))) / 255
    assert torch.allclose(cells, chance, atol=0.5 / 255 + 1e-6)
    assert [event["frame"]["epoch"] for event in events] == [0, 1, 2, 3]
    assert (
        "--widths 8 --activation tanh --lr 0.03 --epochs 3 --seed 5"
        in show(boundary_lab, width=8, depth=1, epochs=3, lr=0.03, seed=5)["command"]
    )


def test_the_python_on_the_page_runs_and_gives_the_same_scores(tmp_path):
    state = {"data": "rings", "noise": 0.12, "width": 4, "depth": 1, "activation": "relu", "epochs": 1}
    script = tmp_path / "same.py"
    script.write_text(show(boundary_lab, **state)["python"])
    assert runpy.run_path(str(script))["run"].scores == show(boundary_lab, run=True, **state)["scores"]


def test_before_training_the_network_is_as_chance_made_it():
    first, second = (show(boundary_lab, seed=seed) for seed in (0, 1))
    assert first["frame"]["cells"] != second["frame"]["cells"]
    assert first == show(boundary_lab)
    assert show(boundary_lab, noise=0.3)["command"] == ""
    assert len(first["fresh"]) == len(first["learnt"]) == boundary_lab.SHOWN
    left, right, bottom, top = first["frame"]["box"]
    assert right - left == pytest.approx(top - bottom, abs=0.002)  # one unit is as long across as upwards
    assert all(left < x < right and bottom < y < top for x, y, _ in first["fresh"] + first["learnt"])


def test_every_activation_can_be_chosen():
    page = (SITE / "templates" / "lab_boundary.html").read_text()
    assert set(boundary_lab.Activation.__args__) == set(ACTIVATION_TABLE)
    assert all(name in page for name in ACTIVATION_TABLE)


# --- Vanishing gradients ---


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "identity"])
@pytest.mark.parametrize("matrix", ["random", "orthogonal", "shift"])
@pytest.mark.parametrize("size", [0.3, 1, 2, 6])
def test_the_correct_rule_is_never_wrong_and_the_norm_never_above_the_bound(activation, matrix, size):
    told = show(vanishing_lab, activation=activation, matrix=matrix, size=size, steps=30)
    assert told["rules"][0]["kept"] != "wrong"
    assert (told["rules"][0]["says"] == "vanishes") == (told["bound"] < 1 - 1e-9)
    assert told["bound"] == pytest.approx(told["slope"] * told["norm"])
    _, measured, bound = told["figures"]["flow"].marks
    pairs = zip(measured.y, bound.y, strict=True)
    assert all(a <= b * (1 + 1e-9) for a, b in pairs if a is not None and b is not None)


@pytest.mark.parametrize("slope", [1, 0.25])
@pytest.mark.parametrize("ulps", [-64, -8, -1, 0, 1, 8, 64])
def test_no_rule_turns_on_the_last_bits(slope, ulps):
    """Another processor, another order of sums: an orthogonal U of norm 1 may come out on either side."""
    rules = vanishing_lab.rules((1 + ulps * 2.0**-52) / slope, slope, "neither")
    same = vanishing_lab.rules(1 / slope, slope, "neither")
    assert rules == same
    assert rules[0]["kept"] == "silent"


@pytest.mark.parametrize("drift", [-1, 1])
def test_a_norm_that_only_rounding_moves_neither_vanishes_nor_explodes(drift):
    flow = measure_gradient_flow(vanishing_lab.State(activation="identity", matrix="orthogonal", size=1).layer(), ZEROS)
    moved = dataclasses.replace(flow, log_norms=drift * flow.lags.expand(2, -1) * 2.0**-52)
    assert vanishing_lab.fate_of(moved) == "neither"
    moved = dataclasses.replace(flow, log_norms=drift * flow.lags.expand(2, -1) * 1e-12)
    assert vanishing_lab.fate_of(moved) == {-1: "vanishes", 1: "explodes"}[drift]


def test_the_lab_opens_on_a_gradient_that_vanishes_as_the_correct_rule_says():
    told = show(vanishing_lab)
    assert (told["fate"], told["rules"][0]["kept"]) == ("vanishes", "right")


def test_the_preset_that_keeps_every_gradient_proves_no_correct_rule_wrong():
    told = show(vanishing_lab, activation="identity", matrix="orthogonal", size=1)
    assert (told["fate"], told["rules"][0]["kept"]) == ("neither", "silent")
    assert told["log10"] == pytest.approx(0, abs=1e-9)


def test_each_printed_rule_fails_somewhere():
    inverted = show(vanishing_lab, activation="identity", size=1.2)["rules"][1]
    assert (inverted["says"], inverted["kept"]) == ("vanishes", "wrong")
    careless = show(vanishing_lab, activation="sigmoid", matrix="orthogonal", size=2)["rules"][2]
    assert (careless["says"], careless["kept"]) == ("explodes", "wrong")


def test_a_shift_forgets_everything_and_an_orthogonal_map_nothing():
    shift = show(vanishing_lab, activation="identity", matrix="shift", size=5)
    assert (shift["fate"], shift["log10"], shift["radius"]) == ("vanishes", None, 0)
    assert show(vanishing_lab, activation="identity", matrix="orthogonal", size=1)["fate"] == "neither"


# --- Eigenvalue ring ---


def test_the_response_is_that_of_the_real_system_with_both_of_each_pair():
    told = show(ring_lab, points="0.9,0.3;0.5,0", steps=20)
    turn = torch.tensor([[0.9, -0.3], [0.3, 0.9]], dtype=torch.float64)
    state, expected = torch.tensor([1.0, 0.0]).double(), []
    for k in range(20):
        expected.append((2 * float(state[0]) + 0.5**k) / 3)
        state = turn @ state
    response, envelope = told["figures"]["response"].marks
    assert response.y == pytest.approx(expected)
    assert all(abs(a) <= b + 1e-12 for a, b in zip(response.y, envelope.y, strict=True))
    assert told["half"] == pytest.approx(math.log(0.5) / math.log(math.hypot(0.9, 0.3)))


@pytest.mark.parametrize(("points", "verdict"), [("0.9,0", "forgets"), ("0.6,0.8", "rings"), ("1.1,0", "explodes")])
def test_the_unit_circle_decides(points, verdict):
    assert show(ring_lab, points=points)["verdict"] == verdict


def test_no_eigenvalue_is_no_error():
    assert show(ring_lab, points="")["verdict"] == "empty"


def test_what_is_heard_is_what_is_drawn():
    told = show(ring_lab, points="0.9,0.3", steps=50, sound=1)
    levels = torch.frombuffer(bytearray(base64.b64decode(told["sound"]["samples"])), dtype=torch.int16)
    drawn = torch.tensor(told["figures"]["response"].marks[0].y)
    assert len(levels) == ring_lab.HEARD
    assert torch.allclose(levels[:50] / 32767, drawn, atol=1e-4)
    loud = show(ring_lab, points="1.2,0", sound=1)["sound"]["samples"]
    assert torch.frombuffer(bytearray(base64.b64decode(loud)), dtype=torch.int16)[-1] == 32767


@pytest.mark.parametrize("how", ["radius", "area"])
def test_a_ring_is_drawn_by_its_seed_and_can_be_spelt_out(how):
    told = show(ring_lab, ring=how, seed=3, inner=0.4)
    assert told == show(ring_lab, ring=how, seed=3, inner=0.4)
    assert told["points"] != show(ring_lab, ring=how, seed=4, inner=0.4)["points"]
    again = show(ring_lab, points=told["points"])
    assert again["figures"] == told["figures"]
    moduli = ring_lab.read_points(told["points"]).abs()
    assert 0.399 <= float(moduli.min()) <= float(moduli.max()) < 1


@pytest.mark.parametrize("lab", [vanishing_lab, ring_lab])
def test_the_python_on_the_page_runs(lab, tmp_path, capsys):
    script = tmp_path / "same.py"
    script.write_text(show(lab)["python"])
    runpy.run_path(str(script))
    assert capsys.readouterr().out
