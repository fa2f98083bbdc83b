"""Bayesian logistic regression by Markov chains: the time until every coefficient has 400 effective draws.

Effective draws for each second are what a sampler is for, so a run goes on until the worst coefficient has enough, by
our diagnostics for everybody. Warm-up counts. Peers have the same density, prior and number of chains.

With one chain the steps of the interpreter are what takes time, about a tenth of a millisecond for each leapfrog;
several chains are one tensor and share them. pyro draws several chains one after another, so that it takes part with
one; blackjax's are one program by vmap, compiled in the first run and kept.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from lemmata.bayes.sampling import sample
from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.effective_samples import diagnose_chains

POINTS, FEATURES = 1000, 50
ENOUGH = 400
WARMUP, BLOCK = 500, 250


CHAINS = {"one": 1, "16": 16, "64": 64}


class Labelled(NamedTuple):
    """Inputs multiplied by their signs, and how many chains there are."""

    signed: Tensor
    chains: int

    def log_density(self, weight: Tensor) -> Tensor:
        """Of the weights of every chain, with a normal prior."""
        likelihood = torch.nn.functional.logsigmoid(weight @ self.signed.T).sum(1)
        return likelihood - 0.5 * weight.square().sum(1)


@entry(
    "mcmc_logistic",
    title="Bayesian logistic regression by Markov chains",
    measures="warm-up and draws until every coefficient has 400 effective draws",
    cases={
        "one": "1,000 x 50, float64, 1 chain",
        "16": "1,000 x 50, float64, 16 chains",
        "64": "1,000 x 50, float64, 64 chains",
    },
    targets={"pyro, HMC": 0.5, "pyro, NUTS": 0.1, "blackjax, NUTS": 1.0},
    devices="cpu",
)
def planted_classes(case: str, device: str) -> Labelled:
    """Gaussian inputs, and classes drawn with the probabilities of a planted model."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
    weight = torch.randn(FEATURES, generator=generator, dtype=torch.float64) / 2
    y = torch.rand(POINTS, generator=generator, dtype=torch.float64) < torch.sigmoid(x @ weight)
    return Labelled(torch.where(y, 1.0, -1.0).double()[:, None] * x, CHAINS[case])


@ours("lemmata, ChEES")
def by_chees(data: Labelled) -> Callable[[], Any]:
    """Our default."""
    start = torch.zeros(data.chains, FEATURES, dtype=torch.float64)

    def draw() -> Any:
        draws = sample(data.log_density, start, draws=BLOCK, warmup=WARMUP, seed=0, progress=False)
        values = [draws.values]
        for seed in range(1, 100):
            if _effective_draws(torch.cat(values, dim=1)) >= ENOUGH:
                break
            last = values[-1][:, -1]
            settings = {"warmup": 0, "kernel": draws.kernel, "seed": seed, "progress": False}
            values.append(sample(data.log_density, last, draws=BLOCK, **settings).values)
        return torch.cat(values, dim=1)

    return draw


@peer("pyro, HMC", needs="pyro-ppl", cases="one")
def by_their_hmc(data: Labelled) -> Callable[[], Any]:
    """Ten leapfrogs, step and mass adapted."""
    return _by_pyro(data, "HMC", {"num_steps": 10})


@peer("pyro, NUTS", needs="pyro-ppl", cases="one")
def by_their_nuts(data: Labelled) -> Callable[[], Any]:
    """As it comes."""
    return _by_pyro(data, "NUTS", {})


@peer("blackjax, NUTS", needs="blackjax")
def by_blackjax(data: Labelled) -> Callable[[], Any]:
    """As its documents have it: window adaptation, then a scan of transitions, both mapped over chains."""
    import blackjax  # pyright: ignore[reportMissingImports]
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    signed = jax.numpy.asarray(data.signed.numpy())

    def log_density(weight: Any) -> Any:
        return jax.nn.log_sigmoid(signed @ weight).sum() - 0.5 * (weight**2).sum()

    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)

    def warmed(key: Any, start: Any) -> Any:
        found, _ = adaptation.run(key, start, num_steps=WARMUP)
        return found.state, found.parameters

    def drawn(key: Any, state: Any, parameters: Any) -> Any:
        transition = functools.partial(blackjax.nuts.build_kernel(), logdensity_fn=log_density, **parameters)
        return jax.lax.scan(
            lambda now, each: _kept_state(transition(each, now)[0]), state, jax.random.split(key, BLOCK)
        )

    warm_up, block = jax.jit(jax.vmap(warmed)), jax.jit(jax.vmap(drawn))

    def draw() -> Any:
        first, *keys = jax.random.split(jax.random.key(0), 100)
        start = jax.numpy.zeros((data.chains, FEATURES))
        state, parameters = warm_up(jax.random.split(first, data.chains), start)
        values = []
        for key in keys:
            state, positions = block(jax.random.split(key, data.chains), state, parameters)
            values.append(torch.from_numpy(numpy.array(positions)))  # (chains, draws, features)
            if _effective_draws(torch.cat(values, dim=1)) >= ENOUGH:
                break
        return torch.cat(values, dim=1)

    return draw


def _kept_state(state: Any) -> tuple[Any, Any]:
    return state, state.position


@limit("one gradient, written out, for each effective draw")
def by_gradients_alone(data: Labelled) -> Callable[[], Any]:
    """Two products of matrices and a sigmoid, one draw after another."""
    weight = torch.zeros(FEATURES, dtype=torch.float64)

    def walk() -> Any:
        here = weight
        for _ in range(ENOUGH):
            here = here + 1e-3 * (data.signed.T @ torch.sigmoid(-data.signed @ here) - here)
        return here

    return walk


def _by_pyro(data: Labelled, name: str, options: dict[str, Any]) -> Callable[[], Any]:
    import pyro.infer
    from pyro.infer import MCMC

    def energy(parameters: dict[str, Tensor]) -> Tensor:
        return -data.log_density(parameters["weight"][None])[0]

    start = torch.zeros(FEATURES, dtype=torch.float64)

    def draw() -> Any:
        torch.manual_seed(0)
        draws = 2 * BLOCK
        while True:  # pyro cannot go on from where it stopped: a run that was too short is drawn again, twice as long
            kernel = getattr(pyro.infer, name)(potential_fn=energy, **options)
            run = MCMC(kernel, draws, WARMUP, initial_params={"weight": start}, disable_progbar=True)
            run.run()
            values = run.get_samples(group_by_chain=True)["weight"]
            if _effective_draws(values) >= ENOUGH:
                return values
            draws *= 2

    return draw


def _effective_draws(values: Tensor) -> float:
    return diagnose_chains(values).bulk.min().item()


@agreement(within=0.05)
def posterior_in_numbers(values: Tensor) -> dict[str, float]:
    """Length of the posterior mean, and the mean of the standard deviations."""
    flat = values.flatten(0, 1)
    return {"length": float(flat.mean(0).norm()), "spread": float(flat.std(0).mean())}
