"""A certificate: a bound on the risk of a stochastic network, with all that it rests on, and its rival beside it."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lemmata import validate
from lemmata.generalization.binary_kl import kl_inverse
from lemmata.generalization.pac_bayes import pac_bayes_bound
from lemmata.generalization.risk_bounds import RiskBound, checked_confidence, test_set_bound
from lemmata.generalization.stochastic_network import StochasticNetwork, count_errors
from lemmata.marks import system

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True)
class Certificate:
    """What `certify` found, from the examples to the bound.

    `error` is the mean error of the networks that were drawn, `error_bound` that of the whole posterior on the same
    examples, at most, `divergence` the one from the prior in nats. `test_set` is what the prior's own means, which
    never saw these examples, are guaranteed by them at the same confidence: often the better bound, of another network.
    """

    bound: RiskBound
    error: float
    error_bound: float
    divergence: float
    n: int
    samples: int
    test_set: RiskBound

    def __str__(self) -> str:
        return (
            f"{self.bound}\n"
            f"  error of {self.samples:,} networks drawn: {self.error:.4g} on {self.n:,} examples, "
            f"of all networks at most {self.error_bound:.4g}; divergence {self.divergence:.4g} nats\n"
            f"  beside it, the prior's means: {self.test_set}"
        )


@system("certify", title="Certificate of a stochastic network", kind="function")
def certify(
    posterior: StochasticNetwork,
    data: tuple[Tensor, Tensor],
    samples: int = 1000,
    confidence: float = 0.965,
    form: str = "kl",
    generator: torch.Generator | None = None,
) -> Certificate:
    r"""Bound the risk of a network that is drawn from the posterior anew for each example.

    $$ \hat e \le \mathrm{kl}^{-1}\Big(\bar e \,\Big|\, \frac1m\ln\frac1{\epsilon_1}\Big), \quad
       e \le \mathrm{kl}^{-1}\Big(\hat e \,\Big|\, \frac{D_{KL}(q\|p) + \ln(2\sqrt n/\epsilon_2)}n\Big) $$

    First from the mean error $\bar e$ of m drawn networks to that of all of them, $\hat e$, on the same n examples;
    then to the risk. Two sevenths of what `confidence` leaves to fail are for the first step, $\epsilon_1$, and the
    rest for the second. `data` are inputs and targets that had no part in the prior; those that `set_prior` was given
    are refused. The posterior may have been trained on them. The other forms of `pac_bayes_bound` serve for comparison.

    Shapes:
        data: inputs (n, ...) and classes (n)

    Claims: pac.training
    Source: Langford and Caruana 2002; Dziugaite and Roy 2017; Pérez-Ortiz et al. 2021.

    >>> x = torch.linspace(-1, 1, 400)[:, None]
    >>> posterior = StochasticNetwork(torch.nn.Linear(1, 1), variance=0.01)
    >>> posterior.model.weight.data.fill_(1.0), posterior.model.bias.data.fill_(0.0)
    (tensor([[1.]]), tensor([0.]))
    >>> posterior.set_prior()
    >>> certify(posterior, (x, (x[:, 0] > 0).long())).bound.vacuous
    False
    """
    if not isinstance(posterior, StochasticNetwork):
        raise TypeError(f"posterior must be a StochasticNetwork, got {type(posterior).__name__}")
    x, y = data
    n = validate.count("n", len(y))
    if len(x) != n:
        raise ValueError(f"data must be as many inputs as classes, got {len(x)} and {n}")
    overlap = int(posterior.made_prior(x, y).sum())
    if overlap:
        raise ValueError(
            f"data must have no part in the prior, but {overlap} of {n} examples made it: "
            "keep those of ~posterior.made_prior(x, y)"
        )
    failure = checked_confidence(confidence)
    for_draws = failure * 2 / 7
    training = posterior.training
    posterior.eval()
    try:
        error = float(posterior.gibbs_errors(x, y, samples, generator).mean())
        with torch.no_grad():
            wrong = int(count_errors(posterior.at_prior(x), y))
            divergence = max(0.0, float(posterior.kl()))
    finally:
        posterior.train(training)
    # Rounded as a sum of `samples` fractions may be; the inverse itself is rounded upwards.
    whole = float(kl_inverse(min(1.0, error * (1 + 1e-12)), math.log(1 / for_draws) / samples))
    found = pac_bayes_bound(whole, divergence, n, 1 - (failure - for_draws), form)
    bound = RiskBound(found.value, confidence, f"{found.what}, {samples:,} networks drawn")
    return Certificate(bound, error, whole, divergence, n, samples, test_set_bound(wrong, n, confidence))
