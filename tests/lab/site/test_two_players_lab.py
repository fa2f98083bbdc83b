"""The lab of two players: multipliers in closed form against the steps that the library takes."""

import itertools
import subprocess
import sys

import pytest
import torch

pytest.importorskip("fastapi", reason="the page is not installed")

from lemmata.lab.site.work.generative.two_players_lab import PLAYS, State, ahead_of_itself, multiplier, played, show


@pytest.mark.parametrize(("eta", "strength"), list(itertools.product((0.05, 0.7, 1.3, 2.15), (0.0, 0.3, 1.0))))
def test_multipliers_are_those_of_the_steps(eta, strength):
    def largest(step):
        matrix = torch.tensor([step(1.0, 0.0), step(0.0, 1.0)], dtype=torch.float64).T
        return float(torch.linalg.eigvals(matrix).abs().max())

    for play in PLAYS:
        found = largest(lambda x, y, play=play: played(x, y, eta, strength, play, 1)[1])
        assert found == pytest.approx(multiplier(play, eta, strength), abs=1e-6)
    wrong = largest(lambda x, y: ahead_of_itself(x, y, eta, strength, 1)[1])
    assert wrong == pytest.approx(multiplier("extragradient", eta, strength, "itself"), abs=1e-6)


@pytest.mark.parametrize(
    ("given", "outcomes"),
    [
        ({}, ["spirals out", "circles", "arrives"]),
        ({"look": "itself"}, ["spirals out", "circles", "spirals out"]),
        ({"eta": 2.0}, ["spirals out", "drifts off", "spirals out"]),
        ({"eta": 2.2}, ["spirals out", "spirals out", "spirals out"]),
        ({"strength": 0.3}, ["arrives", "arrives", "arrives"]),
    ],
)
def test_what_becomes_of_each_way(given, outcomes):
    assert [row["outcome"] for row in show(State(**given))["rows"]] == outcomes


def test_to_look_ahead_of_itself_alone_is_to_play_at_once():
    rows = show(State(look="itself"))["rows"]
    assert rows[2]["path"] == rows[0]["path"]
    assert rows[2]["path"] != show(State())["rows"][2]["path"]


def test_the_script_on_the_page_plays_the_same_game():
    state = State(x=0.5, y=-1.0, strength=0.2, steps=7)
    child = [sys.executable, "-c", show(state)["python"]]
    said = subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()
    ends = [[float(value) for value in said[3 * k + 1 : 3 * k + 3]] for k in range(3)]
    assert ends == [pytest.approx(row["path"][-1], abs=1e-3) for row in show(state)["rows"]]
