r"""LeNet-5."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["LeNet5", "LeNet5Config"]

SIDE = 32  # pixels


@dataclass(frozen=True)
class LeNet5Config:
    """Configuration of a LeNet-5; channels and classes follow from the data."""

    activation: str = "tanh"
    """Activation function: tanh, sigmoid, relu, gelu or another of the known ones."""
    padding: int = 0
    """Zero padding of the image: 2 for images of 28 x 28 pixels."""

    def __post_init__(self) -> None:
        known_activation(self.activation)
        validate.count("padding", self.padding, least=0, most=15)


@system("lenet", title="LeNet-5", kind="module", example="LeNet5(padding=2)(torch.randn(3, 1, 28, 28))")
class LeNet5(nn.Module):
    r"""Two convolutions with average pooling, and three fully connected layers.

    $$ f(x) = W_5\, \phi(W_4\, \phi(W_3\, h_2)), \qquad
       h_\ell = \operatorname{mean}_{2\times2} \phi(K_\ell * h_{\ell-1} + b_\ell), \qquad h_0 = x $$

    The sides of the maps are 32, 28, 14, 10 and 5; 6 and 16 maps; then 400, 120, 84 and `classes` units.

    Shapes:
        x: (batch, channels, 32 - 2 padding, 32 - 2 padding)    returns: logits (batch, classes)

    Claims: conv.lenet5
    Source: Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document recognition
        (1998).
    Differs: every map of the second convolution sees all six of the first (the paper's sees some of them), poolings
        have no weights, and the outputs are logits (the paper's are distances to pictures of the classes).

    >>> LeNet5(padding=2)(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    >>> sum(values.numel() for values in LeNet5().parameters())
    61706
    """

    def __init__(
        self,
        channels: int = 1,
        classes: int = 10,
        activation: str = LeNet5Config.activation,
        padding: int = LeNet5Config.padding,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(LeNet5Config, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        self.activation = known_activation(activation).name
        place = {"device": device, "dtype": dtype}
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=padding, **place)
        self.conv2 = nn.Conv2d(6, 16, 5, **place)
        self.fc1 = nn.Linear(16 * 5 * 5, 120, **place)
        self.fc2 = nn.Linear(120, 84, **place)
        self.fc3 = nn.Linear(84, classes, **place)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        side, phi = SIDE - 2 * self.config.padding, ACTIVATION_TABLE[self.activation].value
        if tuple(images("x", x, self.channels).shape[2:]) != (side, side):
            remedy = ": use padding=2" if tuple(x.shape[2:]) == (28, 28) else ""
            raise ValueError(f"x must be {side} x {side} pixels, got {x.shape[2]} x {x.shape[3]}{remedy}")
        maps = functional.avg_pool2d(phi(self.conv1(x)), 2)  # (batch, 6, 14, 14)
        maps = functional.avg_pool2d(phi(self.conv2(maps)), 2)  # (batch, 16, 5, 5)
        hidden = phi(self.fc1(maps.flatten(1)))  # (batch, 400) -> (batch, 120)
        return self.fc3(phi(self.fc2(hidden)))  # (batch, 84) -> (batch, classes)

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
