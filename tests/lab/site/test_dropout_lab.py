"""The dropout lab: every network is written out, and what stands in their place is what the library says."""

import math
import runpy

import pytest
import torch

from lemmata.figure import Bars, Line
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import dropout_lab as lab


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def curve(figure, label):
    (found,) = (mark for mark in figure.marks if isinstance(mark, Line) and mark.label == label)
    return torch.tensor(found.y, dtype=torch.float64)


@pytest.mark.parametrize("layers", ["one", "two"])
@pytest.mark.parametrize("output", ["number", "probability"])
@pytest.mark.parametrize("kept", ["1111", "0110", "0000"])
def test_the_chosen_network_is_the_one_without_its_dropped_units(layers, output, kept):
    chosen = state(layers=layers, output=output, kept=kept, seed=5)
    network = chosen.network()
    hidden = network[1](network[0](lab.X)) * torch.tensor([bit == "1" for bit in kept]).double()
    wanted = chosen.answer(network[3:](hidden))[:, 0]
    torch.testing.assert_close(curve(lab.still(chosen), "the chosen network"), wanted)


@pytest.mark.parametrize("keep", [0, 0.05, 0.5, 0.8, 1])
@pytest.mark.parametrize("units", [1, 3, 4])
def test_probabilities_are_those_of_independent_units(keep, units):
    chosen = state(keep=keep, units=units, kept="0111")
    told = lab.show(chosen)
    assert told["networks"] == 2**units
    assert told["mask"] == [False, True, True, True][:units]
    assert told["probability"] == pytest.approx((1 - keep) * keep ** (units - 1))
    (bars,) = told["figures"]["weights"].marks
    assert isinstance(bars, Bars)
    assert math.fsum(bars.values) == pytest.approx(1)
    assert len(bars.names) == len(set(bars.names)) == 2**units


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 1])
def test_scaling_is_exact_behind_a_linear_output_and_geometric_behind_a_softmax(seed, keep):
    assert lab.show(state(seed=seed, keep=keep))["gap"] < 1e-6  # the probabilities of the layer are float32
    figure = lab.still(state(seed=seed, keep=keep, output="probability"))
    if keep < 1:
        gap = curve(figure, "their geometric mean") - curve(figure, "one network, weights times π")
        assert gap.abs().max() < 1e-6
        assert lab.show(state(seed=seed, keep=keep, output="probability"))["gap"] > 1e-3
        assert lab.show(state(seed=seed, keep=keep, layers="two"))["gap"] > 1e-3


def test_more_units_keep_those_there_were():
    few, many = (state(units=units, seed=2).network() for units in (2, 4))
    for name in ("0.weight", "0.bias"):
        assert torch.equal(few.get_parameter(name), many.get_parameter(name)[:2])


@pytest.mark.parametrize(
    "given", [{"keep": 1.1}, {"units": 5}, {"kept": "012"}, {"kept": "11111"}, {"layers": "three"}]
)
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("given", [{}, {"output": "probability", "layers": "two", "keep": 0.25}])
def test_the_python_runs(tmp_path, given, capsys):
    script = tmp_path / "script.py"
    script.write_text(lab.show(state(**given))["python"])
    runpy.run_path(str(script))
    assert capsys.readouterr().out.count("tensor(") == 3
