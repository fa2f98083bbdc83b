r"""The Fourier transform of a function known on a regular grid, with the scale and the phases of the integral."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float, Num
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["fourier_transform", "inverse_fourier_transform"]


@system("fourier_transform", title="Fourier transform of a sampled function", kind="function")
def fourier_transform(f: Num[Tensor, "*space"], *t: Float[Tensor, "_"]) -> tuple[Tensor, ...]:
    r"""The integral over a grid that may begin anywhere, at the frequencies the grid can tell apart, lowest first.

    $$ (\mathcal Ff)(u) = \int e^{-2\pi iut} f(t)\,dt \approx \Delta\sum_k e^{-2\pi iut_k} f(t_k), \qquad
       u_j = \frac{j - \lfloor n/2\rfloor}{n\Delta} $$

    The sum is $\sum_m e^{-2\pi imt_0/\Delta}(\mathcal Ff)(u + m/\Delta)$ but for what lies outside the grid (Poisson):
    where function and transform both fade, as a Gaussian's do, it is the integral up to rounding.

    Shapes:
        f: (..., n_1, ..., n_d), t: d grids, (n_1,) to (n_d,)
        returns: transform (..., n_1, ..., n_d), complex, and its d grids of frequencies

    Claims: conv.fourier.definition, conv.fourier.linearity, conv.fourier.duality, conv.fourier.dirac_transform,
        conv.integral_operator, conv.transform.linear
    Source: J. Cooley and J. Tukey, An algorithm for the machine calculation of complex Fourier series (1965).
    Differs: phases are computed in float64; half precision is transformed in float32.

    >>> t = torch.linspace(-4, 4, 65)
    >>> F, u = fourier_transform(torch.exp(-torch.pi * (t - 1) ** 2), t)
    >>> torch.allclose(F, torch.exp(-torch.pi * u**2 - 2j * torch.pi * u), atol=1e-6)
    True
    """
    return _grid_integral(f, t, -1, "f", "t", [None] * len(t))


@system("inverse_fourier_transform", title="Inverse Fourier transform of a sampled spectrum", kind="function")
def inverse_fourier_transform(
    F: Num[Tensor, "*space"], *u: Float[Tensor, "_"], start: int | float | Sequence[int | float] | None = None
) -> tuple[Tensor, ...]:
    r"""The function with this transform, on a grid that begins at `start`, or else is centred at zero.

    $$ (\mathcal F^{-1}F)(t) = \int e^{2\pi iut} F(u)\,du $$

    On the grid that `fourier_transform` was given it is its inverse, whatever the function.

    Shapes:
        F: (..., n_1, ..., n_d), u: d grids, (n_1,) to (n_d,), start: one number, or d of them
        returns: function (..., n_1, ..., n_d), complex, and its d grids

    Claims: conv.fourier.definition
    Differs: as `fourier_transform`; the result is complex also where its imaginary part is rounding: take `.real`.

    >>> t = torch.arange(10, 15).double()
    >>> f, back = inverse_fourier_transform(*fourier_transform(t**2, t), start=10.0)
    >>> torch.allclose(f.real, t**2), torch.allclose(back, t)
    (True, True)
    """
    starts = list(start) if isinstance(start, Sequence) else [start] * len(u)
    if len(starts) != len(u):
        raise ValueError(f"start must be one number or one for each of the {len(u)} grids, got {len(starts)}")
    for first in starts:
        if first is not None:
            validate.finite_number("start", first)
    return _grid_integral(F, u, +1, "F", "u", starts)


def _grid_integral(
    f: Tensor, grids: Sequence[Tensor], sign: int, name: str, axis: str, starts: Sequence[int | float | None]
) -> tuple[Complex[Tensor, "*space"], *tuple[Float[Tensor, "_"], ...]]:
    """The sum over all grids, one axis after the other: its phases split into those of either start, and an FFT's."""
    _sampled_values(name, f, axis, grids)
    f = f.to(torch.promote_types(f.dtype, torch.complex64))
    conjugate = []
    for place, (grid, start) in enumerate(zip(grids, starts, strict=True), -len(grids)):
        k = torch.arange(n := len(grid), dtype=torch.float64, device=f.device)
        step = (grid[-1].detach().to(k) - grid[0].detach().to(k)) / (n - 1)
        # In steps of either grid, (a + k)(b + j) / n = bk/n + jk/n + a(b + j)/n turns; whole turns are dropped, so that
        # grids with a point at zero lose nothing to rounding.
        a = grid[0].detach().to(k) / step
        b = torch.full_like(a, -(n // 2)) if start is None else start * n * step
        aside = (1,) * (-place - 1)
        before, after = (
            _unit_phase(sign * turns.remainder(n) / n).view(n, *aside).to(f.dtype) for turns in (b * k, a * (b + k))
        )
        f = torch.fft.fft(f * before, dim=place) if sign < 0 else torch.fft.ifft(f * before, dim=place, norm="forward")
        f = f * (after * step)  # (..., n, ...)
        conjugate.append(((b + k) / (n * step)).to(grid.dtype))
    return f, *conjugate


def _unit_phase(turns: Tensor) -> Tensor:
    return torch.polar(torch.ones_like(turns), 2 * math.pi * turns)


def _sampled_values(name: str, f: Tensor, axis: str, grids: Sequence[Tensor]) -> None:
    """Numbers on a regular grid, one for each of the last axes."""
    if not (validate.tensor(name, f).is_floating_point() or f.is_complex()):
        raise TypeError(f"{name} must hold floating-point or complex numbers, got {f.dtype}: use {name}.double()")
    if not grids:
        raise ValueError(f"{name} needs a grid for each axis that is transformed, got none: give {axis}")
    for grid in grids:
        _regular_step(axis, grid)
    sizes = tuple(len(grid) for grid in grids)
    if tuple(f.shape[-len(sizes) :]) != sizes:
        wanted = f"(..., {', '.join(map(str, sizes))})"
        raise ValueError(f"{name} must be {wanted} to fit the grids {axis}, got shape {tuple(f.shape)}")


def _regular_step(name: str, grid: Tensor) -> None:
    if validate.tensor(name, grid).ndim != 1 or len(grid) < 2:
        raise ValueError(f"{name} must have one axis and two points or more, got shape {tuple(grid.shape)}")
    if torch.compiler.is_compiling() or grid.is_meta:  # there are no values to look at
        return
    grid = validate.floating(name, grid.detach())
    if not bool((grid.diff() > 0).all()):
        raise ValueError(f"{name} must increase from each point to the next: sort it")
    even = torch.linspace(float(grid[0]), float(grid[-1]), len(grid), dtype=torch.float64, device=grid.device)
    off = float((grid.double() - even).abs().max())
    # Each point is rounded once where it is stored and a few times where it is computed.
    rounding = 8 * torch.finfo(grid.dtype).eps * float(grid.abs().max())
    if off > rounding:
        raise ValueError(f"{name} must have equal steps, its points are off by up to {off:.3g}: use torch.linspace")
