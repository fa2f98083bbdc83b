r"""Encoder and decoder of a transformer: stacks of blocks over vectors that know their positions."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.cross_attention import Remembered
from lemmata.transformers.key_value_cache import KeyValueCache
from lemmata.transformers.positions import LearnedPositions, SinusoidalPositions
from lemmata.transformers.sequence_input import vectors
from lemmata.transformers.torch_layers import block_from_torch, settings_of
from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["TransformerDecoder", "TransformerEncoder", "TransformerStackConfig"]

POSITIONS = ("sinusoidal", "learned")


@dataclass(frozen=True)
class TransformerStackConfig:
    """Configuration of a transformer's encoder, decoder, or both; the defaults are the original base size."""

    width: int = 512
    """Embedding dimension."""
    depth: int = 6
    """Number of blocks."""
    heads: int = 8
    """Attention heads per block."""
    hidden: int | None = None
    """Hidden units of the feed-forward network; four times the width if None."""
    activation: str = "relu"
    """Activation of the feed-forward network."""
    norm_first: bool = True
    """Whether residual branches normalise their input (pre-norm), or blocks their sums, as in the original."""
    positions: Literal["sinusoidal", "learned"] | None = "sinusoidal"
    """Positional encoding that is added to the input, if any."""
    max_length: int = 512
    """Number of learnt positions, and positions that the decoder's caches hold."""
    dropout: float = 0.0
    """Dropout probability of residual branches and of the input."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""
    eps: float = 1e-5
    """Added to the variance by layer normalisation."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "max_length"):
            validate.count(name, getattr(self, name))
        validate.flag("norm_first", self.norm_first)
        if self.positions is not None:
            validate.one_of("positions", self.positions, POSITIONS)
        validate.fraction("dropout", self.dropout)
        validate.fraction("attention_dropout", self.attention_dropout)


class _Stack(nn.Module):
    """What both are: positions, dropout, blocks and, where blocks normalise first, a last normalisation."""

    kind: ClassVar[Mapping[str, bool]] = {}  # of the blocks

    def __init__(
        self,
        width: int = TransformerStackConfig.width,
        depth: int = TransformerStackConfig.depth,
        heads: int = TransformerStackConfig.heads,
        hidden: int | None = TransformerStackConfig.hidden,
        activation: str = TransformerStackConfig.activation,
        norm_first: bool = TransformerStackConfig.norm_first,
        positions: Literal["sinusoidal", "learned"] | None = TransformerStackConfig.positions,
        max_length: int = TransformerStackConfig.max_length,
        dropout: float = TransformerStackConfig.dropout,
        attention_dropout: float = TransformerStackConfig.attention_dropout,
        eps: float = TransformerStackConfig.eps,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(TransformerStackConfig, locals())
        self.width, self.max_length, self.dropout = width, max_length, dropout
        words: dict[str, Any] = {"dropout": dropout, "attention_dropout": attention_dropout, "eps": eps, **self.kind}
        with torch.device(device or torch.get_default_device()):
            self.positions = _position_table(positions, width, max_length)
            self.blocks = nn.ModuleList(
                TransformerBlock(width, heads, hidden, activation, norm_first, **words) for _ in range(depth)
            )
            # Blocks that normalise first leave a sum that nobody has normalised.
            self.norm = nn.LayerNorm(width, eps) if norm_first else None
        self.to(dtype)
        for block in self.blocks:
            _reset_weights(block)

    def _add_positions(self, x: Tensor, start: int = 0) -> Tensor:
        """x and its positions, without a fraction of the values while training."""
        placed = vectors("x", x, self.width) if self.positions is None else self.positions(x, start)
        return functional.dropout(placed, self.dropout, self.training)

    def _final_norm(self, h: Tensor) -> Tensor:
        return h if self.norm is None else self.norm(h)

    @classmethod
    def _of_layers(cls, module: nn.TransformerEncoder | nn.TransformerDecoder) -> Any:
        layers: list[Any] = list(module.layers)
        made = cls(depth=len(layers), positions=None, device="meta", **settings_of(layers[0]))
        causal = isinstance(module, nn.TransformerDecoder)
        # Layer by layer: somebody may have changed the heads, the activation or the hidden units of one of them.
        made.blocks = nn.ModuleList(block_from_torch(layer, causal) for layer in layers)
        made.norm, made.dropout = copy.deepcopy(module.norm), 0.0  # torch leaves the input as it is
        return made.train(module.training)


@system(
    "transformer_encoder",
    title="Transformer encoder",
    kind="module",
    example="TransformerEncoder(width=8, depth=1, heads=2)(torch.randn(4, 7, 8))",
)
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

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        h = self._add_positions(x)
        for block in self.blocks:
            h = block(h, mask)  # (batch, time, width)
        return self._final_norm(h)

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoder) -> "TransformerEncoder":
        """The same encoder with the weights of torch's, which adds no positions."""
        return cls._of_layers(module)


@system(
    "transformer_decoder",
    title="Transformer decoder",
    kind="module",
    example="TransformerDecoder(width=8, depth=1, heads=2)(torch.randn(4, 5, 8), torch.randn(4, 7, 8))",
)
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

    kind = MappingProxyType({"causal": True, "cross": True})

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
        h = self._add_positions(x, 0 if caches is None else len(caches[0]))
        remembered = self.remember(memory) if isinstance(memory, Tensor) else memory
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            h = block(h, None, remembered[number], memory_mask, cache)  # (batch, time, width)
        return self._final_norm(h)

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


def _position_table(positions: str | None, width: int, max_length: int) -> nn.Module | None:
    if positions is None:
        return None
    return SinusoidalPositions(width) if positions == "sinusoidal" else LearnedPositions(max_length, width)


def _reset_weights(block: nn.Module) -> None:
    """Weights by Glorot's rule and biases zero, as in the original."""
    for values in block.parameters():
        if values.ndim > 1:
            nn.init.xavier_uniform_(values)
    for part in block.modules():
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
