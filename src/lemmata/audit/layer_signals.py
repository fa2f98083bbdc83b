r"""How large signals and gradients are in every layer of a model that is audited, and how they go with depth."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.watching import WeightProduct, by_batch, weight_products

__all__ = []  # for probes


class LayerSignal(NamedTuple):
    """Of one layer, in the order in which layers are called. `forward` is the deviation of a unit between examples,
    `backward` the length of an example's gradient there, for a random gradient of deviation one at the outputs;
    `size` is the root of the mean square of a unit, and `expected` what independent weights make of the inputs' size.
    """

    name: str
    function: str
    forward: float
    backward: float
    size: float
    expected: float
    weight: Tensor
    then: tuple[str, ...]


class DepthTrend(NamedTuple):
    """How a size goes with depth: by which factor a layer multiplies it, over how many layers, and how many pairs of
    layers go the same way.
    """

    factor: float
    layers: int
    agreeing: float

    @property
    def total(self) -> float:
        """The factor over all layers."""
        return math.exp(min(math.log(self.factor) * (self.layers - 1), 700.0)) if self.layers > 1 else 1.0

    @property
    def depth_scale(self) -> float:
        """Over how many layers the variance changes by a factor e."""
        slope = abs(2 * math.log(self.factor))
        return 1 / slope if slope else math.inf


class _Seen:
    """Sums over the calls of one layer."""

    def __init__(self, product: WeightProduct):
        self.product, self.calls = product, 0
        self.variance = self.square = self.expected = self.gradient = 0.0


def layer_signals(subject: Subject, sample: Sample) -> list[LayerSignal]:
    """Signals and gradients of every layer that multiplies by weights; one that is called many times, such as the cell
    of a recurrent network, is one layer, with its mean over calls.
    """
    number, seen = len(sample), {}

    def see(product: WeightProduct) -> None:
        own = seen.setdefault(product.name, _Seen(product))
        own.calls += 1
        values = product.output.detach().double()
        rows = by_batch(values, number)
        own.variance += float((values.flatten() if rows is None else rows).var(0, correction=0).mean())
        own.square += float(values.square().mean())
        own.expected += _expected_square(product)
        if product.output.requires_grad:
            product.output.register_hook(lambda gradient: _add_gradient(own, gradient, number))

    with torch.backends.cudnn.flags(enabled=False):  # its recurrent layers have no gradient in evaluation mode
        outputs, _ = weight_products(subject, sample.tensors, see)
        if outputs.requires_grad:
            upstream = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))
            torch.autograd.backward(outputs, upstream.to(outputs), inputs=_wanted_parameters(subject))
    return [_layer_signal(own) for own in seen.values()]


def _wanted_parameters(subject: Subject) -> list[Tensor]:
    return [values for values in subject.model.parameters() if values.requires_grad]


def _add_gradient(own: _Seen, gradient: Tensor, number: int) -> None:
    own.gradient += float(gradient.detach().double().square().sum()) / number


def _layer_signal(own: _Seen) -> LayerSignal:
    deviation, size = math.sqrt(own.variance / own.calls), math.sqrt(own.square / own.calls)
    product, gradient, expected = own.product, math.sqrt(own.gradient / own.calls), math.sqrt(own.expected / own.calls)
    weight, then = product.weight.detach(), tuple(product.then)
    return LayerSignal(product.name, product.function, deviation, gradient, size, expected, weight, then)


def _expected_square(product: WeightProduct) -> float:
    """Mean square of the outputs if weights were independent of what they are given: E[x^2] |W|^2 / m + E[b^2]."""
    if product.function not in ("linear", "conv1d", "conv2d", "conv3d"):
        return math.nan
    weight, given = product.weight.detach().double(), product.given.detach().double()
    bias = 0.0 if product.bias is None else float(product.bias.detach().double().square().mean())
    return float(given.square().mean() * weight.square().sum() / len(weight)) + bias


def depth_trend(sizes: Sequence[float]) -> DepthTrend:
    r"""The factor by which a layer multiplies a size: $\exp$ of the median slope of its logarithm over all pairs of
    layers (Theil 1950, Sen 1968), which a few layers of another size, such as the ends of residual branches, do not
    move. Sizes that are zero or not finite are left out.

    >>> trend = depth_trend([8.0, 4.0, 2.0, 1.0])
    >>> round(trend.factor, 3), trend.layers, trend.agreeing
    (0.5, 4, 1.0)
    """
    kept = [(index, math.log(size)) for index, size in enumerate(sizes) if size > 0 and math.isfinite(size)]
    if len(kept) < 2:
        return DepthTrend(1.0, len(kept), 0.0)
    places, logs = (torch.tensor(column, dtype=torch.float64) for column in zip(*kept, strict=True))
    first, second = torch.triu_indices(len(kept), len(kept), 1)
    slopes = (logs[second] - logs[first]) / (places[second] - places[first])
    slope = float(slopes.median())
    agreeing = float((slopes.sign() == math.copysign(1.0, slope)).double().mean())
    return DepthTrend(math.exp(slope), len(kept), agreeing)
