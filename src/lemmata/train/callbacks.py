"""Functions of the user's that are called on the way, see where training is, and may end it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lemmata.train.history import History

__all__ = ["TrainingState"]


@dataclass
class TrainingState:
    """What a callback is given: where the training stands after a step or an epoch.

    A callback may look at the model, and change it: it is part of the training, and what it draws at random counts.
    """

    model: Any
    step: int  # updates so far
    epoch: int  # the epoch that this step belongs to, from 1
    epochs: int
    numbers: Mapping[str, Any]  # of the latest step: loss, lr, metrics
    scores: Mapping[str, float]  # of the latest evaluation
    history: History
    optimizer: Any = None
    steps: int | None = field(default=None)  # of the whole training, if that is known
    averaged: bool = False  # whether the scores are those of averaged weights, and not of the model's own

    @property
    def loss(self) -> float:
        """The loss of the latest step."""
        return float(self.numbers["loss"])


Callback = Callable[[TrainingState], Any]


def as_callbacks(given: "Callback | Sequence[Callback] | None", name: str) -> list[Callback]:
    """One function or several."""
    functions = [] if given is None else list(given) if isinstance(given, Sequence) else [given]
    for function in functions:
        if not callable(function):
            raise TypeError(f"{name} must be a function of the training's state, or several, got {function!r}"[:200])
    return functions


def ask(callbacks: Sequence[Callback], state: TrainingState) -> bool:
    """Call them all; whether one of them wants to stop."""
    answers = [callback(state) for callback in callbacks]
    for answer in answers:
        if answer is not None and not isinstance(answer, bool) and type(answer).__name__ != "bool":  # numpy has its own
            raise TypeError(f"a callback must return True to stop, or else False or nothing, got {answer!r}"[:200])
    return any(answers)
