"""The recipes of linear models: what they reach beside what must lose, resuming, what they show."""

from dataclasses import replace

import pytest
import torch

from lemmata.generative.autoencoders.recipes_factor import CodeConfig, copy_digits, factors_of_digits, project_digits
from lemmata.marks import recipe_for, usual_settings
from lemmata.train import run_experiment


@pytest.mark.parametrize(("system", "most"), [("factor_analysis", 132.6), ("probabilistic_pca", 131.3)])
def test_independent_gaussians_lose(system, most):
    config, options = usual_settings(factors_of_digits, system)
    experiment = recipe_for(factors_of_digits, system)(config=config, options=options)
    scores = run_experiment(experiment).scores
    assert scores["nll"] < most < 149 < experiment.notes["baselines"]["independent Gaussians"]
    assert [mark.label for mark in experiment.picture(experiment.system).marks] == ["factors", "digits", "copies"]
    (tile,) = experiment.sample(experiment.system, 3, torch.Generator().manual_seed(0)).marks
    assert max(map(max, tile.pixels)) > 0.8
    raw = type(experiment.test)(x=torch.rand(5, 8, 8))  # as `lemmata predict` gives them
    assert set(experiment.predict(experiment.system, raw)) >= {"nll", "factor 1", f"factor {config.factors}"}


def test_other_projections_lose_to_pca():
    experiment = project_digits()
    scores = run_experiment(experiment).scores
    assert scores["error"] < 1.26 < 3.7 < min(experiment.notes["baselines"].values())
    assert len(experiment.picture(experiment.system).marks) == 3
    assert experiment.predict(experiment.system, experiment.test)["component 10"].shape == (359,)


@pytest.mark.slow
def test_a_linear_autoencoder_learns_as_much():
    experiment = copy_digits()
    experiment = replace(experiment, options=replace(experiment.options, device="cpu", epochs=30))
    assert run_experiment(experiment).scores["error"] < 1.32  # PCA: 1.25
    assert len(experiment.picture(experiment.system).marks) == 3
    assert experiment.predict(experiment.system, experiment.test)["code 10"].shape == (359,)


def test_half_an_epoch_and_the_rest_give_the_same_bits(tmp_path):
    _, once = usual_settings(factors_of_digits, "factor_analysis")
    config, _ = usual_settings(factors_of_digits, "factor_analysis")
    options = replace(once, batch_size=800, save=1)

    def made(options):
        return factors_of_digits(config=replace(config, factors=3), options=options, system="factor_analysis")

    at_once = run_experiment(made(options)).system
    run_experiment(made(replace(options, steps=1)), out=tmp_path / "run")
    resumed = run_experiment(made(options), out=tmp_path / "run", resume=True).system
    assert all(torch.equal(a, b) for a, b in zip(at_once.parameters(), resumed.parameters(), strict=True))


def test_bad_choices_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match="code_size must be <= 64, got 65"):
        CodeConfig(code_size=65)
