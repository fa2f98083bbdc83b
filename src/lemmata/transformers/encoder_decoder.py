r"""Encoder and decoder of a transformer: stacks of blocks over vectors that know their positions."""

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.cross_attention import Remembered
from lemmata.transformers.key_value_cache import KeyValueCache
from lemmata.transformers.positions import LearnedPositions, SinusoidalPositions
from lemmata.transformers.torch_layers import settings_of, take_layer
from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["TransformerDecoder", "TransformerEncoder"]

POSITIONS = ("sinusoidal", "learned")


class _Stack(nn.Module):
    """What both are: positions, dropout, blocks and, where blocks normalise first, a last normalisation."""

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        hidden: int | None,
        activation: str,
        norm_first: bool,
        positions: str | None,
        max_length: int,
        dropout: float,
        attention_dropout: float,
        eps: float,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        **kind: bool,
    ) -> None:
        super().__init__()
        validate.count("depth", depth)
        self.width, self.max_length = validate.count("width", width), validate.count("max_length", max_length)
        self.dropout = validate.fraction("dropout", dropout)
        words: dict[str, Any] = {"dropout": dropout, "attention_dropout": attention_dropout, "eps": eps, **kind}
        with torch.device(device or torch.get_default_device()):
            self.positions = _positions(positions, width, max_length)
            self.blocks = nn.ModuleList(
                TransformerBlock(width, heads, hidden, activation, norm_first, **words) for _ in range(depth)
            )
            # Blocks that normalise first leave a sum that nobody has normalised.
            self.norm = nn.LayerNorm(width, eps) if norm_first else None
        self.to(dtype)
        for block in self.blocks:
            _reset(block)

    def _placed(self, x: Tensor, start: int = 0) -> Tensor:
        """x and its positions, without a fraction of the values while training."""
        if x.ndim != 3 or x.shape[-1] != self.width:
            raise ValueError(f"x must be (batch, time, {self.width}), got shape {tuple(x.shape)}")
        placed = x if self.positions is None else self.positions(x, start)
        return functional.dropout(placed, self.dropout, self.training)

    def _normalised(self, h: Tensor) -> Tensor:
        return h if self.norm is None else self.norm(h)

    @classmethod
    def _of_layers(cls, module: nn.TransformerEncoder | nn.TransformerDecoder) -> Any:
        layers: list[Any] = list(module.layers)
        place = layers[0].linear1.weight
        settings = settings_of(layers[0])
        made = cls(depth=len(layers), positions=None, device=place.device, dtype=place.dtype, **settings)
        for block, layer in zip(made.blocks, layers, strict=True):
            take_layer(block, layer)  # type: ignore[arg-type]
        made.norm, made.dropout = copy.deepcopy(module.norm), 0.0  # torch leaves the input as it is
        return made.train(module.training)


@system("transformer_encoder", title="Transformer encoder", kind="module")
class TransformerEncoder(_Stack):
    r"""Blocks of self-attention and a network for each position, on vectors to which their positions are added.

    $$ h_0 = X + P, \qquad h_\ell = \mathrm{block}_\ell(h_{\ell-1}), \qquad \Xi = h_N \in \mathbb{R}^{T \times d} $$

    `positions` is sinusoidal, learned (up to `max_length`) or None: without, an encoder of shuffled vectors gives the
    shuffled answer. Where blocks normalise first (`norm_first`), the answer is normalised once more at the end.

    Shapes:
        x: (batch, time, width)    mask: (batch, time), true where there is a token    returns: (batch, time, width)

    Claims: transformer.encoder
    Source: Vaswani et al. 2017.

    >>> encoder = TransformerEncoder(width=16, depth=2, heads=4)
    >>> encoder(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        hidden: int | None = None,
        activation: str = "relu",
        norm_first: bool = True,
        positions: Literal["sinusoidal", "learned"] | None = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            width, depth, heads, hidden, activation, norm_first, positions, max_length, dropout, attention_dropout,
            eps, device, dtype,
        )  # fmt: skip

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        h = self._placed(x)
        for block in self.blocks:
            h = block(h, mask)  # (batch, time, width)
        return self._normalised(h)

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoder) -> "TransformerEncoder":
        """The same encoder with the weights of torch's, which adds no positions."""
        return cls._of_layers(module)


@system("transformer_decoder", title="Transformer decoder", kind="module")
class TransformerDecoder(_Stack):
    r"""Blocks that look back at what was written, then at what an encoder found, then work on each position.

    $$ h_0 = Y + P, \qquad h_\ell = \mathrm{block}_\ell(h_{\ell-1}, \Xi), \qquad H = h_N $$

    Place t sees the places up to t alone. With `caches` (`new_caches`), x is what comes after them, and only x is
    worked on; with `remember`, neither is the memory worked on again.

    Shapes:
        x: (batch, time, width)    memory: (batch, positions, width), or what `remember` made of it
        memory_mask: (batch, positions), true where there is a token    returns: (batch, time, width)

    Claims: transformer.decoder
    Source: Vaswani et al. 2017.

    >>> decoder = TransformerDecoder(width=16, depth=2, heads=4)
    >>> decoder(torch.randn(2, 10, 16), memory=torch.randn(2, 7, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        hidden: int | None = None,
        activation: str = "relu",
        norm_first: bool = True,
        positions: Literal["sinusoidal", "learned"] | None = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            width, depth, heads, hidden, activation, norm_first, positions, max_length, dropout, attention_dropout,
            eps, device, dtype, causal=True, cross=True,
        )  # fmt: skip

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        memory: Float[Tensor, "batch positions width"] | Sequence[Remembered],
        memory_mask: Bool[Tensor, "batch positions"] | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        if caches is not None and len(caches) != len(self.blocks):
            raise ValueError(
                f"caches must be one for each of {len(self.blocks)} blocks, got {len(caches)}: new_caches()"
            )
        h = self._placed(x, 0 if caches is None else len(caches[0]))
        remembered = self.remember(memory) if isinstance(memory, Tensor) else memory
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            h = block(h, None, remembered[number], memory_mask, cache)  # (batch, time, width)
        return self._normalised(h)

    def remember(self, memory: Float[Tensor, "batch positions width"]) -> tuple[Remembered, ...]:
        """Keys and values of the memory for each block: computed once, however many tokens are written."""
        return tuple(block.cross_attention.remember(memory) for block in self.blocks)  # type: ignore[union-attr]

    def new_caches(self) -> tuple[KeyValueCache, ...]:
        """Empty caches, one for each block."""
        return tuple(KeyValueCache(self.max_length) for _ in self.blocks)

    @classmethod
    def from_torch(cls, module: nn.TransformerDecoder) -> Any:
        """The same decoder with the weights of torch's, which adds no positions and masks only if told."""
        return cls._of_layers(module)


def _positions(positions: str | None, width: int, max_length: int) -> nn.Module | None:
    if positions is None:
        return None
    validate.one_of("positions", positions, POSITIONS)
    return SinusoidalPositions(width) if positions == "sinusoidal" else LearnedPositions(max_length, width)


def _reset(block: nn.Module) -> None:
    """Weights by Glorot's rule and biases zero, as in the original."""
    for values in block.parameters():
        if values.ndim > 1:
            nn.init.xavier_uniform_(values)
    for part in block.modules():
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
