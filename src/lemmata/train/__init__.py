"""Training: one plain loop for every system, with checkpoints that survive anything. `fit(model, examples, ...)`."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
