r"""Linear separability, decided with a proof either way: a separating hyperplane, or multipliers that exclude it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor

from lemmata import validate
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
    added up, would give $0 > 0$. On data that are not integers multipliers can only be checked up to rounding: they
    exclude every plane but those whose gap is below $10^{-13}$ of the data, which doubles cannot tell from none.
    Tensors are float64, on the device of the data; fields of the other case are None.

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

    def verify(self, x: Float[Tensor, "points features"], y: Tensor) -> bool:
        r"""Check the answer against the data alone, without the solver that found it.

        A hyperplane counts if every activation exceeds the rounding error of computing it, so a false one never does.
        Multipliers are checked in rational numbers if the data are integers and the multipliers have denominators up
        to a million; otherwise their sum must vanish up to rounding, one part in $10^{13}$ of its terms.
        """
        rows = signed_rows(x, y, self.biased).double().cpu().numpy()
        if self.multipliers is not None and not self.separable:
            return _cancel(rows, self.multipliers.double().cpu().numpy())
        if self.weight is not None and self.bias is not None and self.separable:
            weights = torch.cat([self.weight, self.bias[None]]) if self.biased else self.weight
            return _all_positive(rows, weights.double().cpu().numpy())
        return False


@system("separability", title="Linear separability with a certificate", kind="function")
def separate(x: Float[Tensor, "points features"], y: Tensor, bias: bool = True) -> Separation:
    r"""Decide by linear programming whether a hyperplane separates the two classes, and prove the answer.

    $$ \max_{|w_j| \le 1,\,t}\ t \ \text{ s.t. } z_i^\top w \ge t \qquad\text{whose dual is}\qquad
       \min_{\lambda \ge 0,\ \sum_i\lambda_i = 1}\ \Big\| \sum_i \lambda_i z_i \Big\|_1 $$

    with $z_i = y_i(x_i, 1)$. The optimum is positive iff the data are separable; if it is 0 the dual solution is the
    certificate. Only verified answers are returned.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1

    Claims: perceptron.xor, perceptron.algorithm

    >>> x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> exclusive_or = separate(x, torch.tensor([-1, -1, 1, 1]))
    >>> exclusive_or.separable, exclusive_or.multipliers
    (False, tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64))
    """
    weights, multipliers = _solve(signed_rows(x, y, bias).double().cpu().numpy())  # (inputs,), (points,)
    found = torch.from_numpy(weights).to(x.device)
    intercept = found[-1] if bias else found.new_zeros(())
    plane = Separation(True, found[: x.shape[1]], intercept, biased=bias)
    if plane.verify(x, y):
        return plane
    proof = Separation(False, multipliers=torch.from_numpy(multipliers).to(x.device), biased=bias)
    if proof.verify(x, y):
        return proof
    raise ArithmeticError(
        "x and y are too close to the edge of separability to decide in double precision: rescale or jitter them"
    )


def _solve(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve the program on columns and rows scaled to 1, so that the solver's absolute tolerances mean something."""
    features = _size(rows, axis=0)  # (1, inputs)
    points = _size(rows / features, axis=1)  # (points, 1)
    scaled = rows / features / points  # (points, inputs)
    threshold = np.ones((len(rows), 1))
    result = linprog(
        c=-np.eye(rows.shape[1] + 1)[-1],
        A_ub=np.hstack([-scaled, threshold]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * rows.shape[1] + [(None, None)],  # any box around 0 serves
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise ArithmeticError(f"the linear program for separability failed: {result.message}")
    multipliers = np.maximum(-result.ineqlin.marginals, 0.0) / points[:, 0]
    return result.x[:-1] / features[0], multipliers / multipliers.sum()


def _size(rows: np.ndarray, axis: int) -> np.ndarray:
    """The norm along an axis, or 1 where all entries are zero."""
    size = np.linalg.norm(rows, axis=axis, keepdims=True)
    return np.where(size, size, 1.0)


def _all_positive(rows: np.ndarray, weights: np.ndarray) -> bool:
    if len(weights) != rows.shape[1]:
        return False
    # A product of n terms, summed in any order, is wrong by less than n eps sum|terms| (Higham, section 3.1).
    rounding = rows.shape[1] * np.finfo(float).eps * (np.abs(rows) @ np.abs(weights))
    return bool((rows @ weights > rounding).all())


def _cancel(rows: np.ndarray, multipliers: np.ndarray) -> bool:
    if len(multipliers) != len(rows) or (multipliers < 0).any() or not np.isclose(multipliers.sum(), 1.0):
        return False
    rows, multipliers = rows[multipliers != 0], multipliers[multipliers != 0]
    if (rows == np.rint(rows)).all():
        exact = [Fraction(value).limit_denominator(10**6) for value in multipliers]
        if sum(exact) and not any(sum(map(Fraction.__mul__, exact, map(Fraction, column))) for column in rows.T):
            return True
    return bool((np.abs(multipliers @ rows) <= 1e-13 * (multipliers @ np.abs(rows))).all())
