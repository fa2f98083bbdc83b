"""What the lab of a VAE by hand computes: sums over its grid are the integrals, and the best q is the posterior."""

import pytest
import torch

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.generative.autoencoders.elbo import linear_gaussian_elbo
from lemmata.lab.site.work.generative.vae_by_hand_lab import State, show


@pytest.mark.parametrize("q", [(-3.0, 0.1), (3.0, 2.0), (0.35, 0.75)])
@pytest.mark.parametrize("noise", [0.3, 1.5])
def test_the_straight_decoder_is_factor_analysis(q, noise):
    told = show(State(mean=q[0], spread=q[1], noise=noise, x=1.2))
    x, mean, spread = (torch.tensor([[value]]).double() for value in (1.2, *q))
    one, none = torch.ones(1, 1).double(), torch.zeros(1).double()
    terms = linear_gaussian_elbo(x, mean, spread, one, none, noise**2)
    known = Gaussian(none, (1 + noise**2) * one).log_density(x)
    assert told["reconstruction"] == pytest.approx(float(terms.reconstruction), abs=1e-4)
    assert told["kl"] == pytest.approx(float(terms.kl), abs=1e-4)
    assert told["evidence"] == pytest.approx(float(known), abs=1e-4)


@pytest.mark.parametrize("model", ["straight", "bent"])
def test_the_evidence_does_not_depend_on_q(model):
    told = [
        show(State(model=model, mean=mean, spread=spread)) for mean, spread in ((-2.5, 0.1), (0.0, 1.0), (2.0, 2.0))
    ]
    assert len({each["evidence"] for each in told}) == 1
    for each in told:
        assert each["elbo"] + each["gap"] == pytest.approx(each["evidence"], abs=2e-4)
        assert each["gap"] >= each["best"]["gap"] >= 0


def test_of_two_best_codes_the_nearer_is_offered():
    ends = [show(State(model="bent", mean=mean))["best"]["mean"] for mean in (-1.0, 1.0)]
    assert ends[0] == -ends[1] < 0
