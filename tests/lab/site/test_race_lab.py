"""What the race lab must get right: paths that are the optimisers' own, a limit that is one, the network as it is."""

import math
import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="the page is not installed")

import torch

from lemmata.lab.site.work.race_lab import (
    CELLS,
    NAMES,
    STEPS,
    State,
    course,
    moons_and_network,
    network_course,
    python,
    show,
    still,
)

EVERYBODY = ",".join(NAMES)


def racer(told, name):
    return next(each for each in told["racers"] if each["name"] == name)


def test_descent_arrives_below_the_limit_and_flies_off_above_it():
    below, above = (racer(show(State(racers="descent", share=share)), "Descent") for share in (0.95, 1.05))
    assert below["lost"] is None
    assert below["heights"][-1] < below["heights"][0]
    assert above["lost"] is not None
    assert above["arrived"] is None


def test_the_path_is_that_of_the_optimiser():
    told = show(State(place="double_well", racers="heavy", share=0.3, momentum=0.5))
    x = torch.tensor(course(State(place="double_well")).start.tolist(), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.3 * 2 / 8, momentum=0.5)  # at the minima the curvatures are 8 and 2
    for u, v in racer(told, "Heavy ball")["path"]:
        assert [u, v] == pytest.approx(x.tolist(), abs=1e-4)
        optimizer.zero_grad()
        ((x[0] ** 2 - 1) ** 2 + x[1] ** 2).backward()
        optimizer.step()


def test_the_network_is_the_librarys_own():
    (x, y), network = moons_and_network(3)
    on = network_course(3)
    assert float(on.f(on.start)) == pytest.approx(float((network(x)[:, 0] - y).square().mean().detach()), rel=1e-12)
    shifted = on.start + 0.1 * torch.arange(len(on.start))
    torch.nn.utils.vector_to_parameters(shifted, network.parameters())
    many = on.f(torch.stack([on.start, shifted]))
    assert float(many[1]) == pytest.approx(float((network(x)[:, 0] - y).square().mean().detach()), rel=1e-12)


@pytest.mark.parametrize("place", ["valley", "rosenbrock", "beale", "saddle", "network"])
def test_what_is_shown_fits_together(place):
    told = show(State(place=place, racers=EVERYBODY, share=1.5, rate=1.0))
    assert len(told["relief"]) == 2 * CELLS**2
    assert [each["name"] for each in told["racers"]] == list(NAMES.values())
    assert told["lr"] == pytest.approx(1.5 * told["limit"])
    for each in told["racers"]:
        assert len(each["heights"]) == STEPS + 1
        assert 1 <= len(each["path"]) <= STEPS + 1
        assert each["path"][0] == pytest.approx(told["start"], abs=1e-4)
        assert all(math.isfinite(u) and math.isfinite(v) for u, v in each["path"])
        assert all(height is None or math.isfinite(height) for height in each["heights"])


@pytest.mark.parametrize("place", ["valley", "network"])
def test_the_sweep_has_one_curve_for_each_that_takes_the_step_and_the_line(place):
    marks = show(State(place=place, racers="descent,nesterov,adam"))["figures"]["sweep"].marks
    assert [mark.label for mark in marks] == ["Descent", "Nesterov", "2/L", "your step"]
    assert marks[2].x == [1.0, 1.0]
    left = dict(zip(marks[0].x, marks[0].y, strict=True))
    if place == "valley":  # beyond the limit it only grows, and is soon off the page
        assert all(value is None or value > 1 for share, value in left.items() if share > 1.02)
        assert all(value < 1 for share, value in left.items() if share < 0.98)


def test_racers_come_in_the_order_of_the_course():
    assert State(racers="adam,descent").chosen() == ["descent", "adam"]
    assert [each["name"] for each in show(State(racers="adam,descent"))["racers"]] == ["Descent", "Adam"]


def test_a_start_on_the_ridge_stays_on_it():
    told = show(State(place="saddle", x=-4.0, y=0.0, racers="descent"))
    assert all(v == 0 for _, v in racer(told, "Descent")["path"])
    assert racer(told, "Descent")["arrived"] is None


def test_pictures_are_those_of_the_state():
    assert len([mark for mark in still(State(racers="descent,adam")).marks if mark.__class__.__name__ == "Line"]) == 2
    assert still(State(place="network")).y_log


@pytest.mark.parametrize("state", [State(racers="nesterov"), State(place="network", racers="adam", rate=0.05)])
def test_the_same_in_python_ends_at_the_same_height(state, tmp_path):
    script = tmp_path / "shown.py"
    script.write_text(python(state, course(state)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    limit, height = map(float, done.stdout.split())
    told = show(state)
    assert limit == pytest.approx(told["limit"], rel=1e-5)
    assert height == pytest.approx(told["racers"][0]["heights"][-1], rel=0.01)
