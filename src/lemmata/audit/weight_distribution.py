r"""Which initialisation the weights of a layer still show: the distribution they were drawn from, and its scale."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.tricks.initialization import weight_variance

__all__ = []  # for probes

LEAST = 200  # entries: to fewer, a normal and a uniform distribution may both fit
MOST = 20_000  # entries that are compared with a distribution
# Kolmogorov's distance times the root of the number exceeds this once in 1500 samples of the distribution itself.
DISTANCE = 2.0
DEVIATIONS = 5.0  # that a sample's spread may lie off the scheme's
KURTOSIS = {"normal": 3.0, "uniform": 1.8}


class InitialDistribution(NamedTuple):
    """`family` is normal, uniform, orthogonal, zero, constant or small, and empty where weights do not look fresh;
    `scheme` is he, glorot, lecun, torch, 0.02 or orthogonal, and empty where the scale is that of none; `ratio`
    compares the deviation with He's.
    """

    family: str
    scheme: str
    ratio: float

    def __str__(self) -> str:
        if not self.family:
            return "trained"
        if self.family == "small":
            return "too small to say"
        if self.family in ("zero", "constant", "orthogonal"):
            return self.family
        return f"{self.family} {self.scheme}" if self.scheme else f"{self.family}, {self.ratio:.3g} times He"


def initial_distribution(weight: Tensor, inputs: float, outputs: float) -> InitialDistribution:
    r"""The distribution that independent weights of a layer with so many inputs and outputs would be drawn from.

    Entries are compared with a normal and a uniform distribution of their own standard deviation by Kolmogorov's
    distance, the standard deviation with that of each scheme within five of its own standard errors,
    $\tfrac12\sqrt{(\kappa-1)/N}$ for the kurtosis $\kappa$ of the distribution. Weights near their
    beginning are found as they were drawn.

    Shapes:
        weight: (outputs, ...)

    >>> weight = torch.nn.Linear(256, 128).weight
    >>> print(initial_distribution(weight, 256, 128))
    uniform torch
    """
    entries = weight.detach().flatten().double()
    ratio = float(entries.square().mean().sqrt()) / math.sqrt(weight_variance("he", inputs, outputs))
    if not bool(entries.any()):
        return InitialDistribution("zero", "", 0.0)
    if bool((entries == entries[0]).all()):
        return InitialDistribution("constant", "", ratio)
    if _is_orthogonal(weight):
        return InitialDistribution("orthogonal", "orthogonal", ratio)
    if len(entries) < LEAST:
        return InitialDistribution("small", "", ratio)
    family = _distribution_family(entries)
    if not family:
        return InitialDistribution("", "", ratio)
    error = math.sqrt((KURTOSIS[family] - 1) / len(entries)) / 2
    deviation = float(entries.square().mean().sqrt())
    schemes = {scheme: weight_variance(scheme, inputs, outputs) for scheme in ("he", "lecun", "glorot")}
    if family == "normal":
        schemes["0.02"] = 0.02**2  # of transformers
    else:
        schemes = {"torch": 1 / (3 * inputs)} | schemes  # the bounds of torch's layers are one over the root of inputs
    for scheme, variance in schemes.items():
        if abs(math.log(deviation / math.sqrt(variance))) < DEVIATIONS * error + torch.finfo(weight.dtype).eps:
            return InitialDistribution(family, scheme, ratio)
    return InitialDistribution(family, "", ratio)


def _distribution_family(entries: Tensor) -> str:
    """normal, uniform, or neither."""
    if len(entries) > MOST:
        entries = entries[:: len(entries) // MOST]
    scaled = (entries / entries.square().mean().sqrt()).sort().values
    number = len(scaled)
    steps = torch.arange(number, device=scaled.device)
    distributions = {"normal": torch.special.ndtr(scaled), "uniform": (scaled / math.sqrt(12) + 0.5).clamp(0, 1)}
    distances = {
        family: float(
            torch.maximum((distribution - steps / number).abs(), (distribution - (steps + 1) / number).abs()).max()
        )
        for family, distribution in distributions.items()
    }
    family = min(distances, key=distances.__getitem__)
    return family if distances[family] * math.sqrt(number) < DISTANCE else ""


def _is_orthogonal(weight: Tensor) -> bool:
    """Whether rows, or columns, are orthogonal and of one length, up to rounding."""
    matrix = weight.detach().flatten(1).double() if weight.ndim > 1 else weight.detach().double()[:, None]
    rows, columns = matrix.shape
    if not 2 <= min(rows, columns) <= 1024:
        return False
    gram = matrix @ matrix.mT if rows <= columns else matrix.mT @ matrix
    length = gram.diagonal().mean()
    off = (gram - length * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).abs().max()
    # They were made in single precision, or better; rounding them afterwards adds errors that average out in a product.
    # Random rows are about one over the root of their length off, far more.
    rounding = 16 * torch.finfo(weight.dtype).eps / max(rows, columns) ** 0.5
    return bool(off < max(64 * torch.finfo(torch.float32).eps, rounding) * length)
