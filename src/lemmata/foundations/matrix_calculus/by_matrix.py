r"""Rows of the table of derivatives: numbers and vectors differentiated by a matrix.

The derivative of a number has the shape of the matrix (denominator layout). That of a vector is a tensor with three
axes, which rows of code never need: they need it contracted, as `DerivativeRow.pull_back` does.

Claims: matcalc.axb, matcalc.axtb, matcalc.axtxb, matcalc.xa_tensor
"""

import torch

from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow

__all__ = ["BY_MATRIX"]


BY_MATRIX = (
    DerivativeRow(
        name="bilinear form, by the matrix",
        written="a^T X b",
        formula=r"ab^\top",
        layout="denominator",
        shapes={"X": "m n", "a": "m", "b": "n"},
        value="",
        function=lambda X, a, b: a @ X @ b,
        derivative=lambda X, a, b: torch.outer(a, b),
    ),
    DerivativeRow(
        name="bilinear form of the transpose, by the matrix",
        written="a^T X^T b",
        formula=r"ba^\top",
        layout="denominator",
        shapes={"X": "m n", "a": "n", "b": "m"},
        value="",
        function=lambda X, a, b: a @ X.mT @ b,
        derivative=lambda X, a, b: torch.outer(b, a),
    ),
    DerivativeRow(
        name="bilinear form of the Gram matrix, by the matrix",
        written="a^T X^T X b",
        formula=r"X\,(ab^\top + ba^\top)",
        layout="denominator",
        shapes={"X": "m n", "a": "n", "b": "n"},
        value="",
        function=lambda X, a, b: (X @ a) @ (X @ b),
        derivative=lambda X, a, b: X @ (torch.outer(a, b) + torch.outer(b, a)),
    ),
    DerivativeRow(
        name="matrix times vector, by the matrix",
        written="X a",
        formula=r"\frac{\partial (Xa)_i}{\partial X_{kl}} = \delta_{ik}\,a_l",
        layout="numerator",
        shapes={"X": "m n", "a": "n"},
        value="m",
        function=lambda X, a: X @ a,
        derivative=lambda X, a: torch.einsum("ik,l->ikl", torch.eye(len(X), dtype=X.dtype, device=X.device), a),
    ),
)
