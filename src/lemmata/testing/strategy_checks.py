"""The checks of the conformance suite of strategies, each a few lines: it returns, or says what is wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lemmata.continual.learning import ContinualLearner
from lemmata.continual.strategy import Strategy
from lemmata.continual.task_stream import Task, TaskStream
from lemmata.data.examples import Examples
from lemmata.testing.findings import Broken
from lemmata.train.options import Options
from lemmata.train.randomness import batch_indices

__all__ = []  # for the suite alone

FEATURES, CLASSES, EXAMPLES, TASKS = 6, 6, 24, 3
OPTIONS = Options(epochs=2, batch_size=8, lr=0.01)
UPDATES = OPTIONS.epochs * EXAMPLES // OPTIONS.batch_size  # of a task
HOOKS = ("loss", "logits", "before_task", "after_task", "guard", "state", "restore")


def small_network(inputs: int, outputs: int) -> nn.Module:
    """A network with one hidden layer."""
    return nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, outputs))


def small_stream(scenario: str = "domain") -> TaskStream:
    """Three tasks of a few examples; in `domain` all have all classes, else each has two of its own."""
    random = torch.Generator().manual_seed(1)
    tasks = []
    for k in range(TASKS):
        classes = tuple(range(CLASSES)) if scenario == "domain" else (2 * k, 2 * k + 1)
        y = torch.tensor(classes).repeat(EXAMPLES // len(classes))
        x = torch.randn(EXAMPLES, FEATURES, generator=random, dtype=torch.float64)
        tasks.append(Task(f"task {k + 1}", Examples(x=x, y=y), Examples(x=x[:4], y=y[:4]), classes))
    return TaskStream(tuple(tasks), scenario, CLASSES)


def without_examples(stream: TaskStream, before: int) -> TaskStream:
    """The same stream, of whose tasks before this one no example can be learnt from."""
    tasks = [
        Task(
            task.name, Examples(x=torch.full_like(task.train.x, float("nan")), y=task.train.y), task.test, task.classes
        )
        for task in stream.tasks[:before]
    ]
    return TaskStream((*tasks, *stream.tasks[before:]), stream.scenario, stream.outputs)


class Saved(NamedTuple):
    """A run where it was stopped: all that is carried over to a new process."""

    weights: dict[str, Tensor]
    learner: dict[str, Any]
    random: Tensor


@dataclass(frozen=True)
class Subject:
    """A strategy under test."""

    make: Callable[[Any], Any]
    network: Callable[[int, int], nn.Module]

    @property
    def name(self) -> str:
        inner = getattr(self.make, "func", self.make)
        return getattr(inner, "__name__", repr(inner))

    def model(self) -> nn.Module:
        """A new one, with the same weights each time."""
        torch.manual_seed(3)
        return self.network(FEATURES, CLASSES).double()

    def learner(self, stream: TaskStream, make: Callable[[Any], Any] | None = None) -> ContinualLearner:
        """A new model and a new strategy, at the begin of a stream."""
        strategy = (make or self.make)(self.model())
        missing = [name for name in HOOKS if not callable(getattr(strategy, name, None))]
        if missing or not isinstance(getattr(strategy, "model", None), nn.Module):
            raise Broken(f"a strategy must have {', '.join(missing) or 'its model'}: derive it from Strategy")
        torch.manual_seed(4)
        return ContinualLearner(strategy, stream, OPTIONS)

    def walk(self, learner: ContinualLearner, end: int) -> ContinualLearner:
        """Updates up to this one."""
        per_epoch = EXAMPLES // OPTIONS.batch_size
        for step in range(learner.done, end):
            rows = batch_indices(0, step // per_epoch, step % per_epoch, OPTIONS.batch_size, EXAMPLES)
            learner.step(learner.rows[rows], 0.0)
        return learner


def weights_of(learner: ContinualLearner) -> dict[str, Tensor]:
    return {name: part.clone() for name, part in learner.strategy.model.state_dict().items()}


# --- The checks ---


def _check_interface(subject: Subject) -> None:
    model = subject.model()
    if subject.make(model).model is not model:
        raise Broken("the strategy must train the model that it was given: strategy.model is another one")
    subject.learner(small_stream())


def _check_plain_state(subject: Subject) -> None:
    learner = subject.learner(small_stream())
    for task in range(TASKS):
        subject.walk(learner, (task + 1) * UPDATES)
        for where, part in _state_leaves(learner.strategy.state(), "state"):
            if not (part is None or isinstance(part, Tensor | bool | int | float | str)):
                raise Broken(f"{where} is a {type(part).__name__}: keep tensors, numbers, strings, dicts and lists")


def _state_leaves(tree: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for name, part in tree.items():
            yield from _state_leaves(part, f"{where}[{name!r}]")
    elif isinstance(tree, list):
        for k, part in enumerate(tree):
            yield from _state_leaves(part, f"{where}[{k}]")
    else:
        yield where, tree


def _check_untouched(subject: Subject) -> None:
    stream, fresh = small_stream(), small_stream()
    subject.walk(subject.learner(stream), TASKS * UPDATES)
    for task, was in zip(stream, fresh, strict=True):
        if not (torch.equal(task.train.x, was.train.x) and torch.equal(task.train.y, was.train.y)):
            raise Broken(f"the examples of {task.name} were written into")


def _check_as_found(subject: Subject) -> None:
    learner = subject.walk(subject.learner(small_stream()), UPDATES - 1)
    learner.strategy.model.train()
    before = _check_condition(learner.strategy.model)
    learner.strategy.after_task(learner.stream[0].train)
    after = _check_condition(learner.strategy.model)
    for name in before:
        if before[name] != after[name]:
            raise Broken(f"after_task changes the {name} of the model")


def _check_condition(model: nn.Module) -> dict[str, Any]:
    return {
        "modes": [part.training for part in model.modules()],
        "hooks": [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()],
        "parameters that learn": [part.requires_grad for part in model.parameters()],
    }


def _check_finite(subject: Subject) -> None:
    for scenario in ("domain", "task", "class"):
        learner = subject.learner(small_stream(scenario))
        for task in range(TASKS):
            subject.walk(learner, (task + 1) * UPDATES - 1)  # its last update but one
            strategy, rows = learner.strategy, learner.stream[task].train
            for batch in (rows, rows[:1]):
                strategy.model.zero_grad()
                loss = strategy.loss(batch)
                if loss.shape != () or not bool(loss.isfinite()):
                    raise Broken(f"the loss in task {task + 1} of the scenario {scenario!r} is {loss.tolist()}")
                loss.backward()
                slopes = [part.grad for part in strategy.model.parameters() if part.grad is not None]
                if not all(bool(slope.isfinite().all()) for slope in slopes):
                    raise Broken(f"a gradient in task {task + 1} of the scenario {scenario!r} is not finite")
            subject.walk(learner, (task + 1) * UPDATES)


def _check_first_task(subject: Subject) -> None:
    plain, own = (
        weights_of(subject.walk(subject.learner(small_stream(), make), UPDATES)) for make in (Strategy, subject.make)
    )
    gaps = {name: float((plain[name] - own[name]).abs().max()) for name in plain if plain[name].is_floating_point()}
    worst = max(gaps, key=lambda name: gaps[name])
    if not gaps[worst] <= 1e-9:
        raise Broken(f"with no earlier task it is not plain training: {worst} is off by {gaps[worst]:.3g}")


def _saved_state(subject: Subject, at: int) -> tuple[Saved, dict[str, Tensor]]:
    """A run that is stopped there, and the weights in the end of the same run where it is not."""
    learner = subject.walk(subject.learner(small_stream()), at)
    saved = Saved(weights_of(learner), _as_loaded(learner.state()), torch.get_rng_state())
    return saved, weights_of(subject.walk(learner, TASKS * UPDATES))


def _as_loaded(tree: Any) -> Any:
    """A copy as a file gives it back: it keeps numbers, and not how they lay in memory."""
    if isinstance(tree, dict | list):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        copied = {key: _as_loaded(part) for key, part in pairs}
        return copied if isinstance(tree, dict) else list(copied.values())
    return tree.detach().clone(memory_format=torch.contiguous_format) if isinstance(tree, Tensor) else tree


def _resumed_strategy(subject: Subject, saved: Saved, stream: TaskStream) -> dict[str, Tensor]:
    learner = subject.learner(stream)
    learner.strategy.model.load_state_dict(saved.weights)
    learner.restore(_as_loaded(saved.learner))
    torch.set_rng_state(saved.random)
    return weights_of(subject.walk(learner, TASKS * UPDATES))


STOPS = (UPDATES, UPDATES + 2, 2 * UPDATES, 2 * UPDATES + 3)  # between tasks, and within them


def _check_resume(subject: Subject) -> None:
    for at in STOPS:
        saved, whole = _saved_state(subject, at)
        again = _resumed_strategy(subject, saved, small_stream())
        if not all(torch.equal(whole[name], again[name]) for name in whole):
            raise Broken(f"stopped after {at} updates a new strategy goes elsewhere: something is not in state()")


def _check_old_data(subject: Subject) -> None:
    for at in STOPS:
        saved, whole = _saved_state(subject, at)
        again = _resumed_strategy(subject, saved, without_examples(small_stream(), at // UPDATES))
        if not all(torch.equal(whole[name], again[name]) for name in whole):
            raise Broken("it looks at examples of earlier tasks in the stream: what it needs must be in its state")


CHECKS: dict[str, tuple[Callable[[Subject], None], tuple[str, ...]]] = {
    "interface": (_check_interface, ()),
    "plain_state": (_check_plain_state, ("interface",)),
    "untouched": (_check_untouched, ("interface",)),
    "as_found": (_check_as_found, ("interface",)),
    "finite": (_check_finite, ("interface",)),
    "first_task": (_check_first_task, ("interface",)),
    "resume": (_check_resume, ("interface",)),
    "old_data": (_check_old_data, ("interface", "resume")),
}
