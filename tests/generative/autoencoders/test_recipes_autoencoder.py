"""What the recipes promise: photographs without their noise, and digits in fewer numbers than components need."""

from dataclasses import replace

import torch

from lemmata.generative.autoencoders.recipes_autoencoder import (
    PhotoDenoiserConfig,
    best_gaussian_filter,
    denoise_photographs,
    squeeze_digits,
)
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


def test_digits_in_eight_numbers_beat_eight_components():
    _, options = usual_settings(squeeze_digits, "deep_autoencoder")
    experiment = squeeze_digits(options=replace(options, epochs=10, device="cpu"))
    score = run_experiment(experiment).scores["error"]
    assert score < experiment.notes["baselines"]["8 principal components"]
    assert len(experiment.picture(experiment.system).marks) == 3
    figure = experiment.sample(experiment.system, 2, torch.Generator().manual_seed(0))
    assert len(figure.marks) == 1
    assert experiment.predict(experiment.system, experiment.test)["code 7"].shape == (len(experiment.test),)


def test_a_few_steps_of_denoising_take_noise_away():
    _, options = usual_settings(denoise_photographs, "denoising_autoencoder")
    config = PhotoDenoiserConfig(width=8, depth=3, patches=128)
    experiment = denoise_photographs(config=config, options=replace(options, epochs=5, device="cpu"))
    score = run_experiment(experiment).scores["psnr"]
    baselines = experiment.notes["baselines"]
    assert baselines["noisy"] + 2 < score
    assert abs(baselines["Gaussian filter"] - 26.5) < 0.2
    assert len(experiment.sample(experiment.system, 2, torch.Generator().manual_seed(0)).marks) == 4
    assert [mark.label.split(",")[0] for mark in experiment.picture(experiment.system).marks] == [
        "noisy", "Gaussian filter", "denoised", "truth",
    ]  # fmt: skip


def test_the_best_filter_of_an_image_without_noise_is_the_narrowest():
    image = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    assert (best_gaussian_filter(image, image) - image).abs().mean() < (image.mean() - image).abs().mean()
