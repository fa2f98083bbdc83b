"""The maximum-margin classifier: nothing does better, and the optimality conditions hold to rounding."""

import math

import torch
from torch import Tensor

from lemmata.connectionism.linear_threshold import dataset_margin
from lemmata.connectionism.max_margin import MaximumMarginClassifier
from lemmata.connectionism.perceptron import Perceptron
from lemmata.judge import Figure, Line, Points, all_of, at_least, at_most, claim, close, lie

DIRECTIONS = 2000


def _separable_classes(draw, points: int, features: int, gap: float) -> tuple[Tensor, Tensor]:
    """Two classes on either side of a street, not centred and not of unit size; two points of each are at its edge."""
    normal, x = draw.unit(features), draw.normal(points, features)
    side = x @ normal
    y = torch.where(side > 0, 1.0, -1.0).double()
    y[:4] = y.new_tensor([1, 1, -1, -1])
    side[:4] = 0.0
    return 3 * (x + (side - x @ normal + gap * y)[:, None] * normal) + 1, y


def _best_direction(x: Tensor, y: Tensor) -> Tensor:
    """The largest margin over directions of the plane a two-thousandth turn apart, each with its best offset."""
    turns = torch.arange(DIRECTIONS, dtype=torch.float64) * 2 * math.pi / DIRECTIONS
    heights = x @ torch.stack([turns.cos(), turns.sin()])
    above, below = heights[y > 0].amin(dim=0), heights[y < 0].amax(dim=0)
    return (above - below).max() / 2


def _optimality_faults(model, x: Tensor, y: Tensor) -> Tensor:
    """How far the plane is from feasible, complementary and stationary, in units of what rounding does to each: the
    three together prove that no hyperplane does better."""
    functional = y * model.decision_function(x)  # (points,), at least 1
    # Moving the plane by one unit in the last place of the data moves the functional margin by this much.
    condition = float(x.abs().max()) / model.margin_
    force = float(model.dual_coef_.abs().sum() * x.abs().max())
    pull = model.dual_coef_ @ x[model.support_] - model.weight_  # (features,)
    wrong_side = (-model.dual_coef_ * y[model.support_]).clamp(min=0)
    return torch.stack([
        (1 - functional).clamp(min=0).max() / condition,
        (functional[model.support_] - 1).abs().max() / condition,
        pull.abs().max() / force,
        wrong_side.max(),
    ])  # fmt: skip


class _PerceptronSolution(MaximumMarginClassifier):
    def fit(self, x, y):
        super().fit(x, y)
        found = Perceptron(bias=self.bias).fit(x, y)
        length = float((y * found.decision_function(x)).min())
        self.weight_, self.bias_ = found.weight_ / length, found.bias_ / length
        self.margin_ = float(found.margin(x, y))
        return self


class _BetweenTheMeans(MaximumMarginClassifier):
    def fit(self, x, y):
        super().fit(x, y)
        upper, lower = x[y > 0].mean(dim=0), x[y < 0].mean(dim=0)
        self.weight_ = 2 * (upper - lower) / (upper - lower).square().sum()
        self.bias_ = -self.weight_ @ (upper + lower) / 2
        self.margin_ = float(dataset_margin(self.weight_, self.bias_, x, y))
        return self


def _street_width(model, x: Tensor, y: Tensor, width: float) -> Figure:
    """The plane that was found, and a street on both sides of it as wide as the margin is said to be."""
    reach = 0.75 * float((x.amax(dim=0) - x.amin(dim=0)).max())
    weight, middle = model.weight_, x.mean(dim=0)

    def line(level, label):
        foot = middle - (weight @ middle + model.bias_ - level) * weight / weight.square().sum()
        along = torch.stack([-weight[1], weight[0]]) / weight.norm()
        ends = foot + torch.tensor([[-reach], [reach]], dtype=along.dtype) * along
        return Line(ends[:, 0], ends[:, 1], label=label)

    lines = [line(0.0, "boundary"), line(width, "edge of the street"), line(-width, "edge of the street")]
    classes = [Points(*x[y == sign].T, label=f"class {sign:+d}") for sign in (1, -1)]
    held = Points(*x[model.support_].T, label="support vectors")
    return Figure("The widest street between two classes", "x1", "x2", [*lines, *classes, held])


@claim("perceptron.max_margin")
@lie("the perceptron's solution has the largest margin", classifier=_PerceptronSolution)
@lie("the line half-way between the class means has the largest margin", classifier=_BetweenTheMeans)
@lie("the margin is the width of the whole street, 2 / |w|", width=2.0)
@lie("one point moved into the other class: still a solution", raises=ValueError, moved=1)
def no_hyperplane_keeps_further_from_its_nearest_point(draw, classifier=MaximumMarginClassifier, width=1.0, moved=0):
    """Its margin against 2,000 directions of the plane; the same hyperplane from the points in another order; the
    optimality conditions, also in many dimensions and for a street a millionth as wide as the data."""
    flat = [_separable_classes(draw, points, 2, gap=0.1) for points in (6, 15, 30)]
    flat[0][0][:moved] = flat[0][0][flat[0][1] != flat[0][1][0]].mean(dim=0)
    others = [_separable_classes(draw, 150, 12, gap=0.05), _separable_classes(draw, 200, 3, gap=1e-7)]
    models = [classifier().fit(x, y) for x, y in flat + others]
    # There is one maximum only: the points in another order, and the search begun elsewhere, lead to the same plane.
    turned = [classifier().fit(x.flip(0), y.flip(0)) for x, y in flat]
    planes, again = (
        torch.stack([torch.cat([m.weight_, m.bias_[None]]) for m in each]) for each in (models[:3], turned)
    )
    best = torch.stack([_best_direction(x, y) for x, y in flat])
    margins = torch.stack([dataset_margin(m.weight_, m.bias_, *data) for m, data in zip(models, flat, strict=False)])
    # A direction off by an angle of at most pi / DIRECTIONS loses at most that times the largest distance.
    coarse = torch.stack([torch.cdist(x, x).max() * math.pi / DIRECTIONS for x, _ in flat])
    return all_of(
        at_least(margins, best),
        at_most(margins, best + coarse),
        close([m.margin_ for m in models], width / torch.stack([m.weight_.norm() for m in models])),
        close(again, planes, condition=float(max(x.abs().max() for x, _ in flat) / margins.min())),
        close(
            torch.stack([_optimality_faults(m, *d) for m, d in zip(models, flat + others, strict=True)]), 0.0, scale=1.0
        ),
    ).showing(_street_width(models[1], *flat[1], width))
