"""The recipe with a certificate: its prior has no part in its bound, its bound none in the test, and it resumes."""

import dataclasses

import pytest
import torch

from lemmata.generalization.recipes import OPTIONS, CertificateConfig, certify_classes
from lemmata.train import Watcher, run_experiment


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


class StopAfter(Watcher):
    def __init__(self, step: int) -> None:
        self.last = step

    def stepped(self, step: int, epoch: float, numbers: object) -> None:
        if step == self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stopped", [20, 50])  # while the prior learns, and after the posterior has begun
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(stopped, tmp_path) -> None:
    config = CertificateConfig(widths=(16,), samples=20)
    options = dataclasses.replace(OPTIONS, epochs=4, save=15, device="cpu")
    whole = run_experiment(certify_classes("moons", config, options))
    with pytest.raises(KeyboardInterrupt):
        run_experiment(certify_classes("moons", config, options), watchers=[StopAfter(stopped)], out=tmp_path / "run")
    resumed = run_experiment(certify_classes("moons", config, options), out=tmp_path / "run", resume=True)
    for name, value in whole.system.state_dict().items():
        assert torch.equal(resumed.system.state_dict()[name], value), name
    assert resumed.scores == whole.scores
