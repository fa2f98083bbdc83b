r"""The maximum-margin classifier, in finitely many steps: the shortest vector between the hulls of the two classes.

The widest street between two classes is perpendicular to the shortest vector that joins their convex hulls. That vector
is the point of least norm in the hull of all differences $x_i - x_j$ ($y_i = +1$, $y_j = -1$), which Wolfe's algorithm
finds by linear algebra, without a step size or a penalty to choose. Whether there is a street is decided exactly.
"""

import math
from fractions import Fraction

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import fractions
from lemmata.connectionism.separability import Separation, separate
from lemmata.marks import system

__all__ = ["MaximumMarginClassifier"]


@system("max_margin", title="Maximum margin classifier", kind="estimator")
class MaximumMarginClassifier:
    r"""The hyperplane that stays as far as possible from the nearest point (hard-margin support vector machine).

    $$ (w^*, b^*) = \arg\max_{w,b}\ \min_i \frac{y_i(w^\top x_i + b)}{\|w\|},
       \qquad\text{scaled so that}\quad \min_i y_i({w^*}^\top x_i + b^*) = 1 $$

    With `bias=False` the hyperplane is held to the origin ($b = 0$), the margin of Novikoff's theorem.

    Learnt: `weight_` (features,), `bias_` (), `margin_` (the distance of the nearest points, $1/\|w^*\|$), `support_`
    (the indices of the points that hold the hyperplane), `dual_coef_` ($y_i\alpha_i$ of those points:
    $w^* = \sum_i \alpha_i y_i x_i$, $\alpha_i > 0$).

    Shapes:
        x: (points, features), y: (points,) of -1 and +1

    Claims: perceptron.max_margin
    Source: Wolfe 1976, "Finding the nearest point in a polytope".
    Differs: from a general SVM in having no slack: data that are not separable are an error that names the reason. The
        solver runs in float64 on the CPU; the result has the dtype and device of x, and separates the points as it is
        stored: a street too narrow for that is an ArithmeticError. Each step solves a least-squares problem as large
        as the set of support vectors: with many hundreds of them it takes seconds.

    >>> x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [6.0, 5.0]])
    >>> model = MaximumMarginClassifier().fit(x, torch.tensor([-1, -1, 1, 1]))
    >>> model.weight_, model.bias_, model.margin_, model.support_
    (tensor([0.5000, 0.0000]), tensor(-1.), 2.0, tensor([0, 2]))
    >>> model.predict(torch.tensor([[3.0, 9.0], [1.0, 9.0]]))
    tensor([ 1., -1.])
    """

    weight_: Tensor
    bias_: Tensor
    margin_: float
    support_: Tensor
    dual_coef_: Tensor

    def __init__(self, bias: bool = True):
        self.bias = validate.flag("bias", bias)

    def __repr__(self) -> str:
        return f"MaximumMarginClassifier(bias={self.bias})"

    def fit(self, x: Float[Tensor, "points features"], y: Tensor) -> "MaximumMarginClassifier":
        """Find the hyperplane; data that no hyperplane separates are a ValueError that names the points in conflict."""
        x = validate.matrix("x", x).detach()
        signs = validate.labels("y", y, like=x).double().cpu()
        points = x.double().cpu()
        classes = [torch.nonzero(signs == sign)[:, 0] for sign in (1.0, -1.0)]
        groups = classes if self.bias else [torch.arange(len(points))]
        if any(len(group) == 0 for group in groups):
            raise ValueError(f"y must hold both -1 and +1, got only {int(signs[0]):+d}: the margin has no bound")

        centre = _near_centre(points) if self.bias else torch.zeros_like(points[0])
        points = points - centre
        # A power of two: dividing by it is exact, and keeps the squares below from overflow.
        scale = math.ldexp(1.0, math.frexp(float(points.abs().max()))[1] - 1)
        signed = signs[:, None] * (points / scale)  # (points, features)
        nearest, coefficients = _nearest_to_origin(signed, groups)  # (features,), (points,)
        # Closer than this, coordinates of size one no longer tell how far two hulls are apart.
        if nearest.norm() <= 64 * torch.finfo(torch.double).eps:
            raise self._no_street(x, signs)

        # nearest^T(x_i - x_j) = |nearest|^2 across the street, and w^T(x_i - x_j) = 2 by the choice of scale.
        stretch = len(groups) / (nearest @ nearest)
        weight = stretch * nearest  # (features,)
        lowest = [(signed[group] @ weight).min() for group in groups]
        level = float(lowest[-1] - lowest[0]) / 2  # both classes equally far; nothing to choose without a bias
        weight = weight / scale
        self.weight_ = weight.to(x)
        self.bias_ = x.new_tensor(_bias_of_level(level, weight, centre) if weight.isfinite().all() else level)
        if not self._separates_points(x, signs):
            raise self._no_street(x, signs)
        self.margin_ = float(nearest.norm() * scale / len(groups))
        support = torch.nonzero(coefficients)[:, 0]
        self.support_ = support.to(x.device)
        self.dual_coef_ = (stretch * coefficients * signs / scale / scale)[support].to(x)
        return self

    def decision_function(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points"]:
        r"""$w^\top x + b$: +1 or -1 on the support vectors, 0 on the hyperplane."""
        if not hasattr(self, "weight_"):
            raise RuntimeError("this MaximumMarginClassifier is not fitted: call fit(x, y) first")
        x = validate.last_axis("x", validate.matrix("x", x), len(self.weight_))
        return x @ self.weight_.to(x) + self.bias_.to(x)  # (points, features) -> (points,)

    def predict(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points"]:
        """The side of the hyperplane on which each point lies: -1 or +1, and 0 on the hyperplane itself."""
        return torch.sign(self.decision_function(x))

    def _separates_points(self, x: Tensor, signs: Tensor) -> bool:
        """Whether the hyperplane as it is stored has every point on its side, exactly."""
        stored = self.weight_.double(), self.bias_.double()
        return Separation(True, *stored, biased=True).verify(x, signs)

    def _no_street(self, x: Tensor, signs: Tensor) -> Exception:
        """Why there is no hyperplane to give: the points in conflict, or a street too narrow to place one in."""
        found = separate(x, signs, self.bias)
        if found.multipliers is None:
            wider = "subtract x[0] from all points, or scale them" if x.dtype is torch.float64 else "use x.double()"
            return ArithmeticError(f"x is separable, but too near to tell where the widest street lies: {wider}")
        support = torch.nonzero(found.multipliers.cpu())[:, 0]
        fault = "x and y are not linearly separable"
        if not self.bias:
            points = f"the points i in {support.tolist()}"
            return ValueError(f"{fault} through the origin: it lies in the hull of y_i x_i for {points}")
        above, below = support[signs[support] > 0].tolist(), support[signs[support] < 0].tolist()
        return ValueError(f"{fault}: the hull of the points {above} of class +1 meets the hull of {below} of class -1")


def _near_centre(points: Tensor) -> Tensor:
    """What to subtract from points that lie far out and close together: their first, where that rounds nothing."""
    first = points[0]
    moved = points - first  # (points, features)
    # Knuth's sum of two: what the subtraction rounded away, to the last bit.
    back = moved + first
    lost = (points - back) + ((back - moved) - first)
    helps = (lost == 0).all(dim=0) & (moved.abs().amax(dim=0) < points.abs().amax(dim=0) / 2)
    return torch.where(helps, first, 0.0)


def _bias_of_level(level: float, weight: Tensor, centre: Tensor) -> float:
    """The bias for points at their own place: level - weight^T centre, rounded once."""
    moved = sum((a * b for a, b in zip(fractions(weight), fractions(centre), strict=True)), Fraction(0))
    return float(Fraction(level) - moved)


def _nearest_to_origin(signed: Tensor, groups: list[Tensor]) -> tuple[Tensor, Tensor]:
    r"""The shortest sum of one vector from the hull of each group, and the coefficient of every row in it.

    Wolfe's algorithm. It keeps a corral: vertices (one row from each group, added up) that are affinely independent and
    have the nearest point of their affine hull inside. A vertex further down than that point joins; vertices that would
    need a negative coefficient leave. The norm falls strictly and there are finitely many corrals, so it ends; rounding
    can only end it sooner, when the norm no longer falls.
    """

    def furthest_down(direction: Tensor) -> Tensor:
        return torch.stack([group[(signed[group] @ direction).argmin()] for group in groups])

    corral = torch.stack([group[0] for group in groups])[None]  # (vertices, groups): the rows that each adds up
    coefficients, nearest = torch.ones(1, dtype=torch.double), signed[corral[0]].sum(dim=0)
    while not (corral == (vertex := furthest_down(nearest))).all(dim=1).any():
        tried = _move_inside(
            signed, torch.cat([corral, vertex[None]]), torch.cat([coefficients, coefficients.new_zeros(1)])
        )
        if not tried[2].norm() < nearest.norm():
            break
        corral, coefficients, nearest = tried
    totals = torch.zeros(len(signed), dtype=torch.double)
    return nearest, totals.index_add(0, corral.flatten(), coefficients.repeat_interleave(len(groups)))


def _move_inside(signed: Tensor, corral: Tensor, coefficients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Move to the nearest point of the corral's affine hull, dropping the vertices met on the way out of its hull."""
    while True:
        wanted, nearest = _affine_nearest(signed[corral].sum(dim=1))
        if (wanted > 0).all():
            return corral, wanted, nearest
        # A newcomer (coefficient 0) that is not wanted either goes at once: 0 / 0 is a reach of 0.
        reach = torch.where(wanted > 0, torch.inf, (coefficients / (coefficients - wanted)).nan_to_num(0.0))
        coefficients = coefficients + reach.min() * (wanted - coefficients)
        coefficients[reach.argmin()] = 0.0  # exactly, so that each round drops at least one
        corral, coefficients = corral[coefficients > 0], coefficients[coefficients > 0]


def _affine_nearest(vertices: Tensor) -> tuple[Tensor, Tensor]:
    """The point of least norm in the affine hull of the rows, with the rows' coefficients (which add up to one)."""
    first, edges = vertices[0], (vertices[1:] - vertices[0]).T  # (features,), (features, vertices - 1)
    nearest, steps = first, edges.new_zeros(edges.shape[1])
    # The second pass removes the rounding of the first, which a narrow street needs.
    for _ in range(2):
        # Not "gelsy": torch hands LAPACK pivots it has not set, and the answer depends on what lay in that memory.
        further = torch.linalg.lstsq(edges, -nearest[:, None], driver="gelsd").solution[:, 0]
        steps = steps + further
        nearest = nearest + edges @ further
    return torch.cat([1 - steps.sum(dim=0, keepdim=True), steps]), nearest
