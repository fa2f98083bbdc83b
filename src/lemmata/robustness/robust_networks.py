r"""Networks that differ from others by nothing but their training: `lemmata train` knows them by these names."""

from lemmata.convolution.lenet import LeNet5
from lemmata.feedforward.mlp import MLP
from lemmata.marks import system

__all__ = ["BackdooredLeNet", "RobustLeNet", "RobustMLP"]


@system("robust_lenet", title="LeNet-5 that withstands attacks", kind="module",
        example="RobustLeNet(padding=2)(torch.randn(3, 1, 28, 28))")  # fmt: skip
class RobustLeNet(LeNet5):
    """A LeNet-5 as it is; what differs is its training on the worst images near those given.

    Shapes:
        x: (batch, channels, height, width)    returns: logits (batch, classes)

    Source: Madry et al. 2018.

    >>> import torch
    >>> RobustLeNet(padding=2)(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """


@system("robust_mlp", title="Multilayer perceptron that withstands attacks", kind="module",
        example="RobustMLP(inputs=2, outputs=2, widths=(8,))(torch.randn(5, 2))")  # fmt: skip
class RobustMLP(MLP):
    """A multilayer perceptron as it is; what differs is its training on the worst points near those given.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (batch, outputs)

    >>> import torch
    >>> RobustMLP(2, 2, widths=(8,))(torch.rand(5, 2)).shape
    torch.Size([5, 2])
    """


@system("backdoor", title="LeNet-5 with a backdoor", kind="module",
        example="BackdooredLeNet(padding=2)(torch.randn(3, 1, 28, 28))")  # fmt: skip
class BackdooredLeNet(LeNet5):
    """A LeNet-5 as it is; what differs are its training examples, a part of which somebody has tampered with.

    Shapes:
        x: (batch, channels, height, width)    returns: logits (batch, classes)

    Source: Gu et al. 2017.

    >>> import torch
    >>> BackdooredLeNet(padding=2)(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """
