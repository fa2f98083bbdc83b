r"""The multilayer perceptron: affine maps with a nonlinearity between them."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE, activation
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["MLP", "MLPConfig"]


@dataclass(frozen=True)
class MLPConfig:
    """Configuration of a multilayer perceptron; inputs and outputs follow from the data."""

    widths: tuple[int, ...] = (256, 256)
    """Units of each hidden layer; without hidden layers the model is linear."""
    activation: str = "relu"
    """Activation: relu, leaky_relu, elu, gelu, gelu_tanh, silu, softplus, tanh, sigmoid, softsign or identity."""
    dropout: float = 0.0
    """Dropout probability of the hidden units."""
    bias: bool = True
    """Whether layers have a bias."""

    def __post_init__(self) -> None:
        if not isinstance(self.widths, tuple):
            raise TypeError(f"widths must be a tuple of integers such as (256, 256), got {self.widths!r}")
        for width in self.widths:
            validate.count("widths", width)
        activation(self.activation)  # says which are known, if it is not among them
        validate.fraction("dropout", self.dropout)
        validate.flag("bias", self.bias)


@system(
    "mlp",
    title="Multilayer perceptron",
    kind="module",
    example="MLP(inputs=6, outputs=3, widths=(8,))(torch.randn(5, 6))",
)
class MLP(nn.Module):
    r"""Layers of units, each unit an activation of an affine map of the layer before; the last is affine alone.

    $$ h_0 = x, \qquad h_l = \phi(W_l h_{l-1} + b_l), \qquad f(x) = W_L h_{L-1} + b_L $$

    The outputs are plain numbers (logits, for a classification). All axes of an example but the batch are one vector.
    Initially $b = 0$ and $W_l$ is normal with deviation $\sqrt{2/n}$ where $\phi$ drops about half of its input (relu
    and its kin, He), and $\sqrt{1/n}$ elsewhere and in the last layer (LeCun), for $n$ inputs of the layer.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (batch, outputs)

    Claims: layers.feedforward, layers.composition, layers.activations, layers.permutation_symmetry, xor.learned
    Source: Rumelhart, Hinton, Williams 1986; He et al. 2015; LeCun et al. 1998; dropout: Srivastava et al. 2014.

    >>> MLP(inputs=784, outputs=10, widths=(256,))(torch.rand(5, 28, 28)).shape
    torch.Size([5, 10])
    >>> MLP(2, 1, activation="rleu")
    Traceback (most recent call last):
    ValueError: unknown activation 'rleu': did you mean relu?
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: Sequence[int] = MLPConfig.widths,
        activation: str = MLPConfig.activation,
        dropout: float = MLPConfig.dropout,
        bias: bool = MLPConfig.bias,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(MLPConfig, locals())
        sizes = [validate.count("inputs", inputs), *self.config.widths, validate.count("outputs", outputs)]
        self.inputs, self.outputs = inputs, outputs
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=bias, device=device, dtype=dtype) for a, b in pairwise(sizes))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        gain = ACTIVATION_TABLE[self.config.activation].gain
        for name, values in self.layers.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                last = name.split(".")[0] == str(len(self.layers) - 1)
                nn.init.normal_(values, std=(1.0 if last else gain) / math.sqrt(values.shape[1]))

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch outputs"]:
        activate = ACTIVATION_TABLE[self.config.activation].value
        hidden = validate.examples("x", x, self.inputs)  # (batch, ...) -> (batch, inputs)
        for layer in self.layers[:-1]:
            hidden = activate(layer(hidden))  # (batch, width)
            hidden = functional.dropout(hidden, self.config.dropout, self.training)
        return self.layers[-1](hidden)  # (batch, outputs)

    def activations(self, x: Float[Tensor, "batch ..."]) -> list[Tensor]:
        r"""What each layer hands on: $x^0 = x$ as a vector, $x^1, \dots, x^{L-1}$, and the outputs $x^L$.

        >>> [tuple(part.shape) for part in MLP(4, 2, widths=(7, 5)).activations(torch.rand(3, 4))]
        [(3, 4), (3, 7), (3, 5), (3, 2)]
        """
        activate = ACTIVATION_TABLE[self.config.activation].value
        found = [validate.examples("x", x, self.inputs)]
        for layer in self.layers[:-1]:
            hidden = activate(layer(found[-1]))  # (batch, width)
            found.append(functional.dropout(hidden, self.config.dropout, self.training))
        return [*found, self.layers[-1](found[-1])]

    def permuted(self, orders: Sequence[Tensor]) -> "MLP":
        r"""A copy that computes the same, with the units of each hidden layer in another order.

        Unit $i$ of hidden layer $l$ is the old unit `orders[l][i]`: rows of $W_l$ and $b_l$ move, and the columns of
        $W_{l+1}$ with them.

        >>> mlp, x = MLP(4, 2, widths=(3,)), torch.rand(5, 4)
        >>> torch.allclose(mlp.permuted([torch.tensor([2, 0, 1])])(x), mlp(x), atol=1e-6)
        True
        """
        orders = list(orders)
        if len(orders) != len(self.config.widths):
            raise ValueError(f"orders must have one entry for each of {len(self.config.widths)} hidden layers")
        if any(parametrize.is_parametrized(layer) for layer in self.layers):
            raise ValueError("the weights of the layers are parametrised (pruned, or normalised): undo that first")
        twin = copy.deepcopy(self)
        for number, order in enumerate(orders):
            width, own, after = self.config.widths[number], twin.layers[number], twin.layers[number + 1].weight
            assert isinstance(after, Tensor)
            validate.tensor(f"orders[{number}]", order)
            if order.is_floating_point() or sorted(order.tolist()) != list(range(width)):
                raise ValueError(f"orders[{number}] must hold each of 0 to {width - 1} once, got {order.tolist()}")
            with torch.no_grad():
                for values in own.parameters():
                    values.copy_(values[order.to(values.device)])
                after.copy_(after[:, order.to(after.device)])
        return twin

    def extra_repr(self) -> str:
        return f"activation={self.config.activation}, dropout={self.config.dropout}"
