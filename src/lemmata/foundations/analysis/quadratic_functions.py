r"""Quadratic functions as objects, whose constants are known exactly instead of measured."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.definiteness import certify_definiteness
from lemmata.certified.rounding import power_of_two
from lemmata.marks import system
from lemmata.validate import fits, symmetric

__all__ = ["QuadraticFunction"]


@system("quadratic_function", title="Quadratic function", kind="function")
class QuadraticFunction:
    r"""A quadratic function of a vector: its measurements are certified by bounds on the eigenvalues of its matrix.

    $$ f(x) = \tfrac12 x^\top H x + b^\top x + c, \qquad H = H^\top $$

    Shapes:
        matrix: (n, n), linear: (n,), x: (..., n)    returns: (...)

    Claims: convex.strong, smooth.definition, pl.definition, analysis.condition_number

    >>> bowl = QuadraticFunction(torch.diag(torch.tensor([1.0, 4.0])), linear=torch.tensor([0.0, -4.0]))
    >>> bowl(torch.tensor([2.0, 1.0])), bowl.minimum
    (tensor(0.), tensor(-2.))
    """

    def __init__(
        self, matrix: Float[Tensor, "n n"], linear: Float[Tensor, "n"] | None = None, constant: int | float = 0.0
    ) -> None:
        self.matrix = symmetric("matrix", validate.matrix("matrix", matrix, "n, n"))
        self.linear = matrix.new_zeros(len(matrix)) if linear is None else linear
        fits("linear", self.linear, (len(matrix),), like=matrix, whose="matrix")
        self.constant = validate.finite_number("constant", constant)

    def __call__(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
        return ((x @ self.matrix) * x).sum(-1) / 2 + x @ self.linear + self.constant

    @property
    def eigenvalues(self) -> Float[Tensor, "n"]:
        """Of the symmetric part of the matrix, ascending, computed in double; `eigenvalue_bounds` are proved."""
        return self._decomposed_hessian[0].to(self.matrix.dtype)

    @property
    def eigenvectors(self) -> Float[Tensor, "n n"]:
        """One unit vector in each column."""
        return self._decomposed_hessian[1].to(self.matrix.dtype)

    @property
    def _decomposed_hessian(self) -> tuple[Tensor, Tensor]:
        unit = power_of_two(self.matrix.detach().double())
        matrix = self.matrix.detach().double() / unit
        values, vectors = torch.linalg.eigh(matrix / 2 + matrix.mT / 2)
        return values * unit, vectors

    @property
    def eigenvalue_bounds(self) -> tuple[float, float]:
        """Two numbers between which all eigenvalues of the symmetric part of the matrix lie, proved."""
        matrix = self.matrix.detach()
        floors = certify_definiteness(torch.stack([matrix, -matrix])).floor.tolist()
        return floors[0], -floors[1]

    @property
    def minimiser(self) -> Float[Tensor, "n"]:
        r"""The point of least value, $-H^{-1} b$; an error where $H$ is not proved positive definite."""
        matrix = self.matrix.detach()
        proof = certify_definiteness(matrix)
        if proof.ceiling < 0:
            raise ValueError("the quadratic function has no minimum: along some direction it falls without end")
        if not proof.definite:
            least = f"between {float(proof.floor):.3g} and {float(proof.ceiling):.3g}"
            raise ValueError(f"matrix must be positive definite beyond rounding, but its least eigenvalue lies {least}")
        unit = power_of_two(matrix.double())  # or halves of the smallest numbers are 0
        matrix, linear = self.matrix.double() / unit, self.linear.double() / unit
        matrix = matrix / 2 + matrix.mT / 2
        factors, pivots, broken = torch.linalg.lu_factor_ex(matrix.detach())
        if broken:  # proved definite in fractions, but not to be solved in double precision
            least = f"{float(proof.floor):.3g}"
            raise ValueError(f"matrix is too near to a singular one: its least eigenvalue is about {least}, rescale it")
        start = -torch.linalg.lu_solve(factors, pivots, linear.detach()[:, None])[:, 0]
        # One step of refinement, which also carries the derivatives: dx = -H^-1 (dH x + db).
        rest = (matrix @ start + linear)[:, None]
        return (start - torch.linalg.lu_solve(factors, pivots, rest)[:, 0]).to(self.matrix.dtype)

    @property
    def minimum(self) -> Float[Tensor, ""]:
        """The least value."""
        return self(self.minimiser)

    def __repr__(self) -> str:
        return f"QuadraticFunction(n={len(self.matrix)})"
