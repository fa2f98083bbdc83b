"""`lemmata train --compare`: one run for each trick, one figure, and refusals in one line."""

import json

import pytest

from lemmata.figure import Figure, Line
from lemmata.lab.cli import main


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    try:
        code = main(["train", "mlp", "--data", "moons", "--device", "cpu", "--epochs", "3", "--evaluate", "1", *words])
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_runs_stand_in_one_table_and_one_figure(capsys, tmp_path):
    code, out, err = call(capsys, "--compare", "dropout,batchnorm+weight_decay")
    assert code == 0, err
    for name in ("plain", "dropout", "batchnorm+weight_decay"):
        assert f"training mlp on moons, {name}" in out
    assert "less plain" in out
    assert "are within the noise of" in out
    folder = tmp_path / "runs" / "mlp-moons-compared-1"
    facts = json.loads((folder / "comparison.json").read_text())
    assert list(facts["runs"]) == ["plain", "dropout", "batchnorm+weight_decay"]
    figure = Figure.from_json(facts["figure"])
    assert [len(mark.x) for mark in figure.marks if isinstance(mark, Line)] == [3, 3, 3]
    assert (folder / "comparison.svg").read_text().startswith("<svg ")
    assert call(capsys, "--compare", "dropout", "--quiet")[0] == 0
    assert (tmp_path / "runs" / "mlp-moons-compared-2").is_dir()


def test_it_is_told_as_json_into_a_folder_of_ones_own(capsys, tmp_path):
    code, out, _ = call(capsys, "--compare", "layernorm", "--out", "mine", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["folder"] == "mine"
    assert set(facts["runs"]["layernorm"]) == {"scores", "steps", "epochs", "seconds", "stopped"}
    assert (tmp_path / "mine" / "comparison.svg").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--compare", "magic"], "tricks must be one of lecun, glorot"),
        (["--compare", ""], "--compare needs tricks, as in --compare dropout,batchnorm+weight_decay, got none"),
        (["--compare="], "--compare needs tricks"),
        (["--compare", ","], "tricks must have one name or more"),
        (["--compare", "augmentation"], "augmentation needs pictures"),
        (["--compare", "dropout", "--procs", "2"], "leave out --resume, --procs and --tensorboard"),
        (["--compare", "dropout", "--resume", "--out", "here"], "leave out --resume, --procs and --tensorboard"),
        (["--compare", "dropout", "--lr", "1e30", "--optimizer", "sgd"], "mlp on moons, plain: loss became"),
    ],
)
def test_what_cannot_be_is_told_in_one_line_and_leaves_no_folder(capsys, tmp_path, words, told):
    code, _, err = call(capsys, *words)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("runs/*"))
