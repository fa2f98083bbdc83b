"""The approximation lab: what it shows is what the library finds, for every activation and any drawn function."""

import re
import runpy

import pytest
import torch

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import approximation_lab as lab

ZIGZAG = "0,0.6,-0.6,0.6,-0.6,0.6,-0.6,0.6,0"
ACTIVATIONS = ["sigmoid", "tanh", "relu", "sin", "square", "cube"]


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize(
    "heights", [lab.State().heights, ZIGZAG, ",".join(["0"] * 9), ",".join(["-1", "1"] * 4 + ["1"])]
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [1, 20, 128])
def test_the_interval_holds_every_error_of_the_curve(heights, activation, hidden):
    chosen = state(heights=heights, activation=activation, hidden=hidden)
    told = lab.show(chosen)
    x, values = torch.tensor(told["curve"], dtype=torch.float64).T
    errors = (chosen.function()(x) - values).abs()
    assert told["lower"] <= told["upper"]
    assert float(errors.max()) <= told["upper"] + 1e-4  # the curve is told to four digits
    assert float(errors.max()) >= told["lower"] - 0.05


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu", "sin"])
def test_wide_layers_reach_the_kink_and_polynomials_do_not(activation):
    assert lab.show(state(activation=activation, hidden=128))["upper"] < 0.03
    for polynomial, degree in (("square", 2), ("cube", 3)):
        told = lab.show(state(activation=polynomial, hidden=128))
        # 0.8 |x| stays at 0.8 / 8 from every polynomial of these degrees.
        assert told["lower"] > 0.1
        assert (
            told["words"] == f"Sums of such units are polynomials of degree {degree}: no width comes nearer than 0.100."
        )


def test_a_wider_network_has_the_units_of_a_narrower_one():
    narrow, wide = (state(seed=5).network(m).hidden for m in (7, 60))
    assert torch.equal(narrow.weight, wide.weight[:7])
    assert torch.equal(narrow.bias, wide.bias[:7])
    assert not torch.equal(narrow.weight, state(seed=6).network(7).hidden.weight)


@pytest.mark.parametrize(
    "given",
    [
        {"heights": "0,0"},
        {"heights": ",".join(["0"] * 10)},
        {"heights": ",".join(["nan"] * 9)},
        {"heights": ",".join(["2"] * 9)},
        {"hidden": 0},
        {"hidden": 129},
        {"activation": "os.system"},
        {"seed": 1.5},
    ],
)
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_script_runs_and_comes_as_near(activation, tmp_path, capsys):
    told = lab.show(state(activation=activation, hidden=64))
    (tmp_path / "script.py").write_text(told["python"])
    runpy.run_path(str(tmp_path / "script.py"))  # with units of its own
    assert float(re.search(r"[\d.]+", capsys.readouterr().out).group()) < told["upper"] + 0.05
