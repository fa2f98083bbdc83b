"""What the recipes promise: robust training beats clean training and noise, and a backdoor shows in nothing else."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from lemmata.marks import usual_settings
from lemmata.robustness.recipes import (
    LOST,
    BackdoorConfig,
    RobustLeNetConfig,
    RobustMLPConfig,
    plant_in_digits,
    withstand_in_digits,
    withstand_in_pictures,
    withstand_in_the_plane,
)
from lemmata.train.loop import run_experiment


def trained(recipe, system, config=None, **changed) -> tuple[Any, dict[str, float]]:
    usual, options = usual_settings(recipe, system)
    experiment = recipe(config=config or usual, options=replace(options, device="cpu", **changed))
    return experiment, dict(run_experiment(experiment).scores)


def test_moons_are_more_robust_after_robust_training():
    scores = {}
    for training in ("adversarial", "clean"):
        config = RobustMLPConfig(widths=(32, 32), eps=0.3, attack_steps=3, training=training)
        experiment, scores[training] = trained(withstand_in_the_plane, "robust_mlp", config, epochs=14, evaluate=14)
        if training == "adversarial":
            assert len(experiment.picture(experiment.system).marks) == 3 + 8
            assert experiment.predict(experiment.system, experiment.test)["class"].shape == (300,)
    robust = scores["adversarial"]
    assert robust["exact_accuracy"] > scores["clean"]["exact_accuracy"] + 0.08
    assert robust["accuracy"] > 0.85
    assert robust["robust accuracy"] >= robust["exact_accuracy"]  # an attack is a bound from above


def test_one_epoch_of_robust_digits_runs_and_shows_images():
    config = RobustLeNetConfig(activation="relu", padding=4, eps=0.2, attack_steps=1)
    experiment, scores = trained(withstand_in_digits, "robust_lenet", config, epochs=1, steps=4)
    assert experiment.on_epoch == experiment.loss.watch  # for one step can be deceived
    assert withstand_in_digits().on_epoch is None
    assert 0 <= scores["pgd_accuracy"] <= scores["accuracy"] <= 1
    assert len(experiment.picture(experiment.system).marks) % 3 == 0
    assert experiment.predict(experiment.system, raw_pictures(experiment))["class"].shape == (5,)


def raw_pictures(experiment):
    """As `lemmata predict` gives them: pictures of 8 pixels without a channel."""
    return type(experiment.test)(x=torch.rand(5, 8, 8))


def test_a_backdoor_opens_by_its_trigger_alone():
    experiment, scores = trained(plant_in_digits, "backdoor", BackdoorConfig("relu", 4, part=0.1), epochs=6)
    assert scores["trigger_success"] > 0.6
    assert scores["accuracy"] > 0.85
    assert len(experiment.picture(experiment.system).marks) == 8


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (lambda: RobustMLPConfig(eps=0.0), "eps must be > 0, got 0.0"),
        (lambda: RobustMLPConfig(activation="tanh"), "activation must be one of relu"),
        (lambda: RobustLeNetConfig(training="often"), "training must be"),
        (lambda: BackdoorConfig(target=10), "target must be <= 9, got 10"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(config, words):
    with pytest.raises(ValueError, match=words):
        config()


@pytest.mark.long
@pytest.mark.measures("robustness.recipes", "standard training", "training on random noise")
@pytest.mark.parametrize(("training", "name"), [("clean", "standard training"), ("noise", "training on random noise")])
@pytest.mark.parametrize(
    ("recipe", "system"),
    [
        (withstand_in_the_plane, "robust_mlp"),
        (withstand_in_digits, "robust_lenet"),
        (withstand_in_pictures, "robust_lenet"),
    ],
)
def test_what_other_training_withstands(recipe, system, training, name):
    usual, _ = usual_settings(recipe, system)
    experiment, scores = trained(recipe, system, replace(usual, training=training))
    data = {withstand_in_the_plane: "moons", withstand_in_digits: "digits", withstand_in_pictures: "fashion"}[recipe]
    assert scores[experiment.metric] == pytest.approx(LOST[data][name], abs=0.06)


@pytest.mark.long
@pytest.mark.measures("robustness.recipes", "without poisoning")
def test_a_trigger_opens_nothing_without_poisoning():
    experiment, scores = trained(plant_in_digits, "backdoor", BackdoorConfig("relu", 4, part=0.0))
    assert scores["trigger_success"] == pytest.approx(experiment.notes["baselines"]["without poisoning"], abs=0.02)
