r"""The combination of features whose largest error is least: Chebyshev's regression, by a linear program."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["UniformFit", "uniform_fit"]

SOLVED = 1e-10  # how well the linear program meets its inequalities, the least that the solver takes


@dataclass(frozen=True, eq=False)
class UniformFit:
    """The weights of the features, and the largest error that they leave."""

    weights: Float[Tensor, "features"]
    distance: float


@system("uniform_fit", title="Fit with the least largest error", kind="function")
def uniform_fit(features: Float[Tensor, "points features"], y: Float[Tensor, "points"]) -> UniformFit:
    r"""The weights with the least largest error over all points (Chebyshev, minimax or uniform regression).

    $$ \min_w \max_i |y_i - w^\top \phi_i| = \min_{w, t}\, t \quad\text{with}\quad -t \le y_i - w^\top \phi_i \le t $$

    Over points of a set $K$ the error that remains is at most the distance of the function from the span of its
    features on $K$: more points raise it. How far the fit itself is from the function between the points,
    `uniform_distance` says.

    Shapes:
        features: (points, features); y: (points,)

    Claims: approx.class_distance, approx.universal
    Source: J. Fourier 1824; E. Stiefel, Note on Jordan elimination, linear programming and Tchebycheff approximation
        (1960).
    Differs: solved in double precision by HiGHS, to about 1e-9 of the features and of y.

    >>> x = torch.linspace(-1, 1, 201, dtype=torch.float64)
    >>> fit = uniform_fit(torch.stack([x**0, x, x**2], dim=1), x.abs())
    >>> round(fit.distance, 6), [round(w, 6) + 0.0 for w in fit.weights.tolist()]
    (0.125, [0.125, 0.0, 1.0])
    """
    validate.matrix("features", features)
    validate.vector("y", y, length=len(features))
    columns, heights = features.detach().double().cpu().numpy(), y.detach().double().cpu().numpy()
    # An orthonormal basis of the span: features that nearly agree would stop the solver.
    basis, sizes, mixing = np.linalg.svd(columns / _largest_size(columns), full_matrices=False)
    rank = int((sizes > sizes[0] * max(columns.shape) * np.finfo(float).eps).sum())
    table, target = basis[:, :rank] * math.sqrt(len(basis)), heights / _largest_size(heights)
    ones = np.ones((len(table), 1))
    # Each of the solver's methods gives up on a few programs that another one solves.
    for method, tolerance in itertools.product(("highs-ds", "highs-ipm"), (SOLVED, 1e3 * SOLVED)):
        result = linprog(
            np.append(np.zeros(rank), 1.0),
            A_ub=np.block([[table, -ones], [-table, -ones]]),
            b_ub=np.concatenate([target, -target]),
            bounds=[(None, None)] * rank + [(0, None)],
            method=method,
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if result.x is not None:
            break
    else:
        raise ArithmeticError(f"the linear program was not solved ({result.message}): take fewer points")
    inner = result.x[:-1] * math.sqrt(len(basis)) / sizes[:rank]
    weights = inner @ mixing[:rank] * (_largest_size(heights) / _largest_size(columns))
    distance = float(np.abs(heights - columns @ weights).max())
    return UniformFit(torch.from_numpy(weights).to(features), distance)


def _largest_size(values: np.ndarray) -> float:
    """The largest size of a value, or 1 where all are 0."""
    return float(np.abs(values).max()) or 1.0
