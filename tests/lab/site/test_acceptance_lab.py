"""The acceptance lab: the right ratio has its target, exactly, and the others have what they have."""

from fractions import Fraction

import pytest

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import acceptance_lab as lab


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("lean", [0.0, 0.3, 0.8])
def test_the_ratio_of_the_move_has_the_target_whatever_the_lean(lean):
    assert lab.ring(state(lean=lean)) == lab.WEIGHTS
    assert (lab.ring(state(lean=lean, ratio="target")) == lab.WEIGHTS) == (lean == 0)


def test_the_printed_ratio_has_the_inverse():
    inverse = [1 / weight for weight in lab.WEIGHTS]
    assert lab.ring(state(ratio="back")) == [each / sum(inverse) for each in inverse]
    assert lab.show(state(ratio="back"))["exact"] == str(Fraction(143, 340))


def test_middling_widths_are_worth_most():
    narrow, usual, wide = (lab.show(state(width=width)) for width in (0.1, 1.5, 8))
    assert narrow["accepted"] > usual["accepted"] > wide["accepted"]
    assert usual["worth"] > 2 * max(narrow["worth"], wide["worth"])


def test_leaning_proposals_are_paid_back_on_the_plane():
    middles = {}
    for ratio in ("move", "target"):
        positions, _ = lab.walk(state(lean=0.8, ratio=ratio, width=1.0))
        middles[ratio] = float(positions[:, 50:, 0].mean())
    assert abs(middles["move"]) < 0.3
    assert middles["target"] > 0.5


def test_the_chain_runs_away_by_the_printed_ratio():
    assert lab.show(state(ratio="back", width=3))["outside"] > 0.5
    assert lab.show(state())["outside"] < 0.001
