r"""What the loop asks of whatever learns: the one small protocol between a system and `fit`."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from lemmata.data.examples import Examples

__all__ = ["Learner"]


@runtime_checkable
class Learner(Protocol):
    """Anything that learns from batches: by gradients, by an energy rule, as two players, with an inner loop.

    The loop owns the order of the examples, the device, the random numbers, evaluation moments, checkpoints and logs;
    a learner owns one update. `GradientLearner` is the usual one. A learner of your own needs only these members:

    >>> class Counting:
    ...     def __init__(self): self.seen = torch.zeros(())
    ...     def step(self, batch, progress): self.seen += len(batch); return {"loss": 1 / (1 + self.seen)}
    ...     def evaluate(self, examples): return {"seen": float(self.seen)}
    ...     def state(self): return {"seen": self.seen}
    ...     def restore(self, state): self.seen = state["seen"]
    >>> isinstance(Counting(), Learner)
    True
    """

    def step(self, batch: Examples, progress: float) -> Mapping[str, Tensor | float]:
        """Learn from one batch; `progress` runs from 0 to 1 over the whole training. Numbers to log, `loss` first.

        A number that is not finite stops the training. An entry "finished" that is true ends it: nothing is left to
        learn.
        """
        ...

    def evaluate(self, examples: Examples) -> Mapping[str, float]:
        """Numbers on examples that are not learnt from."""
        ...

    def state(self) -> Mapping[str, Any]:
        """All the next step depends on beside the system: dicts and lists of tensors, numbers, strings and None."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, on whatever device the learner lives."""
        ...
