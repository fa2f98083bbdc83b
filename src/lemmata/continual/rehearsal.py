"""Rehearsal: a few examples of each earlier task are learnt again beside the new ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.continual.buffer import CHOICES, choose_examples
from lemmata.continual.strategy import Strategy
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["Rehearsal", "RehearsalConfig"]


@dataclass(frozen=True)
class RehearsalConfig:
    """What can be chosen of rehearsal."""

    size: int = 100
    """Examples that are kept of each task."""
    choice: str = "balanced"
    """Which of them: random, balanced, herding or k_center."""

    def __post_init__(self) -> None:
        validate.count("size", self.size)
        validate.one_of("choice", self.choice, CHOICES)


@system("rehearsal", title="Rehearsal from a buffer", kind="strategy")
class Rehearsal(Strategy):
    r"""The mean of the losses of all tasks so far, those of earlier ones estimated from the examples that were kept.

    $$ \frac1t \Big( L_t(\theta) + \sum_{k<t} \hat L_k(\theta) \Big) $$

    With everything kept it is the objective of joint training. Each update draws as many rows of every earlier task as
    there are new ones in the batch; the number of updates is that of plain training.

    Claims: continual.rehearsal, continual.coreset
    Source: Robins, Catastrophic forgetting, rehearsal and pseudorehearsal (1995); Chaudhry et al., On tiny episodic
        memories in continual learning (2019).

    >>> Rehearsal(nn.Linear(2, 2), size=10).buffers
    []
    """

    def __init__(
        self,
        model: nn.Module,
        size: int = RehearsalConfig.size,
        choice: str = RehearsalConfig.choice,
    ) -> None:
        super().__init__(model)
        self.config = config_of(RehearsalConfig, locals())
        self.buffers: list[Examples] = []  # of each earlier task

    def loss(self, batch: Examples) -> Tensor:
        old = [draw_rows(buffer, len(batch)) for buffer in self.buffers]
        return self.mean_over_tasks([*old, batch])

    def mean_over_tasks(self, batches: list[Examples]) -> Tensor:
        """The mean cross-entropy of each task's batch, in the order of the tasks; one pass through the model."""
        output = self.model(torch.cat([batch.x for batch in batches]))
        parts = output.split([len(batch) for batch in batches])
        losses = [
            functional.cross_entropy(self.stream.visible(part, task), batch.y)
            for task, (part, batch) in enumerate(zip(parts, batches, strict=True))
        ]
        return torch.stack(losses).mean()

    def after_task(self, data: Examples) -> None:
        self.buffers.append(data[choose_examples(data.x, data.y, self.config.size, self.config.choice)])

    def state(self) -> dict[str, Any]:
        return {"buffers": [{"x": buffer.x, "y": buffer.y} for buffer in self.buffers]}

    def restore(self, state: Mapping[str, Any]) -> None:
        device = next(self.model.parameters()).device
        self.buffers = [Examples(x=each["x"], y=each["y"]).to(device) for each in state["buffers"]]


def draw_rows(examples: Examples, count: int) -> Examples:
    """Rows at random: all of them where there are no more than asked for."""
    if len(examples) <= count:
        return examples
    return examples[torch.randperm(len(examples))[:count].to(examples.x.device)]
