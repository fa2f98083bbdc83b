"""The one loop of continual learning: tasks one after the other, and the accuracy on all of them after each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.continual.heterogeneous_dropout import HeterogeneousDropout
from lemmata.continual.strategy import Strategy
from lemmata.continual.task_stream import TaskStream
from lemmata.continual.transfer_metrics import average_accuracy, backward_transfer, forgetting, forward_transfer
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.gradient import GradientLearner
from lemmata.train.history import History
from lemmata.train.loop import fit
from lemmata.train.options import Options

__all__ = ["ContinualLearner", "Learned", "learn"]


@dataclass(frozen=True)
class Learned:
    """What came of a stream: row i of the matrix has the accuracies on all tasks after i of them, row 0 before any."""

    model: nn.Module
    accuracy_matrix: Tensor  # (tasks + 1, tasks)
    history: History
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The mean accuracy on all tasks in the end."""
        return average_accuracy(self.accuracy_matrix)


@system("learn", title="Learning a stream of tasks", kind="function")
def learn(
    model: nn.Module,
    stream: TaskStream,
    strategy: Strategy | None = None,
    *,
    options: Options | None = None,
    out: Any = None,
    resume: bool = False,
    **chosen: Any,
) -> Learned:
    r"""Train a model on a stream of tasks; `epochs`, `lr`, `batch_size` and all other options are those of each task.

    The optimiser starts anew with each task. Every task has as many updates as the longest of them in so many epochs.
    With `out` a folder holds log and checkpoints, and `resume=True` goes on to the same bits.


    >>> from lemmata.continual.task_stream import permuted_tasks
    >>> from lemmata.data import load
    >>> learned = learn(nn.Linear(64, 10), permuted_tasks(load("digits"), tasks=2), epochs=2, lr=0.01)
    >>> learned.accuracy_matrix.shape
    torch.Size([3, 2])
    """
    strategy = Strategy(model) if strategy is None else strategy
    if strategy.model is not model:
        raise ValueError("strategy must be made of the model that learns: use Strategy(model)")
    options = Options(**chosen) if options is None else options
    learner = ContinualLearner(strategy, stream, options)
    run = fit(
        model, learner.rows, learner=learner, test=learner.rows[:1], out=out, resume=resume, progress=False,
        metric="accuracy", largest=True, options=learner.whole,
    )  # fmt: skip
    return Learned(model, learner.accuracies.clone(), run.history, learner.measures())


class ContinualLearner:
    """A learner for `fit`: the loop's batches are rows, those of whichever task is at hand."""

    def __init__(self, strategy: Strategy, stream: TaskStream, options: Options) -> None:
        self.strategy, self.stream, self.options = strategy, stream, options
        if options.steps is not None:
            raise ValueError("steps must be left out: give the epochs of each task")
        largest = max((task.train for task in stream), key=len)
        longest = len(largest)
        self.rows = Examples(x=largest.x, y=largest.y, row=torch.arange(longest))  # the rest is for whoever looks
        self.updates = options.epochs * -(-longest // options.batch_size)  # of each task
        self.whole = replace(options, epochs=options.epochs * len(stream), patience=None)  # of all tasks
        self.accuracies = torch.full((len(stream) + 1, len(stream)), float("nan"), dtype=torch.float64)
        self.done = 0  # updates
        self.gradient: GradientLearner | None = None
        self._restored: Mapping[str, Any] | None = None
        strategy.stream = stream

    @property
    def task(self) -> int:
        return min(self.done // self.updates, len(self.stream) - 1)

    def step(self, batch: Examples, progress: float) -> dict[str, Tensor | float]:
        """One update on the task at hand; after its last one the model is judged on all tasks."""
        if self.done % self.updates == 0 or self.gradient is None:
            self._begin_task()
        assert self.gradient is not None
        task = self.stream[self.task]
        rows = task.train[batch.row % len(task.train)]
        with self.strategy.guard():
            numbers = self.gradient.step(rows, self.done % self.updates / self.updates)
        ends = (self.done + 1) % self.updates == 0
        if ends:
            self.strategy.after_task(task.train)
            for part in self.strategy.model.modules():
                if isinstance(part, HeterogeneousDropout):
                    part.end_task()
        self.done += 1
        if ends:
            self.accuracies[self.done // self.updates] = self.judge()
        return numbers

    def _begin_task(self) -> None:
        """The data where the model is, a fresh optimiser; and what a stopped run had of it."""
        home = next(self.strategy.model.parameters()).device
        self.stream = self.strategy.stream = self.stream.to(home)
        if self.done == 0:
            self.accuracies[0] = self.judge()
        self.strategy.before_task(self.task)
        words: dict[str, Any] = {"options": self.options, "steps": self.updates, "device": home}
        self.gradient = GradientLearner(self.strategy.model, lambda _, batch: self.strategy.loss(batch), **words)
        if self._restored is not None:
            self.gradient.restore(self._restored)
            self._restored = None

    @torch.no_grad()
    def judge(self) -> Tensor:
        """The accuracy on the test examples of every task."""
        home = next(self.strategy.model.parameters()).device
        found, at_hand = [], self.strategy.task
        with evaluating(self.strategy.model):
            for k, task in enumerate(self.stream):
                if self.stream.scenario == "task":
                    self.strategy.before_task(k)
                x, y = task.test.x.to(home), task.test.y.to(home)
                right = [
                    self.strategy.logits(part, k).argmax(1) == target
                    for part, target in zip(x.split(1024), y.split(1024), strict=True)
                ]
                found.append(torch.cat(right).double().mean().cpu())
        if self.stream.scenario == "task":
            self.strategy.before_task(at_hand)
        return torch.stack(found)

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """The accuracy on each task so far and on average, from the matrix where the last task is just over."""
        home = next(self.strategy.model.parameters()).device
        self.stream = self.strategy.stream = self.stream.to(home)
        judged = self.done and self.done % self.updates == 0
        now = self.accuracies[self.done // self.updates] if judged else self.judge()
        numbers = {f"task_{k + 1}": float(value) for k, value in enumerate(now)}
        return {"accuracy": float(now.mean()), **numbers}

    def measures(self) -> dict[str, float]:
        """What the matrix says in the end."""
        measures = (average_accuracy, forgetting, backward_transfer, forward_transfer)
        return {each.__name__: each(self.accuracies) for each in measures}

    def state(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "accuracies": self.accuracies.clone(),
            "task": self.strategy.task,
            "strategy": self.strategy.state(),
            "gradient": None if self.gradient is None else self.gradient.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.done, self.accuracies = state["done"], state["accuracies"].cpu()
        self.strategy.task = state["task"]
        self.strategy.restore(state["strategy"])
        # A task that is just over has nothing to go on with: the next one begins with a fresh optimiser.
        self._restored = state["gradient"] if self.done % self.updates else None
