r"""Rows of the table of derivatives: functions of one number, and the rules for quotients and integrals by parts.

Claims: calculus.abs_derivative, calculus.trig_derivatives, calculus.quotient_rule, calculus.integration_by_parts
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow
from lemmata.foundations.matrix_calculus.jacobians import gradient_of
from lemmata.marks import system

__all__ = ["ELEMENTARY", "ByParts", "abs_subdifferential", "integrate_by_parts", "quotient_derivative"]


@system("quotient_rule", title="Quotient rule", kind="function")
def quotient_derivative(f: Any, df: Any, g: Any, dg: Any) -> Any:
    r"""The derivative of a quotient from the two functions and their derivatives.

    $$ \Big(\frac fg\Big)' = \frac{f' g - f g'}{g^2}, \qquad g \ne 0 $$

    Numbers, tensors and sympy expressions will do: nothing but arithmetic happens.

    Shapes:
        f, df, g, dg: any shapes that broadcast    returns: their common shape

    Claims: calculus.quotient_rule

    >>> quotient_derivative(1.0, 0.0, 2.0, 1.0)  # 1/x at x = 2
    -0.25
    """
    if isinstance(g, Tensor | int | float) and bool(torch.as_tensor(g == 0).any()):
        raise ValueError("g must not be 0 anywhere: f/g is not defined there")
    return (df * g - f * dg) / g**2


@system("abs_subdifferential", title="Subdifferential of the absolute value", kind="function")
def abs_subdifferential(x: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    r"""The slopes of all lines that touch |x| from below, as the ends of an interval.

    $$ \partial|x| = \{x/|x|\} \text{ for } x \ne 0, \qquad \partial|0| = [-1, 1] $$

    Shapes:
        x: any shape    returns: lower and upper ends, each in the shape of x

    Claims: calculus.abs_derivative
    Differs: autograd answers 0 at 0, which is one of these slopes.

    >>> abs_subdifferential(torch.tensor([-3.0, 0.0, 2.0]))
    (tensor([-1., -1.,  1.]), tensor([-1.,  1.,  1.]))
    """
    sign = torch.sign(validate.floating("x", x))
    corner = (sign == 0).to(x)
    return sign - corner, sign + corner


class ByParts(NamedTuple):
    """The two pieces of an integral by parts, as sympy expressions: their difference is the integral."""

    boundary: Any
    rest: Any

    @property
    def value(self) -> Any:
        return self.boundary - self.rest


@system("integration_by_parts", title="Integration by parts", kind="function")
def integrate_by_parts(u: Any, v: Any, variable: Any, low: Any, high: Any) -> ByParts:
    r"""The integral of $u\,v'$ as a boundary term and the integral of $v\,u'$, exactly (sympy).

    $$ \int_a^b u\,dv = [uv]_a^b - \int_a^b v\,du $$

    Shapes:
        u, v: sympy expressions of `variable`; low, high: the ends    returns: boundary term and remaining integral

    Claims: calculus.integration_by_parts

    >>> import sympy
    >>> x = sympy.Symbol("x", real=True)
    >>> integrate_by_parts(x, sympy.exp(x), x, 0, 1).value  # the integral of x exp(x)
    1
    """
    import sympy

    u, v = sympy.sympify(u), sympy.sympify(v)
    product = u * v
    boundary = product.subs(variable, high) - product.subs(variable, low)
    rest = sympy.integrate(v * sympy.diff(u, variable), (variable, low, high))
    return ByParts(boundary, rest)


def _absolute_slope(x: Tensor) -> Tensor:
    if not x.all():
        raise ValueError("x must not be 0: |x| has no derivative there, use abs_subdifferential")
    return x / x.abs()


ELEMENTARY = (
    DerivativeRow(
        name="sine",
        written="sin(x)",
        formula=r"\cos x",
        layout="both",
        shapes={"x": ""},
        value="",
        function=torch.sin,
        derivative=torch.cos,
    ),
    DerivativeRow(
        name="cosine",
        written="cos(x)",
        formula=r"-\sin x",
        layout="both",
        shapes={"x": ""},
        value="",
        function=torch.cos,
        derivative=lambda x: -torch.sin(x),
    ),
    DerivativeRow(
        name="absolute value",
        written="|x|",
        formula=r"x/|x|,\ x \ne 0",
        layout="both",
        shapes={"x": ""},
        value="",
        function=torch.abs,
        derivative=_absolute_slope,
    ),
    DerivativeRow(
        name="quotient",
        written="f(x) / g(x)",
        formula=r"\frac{f'g - fg'}{g^2},\ g \ne 0",
        layout="both",
        shapes={"x": "", "f": "->", "g": "->"},
        value="",
        function=lambda x, f, g: f(x) / g(x),
        derivative=lambda x, f, g: quotient_derivative(f(x), gradient_of(f, x), g(x), gradient_of(g, x)),
    ),
)
