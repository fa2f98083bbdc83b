r"""Whether a network announces that it does not see where something is: convolutions only, averaged over all places."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.audit.subject import Subject

__all__: list[str] = []

ACTIVATIONS = (lambda h: h, functional.relu, functional.gelu, functional.silu, functional.elu, torch.tanh)


class PooledPlaces(NamedTuple):
    """How a network forgets places: of how many it takes the mean or the maximum, and whether a linear layer, and
    nothing else, makes the outputs of that.
    """

    places: int
    mean: bool
    linear: bool


def pooled_places(subject: Subject, inputs: tuple[Tensor, ...]) -> PooledPlaces | None:
    """By what happens in one pass: what the last linear layer is given, or the outputs themselves, are the mean (or
    the maximum) over all places of some layer's maps, perhaps after an activation; below it are convolutions only.
    None where the network announces nothing of the kind.

    >>> from lemmata.audit.sample import as_sample
    >>> data = as_sample((torch.randn(4, 1, 12, 12), torch.zeros(4).long()))
    >>> body = [nn.Conv2d(1, 4, 3), nn.ReLU()]
    >>> pooled = nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    >>> flat = nn.Sequential(*body, nn.Flatten(), nn.Linear(400, 2))
    >>> [pooled_places(Subject(net, data), data.tensors) for net in (pooled, flat)]
    [PooledPlaces(places=100, mean=True, linear=True), None]
    """
    maps: list[Tensor] = []
    linear: list[tuple[Tensor, Tensor]] = []

    def watched(part: nn.Module, given: tuple[Any, ...], answer: Any) -> None:
        if not isinstance(answer, Tensor) or not given or not isinstance(given[0], Tensor):
            return
        if answer.ndim == 4 and answer.shape[2] * answer.shape[3] > 1:
            maps.append(answer)
        weight = getattr(part, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2:
            linear.append((given[0], answer))

    hooks = [part.register_forward_hook(watched) for part in subject.model.modules()]
    try:
        with torch.no_grad():
            outputs = subject.network(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if len(linear) > 1 or not maps:  # a linear layer before the last may have mixed the places
        return None
    pooled, answer = linear[0] if linear else (outputs, outputs)
    for one in reversed(maps):
        mean = _pooling_kind(pooled, one)
        if mean is not None:
            places = one.shape[2] * one.shape[3]
            return PooledPlaces(places, mean, answer.shape == outputs.shape and torch.equal(answer, outputs))
    return None


def _pooling_kind(pooled: Tensor, one: Tensor) -> bool | None:
    """Whether a vector is the mean (True) or the maximum (False) of maps over their places, or neither (None)."""
    if one.shape[:2] != pooled.shape:
        return None
    slack = 8 * torch.finfo(one.dtype).eps ** 0.5 * (float(pooled.abs().max()) + 1e-12)
    for activation in ACTIVATIONS:
        values = activation(one.float())
        for mean, result in ((True, values.mean((2, 3))), (False, values.amax((2, 3)))):
            if float((result - pooled.float()).abs().max()) <= slack:
                return mean
    return None
