"""The depth lab: what it shows is what the library measures, near what is expected, for every choice."""

import math
import runpy

import pytest
import torch

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import depth_lab as lab

SCHEMES = ["lecun", "glorot", "he", "orthogonal"]
ACTIVATIONS = sorted(lab.ACTIVATIONS)


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("widths", list(lab.WIDTHS))
def test_a_network_scatters_around_what_is_expected(scheme, activation, widths):
    chosen = state(scheme=scheme, activation=activation, widths=widths, depth=8)
    measured, foretold = chosen.profile(), chosen.expected()
    assert len(measured.names) == 8
    # Eight layers of 24 units or more: the logarithm of each gain has a deviation of at most sqrt(5/24).
    room = 4 * math.sqrt(8 * 5 / 24)
    assert (measured.forward / foretold.forward).log().abs().max() < room
    back = measured.backward / measured.backward[-1]
    assert (back / foretold.backward).log().abs().max() < room


def test_schemes_do_what_the_page_says():
    kept, lost = lab.show(state()), lab.show(state(scheme="lecun"))
    assert abs(kept["signal"]) < 2
    assert abs(kept["gradient"]) < 2
    assert -11 < lost["signal"] < -7  # 2^-29 is 10^-8.7
    assert -11 < lost["gradient"] < -7
    exact = lab.show(state(scheme="orthogonal", activation="identity", depth=50))
    assert exact["signal"] == pytest.approx(0, abs=1e-12)
    assert exact["gradient"] == pytest.approx(0, abs=1e-12)
    loud = lab.show(state(gain=1.5))
    assert loud["signal"] > 8
    assert loud["gradient"] > 8
    narrow = {scheme: lab.show(state(scheme=scheme, widths="narrowing", activation="identity")) for scheme in SCHEMES}
    assert narrow["lecun"]["gradient"] < narrow["glorot"]["gradient"]


@pytest.mark.parametrize("normalization", ["batch", "layer"])
@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_normalised_signals_keep_their_size(normalization, gain):
    told = lab.show(state(normalization=normalization, gain=gain))
    assert abs(told["signal"]) < 1.5
    assert state(normalization=normalization).expected() is None


def test_numbers_beyond_the_picture_are_gaps():
    chosen = state(gain=0.5, depth=50, activation="sigmoid")
    figure = lab.still(chosen)
    assert any(value is None for mark in figure.marks for value in mark.y)
    assert lab._decimal_power(torch.tensor(0.0)) is None
    assert lab._decimal_power(torch.tensor(math.inf)) is None


def test_every_state_of_a_seed_is_the_same_and_other_seeds_differ():
    assert lab.show(state(seed=3))["signal"] == lab.show(state(seed=3))["signal"]
    assert lab.show(state(seed=3))["signal"] != lab.show(state(seed=4))["signal"]


@pytest.mark.parametrize(
    "given", [{"depth": 1}, {"depth": 51}, {"gain": 0.4}, {"gain": 2.1}, {"scheme": "fixed"}, {"activation": "exec"},
              {"widths": "64"}, {"normalization": "group"}, {"seed": -1}],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("normalization", ["none", "batch", "layer"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_script_runs(normalization, activation, tmp_path, capsys):
    told = lab.show(state(normalization=normalization, activation=activation, depth=6, gain=1.2, widths="widening"))
    (tmp_path / "script.py").write_text(told["python"])
    runpy.run_path(str(tmp_path / "script.py"))
    assert capsys.readouterr().out.count("tensor") == 2
