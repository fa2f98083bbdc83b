r"""One more token through a GPT: the forward pass for a single position, without what only many positions need."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata.transformers.gpt import GPT
from lemmata.transformers.key_value_cache import KeyValueCache
from lemmata.transformers.self_attention import SelfAttention
from lemmata.transformers.transformer_block import FeedForward, TransformerBlock, activated

__all__: list[str] = []

OWN_PARTS = (GPT, nn.ModuleList, nn.Embedding, nn.LayerNorm, nn.Linear, TransformerBlock, SelfAttention, FeedForward)


class Affine(NamedTuple):
    """Weight and bias of a layer, looked up once: to ask a module for them takes as long as a small product."""

    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, layer: nn.Linear | nn.LayerNorm) -> "Affine":
        return cls(layer.weight, layer.bias)


class Block(NamedTuple):
    """What a block of a GPT multiplies by, and what it has kept of the past."""

    attention_norm: Affine
    project: Affine
    cache: KeyValueCache
    join: Affine
    feed_forward_norm: Affine
    expand: Affine
    contract: Affine


class DecodingStep:
    r"""The logits of what follows one more token, as the model itself computes them, in half the time on a processor.

    A small model takes longer to be called, part by part, than to compute. Here all parts of a step stand one after
    another. A model that somebody has changed (other layers in place of ours, hooks) is not `suited`: it must be
    called itself.

    Shapes:
        token: (batch, 1), which comes after what `caches` hold; they grow by it    returns: (batch, vocab_size)

    >>> model = GPT(vocab_size=65, width=32, depth=2, heads=4, max_length=64).eval()
    >>> text, caches = torch.randint(65, (3, 10)), model.new_caches()
    >>> with torch.no_grad():
    ...     _ = model(text[:, :9], caches=caches)
    ...     DecodingStep(model, caches)(text[:, 9:]).allclose(model(text)[:, -1], atol=1e-5)
    True
    """

    def __init__(self, model: GPT, caches: Sequence[KeyValueCache]) -> None:
        self.config, self.caches = model.config, caches
        self.tokens, self.positions, self.norm = model.tokens.weight, model.positions.weight, Affine.of(model.norm)
        self.blocks: list[Block] = []
        for block, cache in zip(model.blocks, caches, strict=True):
            assert isinstance(block, TransformerBlock)
            attention, network = block.self_attention, block.feed_forward
            layers = (block.self_attention_norm, attention.project, attention.join)
            layers += (block.feed_forward_norm, network.expand, network.contract)
            attention_norm, project, join, *others = map(Affine.of, layers)
            self.blocks.append(Block(attention_norm, project, cache, join, *others))

    @staticmethod
    def suited(model: GPT) -> bool:
        """Whether the model consists of our layers alone, and nobody listens to them."""
        return all(
            type(part) in OWN_PARTS and not part._forward_hooks and not part._forward_pre_hooks
            for part in model.modules()
        )

    def __call__(self, token: Int[Tensor, "batch 1"]) -> Float[Tensor, "batch vocab_size"]:
        heads, activation, batch = self.config.heads, self.config.activation, len(token)
        x = functional.embedding(token[:, 0], self.tokens) + self.positions[self.caches[0].start]  # (batch, width)
        for block in self.blocks:
            parts = functional.linear(self._normed_states(x, block.attention_norm), *block.project)
            query, key, value = parts.view(batch, 3, heads, 1, -1).unbind(1)  # each (batch, heads, 1, head_width)
            # The last position may look at all others, so that there is no mask.
            found = functional.scaled_dot_product_attention(query, *block.cache.append(key, value))
            x = x + functional.linear(found.reshape(batch, -1), *block.join)
            inside = activated(
                activation, functional.linear(self._normed_states(x, block.feed_forward_norm), *block.expand)
            )
            x = x + functional.linear(inside, *block.contract)  # (batch, width)
        return functional.linear(self._normed_states(x, self.norm), self.tokens)  # (batch, vocab_size)

    def _normed_states(self, x: Float[Tensor, "batch width"], norm: Affine) -> Float[Tensor, "batch width"]:
        return torch.layer_norm(x, x.shape[-1:], *norm, self.config.eps)
