r"""Units of a layer that repeat others: weights and outputs the same up to a positive factor."""

import math

import torch
from torch import Tensor

from lemmata.audit.watching import WeightProduct, units_first

__all__ = []  # for probes

CHANCE = 1e-6  # that independent units would be as near to each other
LEAST_ALIKE = 4  # units that are all alike, whatever the chance: weights that were filled with one number
FUNCTIONS = ("linear", "conv1d", "conv2d", "conv3d")
PRODUCTS = ("matmul", "__matmul__", "mm")  # of inputs with weights: units are columns


def repeated_units(product: WeightProduct, examples: int) -> Tensor:
    r"""The index of an earlier unit that each unit repeats, or -1.

    Incoming weights with the bias, at length one, must agree within $\delta = 4\epsilon$, the rounding of a copy that
    was rescaled, and so must the outputs on the data. Directions of $m$ independent units with $n$ weights come that
    near with a chance of $\tfrac12 m^2\delta^{n-1}$ at most; entries that share values, as zeros do, agree more often,
    and with a chance above a millionth nothing is said.

    Shapes:
        returns: (units,)
    """
    weight = product.weight.detach()
    if product.function in PRODUCTS and weight.ndim == 2 and product.given.shape[-1] == len(weight):
        weight = weight.mT
    elif product.function not in FUNCTIONS:
        return torch.full((len(weight),), -1, dtype=torch.long, device=weight.device)
    weight = weight.flatten(1).double()  # (units, inputs)
    found = torch.full((len(weight),), -1, dtype=torch.long, device=weight.device)
    if len(weight) < 2:
        return found
    if product.bias is not None and len(product.bias) == len(weight):
        weight = torch.cat([weight, product.bias.detach().double()[:, None]], 1)
    weight = weight[:, weight.any(0)]
    lengths = weight.norm(dim=1)
    used = lengths > 0
    if weight.shape[1] < 2 or int(used.sum()) < 2:
        return found
    nearness = 4 * torch.finfo(product.weight.dtype).eps
    first = _earlier_rows(weight / lengths.clamp_min(1e-300)[:, None], used, nearness)
    alike = len(weight) >= LEAST_ALIKE and int((first >= 0).sum()) == int(used.sum()) - 1
    if not alike and _chance_of_pair(weight, nearness) > CHANCE:
        return found
    outputs = units_first(product.output.detach().double(), len(weight), examples)  # (units, values)
    if len(outputs) != len(weight):
        return found
    scaled = outputs / lengths.clamp_min(1e-300)[:, None]
    repeats = first >= 0
    off = (scaled - scaled[first.clamp_min(0)]).norm(dim=1)
    # Rounding of the sums goes with the largest of them, which is no smaller than what is left.
    agree = off <= 64 * nearness * scaled.norm(dim=1).max()
    moves = outputs.var(1, correction=0) > 0
    found[repeats & agree & moves] = first[repeats & agree & moves]
    return found


def _earlier_rows(rows: Tensor, used: Tensor, nearness: float) -> Tensor:
    """For each row the first one near it, by order along a random direction: equal rows lie next to each other."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(rows.shape[1], generator=generator, dtype=torch.float64).to(rows.device)
    order = (rows @ direction).argsort(stable=True)
    order = order[used[order]]
    near = (rows[order[1:]] - rows[order[:-1]]).norm(dim=1) <= nearness
    first = torch.full((len(rows),), -1, dtype=torch.long, device=rows.device)
    group = torch.cat([near.new_zeros(1), near]).logical_not().cumsum(0)  # (used,)
    for number in group[1:][near].unique():
        members = order[group == number].sort().values
        first[members[1:]] = members[0]
    return first


def _chance_of_pair(weight: Tensor, nearness: float) -> float:
    entries = weight.flatten()[:100_000]
    shares = entries.unique(return_counts=True)[1].double() / len(entries)
    agreeing = max(nearness, float(shares.square().sum()) if len(shares) < len(entries) else 0.0)
    pairs = len(weight) * (len(weight) - 1) / 2
    return math.exp(min(math.log(pairs) + (weight.shape[1] - 1) * math.log(agreeing), 0.0))
