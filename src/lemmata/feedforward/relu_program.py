r"""A ReLU network as a short list of steps, and the affine maps it is made of: rounded with a bound, or exact.

On a region where every unit keeps its sign, each unit before its rectifier is an affine function of the input. Its
coefficients are sums of products of weights. Weights are stored numbers, hence fractions, and so are the coefficients:
double precision gives them with a bound on what it lost, and where that does not decide, fractions do.
"""

from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.certified.error_free import DIGITS, grain
from lemmata.certified.rounding import fractions, gamma
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.residual import DenselyConnectedBlock, ResidualLayer, ResidualMLP
from lemmata.foundations.activations.table import LEAK

__all__ = []  # for linear_regions


@dataclass(frozen=True, eq=False)
class Affine:
    """h becomes W h + b."""

    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, "outputs"]


@dataclass(frozen=True)
class Rectify:
    """h becomes max(h, 0), or `slope` times h where it is negative: here regions are cut."""

    slope: float = 0.0


class Remember:
    """Keep h for the next `Add`."""


@dataclass(frozen=True, eq=False)
class Add:
    """h becomes h + V r for what was remembered; V is the identity if there is none."""

    projection: Float[Tensor, "outputs inputs"] | None = None


Step = Affine | Rectify | Remember | Add
RECTIFIERS = {"relu": Rectify(), "leaky_relu": Rectify(LEAK)}
KNOWN = (
    "Linear, ReLU, LeakyReLU, BatchNorm1d, Identity, Flatten, Dropout, Sequential, or MLP, ResidualLayer, ResidualMLP "
    "and DenselyConnectedBlock with relu or leaky_relu"
)


def program(model: nn.Module) -> list[Step]:
    """The steps of a network, its weights as doubles; what is not known to be piecewise affine is refused by name."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a module, got {type(model).__name__}: use nn.Sequential of its layers")
    changed = [hooks for hooks in (model._forward_hooks, model._forward_pre_hooks) if hooks]
    if changed or "forward" in vars(model):
        raise ValueError(f"{type(model).__name__} has a hook or a forward of its own: remove it to count regions")
    kind, drops, steps = type(model), False, list[Step]()
    if isinstance(model, nn.Sequential) and kind is nn.Sequential:
        return [step for part in model for step in program(part)]
    if isinstance(model, MLP) and kind is MLP and model.config.activation in (*RECTIFIERS, "identity"):
        drops = model.config.dropout > 0
        between = [RECTIFIERS[model.config.activation]] if model.config.activation in RECTIFIERS else []
        for layer in model.layers:
            steps += [*(between if steps else []), *program(layer)]
    elif isinstance(model, ResidualMLP) and kind is ResidualMLP and model.config.activation in RECTIFIERS:
        drops = model.config.dropout > 0
        steps = [step for part in (model.embedding, *model.layers, model.head) for step in program(part)]
    elif isinstance(model, ResidualLayer) and kind is ResidualLayer and model.activation in RECTIFIERS:
        skip = None if model.projection is None else _projection_matrix(model.projection)
        steps = [Remember(), *program(model.linear), RECTIFIERS[model.activation], Add(skip)]
    elif isinstance(model, DenselyConnectedBlock) and kind is DenselyConnectedBlock and model.activation in RECTIFIERS:
        steps = [step for layer in model.layers for step in _joined_map(layer, RECTIFIERS[model.activation])]
    elif isinstance(model, nn.Dropout) and kind is nn.Dropout:
        drops = model.p > 0
    elif isinstance(model, nn.BatchNorm1d) and kind is nn.BatchNorm1d:
        steps.append(_normalization_layer(model))
    elif isinstance(model, nn.LeakyReLU) and kind is nn.LeakyReLU:
        steps.append(Rectify(float(validate.finite_number("negative_slope", model.negative_slope))))
    elif kind is nn.Linear:
        steps.append(_affine_layer(model))
    elif kind is nn.ReLU:
        steps.append(Rectify())
    elif not (kind is nn.Identity or (isinstance(model, nn.Flatten) and model.start_dim == 1)):
        raise ValueError(f"{kind.__name__} is not known to be piecewise affine: use {KNOWN}")
    if drops and model.training:
        raise ValueError("a network that drops units has no fixed regions: use model.eval()")
    return steps


def _joined_map(layer: nn.Module, rectify: Rectify) -> list[Step]:
    """h becomes (h, relu(W h + b)): both parts are moved to their places, then added."""
    assert isinstance(layer, nn.Linear)
    old, new = layer.in_features, layer.out_features
    places = torch.eye(old + new, dtype=torch.float64, device=layer.weight.device)
    added = Affine(places[:, old:], torch.zeros_like(places[0]))
    return [Remember(), *program(layer), rectify, added, Add(places[:, :old])]


def _projection_matrix(layer: nn.Module) -> Tensor:
    """The matrix of a layer without a constant, read like any other layer."""
    steps = program(layer)
    if len(steps) != 1 or not isinstance(steps[0], Affine) or bool(steps[0].bias.any()):
        raise ValueError(f"projection must be a Linear without a bias, got {type(layer).__name__}")
    return steps[0].weight


def _affine_layer(layer: nn.Module) -> Affine:
    assert isinstance(layer, nn.Linear)
    weight = layer.weight.detach().double()
    bias = torch.zeros_like(weight[:, 0]) if layer.bias is None else layer.bias.detach().double()
    return _finite_affine(weight, bias)


def _normalization_layer(layer: nn.BatchNorm1d) -> Affine:
    """What batch normalisation does once its statistics are fixed: a scale and a shift, each rounded to a double."""
    if layer.training or layer.running_mean is None or layer.running_var is None:
        told = "use model.eval(), and running statistics"
        raise ValueError(f"BatchNorm1d that sees whole batches has no fixed regions: {told}")
    mean, variance = layer.running_mean.double(), layer.running_var.double()
    scale = (variance + layer.eps).rsqrt()
    scale = scale if layer.weight is None else scale * layer.weight.detach().double()
    shift = -mean * scale if layer.bias is None else layer.bias.detach().double() - mean * scale
    return _finite_affine(torch.diag(scale), shift)


def _finite_affine(weight: Tensor, bias: Tensor) -> Affine:
    if not (weight.isfinite().all() and bias.isfinite().all()):
        raise ValueError("weights must be finite, got NaN or infinity: look at how the network was trained")
    return Affine(weight, bias)


@dataclass(frozen=True, eq=False)
class Coefficients:
    r"""Affine functions of the input, one for each unit of each region, and how wrong they may be.

    `value[r, j]` holds the slopes of unit j on region r, then its constant; the true numbers are within `bound`. Those
    with the bound 0 are exact, and whole multiples of `grain`.
    """

    value: Float[Tensor, "regions units terms"]
    bound: Float[Tensor, "regions units terms"]
    grain: float

    @classmethod
    def of_input(cls, dimensions: int, device: torch.device) -> "Coefficients":
        identity = torch.eye(dimensions, dimensions + 1, dtype=torch.float64, device=device)[None]
        return cls(identity, torch.zeros_like(identity), 1.0)

    def affine(self, step: Affine) -> "Coefficients":
        return self._map_affine(step.weight, step.bias)

    def _map_affine(self, weight: Tensor, bias: Tensor | None) -> "Coefficients":
        if weight.shape[1] != self.value.shape[1]:
            raise ValueError(f"layers must fit: one takes {weight.shape[1]} values, but is given {self.value.shape[1]}")
        constant = torch.zeros_like(self.value[:1, :1]).expand(1, len(weight), -1).clone()
        if bias is not None:
            constant[..., -1] = bias
        value = _matrix_product(weight, self.value) + constant
        size = _matrix_product(weight.abs(), self.value.abs()) + constant.abs()
        carried = _matrix_product(weight.abs(), self.bound) if self.bound.any() else torch.zeros_like(size)
        # Every partial sum is a multiple of the grain and below `size`: with fewer than 53 digits nothing is rounded.
        fine = min(grain(weight) * self.grain, grain(constant))
        exact = (carried == 0) & (size < 2.0 ** (DIGITS - 1) * fine)
        terms = weight.shape[1] + 2
        lost = (1 + gamma(terms)) * (carried + gamma(terms) * size) + torch.finfo(value.dtype).tiny
        return Coefficients(value, torch.where(exact, 0.0, lost), fine)

    def plus(self, other: "Coefficients", projection: Tensor | None) -> "Coefficients":
        other = other if projection is None else other._map_affine(projection, None)
        value, fine = self.value + other.value, min(self.grain, other.grain)
        size, carried = self.value.abs() + other.value.abs(), self.bound + other.bound
        exact = (carried == 0) & (size < 2.0 ** (DIGITS - 1) * fine)
        lost = (1 + gamma(2)) * (carried + gamma(2) * size)
        return Coefficients(value, torch.where(exact, 0.0, lost), fine)

    def rectified(self, active: Bool[Tensor, "regions units"], slope: float = 0.0) -> "Coefficients":
        kept = active[..., None]
        if not slope:
            return Coefficients(torch.where(kept, self.value, 0.0), torch.where(kept, self.bound, 0.0), self.grain)
        value, size = slope * self.value, abs(slope) * self.value.abs()
        fine = min(self.grain, grain(torch.tensor([slope], dtype=torch.float64)) * self.grain)
        exact = (self.bound == 0) & (size < 2.0 ** (DIGITS - 1) * fine)
        lost = (1 + gamma(2)) * (abs(slope) * self.bound + gamma(2) * size) + torch.finfo(value.dtype).tiny
        bound = torch.where(exact, 0.0, lost)
        return Coefficients(torch.where(kept, self.value, value), torch.where(kept, self.bound, bound), fine)

    def __getitem__(self, regions: Tensor) -> "Coefficients":
        return Coefficients(self.value[regions], self.bound[regions], self.grain)


def _matrix_product(weight: Tensor, values: Tensor) -> Tensor:
    """One product of matrices for all regions, which is many times as fast as one small product for each."""
    regions, units, terms = values.shape
    flat = weight @ values.transpose(0, 1).reshape(units, regions * terms)
    return flat.reshape(len(weight), regions, terms).transpose(0, 1)  # (regions, outputs, terms)


class ExactUnits:
    """The same affine functions in fractions, for one region at a time, from the pattern of its active units."""

    def __init__(self, steps: list[Step], dimensions: int) -> None:
        self.dimensions = dimensions
        self.steps = [self._fraction_step(step) for step in steps]
        self.known: dict[tuple, list[list[Fraction]]] = {}
        self.asked = 0  # how many decisions rounding left open

    @staticmethod
    def _fraction_step(step: Step) -> tuple:
        if isinstance(step, Affine):
            return ("affine", fractions(step.weight), fractions(step.bias))
        if isinstance(step, Add):
            return ("add", None if step.projection is None else fractions(step.projection))
        return ("rectify", Fraction(step.slope)) if isinstance(step, Rectify) else ("remember",)

    def units(self, pattern: tuple[tuple[bool, ...], ...]) -> list[list[Fraction]]:
        """Slopes and constant of each unit before the rectifier that follows the layers of this pattern."""
        if pattern not in self.known:
            if len(self.known) > 4096:
                self.known.clear()
            self.known[pattern] = self._unit_rows(pattern)
        return self.known[pattern]

    def _unit_rows(self, pattern: tuple[tuple[bool, ...], ...]) -> list[list[Fraction]]:
        size, layer = self.dimensions, 0
        rows = [[Fraction(int(i == j)) for j in range(size + 1)] for i in range(size)]
        remembered = rows
        for step in self.steps:
            if step[0] == "affine":
                rows = [_combine_rows(weights, rows, bias) for weights, bias in zip(step[1], step[2], strict=True)]
            elif step[0] == "remember":
                remembered = rows
            elif step[0] == "add":
                other = remembered if step[1] is None else [_combine_rows(w, remembered, Fraction(0)) for w in step[1]]
                rows = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(rows, other, strict=True)]
            elif layer == len(pattern):
                return rows
            else:
                active = pattern[layer]
                rows = [row if on else [step[1] * v for v in row] for row, on in zip(rows, active, strict=True)]
                layer += 1
        return rows


def _combine_rows(weights: list[Fraction], rows: list[list[Fraction]], bias: Fraction) -> list[Fraction]:
    """A sum of rows, and a bias to its constant; reduced once, as every denominator is a power of two."""
    pairs = [(weight, row) for weight, row in zip(weights, rows, strict=True) if weight]
    total = []
    for term in range(len(rows[0])):
        parts = [(w.numerator * row[term].numerator, w.denominator * row[term].denominator) for w, row in pairs]
        finest = max((below for _, below in parts), default=1)
        total.append(Fraction(sum(above * (finest // below) for above, below in parts), finest))
    total[-1] += bias
    return total
