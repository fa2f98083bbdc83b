"""Does a transition kernel leave its target alone? A conformance suite for anyone's sampler."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from lemmata.testing.findings import Nonconforming, Report, asked, found
from lemmata.testing.sampler_checks import CHECKS
from lemmata.testing.sampler_subject import Subject

__all__ = ["SamplerError", "SamplerReport", "check_sampler"]


class SamplerReport(Report):
    """The findings about one sampler, in the order of the checks."""


class SamplerError(Nonconforming):
    """A sampler that failed a check of the suite; `report` holds all findings."""


def check_sampler(
    kernel: Callable[[Callable[[Tensor], Tensor]], Any],
    log_density: Callable[[Tensor], Tensor] | None = None,
    *,
    exact: Callable[[int, Generator], Tensor] | None = None,
    chains: int = 200_000,
    transitions: int = 4,
    reversible: bool = True,
    alpha: float = 1e-9,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> SamplerReport:
    r"""Run every check of the suite on a transition kernel: `kernel` makes one of a log density, as a class does.

    $$ \theta\sim p,\quad\theta'\sim\Pi(\cdot|\theta)\quad\Rightarrow\quad\theta'\sim p $$

    A kernel has `state = init(position)` and `state, transition = step(state, generator)` for many chains at once, as
    those of `lemmata.bayes`. The checks:

    - interface: states are named tuples of tensors with `position` and `log_density`; one entry for each chain
    - untouched: neither start nor state is written into
    - moves: chains do not stand still
    - seeds: all randomness comes from the generator
    - resume: from a saved state a new kernel goes on to the same bits; so nothing adapts while it draws
    - chains: a chain is the same alone as among others (skipped where `ChainStreams` are not taken)
    - scale: the density times 1e-30 or 1e30 gives the same chains
    - conservation: chains that start in the target are still in it after some transitions, by the distributions of
      coordinates, their sum and difference, the distance from 0 and the density
    - balance: as many chains move from one cell of a grid to another as back (skipped for `reversible=False`)

    Statistics accuse a kernel that is right with a probability of at most `alpha` each; with 200,000 chains a
    distribution function that is wrong by 0.02 anywhere is found with a probability above 0.999. What is less, as the
    error of a small step that is never rejected, passes.

    Shapes:
        log_density: (chains, 2) to (chains,); by default a bent, correlated density. Exact draws are taken from a grid
            on [-8, 8]², or from `exact(n, generator)`, which gives (n, dimension) in any dimension

    A check that cannot be decided because an earlier one failed is skipped. With `on_fail="report"` failures are
    reported, not raised.

    >>> from lemmata.bayes import MetropolisHastings
    >>> print(check_sampler(MetropolisHastings, chains=20_000))
    MetropolisHastings: 0 of 9 checks failed
    interface     passed
    untouched     passed
    moves         passed
    seeds         passed
    resume        passed
    chains        passed
    scale         passed
    conservation  passed
    balance       passed
    """
    asked(CHECKS, skip, on_fail)
    subject = Subject.of(kernel, log_density, exact, chains, transitions, reversible, alpha)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        report = SamplerReport(subject.name, found(CHECKS, subject, skip, "kernel"))
    if on_fail == "raise" and not report.passed:
        raise SamplerError(report)
    return report
