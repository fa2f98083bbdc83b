r"""Residual networks for pictures, with the names and shapes of torchvision's weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["BasicResidualBlock", "BottleneckResidualBlock", "ResNet", "ResNetConfig"]

# Blocks of each of the four stages; from 50 layers on they are bottlenecks.
STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicResidualBlock(nn.Module):
    r"""Two 3 x 3 convolutions, added to the block's input.

    $$ y = \mathrm{relu}\big(Vx + B_2 K_2 * \mathrm{relu}(B_1 K_1 * x)\big) $$

    $B_i$ are batch normalisations. $V$ is the identity, or a 1 x 1 convolution with batch normalisation where the
    number of channels or the size changes.

    Shapes:
        x: (batch, inputs, height, width)    returns: (batch, outputs, height / stride, width / stride), rounded up

    Claims: conv.resnet
    Source: K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition (2016).

    >>> BasicResidualBlock(8, 16, stride=2)(torch.rand(2, 8, 10, 10)).shape
    torch.Size([2, 16, 5, 5])
    """

    expansion = 1

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _block_channels(inputs, outputs, stride, self.expansion)
        place = {"device": device, "dtype": dtype}
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False, **place)
        self.bn1 = nn.BatchNorm2d(outputs, **place)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False, **place)
        self.bn2 = nn.BatchNorm2d(outputs, **place)
        self.downsample = _skip_projection(inputs, outputs, stride, place)

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows columns"]:
        change = functional.relu(self.bn1(self.conv1(x)))  # (batch, outputs, rows, columns)
        change = self.bn2(self.conv2(change))
        return functional.relu((x if self.downsample is None else self.downsample(x)) + change)


class BottleneckResidualBlock(nn.Module):
    r"""A 1 x 1 convolution to few channels, a 3 x 3 convolution, and one back to many; added to the block's input.

    $$ y = \mathrm{relu}\big(Vx + B_3 K_3 * \mathrm{relu}(B_2 K_2 * \mathrm{relu}(B_1 K_1 * x))\big) $$

    Of `outputs` channels a quarter is kept inside.

    Shapes:
        x: (batch, inputs, height, width)    returns: (batch, outputs, height / stride, width / stride), rounded up

    Claims: conv.resnet
    Source: K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition (2016).
    Differs: the 3 x 3 convolution has the stride, as in torchvision; the paper's has it in the first one.

    >>> BottleneckResidualBlock(8, 16, stride=2)(torch.rand(2, 8, 10, 10)).shape
    torch.Size([2, 16, 5, 5])
    """

    expansion = 4

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _block_channels(inputs, outputs, stride, self.expansion)
        place, few = {"device": device, "dtype": dtype}, outputs // self.expansion
        self.conv1 = nn.Conv2d(inputs, few, 1, bias=False, **place)
        self.bn1 = nn.BatchNorm2d(few, **place)
        self.conv2 = nn.Conv2d(few, few, 3, stride, padding=1, bias=False, **place)
        self.bn2 = nn.BatchNorm2d(few, **place)
        self.conv3 = nn.Conv2d(few, outputs, 1, bias=False, **place)
        self.bn3 = nn.BatchNorm2d(outputs, **place)
        self.downsample = _skip_projection(inputs, outputs, stride, place)

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows columns"]:
        change = functional.relu(self.bn1(self.conv1(x)))  # (batch, outputs / 4, height, width)
        change = functional.relu(self.bn2(self.conv2(change)))  # (batch, outputs / 4, rows, columns)
        change = self.bn3(self.conv3(change))  # (batch, outputs, rows, columns)
        return functional.relu((x if self.downsample is None else self.downsample(x)) + change)


@dataclass(frozen=True)
class ResNetConfig:
    """Configuration of a ResNet; channels and classes follow from the data."""

    depth: int = 18
    """Number of layers with weights: 18, 34, 50, 101 or 152."""
    width: int = 64
    """Channels of the first stage; each of the three others has twice as many."""
    small: bool = False
    """For images of about 32 pixels: begin with a 3 x 3 convolution of stride 1 and no pooling."""

    def __post_init__(self) -> None:
        if self.depth not in STAGES:
            raise ValueError(f"depth must be one of {', '.join(map(str, STAGES))}, got {self.depth!r}")
        validate.count("width", self.width)
        validate.flag("small", self.small)


@system(
    "resnet",
    title="ResNet: residual network",
    kind="module",
    example="ResNet(channels=1, classes=5, width=4, small=True)(torch.randn(3, 1, 16, 16))",
)
class ResNet(nn.Module):
    r"""A convolution, four stages of residual blocks, the mean over all places, and an affine map to the classes.

    $$ h_\ell = \mathrm{relu}\big(V_\ell h_{\ell-1} + F_\ell(h_{\ell-1})\big), \qquad
       f(x) = C \operatorname{mean}_{uv} h_L(u, v) + c $$

    Each stage but the first halves the size and doubles the channels in its first block. With the default settings the
    state dict has the names and shapes of torchvision's `resnet18`, ..., `resnet152`.

    Shapes:
        x: (batch, channels, height, width), usually 224 x 224    returns: logits (batch, classes)

    Claims: conv.resnet
    Source: K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition (2016).
    Differs: the stride of bottlenecks is torchvision's; `small` is the usual change for CIFAR's sizes.

    >>> ResNet(channels=1, classes=10, width=8, small=True)(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    >>> sum(values.numel() for values in ResNet(depth=18, device="meta").parameters())
    11689512
    """

    layer1: nn.Sequential
    layer2: nn.Sequential
    layer3: nn.Sequential
    layer4: nn.Sequential

    def __init__(
        self,
        channels: int = 3,
        classes: int = 1000,
        depth: int = ResNetConfig.depth,
        width: int = ResNetConfig.width,
        small: bool = ResNetConfig.small,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(ResNetConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        block = BasicResidualBlock if depth < 50 else BottleneckResidualBlock
        place = {"device": device, "dtype": dtype}
        stem = {"kernel_size": 3, "padding": 1} if small else {"kernel_size": 7, "stride": 2, "padding": 3}
        self.conv1 = nn.Conv2d(channels, width, bias=False, **stem, **place)
        self.bn1 = nn.BatchNorm2d(width, **place)
        inputs = width
        for stage, blocks in enumerate(STAGES[depth]):
            outputs = width * 2**stage * block.expansion
            strides = [1 if stage == 0 else 2, *[1] * (blocks - 1)]
            made = [block(inputs if n == 0 else outputs, outputs, stride, **place) for n, stride in enumerate(strides)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*made))
            inputs = outputs
        self.fc = nn.Linear(inputs, classes, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: He's for what leaves a convolution, batch normalisations as torch has them."""
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(part, (nn.BatchNorm2d, nn.Linear)):
                part.reset_parameters()

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        hidden = functional.relu(self.bn1(self.conv1(images("x", x, self.channels))))  # (batch, width, h / 2, w / 2)
        if not self.config.small:
            hidden = functional.max_pool2d(hidden, 3, stride=2, padding=1)  # (batch, width, h / 4, w / 4)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            hidden = stage(hidden)  # twice the channels, half the size, but for the first
        return self.fc(hidden.mean((2, 3)))  # (batch, 8 * width * expansion) -> (batch, classes)

    def extra_repr(self) -> str:
        return f"depth={self.config.depth}"


def _block_channels(inputs: int, outputs: int, stride: int, expansion: int) -> None:
    for name, value in ("inputs", inputs), ("outputs", outputs), ("stride", stride):
        validate.count(name, value)
    if outputs % expansion:
        raise ValueError(f"outputs must be a multiple of {expansion}, got {outputs}")


def _skip_projection(inputs: int, outputs: int, stride: int, place: dict) -> nn.Sequential | None:
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False, **place), nn.BatchNorm2d(outputs, **place))
