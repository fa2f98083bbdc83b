r"""VGG networks, with the names and shapes of torchvision's weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["VGG", "VGGConfig"]

# Convolutions of each of the five stages; three fully connected layers make up the depth.
STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
MULTIPLES = (1, 2, 4, 8, 8)  # of the width


@dataclass(frozen=True)
class VGGConfig:
    """Configuration of a VGG network; channels and classes follow from the data."""

    depth: int = 16
    """Number of layers with weights: 11, 13, 16 or 19."""
    batch_norm: bool = False
    """Whether each convolution is followed by a batch normalisation."""
    width: int = 64
    """Channels of the first stage; the others have 2, 4, 8 and 8 times as many."""
    hidden: int = 4096
    """Units of the hidden fully connected layers."""
    dropout: float = 0.5
    """Dropout probability of the hidden fully connected layers."""

    def __post_init__(self) -> None:
        if self.depth not in STAGES:
            raise ValueError(f"depth must be one of {', '.join(map(str, STAGES))}, got {self.depth!r}")
        validate.flag("batch_norm", self.batch_norm)
        validate.count("width", self.width)
        validate.count("hidden", self.hidden)
        validate.fraction("dropout", self.dropout)


@system(
    "vgg", title="VGG", kind="module", example="VGG(classes=5, depth=11, width=2, hidden=8)(torch.randn(3, 3, 32, 32))"
)
class VGG(nn.Module):
    r"""Stages of 3 x 3 convolutions with relu, each closed by a 2 x 2 max pooling; three fully connected layers.

    $$ h_s = P\, \phi(K_{s,n_s} * \cdots \phi(K_{s,1} * h_{s-1})), \qquad f(x) = W_3\, \phi(W_2\, \phi(W_1 A h_5)) $$

    Every convolution keeps the size (padding 1); $P$ halves it; $A$ averages what is left to 7 x 7. With the default
    settings the state dict has the names and shapes of torchvision's `vgg11` to `vgg19` and `vgg11_bn` to `vgg19_bn`.

    Shapes:
        x: (batch, channels, height, width), sides from 32, usually 224    returns: logits (batch, classes)

    Claims: conv.vgg
    Source: K. Simonyan and A. Zisserman, Very deep convolutional networks for large-scale image recognition (2015).

    >>> VGG(classes=10, depth=11, width=4, hidden=32)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> sum(values.numel() for values in VGG(depth=16, device="meta").parameters())
    138357544
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 1000,
        depth: int = VGGConfig.depth,
        batch_norm: bool = VGGConfig.batch_norm,
        width: int = VGGConfig.width,
        hidden: int = VGGConfig.hidden,
        dropout: float = VGGConfig.dropout,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(VGGConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        place = {"device": device, "dtype": dtype}
        parts: list[nn.Module] = []
        inputs = channels
        for convolutions, multiple in zip(STAGES[depth], MULTIPLES, strict=True):
            for _ in range(convolutions):
                parts.append(nn.Conv2d(inputs, multiple * width, 3, padding=1, **place))
                parts += [nn.BatchNorm2d(multiple * width, **place)] if batch_norm else []
                parts.append(nn.ReLU())
                inputs = multiple * width
            parts.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(inputs * 7 * 7, hidden, **place), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden, **place), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes, **place),
        )  # fmt: skip
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: He's for convolutions, of deviation 0.01 in the fully connected layers."""
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.01)
            elif isinstance(part, nn.BatchNorm2d):
                part.reset_parameters()
            if isinstance(part, (nn.Conv2d, nn.Linear)) and part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        maps = self.features(images("x", x, self.channels, least=32))  # (batch, 8 * width, height / 32, width / 32)
        return self.classifier(self.avgpool(maps).flatten(1))  # (batch, 8 * width * 49) -> (batch, classes)

    def extra_repr(self) -> str:
        return f"depth={self.config.depth}, batch_norm={self.config.batch_norm}"
