"""A strategy of continual learning: what it adds to the loss of a task, and what it keeps when the task is over."""

import contextlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.continual.task_stream import TaskStream
from lemmata.data.examples import Examples
from lemmata.marks import system

__all__ = ["Strategy"]


@system("sequential_training", title="Plain sequential training", kind="strategy")
class Strategy:
    r"""Plain training on one task after the other, which forgets; and what every other strategy begins with.

    $$ \theta_t = \operatorname{train}(\theta_{t-1}, L_t) $$

    A strategy of one's own has two hooks: `loss(batch)`, what is lowered on a batch of the task at hand, and
    `after_task(data)`, which is given the task's examples when it is over and may keep what it will need. Whatever it
    keeps stands in `state()`, so that a run goes on where it was stopped. `stream` is set before the first task,
    `task` says which is at hand.

    Claims: continual.forgetting
    Source: McCloskey and Cohen, Catastrophic interference in connectionist networks (1989).

    >>> from torch import nn
    >>> Strategy(nn.Linear(2, 3)).state()
    {}
    """

    stream: TaskStream

    def __init__(self, model: nn.Module) -> None:
        self.model = validate.module("model", model)
        self.task = 0

    def loss(self, batch: Examples) -> Tensor:
        """The mean cross-entropy of a batch of the task at hand, among the classes that it may have."""
        return functional.cross_entropy(self.logits(batch.x, self.task), batch.y)

    def logits(self, x: Tensor, task: int) -> Tensor:
        """What the model answers to inputs of a task, among the classes that the scenario leaves to it."""
        return self.stream.visible(self.model(x), task)

    def before_task(self, task: int) -> None:
        """Called when a task begins, and before the model is judged on it where the scenario tells the task."""
        self.task = task

    def after_task(self, data: Examples) -> None:
        """Called with all examples of the task at hand when it is over; they are not seen again."""

    def guard(self) -> contextlib.AbstractContextManager[Any]:
        """What surrounds each step of the optimiser, so that the step itself can be changed."""
        return contextlib.nullcontext()

    def state(self) -> dict[str, Any]:
        """All that is kept of earlier tasks: tensors, numbers and strings, in dicts and lists."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
