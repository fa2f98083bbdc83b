"""Diagnostics of chains against arviz: bulk and tail effective sizes, R-hat and the errors of the means.

Both transform the chains of each quantity for their autocorrelations. What differs is how often ranks are made
again, and what is looped over in the interpreter.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.effective_samples import diagnose_chains


@entry(
    "chain_diagnostics",
    title="Diagnostics of Markov chains against arviz",
    measures="four diagnostics of every quantity, equal to ten digits",
    cases={"usual": "4 chains, 1,000 draws, 50 quantities", "many": "64 chains, 500 draws, 50 quantities"},
    targets={"arviz": 1.5},
    devices="cpu",
)
def autoregressions(case: str, device: str) -> Tensor:
    """Chains that keep half of where they were."""
    chains, draws = {"usual": (4, 1000), "many": (64, 500)}[case]
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(draws, chains, 50, generator=generator, dtype=torch.float64)
    values = [noise[0]]
    for each in noise[1:]:
        values.append(0.5 * values[-1] + 0.75**0.5 * each)
    return torch.stack(values, dim=1)


@ours("lemmata")
def by_ours(values: Tensor) -> Callable[[], Any]:
    """All four at once."""

    def diagnose() -> Any:
        found = diagnose_chains(values)
        return found.bulk, found.tail, found.r_hat, found.mcse

    return diagnose


@peer("arviz", needs="arviz")
def by_arviz(values: Tensor) -> Callable[[], Any]:
    """One call for each diagnostic and quantity, as its summary makes them."""
    import arviz

    columns = [each.numpy() for each in values.unbind(-1)]

    def diagnose() -> Any:
        ways = (
            lambda x: arviz.ess(x, method="bulk"),
            lambda x: arviz.ess(x, method="tail"),
            lambda x: arviz.rhat(x),
            lambda x: arviz.mcse(x, method="mean"),
        )
        return [torch.tensor([float(way(x)) for x in columns], dtype=torch.float64) for way in ways]

    return diagnose


@limit("every quantity sorted once, for its ranks")
def by_sorting(values: Tensor) -> Callable[[], Any]:
    """What all four diagnostics begin with."""
    return lambda: values.flatten(0, 1).sort(0)


@agreement(within=1e-9)
def sums_in_numbers(result: Any) -> dict[str, float]:
    """The mean of each diagnostic."""
    return {name: float(each.mean()) for name, each in zip(("bulk", "tail", "r_hat", "mcse"), result, strict=True)}
