r"""What stands beyond the border of a signal: zeros, its mirror image, its last value, or its other end."""

from collections.abc import Sequence

import torch
from jaxtyping import Num
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.sizes import same_padding

__all__ = ["pad_space"]

MODES = ("zeros", "reflect", "replicate", "circular")


def pad_space(
    x: Num[Tensor, "*batch_and_space"], amounts: Sequence[tuple[int, int]], mode: str = "zeros"
) -> Num[Tensor, "*batch_and_larger_space"]:
    """Extend the last axes of x by so many places before and after, in any number of dimensions.

    Claims: conv.padding

    >>> pad_space(torch.arange(4), [(2, 1)], "reflect")
    tensor([2, 1, 0, 1, 2, 3, 2])
    """
    validate.one_of("padding_mode", mode, MODES)
    if not isinstance(amounts, Sequence):
        raise TypeError(f"amounts must be a pair (before, after) for each axis, got {amounts!r}")
    if validate.tensor("x", x).ndim < len(amounts):
        raise ValueError(f"amounts must be at most one pair for each of the {x.ndim} axes of x, got {len(amounts)}")
    if mode == "zeros":
        return functional.pad(x, [places for pair in reversed(amounts) for places in pair])
    for axis, (before, after) in enumerate(amounts, start=x.ndim - len(amounts)):
        if before or after:
            x = x.index_select(axis, _padded_positions(x.shape[axis], before, after, mode, x.device))
    return x


def amounts_of(
    padding: int | str | Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """Padding as users write it (a number, one for each axis, "valid" or "same"), before and after each axis."""
    if isinstance(padding, str):
        validate.one_of("padding", padding, ["valid", "same"])
        if padding == "valid":
            return [(0, 0)] * len(kernel_size)
        if any(step != 1 for step in stride):
            raise ValueError(f"padding 'same' needs stride 1, got {tuple(stride)}: give the padding as a number")
        return [same_padding(size, gap) for size, gap in zip(kernel_size, dilation, strict=True)]
    return [(places, places) for places in per_axis("padding", padding, len(kernel_size), least=0)]


def per_axis(name: str, value: int | Sequence[int], axes: int, least: int = 1) -> list[int]:
    """One number for each axis, where one alone stands for all."""
    values = list(value) if isinstance(value, Sequence) else [value] * axes
    if len(values) != axes or isinstance(value, str):
        told = repr(value) if isinstance(value, str) else tuple(values)
        raise ValueError(f"{name} must be a number or {axes} of them, one for each axis, got {told}")
    return [validate.count(name, entry, least=least) for entry in values]


def _padded_positions(size: int, before: int, after: int, mode: str, device: torch.device) -> Tensor:
    """Which place of an axis stands at each place of the padded one."""
    most = {"reflect": size - 1, "circular": size}.get(mode)
    if most is not None and max(before, after) > most:
        raise ValueError(f"padding must be <= {most} in mode {mode} on an axis of {size}, got {max(before, after)}")
    places = torch.arange(-before, size + after, device=device)
    if mode == "circular":
        return places % size
    if mode == "replicate":
        return places.clamp(0, size - 1)
    return (size - 1) - ((size - 1) - places.abs()).abs()  # mirrored at 0, then at the last place
