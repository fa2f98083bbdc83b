"""What the race lab must get right: the library's own steps, the longest one, and a network that is the MLP's."""

import math
import subprocess
import sys

import pytest
import torch

pytest.importorskip("fastapi", reason="the page is not installed")

from lemmata.lab.site.work.race_lab import KINDS, State, arena, classifier, outputs, run_race, show, still

PLACES = ("valley", "turned", "rosenbrock", "double_well", "saddle", "beale", "ripples")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["turned", "network"])
def test_everybody_runs_as_if_alone(kind, where):
    """The steps of one optimiser on its own, one gradient at a time."""
    place = arena(State(where=where))
    x = place.start.clone().requires_grad_()
    optimizer = KINDS[kind]([x], lr=0.03)
    for _ in range(20):
        optimizer.zero_grad()
        place.function(x[None])[0].backward()
        optimizer.step()
    race = run_race(place, [("adam", 0.1), (kind, 0.03)], 20, rates=(0.01, 0.1))
    torch.testing.assert_close(race.paths[-1, 1], x.detach(), rtol=1e-12, atol=1e-12)
    assert race.paths.shape == (21, 2, len(place.start))
    assert race.losses[-1, 1] == pytest.approx(place.function(x[None])[0].item() - place.least)
    assert race.tried[1] == pytest.approx(float(race.losses[-1, 0]))  # the first racer's kind at its own rate
    assert race.tried[0] != pytest.approx(float(race.losses[-1, 0]))


@pytest.mark.parametrize(("rate", "fate"), [(-1.01, "on the way"), (-0.99, "diverged")])
def test_steps_beyond_two_over_l_diverge(rate, fate):
    told = show(State(rate_one=rate, steps=120, two="none", three="none"))
    assert told["limit"] == pytest.approx(0.1)
    assert [row["fate"] for row in told["racers"]] == [fate if fate == "diverged" else "arrived"]
    assert not told["local"]


def test_at_two_over_l_it_bounces_for_ever():
    race = run_race(arena(State()), [("sgd", 0.1)], 100)
    torch.testing.assert_close(race.paths[2:, 0, 1], race.paths[:-2, 0, 1])
    torch.testing.assert_close(race.paths[1:, 0, 1], -race.paths[:-1, 0, 1])


@pytest.mark.parametrize("where", PLACES)
def test_losses_are_told_above_the_minimum(where):
    told = show(State(where=where, rate_one=-3.0, rate_two=-3.0, rate_three=-2.0, steps=5))
    assert all(row["loss"] >= 0 for row in told["racers"])
    assert told["limit"] > 0
    assert set(told["figures"]) == {"arena", "loss", "rates"}
    assert len(still(State(where=where)).marks) >= 4


def test_the_first_to_arrive_is_told_with_its_step():
    rows = show(State(steps=120))["racers"]
    assert [row["name"] for row in rows] == ["gradient descent", "heavy ball", "Adam"]
    assert rows[0]["fate"] == "arrived"
    losses = run_race(arena(State()), State().racers(), rows[0]["step"]).losses[:, 0]
    assert losses[-1] <= 1e-4 * losses[0] < losses[-2]


def test_the_network_is_the_mlp():
    model, x, y = classifier(State(where="network", seed=3))
    place = arena(State(where="network", seed=3))
    torch.testing.assert_close(outputs(place.start, x), model(x)[:, 0])
    torch.testing.assert_close(outputs(place.start.repeat(2, 1), x), model(x)[:, 0].expand(2, -1))
    expected = torch.nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y.double())
    assert place.function(place.start[None])[0].item() == pytest.approx(expected.item())
    assert math.isnan(place.limit(torch.full_like(place.start, math.nan)))


def test_the_limit_of_the_network_is_that_of_its_curvature():
    place = arena(State(where="network"))
    matrix = torch.autograd.functional.hessian(lambda w: place.function(w[None])[0], place.start)
    assert place.limit(place.start) == pytest.approx(2 / float(torch.linalg.eigvalsh(matrix)[-1]))


def test_somebody_must_run():
    with pytest.raises(ValueError, match="somebody must run: choose an optimiser"):
        show(State(one="none", two="none", three="none"))
    assert [row["name"] for row in show(State(one="none", two="none"))["racers"]] == ["Adam"]


def test_who_is_thrown_out_leaves_the_picture_to_the_others():
    told = show(State(rate_one=0.5, steps=120))
    assert (told["racers"][0]["loss"], told["racers"][0]["fate"]) == (None, "diverged")
    assert told["racers"][1]["loss"] is not None
    told["figures"]["loss"].to_json()


@pytest.mark.parametrize(
    "state", [State(), State(where="saddle", one="none", up=0.6), State(where="network", one="adam")]
)
def test_the_same_in_python_ends_at_the_same_loss(state, tmp_path):
    script = tmp_path / "shown.py"
    told = show(state)
    script.write_text(told["python"])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert float(done.stdout) - arena(state).least == pytest.approx(told["racers"][0]["loss"], rel=1e-6)
