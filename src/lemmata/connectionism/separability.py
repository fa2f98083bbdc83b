r"""Linear separability, decided with a proof either way: a separating hyperplane, or multipliers that exclude it.

Every stored number is a fraction, so nothing needs to be left to rounding. A linear program in floating point guesses
the answer; what it guesses is proved by a rounding bound or in fractions, and where that fails decided in fractions.
"""

from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import exact_signs, fractions
from lemmata.certified.strict_inequalities import (
    StrictInequalities,
    exact_dot,
    guessed_by_linear_program,
    refined_multipliers,
    rounded_direction,
)
from lemmata.connectionism.linear_threshold import augment
from lemmata.marks import system

__all__ = ["Separation", "separate", "signed_rows"]


def signed_rows(x: Float[Tensor, "points features"], y: Tensor, bias: bool = True) -> Float[Tensor, "points inputs"]:
    r"""One row per point such that a unit classifies the point correctly iff its weights have a positive product.

    $$ z_i = y_i\,(x_i, 1) \quad\text{with a bias}, \qquad z_i = y_i\,x_i \quad\text{without} $$

    Shapes:
        x: (points, features), y: (points,)    returns: (points, features + 1), or (points, features) without bias

    Claims: perceptron.homogeneous, perceptron.xor, perceptron.algorithm

    >>> signed_rows(torch.tensor([[2.0], [3.0]]), torch.tensor([1, -1]))
    tensor([[ 2.,  1.],
            [-3., -1.]])
    """
    x = validate.matrix("x", x)
    y = validate.labels("y", y, like=x)
    validate.flag("bias", bias)
    inputs = augment(x) if bias else x  # (points, features + 1) or (points, features)
    return y[:, None] * inputs.detach()


@dataclass(frozen=True, eq=False)
class Separation:
    r"""The answer of `separate`: a hyperplane if there is one, otherwise multipliers that exclude every hyperplane.

    $$ y_i(w^\top x_i + b) > 0 \ \ \forall i \qquad\text{or}\qquad
       \lambda \ge 0,\ \sum_i \lambda_i = 1,\ \sum_i \lambda_i y_i (x_i, 1) = 0 $$

    Exactly one of the two exists (Gordan's alternative): the inequalities on the left, multiplied by $\lambda_i$ and
    added up, would give $0 > 0$. Tensors are float64, on the device of the data; fields of the other case are None.
    `exact` is the plane $(w, b)$, or the multipliers, in fractions where float64 has no room for it: `weight` and
    `bias` alone separate unless it is there. Multipliers without it are rounded: the exact ones lie next to them.

    Claims: perceptron.xor, perceptron.algorithm

    >>> found = separate(torch.tensor([[0.0], [1.0]]), torch.tensor([-1, 1]))
    >>> found.separable, found.multipliers
    (True, None)
    """

    separable: bool
    weight: Tensor | None = None
    bias: Tensor | None = None
    multipliers: Tensor | None = None
    biased: bool = True
    exact: tuple[Fraction, ...] | None = None

    def verify(self, x: Shaped[Tensor, "points features"], y: Tensor) -> bool:
        r"""Check the answer against the data alone, as they are stored, without the solver that found it.

        A hyperplane counts if every activation has the sign of its label exactly. Multipliers count if their sum
        vanishes exactly, or if it vanishes up to rounding and a rounding bound proves that it does so exactly for
        multipliers next to them.
        """
        rows = _signed_inequalities(x, y, self.biased)
        if self.multipliers is not None and not self.separable:
            return rows.cancelled_by(self.multipliers.double().cpu(), self.exact)
        if self.weight is not None and self.bias is not None and self.separable:
            weights = torch.cat([self.weight, self.bias[None]]) if self.biased else self.weight
            return rows.positive_under(weights.double().cpu() if self.exact is None else self.exact)
        return False

    def signs(self, inputs: Shaped[Tensor, "points inputs"]) -> Tensor:
        """The side of the hyperplane on which inputs lie, exactly: -1, 0 or +1; with a bias their last entry is 1."""
        if self.weight is None or self.bias is None:
            raise ValueError("there is no hyperplane: separable is False")
        if self.exact is not None:
            products = [exact_dot(row, self.exact) for row in fractions(inputs)]
            return torch.tensor([(product > 0) - (product < 0) for product in products], dtype=torch.int8)
        return exact_signs(inputs, torch.cat([self.weight, self.bias[None]]) if self.biased else self.weight)


@system("separability", title="Linear separability with a certificate", kind="function")
def separate(x: Shaped[Tensor, "points features"], y: Tensor, bias: bool = True) -> Separation:
    r"""Decide whether a hyperplane separates the two classes, as the numbers are stored, and prove the answer.

    $$ \max_{|w_j| \le 1,\,t}\ t \ \text{ s.t. } z_i^\top w \ge t \qquad\text{whose dual is}\qquad
       \min_{\lambda \ge 0,\ \sum_i\lambda_i = 1}\ \Big\| \sum_i \lambda_i z_i \Big\|_1 $$

    with $z_i = y_i(x_i, 1)$. The optimum is positive iff the data are separable; if it is 0 the dual solution is the
    certificate. The program is solved in floating point and its answer proved; where rounding leaves it open, the
    simplex method goes on in fractions. Only proved answers are returned: if even that would take too long, for many
    points or features within rounding of each other, the data are refused with an ArithmeticError.

    Shapes:
        x: (points, features), floating point or integer, y: (points,) of -1 and +1

    Claims: perceptron.xor, perceptron.algorithm

    >>> x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> exclusive_or = separate(x, torch.tensor([-1, -1, 1, 1]))
    >>> exclusive_or.separable, exclusive_or.multipliers
    (False, tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64))
    >>> separate(torch.tensor([[10**13], [10**13 + 1]]), torch.tensor([-1, 1])).separable
    True
    """
    rows = _signed_inequalities(x, y, bias)
    weights, multipliers, order = guessed_by_linear_program(rows.rounded.numpy())  # (inputs,), (points,), (points,)
    if rows.positive_under(weights):
        return _separating_plane(weights, bias, x.device)
    multipliers = refined_multipliers(rows.rounded, multipliers)
    if rows.cancelled_by(multipliers):
        return Separation(False, multipliers=multipliers.to(x.device), biased=bias)
    try:
        vector, shares = rows.decide(order)
    except ArithmeticError as error:
        raise ArithmeticError(f"x and y are too close to the edge of separability to decide: {error}") from None
    if vector is None:
        rounded = torch.tensor([float(share) for share in shares], dtype=torch.double)
        return Separation(False, multipliers=rounded.to(x.device), biased=bias, exact=tuple(shares))
    # Where the vector itself, rounded, leaves a narrow cone, a multiple of it may stay inside.
    for factor in range(8, 16):
        weights = rounded_direction([factor * value for value in vector])
        if rows.positive_under(weights):
            return _separating_plane(weights, bias, x.device)
    return _separating_plane(weights, bias, x.device, exact=tuple(vector))


def _separating_plane(
    weights: Tensor, bias: bool, device: torch.device, exact: tuple[Fraction, ...] | None = None
) -> Separation:
    weights = weights.to(device)
    weight, intercept = (weights[:-1], weights[-1]) if bias else (weights, weights.new_zeros(()))
    return Separation(True, weight, intercept, biased=bias, exact=exact)


def _signed_inequalities(x: Tensor, y: Tensor, bias: bool) -> StrictInequalities:
    """The signed points, in double, and in fractions where double has no room for integers of 64 bits."""
    whole = isinstance(x, Tensor) and not x.is_floating_point() and not x.is_complex()
    rounded = signed_rows(x.double() if whole else x, y, bias).double().cpu()  # (points, inputs)
    if not whole or x.element_size() < 8 or all(abs(value) <= 2**53 for value in x.flatten().tolist()):
        return StrictInequalities(rounded)
    constant = [Fraction(1)] if bias else []

    def exact(chosen: list[int]) -> list[list[Fraction]]:
        pairs = zip(y[chosen].tolist(), fractions(x[chosen]), strict=True)
        return [[int(label) * value for value in row + constant] for label, row in pairs]

    return StrictInequalities(rounded, exact)
