r"""Linear probes: what can be read off frozen features by a linear map."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor
from torch.nn import functional

from lemmata import validate

__all__ = ["LinearProbe", "fit_linear_probe"]

SMALLEST = 1e-6  # features that vary less, relative to the one that varies most, are constants


class LinearProbe(NamedTuple):
    """An affine map of features, fitted by `fit_linear_probe`."""

    mean: Float[Tensor, " features"]
    weight: Float[Tensor, "features targets"]
    bias: Float[Tensor, " targets"]

    def __call__(self, features: Float[Tensor, "n features"]) -> Float[Tensor, "n targets"]:
        """What the probe reads off these features: numbers, or one score for each class."""
        return (features.double() - self.mean) @ self.weight + self.bias

    def accuracy(self, features: Float[Tensor, "n features"], y: Int[Tensor, " n"]) -> float:
        """The fraction of examples whose class has the highest score."""
        return (self(features).argmax(1) == y).double().mean().item()

    def r_squared(self, features: Float[Tensor, "n features"], targets: Float[Tensor, "n targets"]) -> float:
        """The fraction of the targets' variance that is read: 1 all, 0 no more than by their mean."""
        targets = targets.double()
        spread = (targets - targets.mean(0)).square().sum()
        return (1 - (self(features) - targets).square().sum() / spread).item()


def fit_linear_probe(
    features: Float[Tensor, "n features"], targets: Num[Tensor, " n *targets"], ridge: float = 0.01
) -> LinearProbe:
    r"""The affine map of standardised features with the least squared error, for classes of their one-hot codes.

    $$ \min_{W, b} \; \tfrac1n \sum_i \|W^\top z_i + b - t_i\|^2 + \mu\, d\, \|W\|^2, \qquad
       z = (x - \bar x) / \sigma $$

    `targets` are classes, integers (n,), or numbers (n, targets). The penalty grows with the number d of features, so
    that layers of different widths compare. Computed in double precision, by whichever of n and d is smaller.

    >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> fit_linear_probe(x, torch.tensor([0, 0, 1, 1])).accuracy(x, torch.tensor([0, 0, 1, 1]))
    1.0
    """
    if validate.tensor("features", features).ndim != 2 or len(features) < 2 or not features.is_floating_point():
        raise ValueError(f"features must be (n, features) numbers of 2 examples or more, got {tuple(features.shape)}")
    if len(validate.tensor("targets", targets)) != len(features):
        raise ValueError(f"targets must be one for each of {len(features)} examples, got shape {tuple(targets.shape)}")
    validate.number("ridge", ridge, above=0)
    if targets.ndim == 1 and not targets.is_floating_point():
        targets = functional.one_hot(targets.long())
    elif targets.ndim != 2:
        raise ValueError(f"targets must be integers (n,) or numbers (n, targets), got shape {tuple(targets.shape)}")
    x, t = features.detach().double(), targets.detach().double()
    mean, scale = x.mean(0), x.std(0, correction=0)
    varies = scale > SMALLEST * scale.max()
    z = torch.where(varies, (x - mean) / torch.where(varies, scale, 1.0), 0.0)  # (n, features)
    n, d = z.shape
    penalty, centred = ridge * n * d, t - t.mean(0)
    if d <= n:
        weight = torch.linalg.solve(z.mT @ z + penalty * torch.eye(d, dtype=z.dtype, device=z.device), z.mT @ centred)
    else:
        kernel = z @ z.mT + penalty * torch.eye(n, dtype=z.dtype, device=z.device)
        weight = z.mT @ torch.linalg.solve(kernel, centred)
    return LinearProbe(mean, torch.where(varies, 1 / torch.where(varies, scale, 1.0), 0.0)[:, None] * weight, t.mean(0))
