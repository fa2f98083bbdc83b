r"""AlexNet, with the names and shapes of torchvision's weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["AlexNet", "AlexNetConfig"]

LEAST = 63  # pixels: 15 after the first convolution, then 7, 3 and 1 after the poolings


@dataclass(frozen=True)
class AlexNetConfig:
    """Configuration of an AlexNet; channels and classes follow from the data."""

    width: int = 64
    """Channels of the first convolution; the others have 3, 6, 4 and 4 times as many."""
    hidden: int = 4096
    """Units of the hidden fully connected layers."""
    dropout: float = 0.5
    """Dropout probability before the two hidden fully connected layers."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("hidden", self.hidden)
        validate.fraction("dropout", self.dropout)


@system(
    "alexnet",
    title="AlexNet",
    kind="module",
    example="AlexNet(classes=5, width=2, hidden=8)(torch.randn(3, 3, 64, 64))",
)
class AlexNet(nn.Module):
    r"""Five convolutions with relu, three overlapping max poolings, and three fully connected layers with dropout.

    $$ f(x) = W_8\, \phi(W_7\, \phi(W_6\, P(h_5))), \qquad h_\ell = P_\ell\, \phi(K_\ell * h_{\ell-1} + b_\ell), \quad
       \phi = \mathrm{relu} $$

    The first kernels are 11 x 11 with stride 4. Poolings take the largest of 3 x 3 places with stride 2, so that they
    overlap; before the fully connected layers $P$ averages any size to 6 x 6. With the default settings the state dict
    has the names and shapes of torchvision's `alexnet`.

    Shapes:
        x: (batch, channels, height, width), sides from 63, usually 224    returns: logits (batch, classes)

    Claims: conv.alexnet
    Source: A. Krizhevsky, I. Sutskever and G. Hinton, ImageNet classification with deep convolutional neural networks
        (2012); the channels: A. Krizhevsky, One weird trick for parallelizing convolutional neural networks (2014).
    Differs: no local response normalisation and no groups, as in torchvision; initial weights are torch's own.

    >>> AlexNet(classes=10, width=4, hidden=32)(torch.rand(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    >>> sum(values.numel() for values in AlexNet(device="meta").parameters())
    61100840
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 1000,
        width: int = AlexNetConfig.width,
        hidden: int = AlexNetConfig.hidden,
        dropout: float = AlexNetConfig.dropout,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(AlexNetConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        place = {"device": device, "dtype": dtype}
        w = width
        self.features = nn.Sequential(
            nn.Conv2d(channels, w, 11, stride=4, padding=2, **place), nn.ReLU(), nn.MaxPool2d(3, stride=2),
            nn.Conv2d(w, 3 * w, 5, padding=2, **place), nn.ReLU(), nn.MaxPool2d(3, stride=2),
            nn.Conv2d(3 * w, 6 * w, 3, padding=1, **place), nn.ReLU(),
            nn.Conv2d(6 * w, 4 * w, 3, padding=1, **place), nn.ReLU(),
            nn.Conv2d(4 * w, 4 * w, 3, padding=1, **place), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        )  # fmt: skip
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(4 * w * 6 * 6, hidden, **place), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(hidden, hidden, **place), nn.ReLU(),
            nn.Linear(hidden, classes, **place),
        )  # fmt: skip

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        maps = self.features(images("x", x, self.channels, LEAST))  # (batch, 4 * width, height / 32, width / 32)
        return self.classifier(self.avgpool(maps).flatten(1))  # (batch, 4 * width * 36) -> (batch, classes)
