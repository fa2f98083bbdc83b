r"""Eigenvalues inside the unit circle, by modulus and phase: any two real numbers give a stable one."""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from lemmata import validate

__all__ = ["eigenvalues_on_ring", "input_gain", "log_rate", "polar", "ring_parameters"]


def polar(nu: Float[Tensor, "..."], phase: Float[Tensor, "..."]) -> Complex[Tensor, "..."]:
    r"""The eigenvalue with decay rate $e^\nu$ and phase $\phi$, inside the unit circle whatever $\nu$ is.

    $$ \lambda = \exp(-e^{\nu} + i\phi) = r(\cos\phi + i\sin\phi), \qquad r = |\lambda| = \exp(-e^{\nu}) \in (0, 1) $$

    The modulus is kept strictly between 0 and 1 also in floating point, where the formula alone would round to them:
    $\nu$ counts as at least $\ln(\epsilon/2)$ (a memory of $2/\epsilon$ steps) and at most what leaves a normal number.

    Shapes:
        nu, phase: (...)    returns: complex (...)

    Claims: rnn.lru.polar, rnn.lru

    >>> polar(torch.tensor([0.0, -3.0]), torch.tensor([0.0, math.pi / 2])).abs()
    tensor([0.3679, 0.9514])
    """
    return torch.polar(torch.exp(-_clamped_rate(nu)), phase)


def log_rate(modulus: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The parameter of a modulus: the inverse of $r = \exp(-e^\nu)$.

    $$ \nu = \log(-\log r), \qquad r \in (0, 1) $$

    Shapes:
        modulus: (...)    returns: (...)

    Claims: rnn.lru.polar, rnn.lru.init

    >>> polar(log_rate(torch.tensor([0.25])), torch.tensor([0.0]))
    tensor([0.2500+0.j])
    """
    if not modulus.is_meta:  # where there are no values to look at
        validate.floating("modulus", modulus)
        if bool(((modulus <= 0) | (modulus >= 1)).any()):
            found = f"{float(modulus.min()):g} to {float(modulus.max()):g}"
            raise ValueError(f"modulus must lie strictly between 0 and 1, where log(-log r) is finite, got {found}")
    return torch.log(-torch.log(modulus))


def ring_parameters(
    count: int,
    r_min: float = 0.5,
    r_max: float = 0.99,
    max_phase: float = 2 * math.pi,
    by_area: bool = False,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    r"""Random $\nu$ and $\phi$ of eigenvalues on a ring: phases uniform, moduli uniform by radius or by area.

    $$ \phi_i \sim \mathrm{Unif}[0, \phi_{\max}], \qquad r_i \sim \mathrm{Unif}[r_{\min}, r_{\max}]
       \ \text{ or }\ r_i^2 \sim \mathrm{Unif}[r_{\min}^2, r_{\max}^2], \qquad \nu_i = \log(-\log r_i) $$

    By area the eigenvalues are spread evenly over the ring, as those of a large random matrix are over the disc; by
    radius more of them lie near the inner edge.

    Shapes:
        returns: nu (count,) and phase (count,), float64

    Claims: rnn.lru.init
    Source: by radius as in the lecture notes; by area as in Orvieto et al. 2023.

    >>> nu, phase = ring_parameters(1000, 0.9, 0.99, by_area=True, generator=torch.Generator().manual_seed(0))
    >>> modulus = polar(nu, phase).abs()
    >>> bool(modulus.min() >= 0.9), bool(modulus.max() <= 0.99)
    (True, True)
    """
    validate.count("count", count)
    _check_ring(r_min, r_max, max_phase)
    power = 2 if validate.flag("by_area", by_area) else 1
    low, high = r_min**power, r_max**power
    fractions, turns = torch.rand(2, count, dtype=torch.float64, generator=generator, device=device)
    return log_rate((low + (high - low) * fractions) ** (1 / power)), max_phase * turns


def _check_ring(r_min: float, r_max: float, max_phase: float) -> None:
    """Radii strictly between 0 and 1 in their order, and a phase of at most one turn."""
    low, high = validate.finite_number("r_min", r_min), validate.finite_number("r_max", r_max)
    if not 0 < low <= high < 1:
        raise ValueError(f"r_min and r_max must be 0 < r_min <= r_max < 1, got {low} and {high}")
    validate.number("max_phase", max_phase, least=0, most=2 * math.pi)


def eigenvalues_on_ring(
    count: int,
    r_min: float = 0.5,
    r_max: float = 0.99,
    max_phase: float = 2 * math.pi,
    by_area: bool = False,
    generator: torch.Generator | None = None,
) -> Complex[Tensor, " count"]:
    r"""Random eigenvalues on a ring: those of `ring_parameters`.

    Shapes:
        returns: complex (count,), complex128

    Claims: rnn.lru.init

    >>> eigenvalues_on_ring(4).shape
    torch.Size([4])
    """
    return polar(*ring_parameters(count, r_min, r_max, max_phase, by_area, generator))


def input_gain(nu: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The factor of a channel's input under which noise of variance one leaves a state of variance one.

    $$ \gamma = \sqrt{1 - |\lambda|^2} = \sqrt{1 - e^{-2e^\nu}} $$

    Shapes:
        nu: (...)    returns: (...)

    Claims: rnn.lru

    >>> input_gain(log_rate(torch.tensor([0.6])))
    tensor([0.8000])
    """
    return torch.sqrt(-torch.expm1(-2 * _clamped_rate(nu)))  # not 1 - r * r, which cancels where r is close to one


def _clamped_rate(nu: Tensor) -> Tensor:
    kind = torch.finfo(nu.dtype)
    # Between these ends the modulus rounds neither to 1 nor to 0.
    return torch.exp(nu.clamp(math.log(kind.eps / 2), math.log(-math.log(kind.tiny))))
