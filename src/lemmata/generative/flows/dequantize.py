r"""Discrete data for continuous densities: uniform noise inside each level, and what it costs in bits."""

import math

import torch
from jaxtyping import Float, Num
from torch import Generator, Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["Dequantize", "bits_per_dimension"]


def bits_per_dimension(log_prob: Tensor, dimensions: int) -> Tensor:
    r"""Nats per example as bits per dimension, $-\log p\,/\,(D\log2)$.

    Of the *discrete* data, if the log-determinant of `Dequantize` is in it: then 8 bits are what pixels cost without
    any model, whatever the range to which they were scaled.

    >>> bits_per_dimension(torch.tensor([-3 * math.log(256)], dtype=torch.float64), 3)
    tensor([8.], dtype=torch.float64)
    """
    return -log_prob / (validate.count("dimensions", dimensions) * math.log(2))


@system("dequantize", title="Uniform dequantisation", kind="module", example="Dequantize(8)(torch.rand(4, 3))")
class Dequantize(nn.Module):
    r"""Levels $0,\dots,L-1$ as numbers of $[0,1)$, with uniform noise in the gaps between them.

    $$ u = \frac{x + \epsilon}{L}, \quad \epsilon\sim U[0,1)^D, \qquad
       \log P(x) \ge \mathbb E_\epsilon \log p_u(u) - D\log L $$

    The last layer of a flow of discrete data: `inverse` adds the noise, with the log-determinant $-D\log L$, and
    `forward` finds the level. A density without noise could grow without bound on the levels themselves; with it, no
    model is better than the probabilities of the levels, and a uniform law of 256 levels costs 8 bits.

    Shapes:
        x: (batch, ...) levels, integers or whole floats    returns: u of that shape, log_det (batch,)

    Source: L. Theis, A. van den Oord and M. Bethge, A note on the evaluation of generative models (2016).

    >>> u, log_det = Dequantize(256).inverse(torch.tensor([[0, 128, 255]]))
    >>> bool(((u >= 0) & (u < 1)).all()), bits_per_dimension(log_det, 3)
    (True, tensor([8.]))
    """

    def __init__(self, levels: int = 256) -> None:
        super().__init__()
        self.levels = validate.count("levels", levels, least=2)

    def forward(self, u: Float[Tensor, "batch ..."]) -> tuple[Tensor, Tensor]:
        """The level of each number, as a float; those outside of [0, 1) get the nearest."""
        if not validate.tensor("u", u).is_floating_point() or u.ndim < 2:
            raise ValueError(f"u must be (batch, ...) floating-point numbers, got {u.dtype} of {tuple(u.shape)}")
        x = (u * self.levels).floor().clamp(0, self.levels - 1)
        return x, self._log_det(x)

    def inverse(self, x: Num[Tensor, "batch ..."], *, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Levels with noise, in [0, 1); integers become torch's default dtype."""
        if validate.tensor("x", x).ndim < 2:
            raise ValueError(f"x must be (batch, ...), got shape {tuple(x.shape)}")
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        if validate.visible(x):
            least, most = (float(each) for each in torch.aminmax(x))
            if least < 0 or most > self.levels - 1 or (x.is_floating_point() and bool((x != x.floor()).any())):
                wanted = f"whole numbers from 0 to {self.levels - 1}"
                raise ValueError(f"x must hold {wanted}, got {least:g} to {most:g}: scale pixels to levels")
        noise = torch.rand(x.shape, generator=generator, dtype=dtype, device=x.device)
        u = (x + noise) / self.levels
        below = 1 - torch.finfo(dtype).eps / 2  # x + noise may round up to the next level: the last has none
        return u.clamp(max=below), -self._log_det(u)

    def _log_det(self, x: Tensor) -> Tensor:
        return x.new_full((x.shape[0],), math.prod(x.shape[1:]) * math.log(self.levels))

    def extra_repr(self) -> str:
        return f"levels={self.levels}"
