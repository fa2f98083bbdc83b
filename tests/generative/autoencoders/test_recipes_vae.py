"""What the recipe promises: better than clusters of pixels, pictures, the same bits again, and codes for new images."""

from dataclasses import replace

import pytest
import torch

from lemmata.generative.autoencoders.recipes_vae import autoencode_images
from lemmata.generative.autoencoders.vae import VAEConfig
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


def experiment(data="digits", config=None, **changed):
    usual, options = usual_settings(autoencode_images, "vae")
    return autoencode_images(data, config or usual, replace(options, device="cpu", **changed))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["digits", "fashion"])
def test_a_vae_beats_clusters_of_pixels(data):
    begun = experiment(data, epochs=30 if data == "digits" else 6)
    scores, lost = run_experiment(begun).scores, begun.notes["baselines"]
    assert lost["independent pixels"] > lost["ten clusters of independent pixels"] > scores["nll"] + 0.7
    assert scores["nll"] < -scores["elbo"]  # many draws bound it tighter
    assert scores["kl"] > 3


def test_a_few_steps_run_show_and_come_again():
    runs = [experiment(epochs=1, steps=4) for _ in range(2)]
    scores = [run_experiment(each).scores for each in runs]
    assert scores[0] == scores[1]
    begun = runs[0]
    assert [mark.label for mark in begun.picture(begun.system).marks][1] == "decoded from the prior"
    assert len(begun.sample(begun.system, 5, torch.Generator().manual_seed(0)).marks) == 1
    codes = begun.predict(begun.system, type(begun.test)(x=torch.rand(3, 8, 8)))
    assert codes["z15"].shape == codes["squared error"].shape == (3,)


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    whole = run_experiment(experiment(epochs=1, steps=9, save=3)).system
    cut = run_experiment(experiment(epochs=1, steps=9, save=3), out=tmp_path / "run", on_step=lambda s: s.step == 5)
    assert cut.steps == 5
    again = run_experiment(experiment(epochs=1, steps=9, save=3), out=tmp_path / "run", resume=True).system
    assert all(torch.equal(*pair) for pair in zip(whole.parameters(), again.parameters(), strict=True))


def test_grey_pixels_are_taken_by_an_output_for_them():
    begun = experiment(config=VAEConfig(output="continuous_bernoulli"), epochs=1, steps=3)
    assert begun.notes == {}
    assert torch.isfinite(torch.tensor(run_experiment(begun).scores["nll"]))
