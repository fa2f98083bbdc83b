"""The recipe with a certificate: its prior has no part in its bound, and its bound no part in the test."""

import dataclasses

import torch

from lemmata.generalization.recipes import OPTIONS, CertificateConfig, certify_classes
from lemmata.train.loop import run_experiment


def test_the_examples_of_the_bound_did_not_make_the_prior() -> None:
    options = dataclasses.replace(OPTIONS, epochs=30, device="cpu")
    experiment = certify_classes("moons", CertificateConfig(widths=(32,), samples=200), options)
    scores = run_experiment(experiment).scores
    train, system = experiment.train, experiment.system
    assert torch.equal(system.made_prior(train.x, train.y), train.for_prior)
    assert scores["gibbs_error"] < scores["certificate"] < 0.4
    found, looser = (experiment.learner.certificate(system, form) for form in ("kl", "mcallester"))  # type: ignore[union-attr]
    assert found.n == int((~train.for_prior).sum())
    assert found.bound.value < looser.bound.value
