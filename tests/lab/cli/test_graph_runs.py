"""`lemmata train` and `lemmata predict` on graphs, in-process: options of each layer, and the pictures of a run."""

import json

import pytest

from lemmata.lab.cli import main


def test_a_club_leaves_pictures_and_predictions(capsys, tmp_path):
    folder = tmp_path / "club"
    assert main(["train", "gcn", "--data", "karate", "--epochs", "2", "--device", "cpu", "--out", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "for comparison: perceptron on features alone 59.4 %" in said
    drawn = folder / "figure-oversmoothing.svg"
    assert f"picture  {drawn}" in said
    assert drawn.read_text().startswith("<svg ")
    assert main(["predict", str(folder)]) == 0
    assert "on 32 examples (karate, test)" in capsys.readouterr().out


@pytest.mark.parametrize(("system", "own"), [("gcn", ""), ("gin", ""), ("gat", "--heads"), ("chebnet", "--degree")])
def test_a_layer_has_its_own_options_alone(capsys, system, own):
    with pytest.raises(SystemExit):
        main(["train", system, "--help"])
    said = capsys.readouterr().out
    assert [word for word in ("--heads", "--degree") if word in said] == [own] * bool(own)


def test_a_system_may_be_called_without_its_underscores(tmp_path):
    told = ["train", "deepsets", "--steps", "1", "--device", "cpu", "--quiet", "--out", str(tmp_path / "run")]
    assert main(told) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["system"] == "deep_sets"
