"""The lab of attacks in the plane: paths that are the library's, and a truth that no attack in the ball contradicts."""

import subprocess
import sys

import pytest
import torch

pytest.importorskip("fastapi", reason="the page is not installed")

from lemmata.lab.site.work.robustness import plane_attacks_lab as lab
from lemmata.lab.site.work.robustness.plane_attacks_lab import State, show
from lemmata.robustness import deepfool, exact_radius, fgsm, pgd

PLACES = [(-0.68, 0.75), (0.34, 0.55), (0.29, -0.02), (1.9, -1.9)]


def shown(**given):
    told = show(State(**given))
    return told, {row["name"]: row for row in told["rows"]}


@pytest.mark.parametrize("norm", ["inf", "2", "1"])
@pytest.mark.parametrize(("x", "y"), PLACES)
def test_what_is_drawn_is_what_the_library_finds(x, y, norm):
    state = State(x=x, y=y, norm=norm, seed=3)
    model, place, power = lab.network("clean"), state.point(), float(norm)
    label = model(place).argmax(1)
    _, rows = shown(x=x, y=y, norm=norm, seed=3)
    drawn = torch.Generator().manual_seed(3)
    asked = {
        "FGSM": fgsm(model, place, label, 0.4, power, lab.BOUNDS),
        "PGD": pgd(model, place, label, 0.4, power, lab.BOUNDS, generator=drawn, steps=10),
    }
    if norm != "1":
        asked["DeepFool"] = deepfool(model, place, label, norm=power, bounds=lab.BOUNDS)
    assert list(rows) == list(asked)
    for name, attack in asked.items():
        assert rows[name]["fooled"] == bool(attack.success), name
        if rows[name]["fooled"]:
            assert rows[name]["found"] == pytest.approx(attack.examples[0].tolist(), abs=1e-3)
            assert rows[name]["distance"] == pytest.approx(float(attack.norms), abs=1e-3)


@pytest.mark.parametrize("norm", ["inf", "2", "1"])
@pytest.mark.parametrize(("x", "y"), PLACES)
@pytest.mark.parametrize("training", ["clean", "adversarial"])
def test_nobody_is_nearer_than_the_exact_radius(x, y, norm, training):
    for projection in ("project", "rescale", "none"):
        told, rows = shown(x=x, y=y, norm=norm, training=training, projection=projection)
        for row in rows.values():
            assert not row["fooled"] or row["distance"] >= told["radius"] - 2e-4
        kept_in = rows["PGD"]["inside"]
        assert kept_in or projection == "none"


def test_without_a_projection_an_example_comes_from_where_none_may_be():
    told, rows = shown(x=0.34, y=0.55, projection="none")
    assert told["radius"] > 0.4
    assert rows["PGD"]["fooled"]
    assert not rows["PGD"]["inside"]
    assert "in this ball there is none" in told["words"]
    assert "PGD ends 1.38 away, outside the ball" in told["words"]
    _, rows = shown(x=0.34, y=0.55)
    assert not rows["PGD"]["fooled"]


def test_rescaling_pushes_every_place_onto_the_edge():
    told, rows = shown(x=0.29, y=-0.02, norm="2", projection="rescale")
    there = torch.tensor(rows["PGD"]["path"]) - torch.tensor(told["place"])
    assert there.norm(dim=1).tolist() == pytest.approx([0.4] * 11, abs=2e-3)
    _, kept = shown(x=0.29, y=-0.02, norm="2")
    there = torch.tensor(kept["PGD"]["path"]) - torch.tensor(told["place"])
    assert float(there.norm(dim=1).min()) < 0.38


def test_areas_are_those_of_the_answers_and_fill_the_box():
    areas = lab.areas("clean")
    size = 0.0
    for area in areas:
        corners = torch.tensor(area["corners"], dtype=torch.float64)
        after = corners.roll(-1, 0)
        size += float((corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]).sum().abs()) / 2
    assert size == pytest.approx(16, abs=0.1)
    large = [area for area in areas if torch.tensor(area["corners"]).std(0).min() > 0.1]
    middles = torch.stack([torch.tensor(area["corners"]).double().mean(0) for area in large])
    assert lab.network("clean")(middles).argmax(1).tolist() == [area["class"] for area in large]


def test_training_on_the_worst_points_moves_the_boundary_away():
    moons = lab.moon_points()[:100]
    found = [
        exact_radius(lab.network(how), moons.x, moons.y, bounds=lab.BOUNDS).radius for how in ("clean", "adversarial")
    ]
    assert float(found[1].median()) > 1.3 * float(found[0].median())


def test_the_same_in_python_finds_the_same(tmp_path):
    state = State()
    script = tmp_path / "shown.py"
    script.write_text(show(state)["python"])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    told, rows = shown()
    assert f"radius=tensor([{told['radius']:.4f}]" in done.stdout
    assert f"median norm {rows['DeepFool']['distance']:.3g}" in done.stdout
