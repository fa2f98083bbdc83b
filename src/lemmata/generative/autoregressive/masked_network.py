r"""MADE: a perceptron whose masks leave, for each coordinate, only paths from those before it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["MADE", "MADEConfig", "autoregressive_masks"]


def autoregressive_masks(order: Int[Tensor, " inputs"], widths: Sequence[int]) -> list[Tensor]:
    r"""For each layer of a perceptron, which weights are kept so that output $i$ sees inputs before $i$ alone.

    $$ m(x_i) = \text{its place in the order, from } 0, \qquad
       M_{jk} = [m_j \ge m_k] \text{ into hidden units}, \qquad M_{ik} = [m_i > m_k] \text{ into outputs} $$

    A hidden unit of degree $m_j$ depends on inputs of at most that degree; degrees $0, \dots, d-2$ are dealt out in
    turn. The product of all masks counts the paths from each input to each output.

    Shapes:
        order: (inputs,)    returns: a mask (outputs, inputs) for each layer


    >>> first, last = autoregressive_masks(torch.tensor([0, 1, 2]), widths=[4])
    >>> (last @ first).long()
    tensor([[0, 0, 0],
            [2, 0, 0],
            [4, 2, 0]])
    """
    size = len(order)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(size))  # (inputs,): when each input is drawn
    degrees = [place, *(torch.arange(width) % max(size - 1, 1) for width in widths)]
    masks = [after[:, None] >= before for before, after in pairwise(degrees)]
    return [mask.float() for mask in (*masks, place[:, None] > degrees[-1])]


@dataclass(frozen=True)
class MADEConfig:
    """Configuration of a masked autoencoder for distribution estimation; the inputs follow from the data."""

    widths: tuple[int, ...] = (256,)
    """Units of each hidden layer, at least one less than there are inputs, so that all paths exist."""
    orders: int = 1
    """Orders of the coordinates, which share the weights: the model is the equal mixture of all of them."""
    activation: str = "relu"
    """Activation of the hidden layers."""
    order_seed: int = 0
    """Seed of all orders but the first, which is that of the data."""

    def __post_init__(self) -> None:
        if not isinstance(self.widths, tuple) or not self.widths:
            raise TypeError(f"widths must be a tuple of integers such as (256,), got {self.widths!r}")
        for width in self.widths:
            validate.count("widths", width)
        validate.count("orders", self.orders)
        known_activation(self.activation)  # says which are known, if it is not among them
        validate.count("order_seed", self.order_seed, least=0)


@system(
    "made",
    title="MADE: masked autoencoder for distribution estimation",
    kind="module",
    example="MADE(inputs=6, widths=(8,), orders=2)(torch.randn(5, 6))",
)
class MADE(nn.Module):
    r"""A law of binary vectors, coordinate by coordinate, whose likelihood takes one pass through a perceptron.

    $$ p(x) = \prod_i p(x_i \mid x_{<i}), \qquad p(x_i = 1 \mid x_{<i}) = \sigma(f_i(x)), \qquad
       \frac{\partial f_i}{\partial x_j} = 0 \text{ for } j \ge i $$

    Weights that would let $f_i$ see $x_i$ or what comes after are masked. With several `orders` of the coordinates the
    law is their mixture $\frac1R \sum_r p_r(x)$, of one network with other masks. Drawing takes one pass for each
    coordinate. `forward` gives logits and takes any numbers; a likelihood of grey values does not exist: `log_prob`
    refuses them.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    forward: logits (batch, orders, inputs)
        log_prob: (batch,)    sample: (n, inputs) of 0 and 1

    Claims: ar.neural, ar.properties, ar.simplicity
    Source: M. Germain, K. Gregor, I. Murray and H. Larochelle, MADE (2015).
    Differs: degrees of hidden units are dealt out in turn, not drawn, and the same under every order.

    >>> model = MADE(inputs=64, widths=(128,))
    >>> x = model.sample(5, generator=torch.Generator().manual_seed(0))
    >>> x.shape, model.log_prob(x).shape
    (torch.Size([5, 64]), torch.Size([5]))
    """

    order: Tensor

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int] = MADEConfig.widths,
        orders: int = MADEConfig.orders,
        activation: str = MADEConfig.activation,
        order_seed: int = MADEConfig.order_seed,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(MADEConfig, locals())
        self.inputs = validate.count("inputs", inputs)
        place = {"device": device, "dtype": dtype}
        sizes = [inputs, *self.config.widths, inputs]
        self.layers = nn.ModuleList(nn.Linear(a, b, **place) for a, b in pairwise(sizes))
        drawn = torch.Generator().manual_seed(order_seed)
        order = [torch.arange(inputs), *(torch.randperm(inputs, generator=drawn) for _ in range(orders - 1))]
        self.register_buffer("order", torch.stack(order).to(device))  # (orders, inputs)
        for number, masks in enumerate(zip(*(autoregressive_masks(o, widths) for o in order), strict=True)):
            self.register_buffer(f"mask{number}", torch.stack(masks).to(**place), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew; a unit with few paths to it has the larger weights."""
        gain = ACTIVATION_TABLE[self.config.activation].gain
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            fan_in = self.get_buffer(f"mask{number}")[0].sum(1, keepdim=True).clamp(min=1)
            scale = gain if number < len(self.layers) - 1 else 1.0
            nn.init.normal_(layer.weight)
            nn.init.zeros_(layer.bias)
            with torch.no_grad():
                layer.weight.mul_(scale / fan_in.sqrt())

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch orders inputs"]:
        hidden = validate.examples("x", x, self.inputs)  # (batch, inputs)
        return torch.stack([self._masked_logits(hidden, number) for number in range(self.config.orders)], 1)

    def log_prob(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, " batch"]:
        """The log probability of each example of 0 and 1, in nats."""
        flat = self._check_binary(x)
        each = self._conditional_log_probs(self(flat), flat[:, None]).sum(-1)  # (batch, orders)
        return each.logsumexp(1) - math.log(self.config.orders)

    def loss(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, ""]:
        """The negative log-likelihood of an example, in the mean over the batch."""
        return -self.log_prob(x).mean()

    @torch.no_grad()
    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "n inputs"]:
        """So many vectors of 0 and 1, each in an order at random; one pass a coordinate."""
        validate.count("n", n)
        like, rows = next(self.parameters()), torch.arange(n, device=self.order.device)
        x = like.new_zeros(n, self.inputs)
        own = torch.randint(self.config.orders, (n,), generator=generator, device=like.device)  # (n,)
        for place in range(self.inputs):
            now = self.order[own, place]  # (n,): which coordinate each example draws
            chance = torch.rand(n, generator=generator, dtype=like.dtype, device=like.device)
            x[rows, now] = (chance < self(x)[rows, own, now].sigmoid()).to(x)
        return x

    @torch.no_grad()
    def sample_and_log_prob(
        self, n: int, *, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "n inputs"], Float[Tensor, " n"]]:
        """So many vectors, and the log probability of each, by one pass more."""
        x = self.sample(n, generator=generator)
        return x, self.log_prob(x)

    def extra_repr(self) -> str:
        return f"orders={self.config.orders}, activation={self.config.activation}"

    def _masked_logits(self, hidden: Tensor, number: int) -> Tensor:
        activate = ACTIVATION_TABLE[self.config.activation].value
        for level, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            hidden = activate(hidden) if level else hidden  # (batch, width)
            mask = self.get_buffer(f"mask{level}")[number]
            hidden = functional.linear(hidden, layer.weight * mask, layer.bias)
        return hidden  # (batch, inputs)

    def _conditional_log_probs(self, logits: Tensor, x: Tensor) -> Tensor:
        """The log probability of each coordinate given those before it."""
        return -functional.binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none")

    def _check_binary(self, x: Tensor) -> Tensor:
        flat = validate.examples("x", x, self.inputs)
        if validate.visible(flat) and not bool(((flat == 0) | (flat == 1)).all()):
            raise ValueError("x must hold only 0 and 1, for a Bernoulli law knows no grey: use (x > 0.5).float()")
        return flat
