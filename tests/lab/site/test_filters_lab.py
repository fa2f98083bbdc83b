"""The filters lab: what is painted is what the layers of the network give, and a cover changes what it touches."""

import json
import runpy

import pytest
import torch
from torch.nn.functional import avg_pool2d

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import filters_lab as lab
from lemmata.lab.site.work import lab as work

COVERED = {"digit": 3, "size": 4, "row": 10, "column": 8}
MAPS = {"conv1": (6, 28), "pool1": (6, 14), "conv2": (16, 10), "pool2": (16, 5)}


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def levels(texts):
    return torch.tensor([[int(digit, 16) for digit in text] for text in texts])


def test_the_network_knows_its_digits():
    test = lab.digits().test
    with torch.no_grad():
        found = lab.network()(lab.enlarged(lab.drawings(test.x))).argmax(1)
    assert (found == test.y).double().mean() > 0.85


def test_the_layers_are_those_of_the_forward_pass():
    network = lab.network()
    drawn = torch.stack([state(digit=k).drawing() for k in (1, 7)])
    found = lab.layers(network, drawn)
    with torch.no_grad():
        first = network.conv1(lab.enlarged(drawn)).relu()
        second = network.conv2(avg_pool2d(first, 2)).relu()
        torch.testing.assert_close(found["conv1"], first)
        torch.testing.assert_close(found["pool2"], avg_pool2d(second, 2))
        torch.testing.assert_close(found["fc1"], network.fc1(avg_pool2d(second, 2).flatten(1)).relu())
        torch.testing.assert_close(found["probability"], network(lab.enlarged(drawn)).softmax(1))
    assert not network.conv1._forward_hooks
    assert {name: found[name].shape[1::2] for name in MAPS} == MAPS


@pytest.mark.parametrize("view", ["values", "change"])
def test_what_is_painted_is_what_the_layers_give(view):
    chosen = state(**COVERED, view=view)
    told = lab.show(chosen)
    drawn = chosen.drawing()
    both = torch.stack([drawn, lab.covered(drawn, 10, 8, 4)])
    found = lab.layers(lab.network(), both)
    for name, (count, side) in MAPS.items():
        painted = levels(told["maps"][name])
        assert painted.shape == (count, side * side)
        before, now = found[name].flatten(2)
        if view == "values":
            wanted = 14 * now / found[name].max()
        else:
            wanted = 7 + 7 * (now - before) / (now - before).abs().max()
        assert (painted - wanted).abs().max() <= 0.5 + 1e-3
    assert told["signed"] == (view == "change")


def test_without_a_cover_nothing_changes():
    told = lab.show(state(view="change"))
    assert {digit for texts in told["maps"].values() for text in texts for digit in text} == {"7"}
    assert told["picture"] == told["covered"]


def test_in_the_first_layer_a_cover_changes_only_what_is_near():
    told = lab.show(state(**COVERED, view="change"))
    changed = (levels(told["maps"]["conv1"]) != 7).reshape(6, 28, 28).any(0)
    rows, columns = changed.nonzero(as_tuple=True)
    # Cells are 1.75 pixels; enlarging reaches one cell further, and a filter of 5 x 5 two pixels.
    assert len(rows) > 0
    assert rows.min() >= 1.75 * 9 - 3
    assert rows.max() <= 1.75 * 15 + 3
    assert columns.min() >= 1.75 * 7 - 3
    assert columns.max() <= 1.75 * 13 + 3


@pytest.mark.parametrize("chosen", ["conv1-0", "pool1-5", "conv2-3", "pool2-15"])
def test_the_weights_are_those_of_the_chosen_map(chosen):
    layer, number = chosen.split("-")
    convolution = getattr(lab.network(), layer.replace("pool", "conv"))
    wanted = convolution.weight.detach()[int(number)].flatten(1)
    painted = levels(lab.show(state(map=chosen))["weights"])
    assert (painted - 7 - 7 * wanted / wanted.abs().max()).abs().max() <= 0.5 + 1e-3


def test_the_worst_place_is_where_least_is_left():
    drawn, network = state(digit=3).drawing(), lab.network()
    told = lab.show(state(digit=3, size=5))
    chance = lab.slid(network, drawn, 5)
    assert chance.shape == (12, 12)
    row, column = told["worst"]["row"], told["worst"]["column"]
    there = lab.layers(network, lab.covered(drawn, row, column, 5)[None])["probability"][0, 3]
    torch.testing.assert_close(there, chance.min(), rtol=1e-3, atol=1e-5)
    assert lab.covered(drawn, row, column, 5).sum() < drawn.sum()


def test_a_drawing_is_read_as_it_was_written():
    drawn = state(digit=4).drawing()
    again = state(picture=lab.packed(drawn)).drawing()
    assert torch.equal(again, drawn)
    assert lab.packed(torch.zeros(16, 16)) == "0" * 64
    blank = lab.show(state(picture="0" * 64, size=3))
    assert blank["picture"] == "0" * 64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "is taken for a 3"),
        (COVERED, "With the cover it"),
        ({"digit": 3, "size": 2, "row": 0, "column": 0}, "it still is"),
    ],
)
def test_what_came_of_it_is_said(given, said):
    assert said in lab.show(state(**given))["said"]


@pytest.mark.parametrize("brief", ["wide", "narrow"])
@pytest.mark.parametrize("given", [{}, {**COVERED, "view": "change", "map": "conv2-3"}, {"size": 1}])
def test_answers_are_short_while_something_is_dragged(brief, given):
    asked = {key: str(value) for key, value in given.items()}
    told = work.perform({"lab": "filters", "state": asked, "brief": brief}, print)
    assert len(json.dumps(told)) < 32_000


@pytest.mark.parametrize(
    "given", [{"digit": 10}, {"picture": "f" * 63}, {"size": 9}, {"row": 16}, {"map": "conv1-6"}, {"view": "all"}]
)
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


def test_the_python_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lab, "EPOCHS", 1)
    script = tmp_path / "script.py"
    script.write_text(lab.python(state(**COVERED), lab.packed(state().drawing())))
    runpy.run_path(str(script))
    assert "torch.Size([1, 6, 28, 28]) torch.Size([1, 16, 10, 10])" in capsys.readouterr().out
