r"""Convolution along time that never looks ahead, and the temporal convolutional network built of it."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["TCN", "CausalConv1d", "TCNConfig"]


@system(
    "causal_conv1d",
    title="Causal convolution in time",
    kind="module",
    example="CausalConv1d(3, 5, kernel_size=2, dilation=4)(torch.randn(4, 3, 10))",
)
class CausalConv1d(nn.Conv1d):
    r"""A filter that slides along time and sees the present and the past, never the future.

    $$ y_t = b + \sum_{j=0}^{k-1} W_j\, x_{t-(k-1-j)d}, \qquad x_s = 0 \text{ for } s < 0 $$

    It is `torch.nn.Conv1d` with zeros before the first step alone, so the output is as long as the input; weights have
    the same names and shapes. $d$ is the dilation.

    Shapes:
        input: (batch, channels, time) or (channels, time), as torch has it    returns: the same with `out_channels`

    Claims: conv.temporal.conv1d
    Source: A. Waibel et al., Phoneme recognition using time-delay neural networks (1989).

    >>> layer = CausalConv1d(3, 5, kernel_size=2, dilation=4)
    >>> layer(torch.rand(2, 3, 10)).shape, layer.receptive_field
    (torch.Size([2, 5, 10]), 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.count("in_channels", in_channels)
        validate.count("out_channels", out_channels)
        validate.count("kernel_size", kernel_size)
        validate.count("dilation", dilation)
        validate.count("groups", groups)
        validate.flag("bias", bias)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"groups must divide {in_channels} and {out_channels} channels, got {groups}")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            dilation=dilation,
            groups=groups,
            bias=bias,
            device=device,
            dtype=dtype,
        )
        self.receptive_field = 1 + (kernel_size - 1) * dilation

    def forward(self, input: Float[Tensor, "*batch channels time"]) -> Float[Tensor, "*batch out time"]:
        _check_sequence(input, self.in_channels)
        before = functional.pad(input, (self.receptive_field - 1, 0))  # (..., channels, past + time)
        return super().forward(before)  # (..., out_channels, time)


class _ResidualPair(nn.Module):
    """Two causal convolutions with the same dilation, and the input added to what they compute."""

    def __init__(self, inputs: int, width: int, kernel_size: int, dilation: int, dropout: float, place: dict) -> None:
        super().__init__()
        self.first = CausalConv1d(inputs, width, kernel_size, dilation, **place)
        self.second = CausalConv1d(width, width, kernel_size, dilation, **place)
        self.projection = nn.Conv1d(inputs, width, 1, **place) if inputs != width else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        change = self.dropout(self.first(x).relu())  # (batch, width, time)
        change = self.dropout(self.second(change).relu())
        return ((x if self.projection is None else self.projection(x)) + change).relu()


@dataclass(frozen=True)
class TCNConfig:
    """Configuration of a temporal convolutional network; inputs and outputs follow from the data."""

    width: int = 32
    """Channels of each convolution."""
    kernel_size: int = 3
    """Kernel size of the convolutions, in steps."""
    depth: int = 4
    """Number of residual blocks of two convolutions; block l has dilation 2^l, from l = 0."""
    dropout: float = 0.0
    """Dropout probability after each convolution."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("kernel_size", self.kernel_size, least=2)
        validate.count("depth", self.depth, most=24)
        validate.fraction("dropout", self.dropout)


@system(
    "tcn",
    title="Temporal convolutional network",
    kind="module",
    example="TCN(inputs=3, outputs=2, width=4, kernel_size=3, depth=2)(torch.randn(4, 10, 3))",
)
class TCN(nn.Module):
    r"""Residual blocks of two dilated causal convolutions; every step of a sequence is computed at once.

    $$ h^{\ell+1} = \phi\big(h^\ell + \phi(W_2 *_{d_\ell} \phi(W_1 *_{d_\ell} h^\ell))\big), \qquad d_\ell = 2^\ell,
       \qquad \text{receptive field } 1 + 2(k-1)\textstyle\sum_\ell d_\ell $$

    Sequences have the layout of the recurrent layers, time before channels. Initial weights are He's.

    Shapes:
        x: (batch, time, inputs)    returns: (batch, time, outputs)

    Claims: conv.temporal.tcn
    Source: S. Bai, J. Z. Kolter and V. Koltun, An empirical evaluation of generic convolutional and recurrent networks
        for sequence modeling (2018).
    Differs: no weight normalisation; dropout leaves out single units, not whole channels.

    >>> network = TCN(inputs=3, outputs=2, width=8, kernel_size=3, depth=2)
    >>> network(torch.rand(5, 20, 3)).shape, network.receptive_field
    (torch.Size([5, 20, 2]), 13)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int = TCNConfig.width,
        kernel_size: int = TCNConfig.kernel_size,
        depth: int = TCNConfig.depth,
        dropout: float = TCNConfig.dropout,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(TCNConfig, locals())
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        place = {"device": device, "dtype": dtype}
        self.blocks = nn.ModuleList(
            _ResidualPair(width if level else inputs, width, kernel_size, 2**level, dropout, place)
            for level in range(depth)
        )
        self.head = nn.Linear(width, outputs, **place)
        self.reset_parameters()

    @property
    def receptive_field(self) -> int:
        """Steps, the present among them, that an output can depend on."""
        return 1 + 2 * (self.config.kernel_size - 1) * (2**self.config.depth - 1)

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        for part in self.modules():
            if isinstance(part, (nn.Conv1d, nn.Linear)):
                gain = math.sqrt(2) if isinstance(part, CausalConv1d) else 1.0
                nn.init.normal_(part.weight, std=gain / math.sqrt(part.weight[0].numel()))
                nn.init.zeros_(part.bias)  # type: ignore[arg-type]

    def forward(self, x: Float[Tensor, "batch time inputs"]) -> Float[Tensor, "batch time outputs"]:
        validate.inputs("x", x, self.inputs)
        if x.ndim != 3:
            raise ValueError(f"x must be (batch, time, {self.inputs}), got shape {tuple(x.shape)}")
        if x.shape[1] == 0:
            raise ValueError(f"x must have at least one step in time, got shape {tuple(x.shape)}")
        hidden = x.mT  # (batch, inputs, time)
        for block in self.blocks:
            hidden = block(hidden)  # (batch, width, time)
        return self.head(hidden.mT)  # (batch, time, outputs)

    def extra_repr(self) -> str:
        return f"receptive_field={self.receptive_field}"


def _check_sequence(input: Tensor, channels: int) -> None:
    if not validate.tensor("input", input).is_floating_point():
        raise TypeError(f"input must hold floating-point numbers, got {input.dtype}: use input.float()")
    if input.ndim not in (2, 3) or input.shape[-2] != channels:
        hint = ": use input.mT" if input.ndim in (2, 3) and input.shape[-1] == channels else ""
        raise ValueError(f"input must be (batch, {channels}, time), got shape {tuple(input.shape)}{hint}")
    if input.shape[-1] == 0:
        raise ValueError(f"input must have at least one step in time, got shape {tuple(input.shape)}")
