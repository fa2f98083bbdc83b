r"""Rows of the table of derivatives: one number differentiated by a vector, in the denominator layout.

The derivative has the shape of x. Jacobians are those of this layout: $(J_f)_{ij} = \partial f_j / \partial x_i$.

Claims: matcalc.product_scalar, matcalc.chain_scalar, matcalc.inner_product, matcalc.bilinear_fg, matcalc.linear_form,
    matcalc.squared_norm, matcalc.bilinear_form, matcalc.quadratic_form, matcalc.half_squared_ax,
    matcalc.affine_bilinear, matcalc.squared_norm_f
"""

from collections.abc import Callable

from torch import Tensor

from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow
from lemmata.foundations.matrix_calculus.jacobians import gradient_of, jacobian_of

__all__ = ["SCALAR_BY_VECTOR"]


def _columns(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return jacobian_of(function, x, layout="denominator")


SCALAR_BY_VECTOR = (
    DerivativeRow(
        name="product",
        written="u(x) v(x)",
        formula=r"u\,\frac{\partial v}{\partial x} + v\,\frac{\partial u}{\partial x}",
        layout="denominator",
        shapes={"x": "n", "u": "n ->", "v": "n ->"},
        value="",
        function=lambda x, u, v: u(x) * v(x),
        derivative=lambda x, u, v: u(x) * gradient_of(v, x) + v(x) * gradient_of(u, x),
    ),
    DerivativeRow(
        name="composition",
        written="u(v(x))",
        formula=r"u'(v(x))\,\frac{\partial v}{\partial x}",
        layout="denominator",
        shapes={"x": "n", "u": "->", "v": "n ->"},
        value="",
        function=lambda x, u, v: u(v(x)),
        derivative=lambda x, u, v: gradient_of(u, v(x)) * gradient_of(v, x),
    ),
    DerivativeRow(
        name="inner product",
        written="f(x)^T g(x)",
        formula=r"J_f\,g + J_g\,f",
        layout="denominator",
        shapes={"x": "n", "f": "n -> m", "g": "n -> m"},
        value="",
        function=lambda x, f, g: f(x) @ g(x),
        derivative=lambda x, f, g: _columns(f, x) @ g(x) + _columns(g, x) @ f(x),
    ),
    DerivativeRow(
        name="bilinear form of functions",
        written="f(x)^T A g(x)",
        formula=r"J_f A g + J_g A^\top f",
        layout="denominator",
        shapes={"x": "n", "f": "n -> m", "A": "m k", "g": "n -> k"},
        value="",
        function=lambda x, f, A, g: f(x) @ A @ g(x),
        derivative=lambda x, f, A, g: _columns(f, x) @ A @ g(x) + _columns(g, x) @ A.mT @ f(x),
    ),
    DerivativeRow(
        name="linear form",
        written="a^T x",
        formula="a",
        layout="denominator",
        shapes={"x": "n", "a": "n"},
        value="",
        function=lambda x, a: a @ x,
        derivative=lambda x, a: a,
    ),
    DerivativeRow(
        name="squared norm",
        written="x^T x",
        formula="2x",
        layout="denominator",
        shapes={"x": "n"},
        value="",
        function=lambda x: x @ x,
        derivative=lambda x: 2 * x,
    ),
    DerivativeRow(
        name="bilinear form",
        written="b^T A x",
        formula=r"A^\top b",
        layout="denominator",
        shapes={"x": "n", "b": "m", "A": "m n"},
        value="",
        function=lambda x, b, A: b @ A @ x,
        derivative=lambda x, b, A: A.mT @ b,
    ),
    DerivativeRow(
        name="quadratic form",
        written="x^T A x",
        formula=r"(A + A^\top)\,x",
        layout="denominator",
        shapes={"x": "n", "A": "n n"},
        value="",
        function=lambda x, A: x @ A @ x,
        derivative=lambda x, A: (A + A.mT) @ x,
    ),
    DerivativeRow(
        name="half squared norm of a linear map",
        written="1/2 |A x|^2",
        formula=r"A^\top A\,x",
        layout="denominator",
        shapes={"x": "n", "A": "m n"},
        value="",
        function=lambda x, A: (A @ x).square().sum() / 2,
        derivative=lambda x, A: A.mT @ (A @ x),
    ),
    DerivativeRow(
        name="bilinear form of affine maps",
        written="(A x + b)^T C (D x + e)",
        formula=r"D^\top C^\top (Ax + b) + A^\top C (Dx + e)",
        layout="denominator",
        shapes={"x": "n", "A": "m n", "b": "m", "C": "m k", "D": "k n", "e": "k"},
        value="",
        function=lambda x, A, b, C, D, e: (A @ x + b) @ C @ (D @ x + e),
        derivative=lambda x, A, b, C, D, e: D.mT @ C.mT @ (A @ x + b) + A.mT @ C @ (D @ x + e),
    ),
    DerivativeRow(
        name="squared norm of a function",
        written="|f(x)|^2",
        formula=r"2\,J_f f",
        layout="denominator",
        shapes={"x": "n", "f": "n -> m"},
        value="",
        function=lambda x, f: f(x).square().sum(),
        derivative=lambda x, f: 2 * _columns(f, x) @ f(x),
    ),
)
