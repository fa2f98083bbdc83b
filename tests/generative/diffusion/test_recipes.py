"""What the recipes promise: samples, a strip of denoising, the same bits after a kill, and a Gaussian that loses."""

from dataclasses import replace

import pytest
import torch

from lemmata.data import load
from lemmata.generative.diffusion.ddpm_networks import ImageDDPMConfig, PointDDPMConfig
from lemmata.generative.diffusion.recipes import (
    GAUSSIAN,
    LOST,
    gaussian_score,
    generate_clothing,
    generate_digits,
    generate_points,
)
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment

FEW = PointDDPMConfig(widths=(8,), noising_steps=5)
SMALL = ImageDDPMConfig(widths=(4, 8), groups=2, noising_steps=8)


def few_steps(recipe, config=None, **changed):
    usual, options = usual_settings(recipe, "ddpm")
    quick = {"device": "cpu", "epochs": 1, "steps": 2, "batch_size": 32, **changed}
    return recipe(config=config or usual, options=replace(options, **quick))


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "patch"), [(generate_digits, 1), (generate_clothing, 4)])
def test_images_are_sampled_and_shown_on_their_way(recipe, patch):
    experiment = few_steps(recipe, replace(SMALL, patch=patch))
    experiment = replace(experiment, test=experiment.test[:40])
    scores = run_experiment(experiment).scores
    assert scores["energy_distance"] > LOST["digits" if patch == 1 else "fashion"][GAUSSIAN]
    drawn = experiment.sample(experiment.system, 6, torch.Generator().manual_seed(0))
    assert len(drawn.marks) == 1
    assert drawn == experiment.sample(experiment.system, 6, torch.Generator().manual_seed(0))
    assert len(experiment.picture(experiment.system).marks) == 1


def test_points_resume_to_the_bit(tmp_path):
    def run(steps, resume=False):
        experiment = few_steps(generate_points, FEW, epochs=2, steps=steps, schedule="constant")
        return run_experiment(replace(experiment, test=experiment.test[:50]), out=tmp_path / name, resume=resume)

    name = "whole"
    whole = run(6)
    name = "broken"
    run(3)
    assert run(6, resume=True).scores == whole.scores


@pytest.mark.slow
def test_moons_beat_the_gaussian():
    experiment = few_steps(generate_points, epochs=60, steps=None, batch_size=128, evaluate=60)
    assert run_experiment(experiment).scores["energy_distance"] < LOST["moons"][GAUSSIAN] / 2


@pytest.mark.slow
@pytest.mark.measures("generative.diffusion.recipes", "Gaussian with full covariance")
@pytest.mark.parametrize("data", LOST)
def test_what_a_gaussian_reaches(data):
    assert LOST[data][GAUSSIAN] == pytest.approx(gaussian_score(load(data)), rel=0.1)
