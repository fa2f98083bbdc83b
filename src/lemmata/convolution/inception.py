r"""Inception modules and GoogLeNet, with the names and shapes of torchvision's weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["GoogLeNet", "GoogLeNetConfig", "InceptionModule"]

# Inputs, and outputs by branch: 1 x 1; reduced and 3 x 3; reduced and 5 x 5; after the pooling.
MODULES = {
    "inception3a": (192, 64, 96, 128, 16, 32, 32),
    "inception3b": (256, 128, 128, 192, 32, 96, 64),
    "inception4a": (480, 192, 96, 208, 16, 48, 64),
    "inception4b": (512, 160, 112, 224, 24, 64, 64),
    "inception4c": (512, 128, 128, 256, 24, 64, 64),
    "inception4d": (512, 112, 144, 288, 32, 64, 64),
    "inception4e": (528, 256, 160, 320, 32, 128, 128),
    "inception5a": (832, 256, 160, 320, 32, 128, 128),
    "inception5b": (832, 384, 192, 384, 48, 128, 128),
}
LEAST = 15  # pixels: 8 after the first convolution, then 4, 2, 1 and 1 after the poolings


class _Convolution(nn.Module):
    """A convolution that keeps the size divided by its stride, batch normalisation, relu."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int = 1, place: dict | None = None) -> None:
        super().__init__()
        place = place or {}
        self.conv = nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=False, **place)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3, **place)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)))


class InceptionModule(nn.Module):
    r"""Four branches side by side, whose channels are concatenated: 1 x 1, 3 x 3, 5 x 5, and a pooling.

    $$ f(x) = \big(K_1 * x,\; K_3 * R_3 * x,\; K_5 * R_5 * x,\; K_p * \operatorname{max}_{3\times3} x\big) $$

    $R_3$ and $R_5$ are 1 x 1 convolutions to few channels, which make the larger kernels cheap. Each convolution is
    followed by batch normalisation and relu. The size does not change.

    Shapes:
        x: (batch, inputs, height, width)    returns: (batch, ones + threes + fives + pooled, height, width)

    Claims: conv.inception
    Source: C. Szegedy et al., Going deeper with convolutions (2015).
    Differs: with batch normalisation. `large=3` gives torchvision's module, whose third branch has 3 x 3 kernels.

    >>> InceptionModule(192, ones=64, reduce_threes=96, threes=128, reduce_fives=16, fives=32, pooled=32)(
    ...     torch.rand(2, 192, 28, 28)
    ... ).shape
    torch.Size([2, 256, 28, 28])
    """

    def __init__(
        self,
        inputs: int,
        ones: int,
        reduce_threes: int,
        threes: int,
        reduce_fives: int,
        fives: int,
        pooled: int,
        large: int = 5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs = validate.count("inputs", inputs)
        branches = {"ones": ones, "reduce_threes": reduce_threes, "threes": threes}
        branches |= {"reduce_fives": reduce_fives, "fives": fives, "pooled": pooled}
        for name, outputs in branches.items():
            validate.count(name, outputs)
        self.large = _known_side(large)
        place = {"device": device, "dtype": dtype}
        self.branch1 = _Convolution(inputs, ones, 1, place=place)
        self.branch2 = nn.Sequential(
            _Convolution(inputs, reduce_threes, 1, place=place), _Convolution(reduce_threes, threes, 3, place=place)
        )
        self.branch3 = nn.Sequential(
            _Convolution(inputs, reduce_fives, 1, place=place), _Convolution(reduce_fives, fives, large, place=place)
        )
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), _Convolution(inputs, pooled, 1, place=place))

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        images("x", x, self.inputs)
        return torch.cat([branch(x) for branch in (self.branch1, self.branch2, self.branch3, self.branch4)], dim=1)


class _AuxiliaryClassifier(nn.Module):
    """Logits from the middle of the network, for a second loss while it trains."""

    def __init__(self, inputs: int, classes: int, place: dict) -> None:
        super().__init__()
        self.conv = _Convolution(inputs, 128, 1, place=place)
        self.fc1 = nn.Linear(128 * 4 * 4, 1024, **place)
        self.fc2 = nn.Linear(1024, classes, **place)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.conv(functional.adaptive_avg_pool2d(x, 4))  # (batch, 128, 4, 4)
        hidden = functional.relu(self.fc1(maps.flatten(1)))  # (batch, 1024)
        return self.fc2(functional.dropout(hidden, 0.7, self.training))  # (batch, classes)


@dataclass(frozen=True)
class GoogLeNetConfig:
    """Configuration of a GoogLeNet; channels and classes follow from the data."""

    auxiliary: bool = True
    """Whether there are two auxiliary classifiers in the middle of the network, for `auxiliary_logits`."""
    large: int = 3
    """Kernel size of the third branch: 3 as in torchvision's weights, or 5 as in the paper."""
    dropout: float = 0.2
    """Dropout probability of the features before the last layer."""

    def __post_init__(self) -> None:
        validate.flag("auxiliary", self.auxiliary)
        _known_side(self.large)
        validate.fraction("dropout", self.dropout)


@system(
    "googlenet", title="GoogLeNet", kind="module", example="GoogLeNet(channels=1, classes=5)(torch.randn(3, 1, 32, 32))"
)
class GoogLeNet(nn.Module):
    r"""Three convolutions, nine Inception modules, the mean over all places, and an affine map to the classes.

    $$ f(x) = C \operatorname{mean}_{uv} (I_9 \circ \dots \circ I_1 \circ S)(x)(u, v) + c $$

    With the default settings the state dict has the names and shapes of torchvision's `googlenet`. The two auxiliary
    classifiers are asked by `auxiliary_logits`; the paper adds 0.3 of their losses while the network trains.

    Shapes:
        x: (batch, channels, height, width), sides from 15, usually 224    returns: logits (batch, classes)

    Claims: conv.inception
    Source: C. Szegedy et al., Going deeper with convolutions (2015).
    Differs: batch normalisation in place of local response normalisation, and `large=3`, both as in torchvision.
        Torchvision's trained weights expect images scaled to mean 0.5 and standard deviation 0.5 (`transform_input`).
        Does not pass `used_parameters`: the auxiliary classifiers are called by `auxiliary_logits` alone.

    >>> GoogLeNet(classes=10).eval()(torch.rand(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    >>> sum(values.numel() for values in GoogLeNet(device="meta").parameters())
    13004888
    """

    inception3a: InceptionModule
    inception3b: InceptionModule
    inception4a: InceptionModule
    inception4b: InceptionModule
    inception4c: InceptionModule
    inception4d: InceptionModule
    inception4e: InceptionModule
    inception5a: InceptionModule
    inception5b: InceptionModule

    def __init__(
        self,
        channels: int = 3,
        classes: int = 1000,
        auxiliary: bool = GoogLeNetConfig.auxiliary,
        large: int = GoogLeNetConfig.large,
        dropout: float = GoogLeNetConfig.dropout,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(GoogLeNetConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        place = {"device": device, "dtype": dtype}
        self.conv1 = _Convolution(channels, 64, 7, stride=2, place=place)
        self.conv2 = _Convolution(64, 64, 1, place=place)
        self.conv3 = _Convolution(64, 192, 3, place=place)
        for name, widths in MODULES.items():
            self.add_module(name, InceptionModule(*widths, large=large, **place))
        self.aux1 = _AuxiliaryClassifier(512, classes, place) if auxiliary else None
        self.aux2 = _AuxiliaryClassifier(528, classes, place) if auxiliary else None
        self.fc = nn.Linear(1024, classes, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: of deviation 0.01, as torchvision's; biases and normalisations as torch's."""
        for part in self.modules():
            if isinstance(part, (nn.BatchNorm2d, nn.Linear)):
                part.reset_parameters()
            if isinstance(part, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(part.weight, std=0.01)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        _, _, maps = self._named_maps(x)
        features = functional.dropout(maps.mean((2, 3)), self.config.dropout, self.training)  # (batch, 1024)
        return self.fc(features)  # (batch, classes)

    def auxiliary_logits(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch classes"], Float[Tensor, "batch classes"], Float[Tensor, "batch classes"]]:
        """The logits, and those of the two classifiers in the middle, in this order."""
        if self.aux1 is None or self.aux2 is None:
            raise ValueError("auxiliary must be True for auxiliary logits: use GoogLeNet(auxiliary=True)")
        first, second, maps = self._named_maps(x)
        middle = self.aux1(first), self.aux2(second)  # before the last, so that dropout draws in torchvision's order
        features = functional.dropout(maps.mean((2, 3)), self.config.dropout, self.training)  # (batch, 1024)
        return self.fc(features), *middle

    def _named_maps(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.conv1(images("x", x, self.channels, LEAST))  # (batch, 64, height / 2, width / 2)
        hidden = self.conv3(self.conv2(_halve_maps(hidden)))  # (batch, 192, height / 4, width / 4)
        hidden = self.inception3b(self.inception3a(_halve_maps(hidden)))  # (batch, 480, height / 8, width / 8)
        first = self.inception4a(_halve_maps(hidden))  # (batch, 512, height / 16, width / 16)
        second = self.inception4d(self.inception4c(self.inception4b(first)))  # (batch, 528, ...)
        hidden = self.inception4e(second)  # (batch, 832, height / 16, width / 16)
        hidden = functional.max_pool2d(hidden, 2, stride=2, ceil_mode=True)  # (batch, 832, height / 32, width / 32)
        return first, second, self.inception5b(self.inception5a(hidden))  # (batch, 1024, height / 32, width / 32)


def _halve_maps(maps: Tensor) -> Tensor:
    return functional.max_pool2d(maps, 3, stride=2, ceil_mode=True)


def _known_side(large: int) -> int:
    if large not in (3, 5):
        raise ValueError(f"large must be 3 or 5, got {large!r}")
    return large
