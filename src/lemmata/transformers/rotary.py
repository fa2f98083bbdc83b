r"""Rotary positions: queries and keys are turned by their position, so that their product knows only the distance."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["rotate"]


@system("rotary", title="Rotary position embedding", kind="function")
def rotate(
    x: Float[Tensor, "... time width"], positions: Int[Tensor, " time"], base: float = 10_000.0
) -> Float[Tensor, "... time width"]:
    r"""Turn the pairs $(x_i, x_{i + d/2})$ of each vector by the angle $\omega_i t$ of its position.

    $$ \omega_i = C^{-2i/d}, \qquad
       \begin{pmatrix} x_i \\ x_{i+d/2} \end{pmatrix} \mapsto
       \begin{pmatrix} \cos \omega_i t & -\sin \omega_i t \\ \sin \omega_i t & \cos \omega_i t \end{pmatrix}
       \begin{pmatrix} x_i \\ x_{i+d/2} \end{pmatrix} $$

    The product of a query at s and a key at t then depends on s - t alone.

    Shapes:
        x: (..., time, width), where width is even    positions: (time,)    returns: as x

    Claims: attention.positional.shift
    Source: Su et al. 2021.

    >>> rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    width = x.shape[-1]
    if width % 2:
        raise ValueError(f"x must have an even width, to be turned in pairs, got {width}")
    validate.positive("base", base)
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"positions must be ({x.shape[-2]},), one for each vector, got shape {tuple(positions.shape)}")
    # In float64: at position 10,000 an angle in float32 is off by a thousandth.
    frequency = float(base) ** (-torch.arange(0, width, 2, device=x.device, dtype=torch.float64) / width)  # (width/2,)
    angle = positions.to(torch.float64)[:, None] * frequency  # (time, width / 2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)  # each (..., time, width / 2)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
