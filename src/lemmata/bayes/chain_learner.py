r"""Chains in the training loop: each epoch a transition of all of them, and an ensemble that fills with their draws."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.bayes.chain_streams import ChainStreams
from lemmata.bayes.energy import PosteriorEnergy, posterior_energy
from lemmata.bayes.ensemble import Ensemble
from lemmata.bayes.transition import Kernel, LogDensity
from lemmata.bayes.warmup import Warmup
from lemmata.data.examples import Examples

__all__ = ["ChainLearner"]


class ChainLearner:
    r"""A learner for `fit` that samples: batches must hold all examples, since a transition needs the whole gradient.

    $$ \theta_c \sim p(\theta|S), \qquad p(y|x) \approx \frac1n \sum_c p(y|x,\theta_c) $$

    The chains start at the ensemble's first members. `warmup` transitions tune the kernel that `kernel` makes of the
    log density; of the `draws` transitions after them so many are kept, evenly spread, as fill the ensemble. Members
    that are not filled yet have weight 0. Each chain has its own random numbers, so that a run that was stopped goes on
    to the same bits.

    >>> from lemmata.bayes.hmc import HamiltonianMonteCarlo
    >>> ensemble, x = Ensemble([torch.nn.Linear(1, 1) for _ in range(8)]), torch.randn(50, 1)
    >>> learner = ChainLearner(ensemble, Examples(x=x, y=x[:, 0]), HamiltonianMonteCarlo, 1.0, chains=4, warmup=100,
    ...     draws=100, loss=lambda output, y: (output[:, 0] - y).square() / 0.02)
    >>> for epoch in range(200): numbers = learner.step(learner.train, epoch / 200)
    >>> ensemble.mean(torch.ones(1, 1)).round(decimals=1)
    tensor([[1.]], grad_fn=<RoundBackward1>)
    """

    def __init__(
        self,
        ensemble: Ensemble,
        train: Examples,
        kernel: Callable[[LogDensity], Kernel[Any]],
        prior_variance: float,
        *,
        chains: int,
        warmup: int,
        draws: int,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        metrics: Callable[[Any, Examples], Mapping[str, float]] | None = None,
        seed: int = 0,
    ) -> None:
        self.ensemble, self.train, self.kernel, self.loss, self.metrics = ensemble, train, kernel, loss, metrics
        self.prior_variance = validate.positive("prior_variance", prior_variance)
        self.chains = validate.count("chains", chains, most=ensemble.members)
        if ensemble.members % chains:
            raise ValueError(f"members must be a multiple of the {chains} chains, got {ensemble.members}")
        self.rounds = ensemble.members // chains
        self.transitions = validate.count("warmup", warmup, least=0)
        self.every = validate.count("draws", draws, least=self.rounds) // self.rounds
        self.drawn, self.accepted = 0, 0.0
        self.streams = ChainStreams(seed, chains)
        self.state_: Any = None
        self.warmup: Warmup | None = None
        self._restored: Mapping[str, Any] | None = None

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        """One transition of every chain."""
        if len(batch) != len(self.train):
            raise ValueError(f"batch_size must be at least {len(self.train)}: chains need the gradient of all examples")
        warmup = self._begin_chains() if self.warmup is None else self.warmup
        if warmup.done < self.transitions:
            self.state_, transition = warmup.step(self.state_, self.streams)
        else:
            self.state_, transition = warmup.kernel.step(self.state_, self.streams)
            self.drawn += 1
            self.accepted += float(transition.acceptance.mean())
        self._keep_positions()
        energy = -float(self.state_.log_density.mean()) / len(self.train)
        return {
            "loss": energy,
            "acceptance": float(transition.acceptance.mean()),
            "divergent": float(transition.divergent.double().mean()),
        }

    def evaluate(self, examples: Examples) -> Mapping[str, float]:
        """The metrics, by the members that are filled, and the mean acceptance of what was drawn so far."""
        home = next(self.ensemble.parameters())
        with torch.no_grad():
            found = self.metrics(self.ensemble, examples.to(home.device)) if self.metrics else {}
        return {**found, **({"acceptance": self.accepted / self.drawn} if self.drawn else {})}

    def state(self) -> dict[str, Any]:
        """Where chains, streams and warm-up stand."""
        if self.warmup is None:  # no step was taken here yet
            return {"state": None} if self._restored is None else dict(self._restored)
        counts = {"drawn": self.drawn, "accepted": self.accepted, "state": list(self.state_)}
        return counts | {"streams": self.streams.state_dict(), "warmup": self.warmup.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned; the next step goes on from there."""
        self._restored = None if state["state"] is None else state
        self.warmup = None

    # --- How it begins, and what is kept ---

    def _begin_chains(self) -> Warmup:
        """The chains where they start, or where a run before stopped, on the device that `fit` has chosen."""
        home = next(self.ensemble.parameters())
        energy = self._energy_at_home(home)
        kernel = self.kernel(energy.log_density)
        self.warmup = warmup = Warmup(kernel, self.transitions, energy.dimension, "diagonal")
        if self._restored is None:
            self.state_ = kernel.init(self.ensemble.flat[: self.chains])
            return warmup
        rows = [each.to(home.device) for each in self._restored["state"]]
        self.state_ = type(kernel.init(rows[0]))(*rows)
        self.streams.load_state_dict(self._restored["streams"])
        warmup.load_state_dict(self._restored["warmup"], home.device)
        self.drawn, self.accepted = self._restored["drawn"], self._restored["accepted"]
        self._restored = None
        return warmup

    def _energy_at_home(self, home: Tensor) -> PosteriorEnergy:
        train = self.train.to(home.device)
        x, y = (part.to(home.dtype) if part.is_floating_point() else part for part in (train.x, train.y))
        return posterior_energy(self.ensemble.member(0).eval(), (x, y), self.prior_variance, loss=self.loss)

    def _keep_positions(self) -> None:
        """The positions into the members whose turn it is; while the chains warm up, into the first."""
        if self.drawn % self.every == 0:
            turn = max(self.drawn // self.every - 1, 0)
            self.ensemble.put(self.state_.position, (turn % self.rounds) * self.chains)
            filled = min(turn + 1, self.rounds) * self.chains
            self.ensemble.weights.zero_()[:filled] = 1 / filled
