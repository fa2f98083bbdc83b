"""The recipe of autoencoders with a prior: what it reaches beside what must lose, what it shows, and refusals."""

from dataclasses import replace

import pytest
import torch

from lemmata.data import load
from lemmata.generative.autoencoders.recipes_latent import PLAIN, WassersteinLatent, encode_digits
from lemmata.generative.diffusion.recipes import LOST, gaussian_draws, image_features
from lemmata.marks import usual_settings
from lemmata.measure.sample_distances import energy_distance
from lemmata.train import run_experiment


def experiment_of(system, config=None, **changed):
    usual, options = usual_settings(encode_digits, system)
    chosen = replace(usual, **config) if config else usual
    return encode_digits(config=chosen, options=replace(options, device="cpu", **changed), system=system)


@pytest.mark.parametrize("system", ["aae", "waae", "mmd_autoencoder"])
def test_a_few_steps_run_and_show_codes_and_digits(system):
    experiment = experiment_of(system, epochs=1, steps=3, evaluate=1)
    scores = run_experiment(experiment).scores
    assert {"energy_distance", "squared_error", "codes_to_prior"} <= set(scores)
    assert len(experiment.picture(experiment.system).marks) == 10 + 2  # classes, and two circles
    (tile,) = experiment.sample(experiment.system, 7, torch.Generator().manual_seed(0)).marks
    assert (len(tile.pixels), len(tile.pixels[0])) == (2 * 10, 6 * 10)
    assert type(experiment.system)(**experiment.arguments).config == experiment.system.config


@pytest.mark.slow
def test_a_short_training_already_beats_the_gaussian():
    scores = run_experiment(experiment_of("aae", epochs=60, evaluate=60)).scores
    assert scores["energy_distance"] < 0.12 < LOST["digits"]["Gaussian with full covariance"]
    assert scores["squared_error"] < 2
    assert scores["codes_to_prior"] < 0.05


@pytest.mark.long
@pytest.mark.measures("generative.autoencoders.recipes_latent", "plain autoencoder, a Gaussian fitted to its codes")
def test_what_a_plain_autoencoder_makes_up():
    experiment = experiment_of("aae", {"penalty_weight": 0.0})
    model = run_experiment(experiment).system
    with torch.no_grad():
        z = gaussian_draws(model.encode(experiment.train.x), 359, torch.Generator().manual_seed(0))
        features, data = image_features("digits"), load("digits").test.x
        described = (features(2 * x - 1) for x in (model.decode(z).view(-1, 1, 8, 8), data[:, None]))
        found = float(energy_distance(*described, unbiased=True))
    assert found == pytest.approx(PLAIN["plain autoencoder, a Gaussian fitted to its codes"], rel=0.25)


def test_bad_choices_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match="critic_steps must be >= 1, got 0"):
        WassersteinLatent(critic_steps=0)
    with pytest.raises(ValueError, match="weight_decay is not known to two players"):
        experiment_of("aae", weight_decay=0.1)
    with pytest.raises(ValueError, match="optimizer must be one of adam"):
        experiment_of("waae", optimizer="sgd")
