"""What a training run leaves in Python's hands, and the error that ends one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata.train.history import History

__all__ = ["Diverged", "Run"]


class Diverged(ArithmeticError):
    """A number that must be finite was not; the message says which, where, and what is kept."""


@dataclass
class Run:
    """A training run that is over: the model, its scores, and why it stopped."""

    system: Any
    scores: dict[str, float] = field(default_factory=dict)  # on the test examples, or on those there are
    best: dict[str, float] = field(default_factory=dict)  # of the evaluations on the way
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    folder: Path | None = None
    stopped: str = "finished"  # or "patience", "callback", or "converged": the learner had nothing left to learn
    messages: list[str] = field(default_factory=list)  # what was said on resuming, such as a damaged file skipped
    history: History = field(default_factory=History)  # loss, metrics and lr by epoch and by step

    @property
    def model(self) -> Any:
        """The trained model itself: the one that was given."""
        return self.system
