r"""Networks of steps drawn from a function's Fourier transform: as near as one over the width in any dimension."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["barron_network"]


@system("barron_network", title="Barron's network of sampled steps", kind="function")
@torch.no_grad()
def barron_network(
    frequencies: Float[Tensor, "hidden inputs"],
    phases: Float[Tensor, "hidden"],
    constant: int | float,
    value: int | float = 0.0,
    radius: int | float = 1.0,
    steepness: int | float = 1e4,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    r"""A sigmoid network of one hidden layer, a mean of steps sampled from the Fourier transform of a function.

    $$ f(x) = \int \cos(\omega^\top x + \theta_\omega)\,|\hat f(\omega)|\,d\omega, \qquad
       C_f = \int \|\omega\|\,|\hat f(\omega)|\,d\omega $$
    $$ g_m(x) = f(0) - \frac{2 r C_f}{m} \sum_{i=1}^m \sin(\|\omega_i\| t_i + \theta_i)\,
       \big(\mathbb 1\{u_i^\top x > t_i\} - \mathbb 1\{t_i < 0\}\big), \qquad u_i = \omega_i / \|\omega_i\| $$

    Frequencies $\omega_i$ are drawn by the caller with the density $\|\omega\|\,|\hat f(\omega)| / C_f$, each with its
    phase; places $t_i$ are drawn here, uniform in $[-r, r]$. Then $g_m$ has the mean $f$ in the ball of radius $r$, and
    the mean square of its error is at most $(2 r C_f)^2/m$ at each point, so that some draw is as near under any law of
    the points (Maurey). `constant` is $C_f$, `value` is $f(0)$; steps are sigmoids that rise within about
    `radius / steepness`.

    Shapes:
        frequencies: (hidden, inputs); phases: (hidden,)    returns: a network (points, inputs) to (points, 1)

    Claims: approx.barron
    Source: A. Barron, Universal approximation bounds for superpositions of a sigmoidal function (1993).

    >>> wave = torch.ones(4096, 1, dtype=torch.float64)  # sin x = cos(x - pi/2): one frequency, and C_f = 1
    >>> phases = torch.full((4096,), -torch.pi / 2, dtype=torch.float64)
    >>> net = barron_network(wave, phases, constant=1.0, generator=torch.Generator().manual_seed(0))
    >>> x = torch.linspace(-1, 1, 101, dtype=torch.float64)[:, None]
    >>> bool((net(x) - x.sin()).square().mean() < 2**2 / 4096)
    True
    """
    validate.matrix("frequencies", frequencies, "hidden, inputs")
    validate.vector("phases", phases, length=len(frequencies))
    validate.positive("constant", constant)
    validate.finite_number("value", value)
    validate.positive("radius", radius)
    validate.positive("steepness", steepness)
    lengths = frequencies.norm(dim=1)
    if not (lengths > 0).all():
        raise ValueError("frequencies must not be 0: their density is 0 there")
    hidden, inputs = frequencies.shape
    like = {"dtype": frequencies.dtype, "device": frequencies.device}
    drawn = torch.rand(hidden, generator=generator, dtype=torch.float64, device=generator and generator.device)
    places = (radius * (2 * drawn - 1)).to(**like)
    # The derivative of cos(|w| t + phase) is what the steps at t add up to.
    weights = -2 * radius * constant / hidden * torch.sin(lengths * places + phases)
    first, last = nn.Linear(inputs, hidden, **like), nn.Linear(hidden, 1, **like)
    rise = steepness / radius
    first.weight.copy_(rise * frequencies / lengths[:, None])
    first.bias.copy_(-rise * places)
    last.weight.copy_(weights[None])
    # A step to the left of 0 is already up at 0, where the sum is to be f(0).
    last.bias.copy_(value - weights[places < 0].sum(0, keepdim=True))
    return nn.Sequential(first, nn.Sigmoid(), last)
