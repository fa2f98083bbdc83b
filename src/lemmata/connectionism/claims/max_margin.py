"""The maximum-margin classifier: nothing does better, and the optimality conditions hold to rounding."""

import math

import torch
from torch import Tensor

from lemmata.connectionism.linear_threshold import dataset_margin
from lemmata.connectionism.max_margin import MaximumMarginClassifier
from lemmata.connectionism.perceptron import Perceptron
from lemmata.judge import Figure, Line, Points, all_of, always, at_least, at_most, claim, close, lie

DIRECTIONS = 2000


def _separable(draw, points: int, features: int, gap: float, offset: float = 1.0) -> tuple[Tensor, Tensor]:
    """Two classes on either side of a street, not centred and not of unit size; two points of each are at its edge."""
    normal, x = draw.unit(features), draw.normal(points, features)
    side = x @ normal
    y = torch.where(side > 0, 1.0, -1.0).double()
    y[:4] = _doubles([1, 1, -1, -1])
    side[:4] = 0.0
    return 3 * (x + (side - x @ normal + gap * y)[:, None] * normal) + offset, y


def _best_direction(x: Tensor, y: Tensor, bias: bool) -> float:
    """The largest margin over directions of the plane a two-thousandth turn apart, each with its best offset."""
    turns = torch.arange(DIRECTIONS, dtype=torch.float64) * 2 * math.pi / DIRECTIONS
    heights = x @ torch.stack([turns.cos(), turns.sin()])
    above, below = heights[y > 0].amin(dim=0), heights[y < 0].amax(dim=0)
    return float(((above - below) / 2 if bias else torch.minimum(above, -below)).max())


def _optimality(model, x: Tensor, y: Tensor) -> list:
    """Feasible, complementary and stationary: the three together prove that no hyperplane does better."""
    functional = y * model.decision_function(x)
    held = x[model.support_]
    # Moving the plane by one unit in the last place of the data moves the functional margin by this much.
    condition = float(x.abs().max()) / model.margin_
    force = float(model.dual_coef_.abs().sum())
    parts = [
        at_least(functional, 1 - 1e-14 * condition),
        close(functional[model.support_], 1.0, condition=condition),
        always(model.dual_coef_ * y[model.support_] > 0),
        close(model.dual_coef_ @ held, model.weight_, scale=force * held.abs().max()),
        close(dataset_margin(model.weight_, model.bias_, x, y), model.margin_, condition=condition),
        always(model.predict(x) == y),
    ]
    return parts + ([close(model.dual_coef_.sum(), 0.0, scale=force)] if model.bias else [])


def _refuses(model, x: Tensor, y: Tensor, reason: str) -> bool:
    try:
        model.fit(x, y)
    except ValueError as error:
        return "not linearly separable" in str(error) and reason in str(error)
    return False


def _doubles(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


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


def _street(model, perceptron: Perceptron, x: Tensor, y: Tensor) -> Figure:
    reach = 0.75 * float((x.amax(dim=0) - x.amin(dim=0)).max())

    def line(weight, bias, level, label):
        foot = x.mean(dim=0) - (weight @ x.mean(dim=0) + bias - level) * weight / weight.square().sum()
        along = torch.stack([-weight[1], weight[0]]) / weight.norm()
        ends = foot + torch.tensor([[-reach], [reach]]) * along
        return Line(ends[:, 0], ends[:, 1], label=label)

    held = x[model.support_]
    return Figure(
        "The widest street between two classes", "x1", "x2",
        [
            line(model.weight_, model.bias_, 0.0, "maximum margin"),
            line(model.weight_, model.bias_, 1.0, "edge of the street"),
            line(model.weight_, model.bias_, -1.0, "edge of the street"),
            line(perceptron.weight_, perceptron.bias_, 0.0, "perceptron"),
            Points(x[y > 0][:, 0], x[y > 0][:, 1], label="class +1"),
            Points(x[y < 0][:, 0], x[y < 0][:, 1], label="class -1"),
            Points(held[:, 0], held[:, 1], label="support vectors"),
        ],
    )  # fmt: skip


@claim("perceptron.max_margin")
@lie("the perceptron's solution has the largest margin", classifier=_PerceptronSolution)
@lie("the line half-way between the class means has the largest margin", classifier=_BetweenTheMeans)
@lie("the margin is the width of the whole street, 2 / |w|", width=2.0)
@lie("one point moved into the other class: still a solution", raises=ValueError, moved=1)
def no_hyperplane_keeps_further_from_its_nearest_point(draw, classifier=MaximumMarginClassifier, width=1.0, moved=0):
    """Its margin against 2,000 directions of the plane; the same hyperplane from the points in another order; the
    optimality conditions, in many dimensions and for a street a millionth as wide as the data; data without a
    separating hyperplane are refused."""
    flat = [_separable(draw, points, 2, gap=0.1) for points in (6, 15, 30)]
    flat[0][0][:moved] = flat[0][0][flat[0][1] != flat[0][1][0]].mean(dim=0)
    through = _separable(draw, 20, 2, gap=0.1, offset=0.0)
    wide, narrow = _separable(draw, 150, 12, gap=0.05), _separable(draw, 200, 3, gap=1e-7)
    models = [classifier().fit(x, y) for x, y in flat]
    homogeneous = classifier(bias=False).fit(*through)
    # There is one maximum only: the points in another order, and the search begun elsewhere, lead to the same plane.
    turned = [classifier().fit(x.flip(0), y.flip(0)) for x, y in flat]
    planes, others = (torch.stack([torch.cat([m.weight_, m.bias_[None]]) for m in each]) for each in (models, turned))
    best = _doubles([_best_direction(x, y, True) for x, y in flat] + [_best_direction(*through, False)])
    margins = _doubles([float(dataset_margin(m.weight_, m.bias_, x, y)) for m, (x, y) in zip(models, flat, strict=True)]
                       + [float(dataset_margin(homogeneous.weight_, 0.0, *through))])  # fmt: skip
    # A direction off by an angle of at most pi / DIRECTIONS loses at most that times the largest distance.
    coarse = _doubles([float(torch.cdist(x, x).max()) * math.pi / DIRECTIONS for x, _ in flat]
                      + [float(through[0].norm(dim=1).max()) * math.pi / DIRECTIONS])  # fmt: skip

    square = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    cross = _doubles([-1, -1, 1, 1])
    turn = square.new_tensor([[-1, 0], [0, 1], [1, 1]])
    inside = draw.normal(6, 4)
    touching = torch.cat([inside, inside.mean(dim=0, keepdim=True)])
    alone = torch.tensor([1.0] * 6 + [-1.0])
    hair = classifier().fit(
        torch.tensor([[0.0], [1.0], [1 + 1e-12]], dtype=torch.float64), torch.tensor([1.0, 1.0, -1.0])
    )
    return all_of(
        at_least(margins, best),
        at_most(margins, best + coarse),
        close(others, planes, condition=float(max(x.abs().max() for x, _ in flat) / min(m.margin_ for m in models))),
        close(_doubles([m.margin_ for m in models]), width / torch.stack([m.weight_.norm() for m in models])),
        *(part for model, data in zip(models, flat, strict=True) for part in _optimality(model, *data)),
        *_optimality(homogeneous, *through),
        *_optimality(classifier().fit(*wide), *wide),
        *_optimality(classifier().fit(*narrow), *narrow),
        always([
            _refuses(classifier(), square, cross, "[2, 3] of class +1 meets the hull of [0, 1] of class -1"),
            _refuses(classifier(), touching, alone, "[6] of class -1"),
            _refuses(classifier(bias=False), square[1:], cross[1:], "through the origin: it lies in the hull of y_i"),
            bool(homogeneous.bias_ == 0),
            *(math.isclose(size * 0.5**0.5, classifier(bias=False).fit(size * turn, cross[1:]).margin_)
              for size in (1e-120, 1e120)),
            0 < hair.margin_ < 1e-12,
        ]),
    ).showing(_street(models[1], Perceptron(certify=False).fit(*flat[1]), *flat[1]))  # fmt: skip
