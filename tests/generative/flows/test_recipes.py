"""What the recipes promise: a flow beats the best Gaussian, and the true density of the mixture stands beside it."""

from dataclasses import replace

import pytest
import torch

from lemmata.data import load
from lemmata.generative.flows import RealNVPConfig
from lemmata.generative.flows.recipes import (
    gaussian_nll,
    learn_density,
    learn_density_in_order,
    true_log_density,
)
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "system"), [(learn_density, "real_nvp"), (learn_density_in_order, "masked_autoregressive_flow")]
)
def test_moons_are_learnt_better_than_by_the_best_gaussian(recipe, system):
    options = replace(usual_settings(recipe, system)[1], device="cpu", epochs=40, evaluate=40)
    experiment = recipe(options=options)
    scores = run_experiment(experiment).scores
    assert scores["nll"] < experiment.notes["baselines"]["the best Gaussian"] - 0.4
    assert [mark.label for mark in experiment.picture(experiment.system).marks] == ["learnt density", "drawn", "data"]
    assert len(experiment.sample(experiment.system, 30, torch.Generator().manual_seed(0)).marks) == 2


def test_the_mixture_is_shown_beside_its_true_density():
    config = RealNVPConfig(widths=(8,), couplings=2)
    experiment = learn_density("mixture", config, replace(usual_settings(learn_density, "real_nvp")[1], device="cpu"))
    labels = [mark.label for mark in experiment.picture(experiment.system).marks]
    assert labels == ["learnt density", "true density", "drawn", "data"]
    baselines = experiment.notes["baselines"]
    assert baselines["the true density"] < baselines["the best Gaussian"]


def test_baselines_are_those_of_closed_forms():
    x = torch.randn(4000, 2) @ torch.tensor([[2.0, 0.0], [1.0, 0.5]])
    assert gaussian_nll(x, x) == pytest.approx(float(0.5 * torch.cov(x.mT).logdet()) + 1 + 1.8379, abs=1e-3)
    data = load("mixture")
    true = true_log_density(data)
    assert true is not None
    assert true_log_density(load("moons")) is None
    steps = torch.linspace(-20, 20, 400).double()
    mass = true(torch.cartesian_prod(steps, steps)).exp().sum() * (40 / 399) ** 2
    assert float(mass) == pytest.approx(1, abs=1e-3)
