"""`lemmata attack` in-process: a network of one's own or a run, its figures and its picture, and every bad use."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.robustness.digit_classifier import classifier, digits

from lemmata.lab.cli import main

MINE = """
import torch
from torch import nn

class Times(nn.Module):
    def forward(self, x):
        return x * 1e6

def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

def cold():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), Times())

convolution = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 10))
other_size = nn.Linear(7, 10)
"""
FEW = ("--count", "20", "--steps", "8", "--queries", "30")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file of models, trained weights for them, and data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    save_file(classifier().state_dict(), tmp_path / "weights.safetensors")
    x, y = digits(20)
    np.savez(tmp_path / "few.npz", x=x[:, 0].numpy(), y=y.numpy())
    return tmp_path


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main(["attack", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_accuracy_against_eps_and_a_picture_of_the_worst(place, capsys):
    words = ("mine.py:plain", "--weights", "weights.safetensors", "--data", "digits", "--eps", "0.2", *FEW)
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert "after squares" in out
    assert "20 images, perturbations in the inf-norm" in out
    assert "worst examples: attack.png" in out
    with Image.open(place / "attack.png") as picture:
        assert picture.size[0] > 300
        assert len(picture.getcolors(1 << 20) or ()) > 20
    code, out, _ = call(capsys, *words, "--json", "--norm", "2", "--levels", "17")
    found = json.loads(out)
    accuracies = [found["clean"], *(row["accuracy"] for row in found["accuracy"])]
    assert accuracies == sorted(accuracies, reverse=True)
    assert [row["eps"] for row in found["accuracy"]] == [0.05, 0.1, 0.2]
    assert found["norm"] == "2"
    assert found["flags"] == []


def test_sham_robustness_is_told(place, capsys):
    words = ("mine.py:cold", "--weights", "weights.safetensors", "--data", "few.npz", "--eps", "0.1")
    _, out, _ = call(capsys, *words, *FEW)
    assert "perhaps sham robustness: zero gradients" in out


def test_grey_images_get_a_channel_and_numbers_no_picture(place, capsys):
    code, out, _ = call(capsys, "mine.py:convolution", "--data", "digits", "--eps", "0.01", *FEW, "--json")
    assert code == 0
    assert json.loads(out)["images"] == 20
    x, y = digits(20)
    np.savez(place / "rows.npz", x=x.flatten(1).numpy(), y=y.numpy())
    words = ("mine.py:plain", "--weights", "weights.safetensors", "--data", "rows.npz", "--eps", "0.2")
    code, out, _ = call(capsys, *words, *FEW, "--json", "--out", "rows.png")
    assert (code, json.loads(out)["out"]) == (0, None)
    assert not (place / "rows.png").exists()


def test_a_run_is_attacked_on_its_own_test_images(place, capsys):
    assert main(["train", "mlp", "--data", "digits", "--steps", "60", "--out", "run", "--json", "--device", "cpu"]) == 0
    code, out, _ = call(capsys, "run", "--eps", "0.1", *FEW, "--json")
    assert code == 0
    assert json.loads(out)["clean"] > 0.5


def test_ctrl_c_is_an_exit_code(place, capsys, monkeypatch):
    def stopped(*arguments, **choices):
        raise KeyboardInterrupt

    monkeypatch.setattr("lemmata.robustness.cascade.apgd", stopped)
    code, _, err = call(capsys, "mine.py:convolution", "--data", "digits", "--eps", "0.1", *FEW)
    assert code == 130
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mine.py:plan --data digits --eps 0.1", "has no 'plan'"),
        ("mine.py:plain --eps 0.1", "--data is missing: a data set such as digits"),
        ("mine.py:plain --data digits --eps -1", "--eps must be a number above 0, got -1"),
        ("mine.py:plain --data digits --eps nan", "--eps must be a number above 0, got nan"),
        ("mine.py:plain --data digitz --eps 0.1", "did you mean digits?"),
        ("mine.py:plain --data digits --eps 0.1 --norm 3", "invalid choice '3'"),
        ("mine.py:plain --data digits --eps 0.1 --out x.jpg", "--out must end in .png, got x.jpg"),
        ("mine.py:plain --data digits --eps 0.1 --count 0", "--count must be at least 1, got 0"),
        ("mine.py:plain --data digits --eps 0.1 --steps 0", "steps must be >= 1, got 0"),
        ("mine.py:plain --data digits --eps 0.1 --bounds 0 0.5", "x must lie in bounds (0.0, 0.5), got 0 to 1"),
        ("mine.py:other_size --data digits --eps 0.1", "the model does not take images (200, 8, 8): RuntimeError"),
        ("nowhere --data digits --eps 0.1", "the model must be FILE.py:NAME or the folder of a run"),
    ],
)
def test_bad_use_is_one_line_that_names_the_fix(place, capsys, words, said):
    code, _, err = call(capsys, *words.split())
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_images_of_bytes_are_scaled_to_the_range_of_pixels(place, capsys):
    x, y = digits(20)
    np.savez(place / "bytes.npz", x=(x[:, 0] * 255).to(torch.uint8).numpy(), y=y.numpy())
    words = ("mine.py:plain", "--weights", "weights.safetensors", "--data", "bytes.npz", "--eps", "0.02")
    code, out, _ = call(capsys, *words, *FEW, "--json")
    assert code == 0
    assert json.loads(out)["clean"] > 0.8
    weights = classifier().state_dict()
    weights["1.weight"] /= 255  # a network that takes pixels from 0 to 255
    save_file(weights, place / "weights.safetensors")
    code, again, _ = call(capsys, *words[:-1], "5.1", *FEW, "--bounds", "0", "255", "--json")
    assert code == 0
    found, expected = json.loads(again), json.loads(out)
    assert found["clean"] == expected["clean"]
    assert abs(found["accuracy"][-1]["accuracy"] - expected["accuracy"][-1]["accuracy"]) <= 0.1
