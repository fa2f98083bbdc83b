"""What the chapter's recipes promise: a baseline on the same examples that loses, pictures, predictions."""

from dataclasses import replace

import pytest
import torch

from lemmata.convolution.recipes import BASELINES, LeNet5PictureConfig, classify_clothing_by_lenet
from lemmata.data.registry import load
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


def test_the_baseline_is_what_class_means_reach():
    found = load("fashion")
    x, y = found.train.x.flatten(1).double(), found.train.y
    means = torch.stack([x[y == k].mean(0) for k in range(len(found.classes))])
    nearest = torch.cdist(found.test.x.flatten(1).double(), means).argmin(1)
    assert (nearest == found.test.y).double().mean().item() == pytest.approx(BASELINES["nearest class mean"], abs=0.002)


def test_lenet_beats_the_baseline_after_a_few_epochs():
    _, options = usual_settings(classify_clothing_by_lenet, "lenet")
    config = LeNet5PictureConfig(activation="relu", padding=2)
    experiment = classify_clothing_by_lenet(config=config, options=replace(options, epochs=4))
    run_experiment(experiment)
    assert experiment.metrics
    assert experiment.predict
    assert experiment.picture
    system = experiment.system.eval()
    with torch.no_grad():
        score = experiment.metrics(system, experiment.test)["accuracy"]
        predicted = experiment.predict(system, experiment.test)
    assert score > BASELINES["nearest class mean"]
    assert (predicted["class"] == experiment.test.y).double().mean().item() == score
    assert ((predicted["probability"] > 0.1) & (predicted["probability"] <= 1)).all()
    assert len(experiment.picture(system).marks) == 15


def test_pictures_cannot_be_moved_backwards():
    with pytest.raises(ValueError, match="shift must be >= 0, got -1"):
        LeNet5PictureConfig(shift=-1)
