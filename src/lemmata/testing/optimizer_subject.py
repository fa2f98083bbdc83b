"""The optimiser under test in a conformance suite: made anew for every check, stepped in one way whatever it asks."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lemmata.testing.findings import Broken, Undecided, told

__all__ = []  # for the suite alone

STEPS = 8
# What most optimisers take; those that take matrices alone are tried on matrices.
SHAPES = ((4, 3), (3,))
MATRICES = ((4, 3), (3, 5))
Theta = Sequence[Tensor]


@dataclass
class Subject:
    """How to make the optimiser, and what it can be made for."""

    make: Callable[..., Any]
    name: str
    options: dict[str, Any]
    nan: str
    shapes: Sequence[tuple[int, ...]] = SHAPES
    invariances: Sequence[str] = ()
    known: dict[str, Any] = field(default_factory=dict)

    def parameters(self, dtype: torch.dtype = torch.float64, shapes: Sequence[tuple[int, ...]] = ()) -> list[Tensor]:
        """Fresh parameters, the same every time."""
        generator = torch.Generator().manual_seed(0)
        drawn = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes or self.shapes)
        return [torch.nn.Parameter((2 * values).to(dtype)) for values in drawn]

    def built(self, parameters: Any, **more: Any) -> Optimizer:
        """The optimiser for parameters or groups of them."""
        optimizer = self.make(parameters, **{**self.options, **more})
        if not isinstance(optimizer, Optimizer):
            raise Broken(f"it must be a torch.optim.Optimizer, got {type(optimizer).__name__}")
        return optimizer

    def takes(self, option: str) -> None:
        """Only for optimisers with this option."""
        try:
            known = inspect.signature(self.make).parameters
        except ValueError:  # some built-in functions have none
            known = {}
        if option not in known:
            raise Undecided(f"the optimiser has no option {option}")

    def walk(
        self,
        optimizer: Optimizer,
        theta: Theta,
        steps: int = STEPS,
        loss: Callable[[Theta], Tensor] | None = None,
        to_none: bool = True,
    ) -> list[Tensor]:
        """Take steps down a bowl, and return where the parameters are then."""
        loss = loss or bowl
        torch.manual_seed(0)  # for those that draw at random

        def closure() -> Any:
            optimizer.zero_grad(set_to_none=to_none)
            value = loss(theta)
            value.backward()
            return value

        for _ in range(steps):
            if self.needs_closure(optimizer):
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        return [parameter.detach().clone() for parameter in theta]

    def run(self, steps: int = STEPS, loss: Callable[[Theta], Tensor] | None = None, **options: Any) -> list[Tensor]:
        """A whole run from the start, with other options where some are given."""
        theta = self.parameters()
        return self.walk(self.built(theta, **options), theta, steps, loss)

    def whole(self) -> list[Tensor]:
        """The usual run, made once."""
        if "whole" not in self.known:
            self.known["whole"] = self.run()
        return self.known["whole"]

    def needs_closure(self, optimizer: Optimizer) -> bool:
        """Whether `step` cannot do without one, as that of LBFGS."""
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        return closure is not None and closure.default is closure.empty

    def groups(self, theta: Theta, *changes: dict[str, Any]) -> Optimizer:
        """The optimiser with a group for each parameter; undecided where it takes one group only."""
        pairs = zip(theta, changes, strict=True)
        try:
            return self.built([{"params": [parameter], **change} for parameter, change in pairs])
        except ValueError as error:
            raise Undecided(f"the optimiser refuses several groups ({told(error)})") from None

    def lr(self) -> float:
        """The learning rate that it has."""
        lr = self.built(self.parameters()).param_groups[0].get("lr")
        if lr is None:
            raise Undecided("its groups have no lr")
        return float(lr)

    def coupled(self) -> bool:
        """Whether a parameter's steps depend on the other parameters, as those of LBFGS."""
        if "coupled" not in self.known:
            alone = []
            for index in range(len(self.shapes)):
                theta = self.parameters()
                alone += self.walk(self.built([theta[index]]), theta, 4)[index : index + 1]
            self.known["coupled"] = not same(alone, self.run(4), 1e-13)
        return self.known["coupled"]


def bowl(theta: Theta) -> Tensor:
    """A quadratic, steeper in some directions, whose minimum is not at zero. Each parameter has a term of its own."""
    total = torch.zeros((), dtype=torch.float64)
    for parameter in theta:
        steepness = torch.linspace(0.5, 2.0, max(parameter.numel(), 1), dtype=torch.float64)[: parameter.numel()]
        away = parameter - 0.5
        squares = (away * away.conj()).real if away.is_complex() else away.square()
        total = total + (steepness.reshape(parameter.shape) * squares).sum()
    return total


def height(theta: Theta) -> float:
    """The loss on the bowl as a number."""
    return bowl([parameter.detach() for parameter in theta]).item()


def same(one: Sequence[Tensor], two: Sequence[Tensor], tolerance: float = 1e-9) -> bool:
    """Equal up to a tolerance relative to the largest entry; NaN equals nothing."""
    size = max([1.0, *(float(part.abs().max()) for part in one if part.numel())])
    pairs = zip(one, two, strict=True)
    return all(bool(((a - b).abs() <= tolerance * size).all()) for a, b in pairs)


def exactly_same(one: Sequence[Tensor], two: Sequence[Tensor]) -> bool:
    """Equal to the bit."""
    return all(map(torch.equal, one, two))
