r"""Residual layers, which learn a change of their input; densely connected blocks; and networks of residual layers."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["DenselyConnectedBlock", "ResidualLayer", "ResidualMLP", "ResidualMLPConfig"]

ZERO = torch.zeros((), dtype=torch.float64, device="cpu")
AT_ZERO = {name: float(entry.value(ZERO)) for name, entry in ACTIVATION_TABLE.items()}


@system(
    "residual_layer", title="Residual layer", kind="module", example="ResidualLayer(3, outputs=5)(torch.randn(4, 3))"
)
class ResidualLayer(nn.Module):
    r"""A layer that adds what it computes to its input, so that without weights it is the identity.

    $$ F[V, W, b](x) = Vx + \big(\phi(Wx + b) - \phi(0)\big), \qquad F[0, 0] = \mathrm{Id} \text{ for } V = I $$

    Without `outputs` the layer keeps the width of its input and $V = I$ is not a parameter; with another width, or with
    `projection=True`, $V$ is learnt. Initially $b = 0$, $W$ is normal with deviation `scale` times He's or LeCun's (see
    `MLP`), and $V$ with $\sqrt{1/n}$.

    Shapes:
        x: (..., inputs)    returns: (..., outputs)

    Claims: residual.layer, residual.projection, residual.depth
    Source: K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition (2016).
    Differs: one affine map inside, as in the definition above; no normalisation.

    >>> layer = ResidualLayer(3, activation="sigmoid")
    >>> _ = nn.init.zeros_(layer.linear.weight)
    >>> layer(torch.tensor([1.0, -2.0, 0.5]))
    tensor([ 1.0000, -2.0000,  0.5000], grad_fn=<AddBackward0>)
    >>> ResidualLayer(3, outputs=5)(torch.rand(2, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        activation: str = "relu",
        projection: bool = False,
        bias: bool = True,
        scale: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.count("inputs", inputs)
        outputs = inputs if outputs is None else validate.count("outputs", outputs)
        place = {"device": device, "dtype": dtype}
        self.activation, self.scale = known_activation(activation).name, validate.number("scale", scale, least=0)
        self.linear = nn.Linear(inputs, outputs, bias=validate.flag("bias", bias), **place)
        projected = validate.flag("projection", projection) or inputs != outputs
        self.projection = nn.Linear(inputs, outputs, bias=False, **place) if projected else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        _draw_weights(self.linear, self.scale * ACTIVATION_TABLE[self.activation].gain)
        if self.projection is not None:
            _draw_weights(self.projection, 1.0)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        validate.inputs("x", x, self.linear.in_features)
        change = _activation_change(self.activation, self.linear(x))  # (..., outputs)
        return (x if self.projection is None else self.projection(x)) + change

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


@system(
    "densely_connected",
    title="Densely connected block",
    kind="module",
    example="DenselyConnectedBlock(inputs=4, growth=3, layers=2)(torch.randn(5, 4))",
)
class DenselyConnectedBlock(nn.Module):
    r"""Layers that each see the block's input and the outputs of all layers before them.

    $$ x^{\ell+1} = \phi\big(W^{\ell+1} (x, x^1, \dots, x^\ell) + b^{\ell+1}\big), \qquad
       \text{output } (x, x^1, \dots, x^L) $$

    Every layer adds `growth` features; initial weights as in `MLP`.

    Shapes:
        x: (..., inputs)    returns: (..., inputs + layers * growth), the input first

    Source: G. Huang, Z. Liu, L. van der Maaten and K. Weinberger, Densely connected convolutional networks (2017).
    Differs: affine maps in place of convolutions, no normalisation.

    >>> DenselyConnectedBlock(inputs=4, growth=3, layers=2)(torch.rand(5, 4)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        inputs: int,
        growth: int,
        layers: int,
        activation: str = "relu",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.count("inputs", inputs)
        validate.count("growth", growth)
        self.activation, self.inputs = known_activation(activation).name, inputs
        widths = [inputs + growth * before for before in range(validate.count("layers", layers))]
        validate.flag("bias", bias)
        self.layers = nn.ModuleList(nn.Linear(n, growth, bias=bias, device=device, dtype=dtype) for n in widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        for layer in self.layers:
            _draw_weights(layer, ACTIVATION_TABLE[self.activation].gain)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch features"]:
        activate = ACTIVATION_TABLE[self.activation].value
        seen = validate.inputs("x", x, self.inputs)
        for layer in self.layers:
            seen = torch.cat([seen, activate(layer(seen))], dim=-1)  # (..., inputs + growth * layers so far)
        return seen

    def extra_repr(self) -> str:
        return f"activation={self.activation}"


@dataclass(frozen=True)
class ResidualMLPConfig:
    """Configuration of a residual MLP; inputs and outputs follow from the data."""

    width: int = 128
    """Units of each residual layer."""
    depth: int = 16
    """Number of residual layers."""
    activation: str = "relu"
    """Activation: relu, leaky_relu, elu, gelu, gelu_tanh, silu, softplus, tanh, sigmoid, softsign or identity."""
    dropout: float = 0.0
    """Dropout probability before the last layer."""
    bias: bool = True
    """Whether layers have a bias."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("depth", self.depth)
        known_activation(self.activation)  # says which are known, if it is not among them
        validate.fraction("dropout", self.dropout)
        validate.flag("bias", self.bias)


@system(
    "resmlp",
    title="Residual network of fully connected layers",
    kind="module",
    example="ResidualMLP(inputs=6, outputs=3, width=8, depth=3)(torch.randn(5, 6))",
)
class ResidualMLP(nn.Module):
    r"""An affine map to the width of the network, residual layers, and an affine map to the outputs.

    $$ h_0 = Ax + a, \qquad h_\ell = h_{\ell-1} + \big(\phi(W_\ell h_{\ell-1} + b_\ell) - \phi(0)\big), \qquad
       f(x) = C h_L + c $$

    The outputs are plain numbers (logits, for a classification). All axes of an example but the batch are one vector.
    The initial weights of the residual layers are $1/L$ of those of an `MLP`: what $L$ layers add, all of it positive
    for relu, then changes the signal by a factor that does not depend on the depth.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (batch, outputs)

    Claims: residual.depth
    Source: K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition (2016); the scale
        $1/L$: P. Marion et al., Scaling ResNets in the large-depth regime (2022).
    Differs: not the network of this name for pictures cut into patches (H. Touvron et al. 2021).

    >>> ResidualMLP(inputs=64, outputs=10, width=32, depth=100)(torch.rand(5, 8, 8)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int = ResidualMLPConfig.width,
        depth: int = ResidualMLPConfig.depth,
        activation: str = ResidualMLPConfig.activation,
        dropout: float = ResidualMLPConfig.dropout,
        bias: bool = ResidualMLPConfig.bias,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(ResidualMLPConfig, locals())
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        place = {"device": device, "dtype": dtype}
        self.embedding = nn.Linear(inputs, width, bias=bias, **place)
        scale = 1 / depth
        self.layers = nn.ModuleList(
            ResidualLayer(width, activation=activation, bias=bias, scale=scale, **place) for _ in range(depth)
        )
        self.head = nn.Linear(width, outputs, bias=bias, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        _draw_weights(self.embedding, 1.0)
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]
        _draw_weights(self.head, 1.0)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch outputs"]:
        hidden = self.embedding(validate.examples("x", x, self.inputs))  # (batch, ...) -> (batch, width)
        for layer in self.layers:
            hidden = layer(hidden)
        hidden = functional.dropout(hidden, self.config.dropout, self.training)
        return self.head(hidden)  # (batch, outputs)

    def extra_repr(self) -> str:
        return f"activation={self.config.activation}, dropout={self.config.dropout}"


def _draw_weights(layer: nn.Module, gain: float) -> None:
    assert isinstance(layer, nn.Linear)
    nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.in_features))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def _activation_change(name: str, z: Tensor) -> Tensor:
    """phi(z) - phi(0); few activations are not zero at zero."""
    value = ACTIVATION_TABLE[name].value(z)
    return value - AT_ZERO[name] if AT_ZERO[name] else value
