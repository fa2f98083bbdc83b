r"""Continuous piecewise linear functions of one variable, as sums of rectified units."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["PiecewiseLinear"]


@system(
    "piecewise_linear",
    title="Piecewise linear function",
    kind="module",
    example="PiecewiseLinear(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 0.0]))(torch.randn(4, 3))",
)
class PiecewiseLinear(nn.Module):
    r"""The continuous piecewise linear function through given points, in Lebesgue's form.

    $$ g(x) = a x + b + \sum_{i=1}^{m-1} c_i (x - x_i)_+ $$

    With knots $x_1 < \dots < x_{m-1}$, the slope $a$ left of the first, and $c_i$ the change of the slope at knot $i$:
    $m$ pieces from $m - 1$ units and an affine function. `network()` is the same function as a plain ReLU network,
    where the affine part takes two more units. The module itself starts from the nearest knot on the left, which loses
    no digits far out. Knots and values are parameters, so that it can also be fitted.

    Shapes:
        x: any shape    returns: the same shape

    Claims: relu.lebesgue_form, relu.piecewise_linear_dense, relu.universality
    Source: H. Lebesgue, Sur l'approximation des fonctions (1898).

    >>> hat = PiecewiseLinear(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 0.0]))
    >>> hat(torch.tensor([-1.0, 0.5, 1.0, 3.0])).tolist(), hat.slope_changes.tolist()
    ([0.0, 0.5, 1.0, 0.0], [1.0, -2.0, 1.0])
    """

    left: Tensor
    right: Tensor

    def __init__(
        self,
        knots: Float[Tensor, "knots"],
        values: Float[Tensor, "knots"],
        left: int | float = 0.0,
        right: int | float = 0.0,
    ) -> None:
        super().__init__()
        validate.vector("knots", knots)
        validate.vector("values", values, length=len(knots))
        if values.dtype != knots.dtype:
            raise TypeError(f"values must have the dtype of knots, got {values.dtype}: use values.to({knots.dtype})")
        if not (knots[1:] > knots[:-1]).all():
            raise ValueError("knots must increase: sort them and drop what is equal")
        self.knots = nn.Parameter(knots.detach().clone())
        self.values = nn.Parameter(values.detach().clone())
        for name, slope in (("left", left), ("right", right)):  # part of the state, though they are not learnt
            self.register_buffer(name, knots.new_tensor(validate.finite_number(name, slope)))

    @classmethod
    def interpolate(
        cls,
        function: Callable[[Tensor], Tensor],
        low: int | float,
        high: int | float,
        pieces: int,
        dtype: torch.dtype | None = None,
    ) -> "PiecewiseLinear":
        r"""The function through the values of another at equal distances, constant outside [low, high].

        Its error is at most $\omega_f(h)$ for the distance $h$ of two knots, and $\tfrac{h^2}8 \max|f''|$ if that
        exists.
        """
        validate.count("pieces", pieces)
        if not validate.finite_number("low", low) < validate.finite_number("high", high):
            raise ValueError(f"low must be below high, got {low} and {high}")
        knots = torch.linspace(low, high, pieces + 1, dtype=dtype)
        return cls(knots, function(knots))

    @property
    def slopes(self) -> Float[Tensor, "pieces"]:
        """The slope of each piece, the two outer ones included."""
        inner = self.values.diff() / self.knots.diff()
        return torch.cat([self.left[None], inner, self.right[None]])

    @property
    def slope_changes(self) -> Float[Tensor, "knots"]:
        """The coefficients c of the units."""
        return self.slopes.diff()

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        # From the knot at the left of each x (the first, for what is left of all): the sum of units is the same number,
        # but far from the knots its terms are large and cancel.
        common = torch.promote_types(validate.tensor("x", x).dtype, self.knots.dtype)
        places = x.detach().to(common).contiguous()  # which searchsorted asks for in a warning
        piece = torch.searchsorted(self.knots.detach().to(common), places, right=True)  # (...)
        knot = (piece - 1).clamp(min=0)
        return self.values[knot] + self.slopes[piece] * (x - self.knots[knot])

    @torch.no_grad()
    def network(self) -> nn.Sequential:
        """The same function as one hidden layer of ReLU units: (batch, 1) to (batch, 1)."""
        like = {"dtype": self.knots.dtype, "device": self.knots.device}
        first, last = nn.Linear(1, len(self.knots) + 2, **like), nn.Linear(len(self.knots) + 2, 1, **like)
        one = self.knots.new_ones(1)
        # x is (x)_+ - (-x)_+: two units for the affine part
        first.weight.copy_(torch.cat([one, -one, torch.ones_like(self.knots)])[:, None])
        first.bias.copy_(torch.cat([0 * one, 0 * one, -self.knots]))
        last.weight.copy_(torch.cat([self.left * one, -self.left * one, self.slope_changes])[None])
        last.bias.copy_(self.values[:1] - self.left * self.knots[0])
        return nn.Sequential(first, nn.ReLU(), last)
