"""The digit lab: what is told is what the library finds, edits are where they were made, and shams are seen through."""

import runpy

import pytest
import torch

from lemmata.data import load
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import fooled_digit_lab as lab

SIGNS = {
    "none": set(),
    "temperature": {"zero gradients"},
    "quantiser": {"zero gradients", "black box beats white box"},
    "noise": {"random answers", "shattered gradients"},
}


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def test_the_network_has_learned_to_read():
    test = load("digits").test
    assert (lab.trained_network()(test.x[:, None]).argmax(1) == test.y).double().mean() > 0.95


@pytest.mark.parametrize("defence", list(SIGNS))
def test_each_sham_raises_its_signs_and_one_of_the_attacks_breaks_it(defence):
    found = lab.examined(defence)
    assert {flag.partition(":")[0] for flag in found["flags"]} >= SIGNS[defence]
    assert bool(found["flags"]) == (defence != "none")
    assert found["wrong"] <= 4
    hidden = defence in ("temperature", "quantiser")
    assert (found["pgd"] <= found["wrong"] + 3) == hidden
    assert (found["squares"] >= found["wrong"] + 6) == (defence != "noise")


@pytest.mark.parametrize("defence", list(SIGNS))
def test_examples_lie_in_the_ball_and_the_same_state_looks_the_same(defence):
    chosen = state(digit=9, eps=0.2, defence=defence)
    random = torch.get_rng_state()
    told = lab.show(chosen)
    assert torch.equal(torch.get_rng_state(), random)
    images = lab.attacked(chosen)
    for name in ("pgd", "squares"):
        assert (images[name].double() - images["digit"].double()).abs().max() <= 0.2
        assert images[name].min() >= 0
        assert images[name].max() <= 1
        assert max(map(abs, told["changes"][name])) <= 1
    assert told == lab.show(chosen)


def test_a_radius_of_nothing_changes_nothing():
    images = lab.attacked(state(eps=0))
    assert torch.equal(images["pgd"], images["digit"])
    assert torch.equal(images["squares"], images["digit"])


def test_the_digit_is_turned_and_moved_and_a_pixel_is_turned_over():
    plain = state(digit=4).image()[0, 0]
    assert torch.equal(state(digit=4, right=2).image()[0, 0, :, 2:], plain[:, :-2])
    assert torch.equal(state(digit=4, down=-1).image()[0, 0, :-1], plain[1:])
    assert not torch.allclose(state(digit=4, turn=20).image()[0, 0], plain, atol=0.1)
    edited = state(digit=4, pixels="8" + "0" * 14 + "1").image()[0, 0]
    changed = (edited != plain).nonzero().tolist()
    assert changed == [[0, 0], [7, 7]]
    assert edited[0, 0] == (plain[0, 0] < 0.5)


def test_a_misread_digit_is_told_of():
    plain = lab.show(state(eps=0))
    assert plain["said"] == "This 3 is read rightly, and both attacks fail."
    turned = lab.show(state(digit=5, turn=60, eps=0))
    assert turned["said"] == f"This 5 is read as {turned['read']['digit']} without any attack."


@pytest.mark.parametrize(
    "given", [{"digit": 10}, {"eps": 0.6}, {"turn": 61}, {"pixels": "12"}, {"defence": "x"}, {"right": 4}]
)
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize("defence", ["none", "noise"])
def test_the_python_runs(tmp_path, defence, capsys):
    script = tmp_path / "script.py"
    script.write_text(lab.show(state(defence=defence))["python"])
    runpy.run_path(str(script))
    assert "answered wrongly" in capsys.readouterr().out
