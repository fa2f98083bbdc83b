r"""A language model of characters over any recurrent layer: read a text, predict what comes next, write on."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.cells import recurrent_layer
from lemmata.recurrent.layer import State
from lemmata.recurrent.output_map import Autoregressor
from lemmata.recurrent.residual_block import ResidualBlock
from lemmata.recurrent.stacked import Stacked

__all__ = ["CharacterModel"]


@system(
    "character_model",
    title="Language model of characters",
    kind="module",
    example="CharacterModel(vocab_size=20, cell='mingru', width=6, hidden=8, depth=1)(torch.randint(20, (4, 7)))",
)
class CharacterModel(Autoregressor):
    r"""Characters as learnt vectors, recurrent layers with residuals, and a softmax over the next character.

    $$ p(x_{t+1} \mid x_1, \dots, x_t) = \mathrm{softmax}(W\,\mathrm{norm}(y_t) + c)_{x_{t+1}}, \qquad
       \text{bits} = -\frac{1}{T}\sum_t \log_2 p(x_{t+1} \mid x_1, \dots, x_t) $$

    `cell` names the layer: elman, lstm, gru, mingru, minlstm or lru, with `hidden` units in each of `depth` layers
    (see `ResidualBlock`); `memory` is the longest time, in characters, for which the units of mingru, minlstm and lru
    remember initially.

    Shapes:
        x: (batch, time) tokens    returns: logits (batch, time, vocab_size), and the last state

    >>> model = CharacterModel(vocab_size=70, cell="mingru", width=16, hidden=24, depth=2)
    >>> text = torch.randint(70, (4, 100))
    >>> logits, state = model(text)
    >>> logits.shape, model.sample(text, 20).shape
    (torch.Size([4, 100, 70]), torch.Size([4, 20]))
    """

    def __init__(
        self,
        vocab_size: int,
        cell: str = "lru",
        width: int = 192,
        hidden: int = 256,
        depth: int = 2,
        expansion: int = 2,
        dropout: float = 0.0,
        memory: int = 100,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.count("depth", depth)
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        layers = (recurrent_layer(cell, width, hidden, memory, **factory_kwargs) for _ in range(depth))
        blocks = (ResidualBlock(layer, expansion, dropout, **factory_kwargs) for layer in layers)
        super().__init__(Stacked(*blocks), vocab_size, **factory_kwargs)
        self.norm = nn.LayerNorm(width, **factory_kwargs)
        nn.init.normal_(self.embedding.weight, std=1.0)  # type: ignore[union-attr]

    def read(self, z: Float[Tensor, "... features"]) -> Float[Tensor, "... vocab_size"]:
        return super().read(self.norm(z))

    def nll(
        self, x: Int[Tensor, "batch time"], y: Int[Tensor, "batch time"], state: State | None = None
    ) -> Float[Tensor, "batch time"]:
        r"""The negative log-likelihood $-\ln p(y_t \mid x_1, \dots, x_t)$ of every character, in nats.

        y is the text one position ahead of x.
        """
        logits, _ = self(x, state)  # (batch, time, vocab_size)
        return functional.cross_entropy(logits.mT, y, reduction="none")  # (batch, time)

    def bits(self, x: Int[Tensor, "batch time"], y: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """The mean negative log-likelihood in bits a character."""
        return self.nll(x, y).mean() / math.log(2)
