"""What the recipes promise: pixels that know their neighbours, and samples foretold by those before them."""

from dataclasses import replace

import pytest
import torch

from lemmata.data.examples import Examples
from lemmata.generative.autoregressive.linear_autoregression import LinearAutoregression
from lemmata.generative.autoregressive.masked_network import MADEConfig
from lemmata.generative.autoregressive.pixel_network import PixelNetworkConfig
from lemmata.generative.autoregressive.recipes import (
    LinearAutoregressionConfig,
    YuleWalker,
    draw_digits,
    draw_digits_by_convolution,
    foretell_speech,
    independent_pixel_nats,
)
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


def test_a_few_epochs_of_made_beat_independent_pixels():
    _, options = usual_settings(draw_digits, "made")
    experiment = draw_digits(config=MADEConfig(widths=(128,)), options=replace(options, epochs=12, device="cpu"))
    score = run_experiment(experiment).scores["nll"]
    assert score < experiment.notes["baselines"]["independent pixels"] - 2
    assert [mark.label for mark in experiment.picture(experiment.system).marks] == ["drawn", "test"]
    figure = experiment.sample(experiment.system, 3, torch.Generator().manual_seed(0))
    assert len(figure.marks) == 1


def test_one_step_of_the_pixel_network_and_its_samples():
    _, options = usual_settings(draw_digits_by_convolution, "pixel_network")
    config = PixelNetworkConfig(width=4, depth=1)
    experiment = draw_digits_by_convolution(config=config, options=replace(options, epochs=1, steps=2, device="cpu"))
    assert run_experiment(experiment).scores["nll"] > 0
    assert len(experiment.sample(experiment.system, 2, torch.Generator().manual_seed(0)).marks) == 1


def test_speech_is_foretold_better_than_white_noise():
    experiment = foretell_speech()
    score = run_experiment(experiment).scores["nll"]
    assert score < experiment.notes["baselines"]["white noise as loud"] - 0.8
    assert len(experiment.picture(experiment.system).marks) == 2
    wav = experiment.sample(experiment.system, 2, torch.Generator().manual_seed(0), length=100)
    assert len(wav) == 44 + 2 * 200


def test_windows_in_any_batches_are_the_fit_of_all_of_them():
    x = torch.randn(12, 40, generator=torch.Generator().manual_seed(0))
    systems = []
    for size in (12, 5):
        learner = YuleWalker(LinearAutoregression(3))
        for part in x.split(size):
            learner.step(Examples(x=part), 0.0)
        again = YuleWalker(LinearAutoregression(3))
        again.restore(learner.state())
        again.step(Examples(x=x), 0.0)  # all windows once more: the same weights
        assert torch.allclose(again.system.coefficients, learner.system.coefficients, atol=1e-6)
        systems.append(learner.system)
    assert torch.allclose(systems[0].coefficients, systems[1].coefficients, atol=1e-6)


def test_a_pixel_that_is_never_ink_costs_little_and_not_everything():
    train = torch.zeros(98, 1, 2)
    train[:49, 0, 1] = 1
    nats = independent_pixel_nats(train, torch.tensor([[[0.0, 1.0]]]))
    assert nats == pytest.approx(float(-torch.tensor([0.99, 0.5]).log().sum()))


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match="window must be >= 33, got 20"):
        LinearAutoregressionConfig(window=20)
