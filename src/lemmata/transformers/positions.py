r"""Positions: attention does not know the order of what it reads, so each vector is told where it stands."""

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.sequence_input import vectors

__all__ = ["LearnedPositions", "SinusoidalPositions", "rotate", "sinusoidal_encoding"]


@system("sinusoidal_encoding", title="Sinusoidal positional encoding", kind="function")
def sinusoidal_encoding(
    positions: Real[Tensor, "..."], width: int, base: float = 10_000.0, dtype: torch.dtype | None = None
) -> Float[Tensor, "... width"]:
    r"""Sines and cosines of each position, in pairs of one frequency; the frequencies fall geometrically.

    $$ p_{t,2i} = \sin(\omega_i t), \qquad p_{t,2i+1} = \cos(\omega_i t), \qquad \omega_i = C^{-2i/d} $$

    Every pair turns like the hand of a clock, the first by one radian a position, the last nearly `base` times slower.
    A shift by $\Delta$ is therefore the same rotation everywhere.

    Shapes:
        positions: (...), whole or broken numbers    returns: (..., width), where width is even

    Claims: attention.positional, attention.positional.shift
    Source: Vaswani et al. 2017.
    Differs: `rotate` turns the pairs $(x_i, x_{i+d/2})$; here the two of a pair stand side by side.

    >>> sinusoidal_encoding(torch.arange(3), width=4, base=100.0)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0998,  0.9950],
            [ 0.9093, -0.4161,  0.1987,  0.9801]])
    """
    if validate.count("width", width, least=2) % 2:
        raise ValueError(f"width must be even, for a sine and a cosine of each frequency, got {width}")
    validate.positive("base", base)
    # In float64: at position 10,000 an angle in float32 is off by a thousandth.
    pair = torch.arange(0, width, 2, device=validate.tensor("positions", positions).device, dtype=torch.float64)
    angle = positions.to(torch.float64)[..., None] * float(base) ** (-pair / width)  # (..., width / 2)
    both = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)  # (..., width)
    return both.to(torch.get_default_dtype() if dtype is None else dtype)


class SinusoidalPositions(nn.Module):
    r"""x + P, where P is the sinusoidal encoding: nothing to learn, and no longest sequence.

    Shapes:
        x: (batch, time, width), of which the first stands at position `start`    returns: (batch, time, width)

    >>> SinusoidalPositions(width=16)(torch.zeros(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.width, self.base = width, float(base)
        sinusoidal_encoding(torch.zeros(1), width, base)  # so that a bad width or base is told now

    def forward(self, x: Float[Tensor, "batch time width"], start: int = 0) -> Float[Tensor, "batch time width"]:
        places = torch.arange(start, start + vectors("x", x, self.width).shape[1], device=x.device)
        return x + sinusoidal_encoding(places, self.width, self.base, x.dtype)  # (time, width) for every row

    def extra_repr(self) -> str:
        return f"width={self.width}, base={self.base:g}"


class LearnedPositions(nn.Module):
    r"""x + P, where every position up to `max_length` has a vector of its own to learn.

    Shapes:
        x: (batch, time, width), of which the first stands at position `start`    returns: (batch, time, width)

    >>> LearnedPositions(max_length=32, width=16)(torch.zeros(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        max_length: int,
        width: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = validate.count("max_length", max_length), validate.count("width", width)
        self.weight = nn.Parameter(torch.empty(sizes, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors anew, small as BERT and GPT have them."""
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Float[Tensor, "batch time width"], start: int = 0) -> Float[Tensor, "batch time width"]:
        end = start + vectors("x", x, self.weight.shape[1]).shape[1]
        if end > len(self.weight):
            told = f"got {end}: cut the sequences, or build the model with a larger max_length"
            raise ValueError(f"there are {len(self.weight)} learned positions, {told}")
        return x + self.weight[start:end]


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
