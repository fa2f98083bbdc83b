"""The labs of the chapter generalization show what the library does."""

import itertools

import pytest
import torch

from lemmata.generalization import double_descent_risk, labellings
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import double_descent_lab, shattering_lab

PLACES = ["-0.5,-0.3;0.5,-0.2;0,0.5", "0,0.6;-0.6,-0.4;0.6,-0.4;0,0", "-0.5,-0.5;0,0;0.5,0.5;0.1,-0.8"]


def show(lab, **state):
    return lab.show(read_state(lab.State, {key: str(value) for key, value in state.items()}))


@pytest.mark.parametrize(("points", "by"), [*itertools.product(PLACES, ["half-spaces", "discs", "rectangles"])])
def test_every_area_has_the_labels_that_it_stands_for(points, by):
    answer = show(shattering_lab, points=points, by=by)
    x = shattering_lab.State(points=points).places()
    assert answer["count"] == sum(answer["realised"]) == len(labellings(by, x)) <= answer["largest"]
    for k, labels in enumerate(answer["every"]):
        area = show(shattering_lab, points=points, by=by, shown=k)["area"]
        assert (area is not None) == answer["realised"][k]
        if area is not None:
            assert "".join(str(int(inside)) for inside in says_yes(area, x)) == labels


def says_yes(area, x):
    if area["kind"] in ("nothing", "everything"):
        return [area["kind"] == "everything"] * len(x)
    if area["kind"] == "line":
        return (x @ torch.tensor(area["weights"][:2]).double() + area["weights"][2] > 0).tolist()
    if area["kind"] == "disc":
        return ((x - torch.tensor(area["centre"]).double()).norm(dim=1) < area["radius"]).tolist()
    low, high = (torch.tensor(area[end]).double() for end in ("low", "high"))
    return ((x > low) & (x < high)).all(1).tolist()


@pytest.mark.parametrize("signal", ["even", "first"])
def test_the_exact_curve_is_the_mean_of_fits(signal):
    fits = [double_descent_lab.State(p=50, n=20, signal=signal, seed=seed).fit(50) for seed in range(200)]
    weight = double_descent_lab.State(signal=signal).weight()
    risk, norm = torch.tensor(fits).T
    expected = double_descent_risk(weight, 50, 20, 0.25)
    assert float(risk.mean()) == pytest.approx(expected.risk, abs=5 * float(risk.std()) / 200**0.5)
    assert float(norm.mean()) == pytest.approx(expected.squared_norm, abs=5 * float(norm.std()) / 200**0.5)


def test_the_best_ridge_is_better_than_others():
    def mean(ridge):
        fits = [double_descent_lab.State(p=20, ridge=ridge, seed=seed).fit(20)[0] for seed in range(60)]
        return sum(fits) / len(fits)

    best = mean("best")
    assert all(best < mean(ridge) for ridge in ("none", "0.01", "0.1"))
    assert best < 2.25  # what a fit of nothing has
