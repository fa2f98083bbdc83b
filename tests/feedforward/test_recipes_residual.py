"""The recipes of residual networks: what they reach in a short time, what they show, and what is kept of a run."""

from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.feedforward import ResidualMLP
from lemmata.feedforward.recipes_residual import (
    ResidualPictureConfig,
    residual_clothing,
    residual_digits,
    residual_points,
)
from lemmata.figure import Heat, Image
from lemmata.train import Options, run_experiment


@pytest.mark.parametrize("data", ["moons", "xor"])
def test_points_are_separated_better_than_by_a_straight_line(data):
    experiment = residual_points(data, options=Options(epochs=4, lr=1e-3, device="cpu"))
    reached = run_experiment(experiment).scores["accuracy"]
    assert reached > 0.95 > experiment.notes["baselines"]["logistic regression"]
    assert isinstance(experiment.picture(experiment.system).marks[0], Heat)


def test_three_passes_over_the_digits_suffice_for_most():
    small = ResidualPictureConfig(width=128, depth=12)
    run = run_experiment(residual_digits(config=small, options=Options(epochs=3, lr=1e-3, device="cpu")))
    assert run.scores["accuracy"] > 0.9


def test_clothing_is_learnt_a_little_in_a_few_steps():
    run = run_experiment(residual_clothing(options=Options(steps=30, batch_size=64, lr=1e-3, device="cpu")))
    assert run.scores["accuracy"] > 0.5


def test_training_goes_on_where_it_stopped_and_gives_the_same_bits(tmp_path):
    options = Options(epochs=1, lr=1e-3, device="cpu")
    for folder, epochs in (("once", [2]), ("twice", [1, 2])):
        for number, last in enumerate(epochs):
            experiment = residual_points("moons", options=replace(options, epochs=last))
            run_experiment(experiment, out=tmp_path / folder, resume=number > 0)
    first, second = (lemmata.load(tmp_path / folder) for folder in ("once", "twice"))
    assert isinstance(first, ResidualMLP)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_pictures_are_shown_with_predictions():
    experiment = residual_digits()
    assert all(isinstance(image, Image) for image in experiment.picture(experiment.system).marks)
    assert set(experiment.notes["baselines"]) >= {"MLPClassifier", "logistic regression"}


def test_bad_choices_are_answered_in_words():
    with pytest.raises(ValueError, match="shift must be >= 0, got -1"):
        ResidualPictureConfig(shift=-1)
    with pytest.raises(ValueError, match="depth must be >= 1, got 0"):
        ResidualPictureConfig(depth=0)
