"""The positions lab: rotations that hit, products that know the distance alone, and what unpaired columns lose."""

import runpy

import pytest
import torch

from lemmata.figure import Heat, Line
from lemmata.lab.figures.svg import svg
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import positions_lab as lab


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("power", [0.5, 2, 5])
@pytest.mark.parametrize(("position", "shift"), [(0, -20), (6, 5), (39, 20), (7, 0)])
def test_a_rotation_hits_where_columns_are_paired(power, position, shift):
    told = lab.show(state(power=power, position=position, shift=shift))
    assert told["missed"] < 1e-12
    assert told["length"] == pytest.approx(lab.WIDTH / 2)
    frequency = 10 ** (-power * torch.arange(0, lab.WIDTH, 2).double() / lab.WIDTH)
    assert told["product"] == pytest.approx(float((frequency * shift).cos().sum()))


def test_unpaired_columns_are_no_rotation_and_their_products_depend_on_the_place():
    told = lab.show(state(columns="unpaired"))
    assert told["missed"] > 0.1
    far = lab.show(state(columns="unpaired", position=30))
    assert abs(told["product"] - far["product"]) > 0.1
    column = torch.arange(lab.WIDTH).double()
    angle = 3 * 10_000 ** (-column / lab.WIDTH)
    by_hand = torch.where(column % 2 == 0, angle.sin(), angle.cos())
    torch.testing.assert_close(state(columns="unpaired").encoding(torch.tensor(3)), by_hand)


def test_curves_of_products_lie_on_each_other_only_if_paired():
    for columns, same in (("paired", True), ("unpaired", False)):
        lines = [
            mark for mark in lab.show(state(columns=columns))["figures"]["products"].marks if isinstance(mark, Line)
        ]
        gap = (torch.tensor(lines[0].y) - torch.tensor(lines[1].y)).abs().max()
        assert (float(gap) < 1e-6) is same


def test_the_map_is_the_encoding_and_answers_are_small():
    told = lab.show(state())
    (heat,) = (mark for mark in told["figures"]["map"].marks if isinstance(mark, Heat))
    wanted = lab.sinusoidal_encoding(torch.arange(lab.TIME), lab.WIDTH, dtype=torch.float64)
    assert float((torch.tensor(heat.values, dtype=torch.float64) - wanted).abs().max()) <= 0.005 + 1e-12
    # While a slider is dragged all of them are sent at once.
    assert sum(len(svg(figure)) for figure in told["figures"].values()) < 28_000


def test_the_script_does_the_same(tmp_path, capsys):
    chosen = state(position=3, shift=4, power=2)
    (tmp_path / "script.py").write_text(lab.python(chosen))
    runpy.run_path(str(tmp_path / "script.py"))
    assert f"{lab.show(chosen)['product']:.4f}"[:5] in capsys.readouterr().out
