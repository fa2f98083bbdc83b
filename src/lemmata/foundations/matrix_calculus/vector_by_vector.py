r"""Rows of the table of derivatives: a vector differentiated by a vector, in the numerator layout.

The derivative of (m,) by (n,) is (m, n). Jacobians are those of this layout: $(J_f)_{ij} = \partial f_i/\partial x_j$.
Rows with a symmetric derivative are the same in both layouts.

Claims: matcalc.scalar_times_vector, matcalc.hadamard_const, matcalc.constant_identity, matcalc.matrix_times_x,
    matcalc.x_transpose_a, matcalc.constant_times_f, matcalc.elementwise, matcalc.softmax_jacobian
"""

import torch

from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow
from lemmata.foundations.matrix_calculus.jacobians import gradient_of, jacobian_of
from lemmata.foundations.matrix_calculus.pullbacks import slope_of, softmax_jacobian

__all__ = ["VECTOR_BY_VECTOR"]


VECTOR_BY_VECTOR = (
    DerivativeRow(
        name="scalar times vector",
        written="u(x) f(x)",
        formula=r"u\,\frac{\partial f}{\partial x} + f\,\frac{\partial u}{\partial x}",
        layout="numerator",
        shapes={"x": "n", "u": "n ->", "f": "n -> m"},
        value="m",
        function=lambda x, u, f: u(x) * f(x),
        derivative=lambda x, u, f: u(x) * jacobian_of(f, x) + torch.outer(f(x), gradient_of(u, x)),
    ),
    DerivativeRow(
        name="Hadamard product",
        written="x o a",
        formula=r"\mathrm{diag}(a)",
        layout="both",
        shapes={"x": "n", "a": "n"},
        value="n",
        function=lambda x, a: x * a,
        derivative=lambda x, a: torch.diag(a),
    ),
    DerivativeRow(
        name="constant",
        written="a",
        formula="0",
        layout="numerator",
        shapes={"x": "n", "a": "m"},
        value="m",
        function=lambda x, a: a,
        derivative=lambda x, a: x.new_zeros(len(a), len(x)),
    ),
    DerivativeRow(
        name="identity",
        written="x",
        formula="I",
        layout="both",
        shapes={"x": "n"},
        value="n",
        function=lambda x: x,
        derivative=lambda x: torch.eye(len(x), dtype=x.dtype, device=x.device),
    ),
    DerivativeRow(
        name="matrix times vector",
        written="A x",
        formula="A",
        layout="numerator",
        shapes={"x": "n", "A": "m n"},
        value="m",
        function=lambda x, A: A @ x,
        derivative=lambda x, A: A,
    ),
    DerivativeRow(
        name="row vector times matrix",
        written="x^T A",
        formula=r"A^\top",
        layout="numerator",
        shapes={"x": "n", "A": "n m"},
        value="m",
        function=lambda x, A: x @ A,
        derivative=lambda x, A: A.mT,
    ),
    DerivativeRow(
        name="number times function",
        written="a f(x)",
        formula=r"a\,J_f",
        layout="numerator",
        shapes={"x": "n", "a": "", "f": "n -> m"},
        value="m",
        function=lambda x, a, f: a * f(x),
        derivative=lambda x, a, f: a * jacobian_of(f, x),
    ),
    DerivativeRow(
        name="vector times scalar function",
        written="a u(x)",
        formula=r"a\,\frac{\partial u}{\partial x}",
        layout="numerator",
        shapes={"x": "n", "a": "m", "u": "n ->"},
        value="m",
        function=lambda x, a, u: a * u(x),
        derivative=lambda x, a, u: torch.outer(a, gradient_of(u, x)),
    ),
    DerivativeRow(
        name="matrix times function",
        written="A f(x)",
        formula=r"A\,J_f",
        layout="numerator",
        shapes={"x": "n", "A": "k m", "f": "n -> m"},
        value="k",
        function=lambda x, A, f: A @ f(x),
        derivative=lambda x, A, f: A @ jacobian_of(f, x),
    ),
    DerivativeRow(
        name="element-wise function",
        written="f(x) element-wise",
        formula=r"\mathrm{diag}(f'(x))",
        layout="both",
        shapes={"x": "n", "f": "->"},
        value="n",
        function=lambda x, f: f(x),
        derivative=lambda x, f: torch.diag(slope_of(f, x)),
    ),
    DerivativeRow(
        name="softmax",
        written="softmax(x)",
        formula=r"\mathrm{diag}(z) - zz^\top,\ z = \mathrm{softmax}(x)",
        layout="both",
        shapes={"x": "n"},
        value="n",
        function=lambda x: torch.softmax(x, dim=-1),
        derivative=softmax_jacobian,
    ),
)
