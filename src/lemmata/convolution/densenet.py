r"""Densely connected convolutional networks, with the names and shapes of torchvision's weights."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["DenseBlock", "DenseNet", "DenseNetConfig"]

# Layers of each of the four dense blocks; each has two convolutions.
BLOCKS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}
BOTTLENECK = 4  # channels after the 1 x 1 convolution of a layer, in multiples of the growth
LEAST = 29  # pixels: 15 after the first convolution, 8 after the pooling, then 4, 2 and 1


class _DenseLayer(nn.Module):
    """Normalise, relu, 1 x 1 convolution; normalise, relu, 3 x 3 convolution: `growth` new channels."""

    def __init__(self, inputs: int, growth: int, dropout: float, place: dict) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm1 = nn.BatchNorm2d(inputs, **place)
        self.conv1 = nn.Conv2d(inputs, BOTTLENECK * growth, 1, bias=False, **place)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK * growth, **place)
        self.conv2 = nn.Conv2d(BOTTLENECK * growth, growth, 3, padding=1, bias=False, **place)
        self.register_load_state_dict_pre_hook(_rename_keys)

    def forward(self, seen: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch growth height width"]:
        few = self.conv1(functional.relu(self.norm1(seen)))  # (batch, 4 * growth, height, width)
        new = self.conv2(functional.relu(self.norm2(few)))  # (batch, growth, height, width)
        return functional.dropout(new, self.dropout, self.training)


class DenseBlock(nn.Module):
    r"""Layers that each see the block's input and the outputs of all layers before them.

    $$ x^{\ell+1} = F^{\ell+1}(x, x^1, \dots, x^\ell), \qquad \text{output } (x, x^1, \dots, x^L) $$

    Every layer adds `growth` channels.

    Shapes:
        x: (batch, inputs, height, width)    returns: (batch, inputs + layers * growth, height, width), the input first

    Claims: conv.densenet
    Source: G. Huang, Z. Liu, L. van der Maaten and K. Weinberger, Densely connected convolutional networks (2017).

    >>> DenseBlock(inputs=4, growth=3, layers=2)(torch.rand(5, 4, 8, 8)).shape
    torch.Size([5, 10, 8, 8])
    """

    def __init__(
        self,
        inputs: int,
        growth: int,
        layers: int,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs = validate.count("inputs", inputs)
        validate.count("growth", growth)
        validate.fraction("dropout", dropout)
        place = {"device": device, "dtype": dtype}
        for number in range(validate.count("layers", layers)):
            layer = _DenseLayer(inputs + number * growth, growth, dropout, place)
            self.add_module(f"denselayer{number + 1}", layer)

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        seen = images("x", x, self.inputs)
        for layer in self.children():
            seen = torch.cat([seen, layer(seen)], dim=1)  # (batch, inputs + growth * layers so far, height, width)
        return seen


@dataclass(frozen=True)
class DenseNetConfig:
    """Configuration of a DenseNet; channels and classes follow from the data."""

    depth: int = 121
    """Number of layers with weights: 121, 169 or 201."""
    growth: int = 32
    """Growth rate: channels that each layer adds; the first convolution has twice as many."""
    dropout: float = 0.0
    """Dropout probability of the channels that a layer adds."""
    small: bool = False
    """For images of about 32 pixels: begin with a 3 x 3 convolution of stride 1 and no pooling."""

    def __post_init__(self) -> None:
        if self.depth not in BLOCKS:
            raise ValueError(f"depth must be one of {', '.join(map(str, BLOCKS))}, got {self.depth!r}")
        validate.count("growth", self.growth)
        validate.fraction("dropout", self.dropout)
        validate.flag("small", self.small)


@system(
    "densenet",
    title="DenseNet",
    kind="module",
    example="DenseNet(channels=1, classes=5, growth=2, small=True)(torch.randn(3, 1, 16, 16))",
)
class DenseNet(nn.Module):
    r"""A convolution, four dense blocks with transitions between them, the mean over all places, an affine map.

    $$ h_b = T_b D_b(h_{b-1}), \qquad f(x) = C \operatorname{mean}_{uv} \mathrm{relu}(B h_4(u, v)) + c $$

    $D_b$ are dense blocks; a transition $T_b$ halves the channels by a 1 x 1 convolution and the size by an average
    pooling, and the last block has none. With the default settings the state dict has the names and shapes of
    torchvision's `densenet121`, `densenet169` and `densenet201`.

    Shapes:
        x: (batch, channels, height, width), sides from 29 (8 if small), usually 224    returns: logits (batch, classes)

    Claims: conv.densenet
    Source: G. Huang, Z. Liu, L. van der Maaten and K. Weinberger, Densely connected convolutional networks (2017).
    Differs: `small` is the usual change for CIFAR's sizes.

    >>> DenseNet(channels=1, classes=10, growth=4, small=True)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    >>> sum(values.numel() for values in DenseNet(depth=121, device="meta").parameters())
    7978856
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 1000,
        depth: int = DenseNetConfig.depth,
        growth: int = DenseNetConfig.growth,
        dropout: float = DenseNetConfig.dropout,
        small: bool = DenseNetConfig.small,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(DenseNetConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        place = {"device": device, "dtype": dtype}
        stem = {"kernel_size": 3, "padding": 1} if small else {"kernel_size": 7, "stride": 2, "padding": 3}
        width = 2 * growth
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        parts["conv0"] = nn.Conv2d(channels, width, bias=False, **stem, **place)
        parts["norm0"] = nn.BatchNorm2d(width, **place)
        parts["relu0"] = nn.ReLU()
        parts["pool0"] = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        for number, layers in enumerate(BLOCKS[depth], start=1):
            parts[f"denseblock{number}"] = DenseBlock(width, growth, layers, dropout, **place)
            width += layers * growth
            if number < len(BLOCKS[depth]):
                parts[f"transition{number}"] = _transition_layer(width, place)
                width //= 2
        parts["norm5"] = nn.BatchNorm2d(width, **place)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(width, classes, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: He's for convolutions, batch normalisations as torch has them."""
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)
            elif isinstance(part, (nn.BatchNorm2d, nn.Linear)):
                part.reset_parameters()
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        maps = self.features(images("x", x, self.channels, least=8 if self.config.small else LEAST))
        return self.classifier(functional.relu(maps).mean((2, 3)))  # (batch, features) -> (batch, classes)

    def extra_repr(self) -> str:
        return f"depth={self.config.depth}, growth={self.config.growth}"


def _rename_keys(layer: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Torchvision's published files are older than its names: they say norm.1 where the network says norm1."""
    for name in ("norm", "conv"):
        for key in [key for key in state if key.startswith(f"{prefix}{name}.")]:
            state[f"{prefix}{name}{key.removeprefix(f'{prefix}{name}.')}"] = state.pop(key)


def _transition_layer(width: int, place: dict) -> nn.Sequential:
    half = nn.Conv2d(width, width // 2, 1, bias=False, **place)
    parts = {"norm": nn.BatchNorm2d(width, **place), "relu": nn.ReLU(), "conv": half, "pool": nn.AvgPool2d(2)}
    return nn.Sequential(OrderedDict(parts))
