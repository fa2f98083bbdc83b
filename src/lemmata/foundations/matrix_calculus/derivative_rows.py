r"""One row of a table of derivatives: a function, the closed form of its derivative, the shapes and the layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.jacobians import LAYOUTS
from lemmata.foundations.matrix_calculus.tensor_chain import contract, jacobian_tensor
from lemmata.marks import system

__all__ = ["DerivativeRow", "check_derivative"]

KINDS = ("scalar", "vector", "matrix")


@dataclass(frozen=True)
class DerivativeRow:
    r"""An identity of matrix calculus that can be looked up, evaluated, differentiated through and checked.

    $$ \frac{\partial}{\partial x}[\mathrm{function}(x, ...)] = \mathrm{derivative}(x, ...) $$

    `shapes` names the arguments, the variable first: `{"x": "n", "A": "m n", "f": "n -> m"}`. A letter stands for one
    length throughout the row, `""` for one number, an arrow for a function. `value` is the shape of the function's
    value. `layout` is numerator (axes of the value first), denominator (axes of the variable first, so that the
    derivative of a scalar has the shape of the variable), or both, where the two agree.

    Shapes:
        function: the arguments to `value`; derivative: the arguments to the axes of value and variable, by layout

    Claims: matcalc.layout, matcalc.linear_form, matcalc.product_scalar, matcalc.xa_tensor, matcalc.matrix_times_x,
        matcalc.half_squared_ax, matcalc.constant_times_f

    >>> row = DerivativeRow(
    ...     "cubes", "sum x^3", r"3 x^2", "denominator", {"x": "n"}, "", lambda x: (x**3).sum(), lambda x: 3 * x**2
    ... )
    >>> row.at(torch.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> check_derivative(row) < 1e-12
    True
    """

    name: str
    written: str
    formula: str
    layout: str
    shapes: Mapping[str, str]
    value: str
    function: Callable[..., Tensor]
    derivative: Callable[..., Tensor]

    def __post_init__(self) -> None:
        if self.layout not in (*LAYOUTS, "both"):
            raise ValueError(f"layout must be 'numerator', 'denominator' or 'both', got {self.layout!r}")
        if not self.shapes:
            raise ValueError("shapes must name at least the variable, got none")

    @property
    def kind(self) -> str:
        """What is differentiated by what: "scalar by vector", "vector by matrix", ..."""
        return " by ".join(KINDS[len(shape.split())] for shape in (self.value, next(iter(self.shapes.values()))))

    def at(self, x: Float[Tensor, "..."], **others: Any) -> Float[Tensor, "..."]:
        """The derivative at one point, from the closed form, after the shapes of all arguments were checked."""
        self._check({next(iter(self.shapes)): x, **others})
        return self.derivative(x, **others)

    def at_each(self, points: Float[Tensor, "batch ..."], **others: Any) -> Float[Tensor, "batch ..."]:
        """The derivative at each of several points, the other arguments being the same for all."""
        return torch.stack([self.at(x, **others) for x in points])

    def pull_back(self, upstream: Float[Tensor, "..."], x: Float[Tensor, "..."], **others: Any) -> Float[Tensor, "..."]:
        r"""The gradient of a loss with respect to the variable, from its gradient with respect to the value.

        $$ \frac{\partial L}{\partial x} = \sum_i \frac{\partial L}{\partial z_i} \frac{\partial z_i}{\partial x} $$
        """
        derivative = self.at(x, **others)
        if self.layout == "denominator":
            return contract(derivative, upstream, shared=upstream.ndim)
        return contract(upstream, derivative, shared=upstream.ndim)

    def example(
        self,
        sizes: Mapping[str, int] | None = None,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> dict[str, Any]:
        """Random arguments that fit; without `sizes` every letter gets a length of its own, so layouts show."""
        letters = self.letters()
        lengths = {letter: 3 + position for position, letter in enumerate(letters)} | dict(sizes or {})
        made = {}
        for name, shape in self.shapes.items():
            sides = [[lengths[letter] for letter in side.split()] for side in shape.split("->")]
            if len(sides) == 1:
                made[name] = _random_tensor(sides[0], generator, dtype)
            else:
                made[name] = _random_function(sides[0], sides[1], generator, dtype)
        return made

    def letters(self) -> list[str]:
        """The lengths that the row speaks of, in the order of their first use."""
        return list(dict.fromkeys(" ".join(self.shapes.values()).replace("->", " ").split()))

    def _check(self, arguments: dict[str, Any]) -> None:
        if set(arguments) != set(self.shapes):
            raise TypeError(f"{self.name} takes {', '.join(self.shapes)}, got {', '.join(arguments)}")
        lengths: dict[str, int] = {}
        for name, shape in self.shapes.items():
            if "->" in shape:
                if not callable(arguments[name]):
                    raise TypeError(f"{name} must be a function, got {type(arguments[name]).__name__}")
                continue
            given, letters = validate.floating(name, arguments[name]), shape.split()
            known = [lengths.setdefault(letter, length) for letter, length in zip(letters, given.shape, strict=False)]
            if known != list(given.shape) or len(letters) != given.ndim:
                wanted = ", ".join(f"{letter}={lengths[letter]}" if letter in lengths else letter for letter in letters)
                raise ValueError(f"{name} must have shape ({wanted}), got {tuple(given.shape)}")


@system("derivative_check", title="Check of a derivative row", kind="function")
def check_derivative(row: DerivativeRow, generator: torch.Generator | None = None, **arguments: Any) -> float:
    r"""The largest difference between a row's closed form and autograd, at given arguments or at random ones.

    $$ \max_k |\,\mathrm{derivative}(x)_k - \mathrm{autograd}(x)_k\,| $$

    It is a few rounding errors for a true row, and infinite where the closed form has the wrong shape.

    Shapes:
        arguments: those of the row, the variable included; random ones if none are given    returns: a number

    Claims: matcalc.layout

    >>> from lemmata.foundations.matrix_derivatives import derivative_of
    >>> check_derivative(derivative_of("quadratic form")) < 1e-12
    True
    """
    arguments = arguments or row.example(generator=generator)
    variable = next(iter(row.shapes))
    others = {name: value for name, value in arguments.items() if name != variable}
    x = arguments[variable]
    claimed = row.at(x, **others)
    tensor = jacobian_tensor(lambda point: row.function(point, **others), x)
    outputs = tensor.ndim - x.ndim
    swapped = tensor.permute([*range(outputs, tensor.ndim), *range(outputs)])
    layouts = {"numerator": [tensor], "denominator": [swapped], "both": [tensor, swapped]}[row.layout]
    if any(claimed.shape != expected.shape for expected in layouts):
        return float("inf")
    return max(float((claimed - expected).abs().max()) for expected in layouts)


def _random_tensor(shape: list[int], generator: torch.Generator | None, dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype)


def _random_function(
    inputs: list[int], outputs: list[int], generator: torch.Generator | None, dtype: torch.dtype
) -> Callable[[Tensor], Tensor]:
    """2 + sin(W x + b): smooth, without symmetry, never 0; a function of one number also runs entry by entry."""
    weight = _random_tensor(outputs + inputs, generator, dtype)
    shift = _random_tensor(outputs, generator, dtype)

    def function(x: Tensor) -> Tensor:
        mixed = torch.tensordot(weight, x, dims=1) if inputs else weight * x
        return 2 + torch.sin(mixed + shift)

    return function
