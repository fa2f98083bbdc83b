"""`draw`: the seeded source of instances that every check receives."""

import contextvars
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from lemmata.judge.evidence import Degenerate
from lemmata.lazy import provided

__all__ = ["Draw", "seed_of"]

Instance = TypeVar("Instance")
# Set where a truth is run once more to see whether it gives the same bits: a training must show that it does, too.
anew: contextvars.ContextVar[bool] = contextvars.ContextVar("anew", default=False)


def seed_of(id: str, seed: int) -> int:
    """The same claim and seed index give the same stream on every machine and engine."""
    digest = hashlib.sha256(f"{id}/{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Draw:
    """Random instances in float64 on the CPU, all from one generator.

    >>> Draw("perceptron.novikoff", 0).normal(2).equal(Draw("perceptron.novikoff", 0).normal(2))
    True
    """

    def __init__(self, id: str, seed: int = 0):
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed_of(id, seed))

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=self.generator, dtype=torch.float64)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Integers from low up to, not including, high."""
        return torch.randint(low, high, shape, generator=self.generator)

    def signs(self, *shape: int) -> Tensor:
        return self.integers(0, 2, *shape).double() * 2 - 1

    def unit(self, *shape: int) -> Tensor:
        """Uniform unit vectors along the last axis."""
        return torch.nn.functional.normalize(self.normal(*shape), dim=-1)

    def choice(self, options: Sequence[Instance]) -> Instance:
        return options[int(self.integers(0, len(options), 1))]

    def permutation(self, n: int) -> Tensor:
        return torch.randperm(n, generator=self.generator)

    def orthogonal(self, n: int) -> Tensor:
        """Haar-distributed: the signs of R's diagonal are moved into Q."""
        q, r = torch.linalg.qr(self.normal(n, n))
        return q * torch.sign(torch.diagonal(r))

    def covariance(self, n: int, logdet_at_least: float | None = None) -> Tensor:
        """A well-conditioned covariance matrix; its log-determinant is raised to the bound where one is given."""
        eigenvalues = self.uniform(n, low=0.5, high=2.0)
        if logdet_at_least is not None:
            lack = logdet_at_least - eigenvalues.log().sum()
            eigenvalues = eigenvalues * torch.exp(lack.clamp(min=0.0) / n)
        q = self.orthogonal(n)
        return (q * eigenvalues) @ q.T

    def until(self, make: Callable[[], Instance], accept: Callable[[Instance], bool], tries: int = 1000) -> Instance:
        """The first instance that is accepted: for effects a lie must exceed."""
        for _ in range(tries):
            instance = make()
            if accept(instance):
                return instance
        raise Degenerate(f"no instance among {tries} draws was accepted: draw them so that the lies differ")

    def trained(self, what: Any, teach: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
        """A trained system, the same for every claim, truth and lie that asks for it: trained once, then remembered.

        By its recipe, `draw.trained("mlp", data="digits", epochs=5)`, as `lemmata train mlp --data digits --epochs 5`
        trains it. Or by two functions of a file, `draw.trained(build, teach, length=6)`: `build(...)` makes a module,
        `teach(module, generator, ...)` trains it in place, and each gets the settings that it names. Settings are plain
        values. Nothing is drawn from this draw; the training's seed is the number of the seed under which is judged.
        The system comes in evaluation mode and is the caller's own to change.
        """
        by_name = isinstance(what, str)
        if by_name == (teach is not None):
            raise TypeError("trained takes the name of a system that has a recipe, or two functions: build and teach")
        if by_name:
            train_by_recipe = provided("recipe_training").trained
            return train_by_recipe(what, settings, self.seed)
        train_by_functions = provided("training").trained
        return train_by_functions(what, teach, settings, self.seed)
