"""Meta-learning: to learn a new task from few examples."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
