"""Elastic weight consolidation: parameters that matter for earlier tasks are held by springs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.continual.fisher_information import LABELS, fisher_diagonal
from lemmata.continual.strategy import Strategy
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["EWC", "EWCConfig", "Spring"]


@dataclass(frozen=True)
class Spring:
    r"""A quadratic that pulls a vector of parameters to where a task left it.

    $$ \tfrac12 \sum_i F_i (\theta_i - \theta^*_i)^2 $$

    >>> Spring(torch.tensor([2.0, 0.0]), torch.zeros(2)).energy(torch.ones(2))
    tensor(1.)
    """

    stiffness: Float[Tensor, " parameters"]
    rest: Float[Tensor, " parameters"]

    def energy(self, parameters: Float[Tensor, " parameters"]) -> Float[Tensor, ""]:
        """Zero at rest, and so is its gradient."""
        return (self.stiffness * (parameters - self.rest).square()).sum() / 2


@dataclass(frozen=True)
class EWCConfig:
    """What can be chosen of elastic weight consolidation."""

    strength: float = 100.0
    """Weight of the springs in the loss."""
    labels: str = "expected"
    """What the Fisher information is taken over: expected or sampled labels of the model, or those of the data."""
    spring_decay: float | None = None
    """Part of the earlier stiffness that one running spring keeps at each task; without, a spring for each task."""

    def __post_init__(self) -> None:
        validate.number("strength", self.strength, least=0)
        validate.one_of("labels", self.labels, LABELS)
        if self.spring_decay is not None:
            validate.fraction("spring_decay", self.spring_decay, most=1)


@system("ewc", title="Elastic weight consolidation", kind="strategy")
class EWC(Strategy):
    r"""The loss of a new task, with a spring on each parameter as stiff as it is important for the old ones.

    $$ \hat L_B(\theta) = L_B(\theta) + \frac\lambda2 \sum_i F_{ii} (\theta_i - \theta^*_{A,i})^2 $$

    The half is that of the Taylor expansion: with it, and $\lambda = 1$, two quadratic tasks with diagonal curvature
    are solved as if they had been learnt together. `F` is the Fisher information of the model at the end of a task, of
    whose examples nothing else is kept. Each task has a spring of its own, as in the paper; with `spring_decay` there
    is one, at rest where the last task ended.

    Claims: continual.ewc
    Source: Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks (2017); Schwarz et al., Progress
        and compress (2018), for `spring_decay`.

    >>> from lemmata.continual.learning import learn
    >>> from lemmata.continual.task_stream import permuted_tasks
    >>> from lemmata.data import load
    >>> model = nn.Linear(64, 10)
    >>> learned = learn(model, permuted_tasks(load("digits"), tasks=2), EWC(model, strength=10.0), epochs=1)
    """

    def __init__(
        self,
        model: nn.Module,
        strength: float = EWCConfig.strength,
        labels: str = EWCConfig.labels,
        spring_decay: float | None = EWCConfig.spring_decay,
    ) -> None:
        super().__init__(model)
        self.config = config_of(EWCConfig, locals())
        self.springs: list[Spring] = []

    def loss(self, batch: Examples) -> Tensor:
        return super().loss(batch) + self.config.strength * self.penalty()

    def penalty(self) -> Float[Tensor, ""]:
        """The energy of all springs."""
        where = self._flat_parameters()
        return torch.stack([where.new_zeros(()), *(spring.energy(where) for spring in self.springs)]).sum()

    def after_task(self, data: Examples) -> None:
        task = self.task
        y = data.y if self.config.labels == "data" else None
        found = fisher_diagonal(
            self.model, data.x, y, labels=self.config.labels, logits=lambda output: self.stream.visible(output, task)
        )
        stiffness = torch.cat([part.flatten() for part in found.values()])
        rest = self._flat_parameters().detach().clone()  # not the parameters themselves, which move on
        if self.config.spring_decay is not None and self.springs:
            stiffness = stiffness + self.config.spring_decay * self.springs.pop().stiffness
        self.springs.append(Spring(stiffness, rest))

    def _flat_parameters(self) -> Tensor:
        return torch.cat([part.flatten() for part in self.model.parameters() if part.requires_grad])

    def state(self) -> dict[str, Any]:
        return {"springs": [{"stiffness": spring.stiffness, "rest": spring.rest} for spring in self.springs]}

    def restore(self, state: Mapping[str, Any]) -> None:
        home = next(self.model.parameters())
        self.springs = [Spring(each["stiffness"].to(home), each["rest"].to(home)) for each in state["springs"]]
