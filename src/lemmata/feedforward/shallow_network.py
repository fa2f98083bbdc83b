r"""Networks with one hidden layer and one output: their sums, their nesting, and sigmoid and tanh in each other."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system

__all__ = ["ShallowNetwork"]


@system(
    "shallow_network",
    title="Network with one hidden layer",
    kind="module",
    example="ShallowNetwork(3, hidden=4)(torch.randn(5, 3))",
)
class ShallowNetwork(nn.Module):
    r"""A weighted sum of units, each an activation of an affine function of the input.

    $$ g[v, W, b](x) = v^\top \phi(Wx + b) = \sum_{j=1}^m v_j\,\phi(w_j^\top x + b_j), \qquad
       v, b \in \mathbb R^m,\ W \in \mathbb R^{m \times n} $$

    It has $m(n+2)$ parameters. Initially $W$ and $b$ are uniform between $\pm1/\sqrt n$, as in torch, and $v$ normal
    with deviation $\sqrt{1/m}$. The sum of two networks is a network: `first + second` has the units of both.

    Shapes:
        x: (..., inputs)    returns: (...)

    Claims: sigmoid.mlp, sigmoid.function_class, sigmoid.tanh_equivalence
    Source: G. Cybenko, Approximation by superpositions of a sigmoidal function (1989).

    >>> first, second, x = ShallowNetwork(2, hidden=3), ShallowNetwork(2, hidden=4), torch.rand(5, 2)
    >>> both = first + second
    >>> both.width, torch.allclose(both(x), first(x) + second(x), atol=1e-6)
    (7, True)
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        activation: str = "sigmoid",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.count("inputs", inputs)
        self.activation, self.width = known_activation(activation).name, validate.count("hidden", hidden)
        self.hidden = nn.Linear(inputs, hidden, device=device, dtype=dtype)
        self.outer = nn.Parameter(torch.empty(hidden, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        self.hidden.reset_parameters()
        nn.init.normal_(self.outer, std=1 / math.sqrt(self.width))

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch"]:
        validate.inputs("x", x, self.hidden.in_features)
        units = ACTIVATION_TABLE[self.activation].value(self.hidden(x))  # (..., hidden)
        return units @ self.outer  # (...)

    def __add__(self, other: "ShallowNetwork") -> "ShallowNetwork":
        r"""The network that computes the sum, with the units of both."""
        if not isinstance(other, ShallowNetwork):
            return NotImplemented
        mine, theirs = (self.hidden.in_features, self.activation), (other.hidden.in_features, other.activation)
        if mine != theirs:
            raise ValueError(f"networks must have the same inputs and activation to be added, got {mine} and {theirs}")
        weight = torch.cat([self.hidden.weight, other.hidden.weight])
        return self._build_network(
            weight, torch.cat([self.hidden.bias, other.hidden.bias]), torch.cat([self.outer, other.outer])
        )

    def widened(self, units: int) -> "ShallowNetwork":
        r"""A network that computes the same with so many units more: $\mathcal G_{n,m} \subset \mathcal G_{n,m+1}$.

        >>> ShallowNetwork(2, hidden=3).widened(2).outer[3:].tolist()
        [0.0, 0.0]
        """
        more = ShallowNetwork(
            self.hidden.in_features,
            validate.count("units", units),
            self.activation,
            self.outer.device,
            self.outer.dtype,
        )
        nn.init.zeros_(more.outer)
        return self + more

    def converted(self, activation: str) -> "ShallowNetwork":
        r"""A network of tanh units that computes what this one of sigmoid units does, or the other way; one unit wider.

        $$ \tanh(z) = 2\sigma(2z) - 1, \qquad \sigma(z) = \tfrac12 \tanh(\tfrac z2) + \tfrac12 $$

        The constants that are left over, times their weights, are one more unit with $w = 0$.

        >>> network, x = ShallowNetwork(2, hidden=3, activation="tanh"), torch.rand(5, 2)
        >>> network.converted("sigmoid").width, torch.allclose(network.converted("sigmoid")(x), network(x), atol=1e-5)
        (4, True)
        """
        pair = (self.activation, validate.one_of("activation", activation, ["sigmoid", "tanh"]))
        if pair not in (("sigmoid", "tanh"), ("tanh", "sigmoid")):
            raise ValueError(f"a network of {self.activation} units cannot be converted to {activation}")
        weight, bias, outer = self.hidden.weight, self.hidden.bias, self.outer
        inner, factor, constant = (2.0, 2.0, -outer.sum()) if pair[1] == "sigmoid" else (0.5, 0.5, outer.sum() / 2)
        # A unit that sees nothing has the value sigma(0) = 1/2, or tanh(1) with the bias 1.
        still, value = (0.0, 0.5) if pair[1] == "sigmoid" else (1.0, math.tanh(1.0))
        weight = torch.cat([inner * weight, torch.zeros_like(weight[:1])])
        bias = torch.cat([inner * bias, torch.full_like(bias[:1], still)])
        return self._build_network(weight, bias, torch.cat([factor * outer, constant[None] / value]), activation)

    @torch.no_grad()
    def _build_network(
        self, weight: Tensor, bias: Tensor, outer: Tensor, activation: str | None = None
    ) -> "ShallowNetwork":
        width, inputs = weight.shape
        network = ShallowNetwork(inputs, width, activation or self.activation, weight.device, weight.dtype)
        network.hidden.weight.copy_(weight)
        network.hidden.bias.copy_(bias)
        network.outer.copy_(outer)
        return network

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
