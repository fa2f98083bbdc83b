"""Attention maps: of every layer by name, without dropout, with masks and memories; the model is left as it was."""

import pytest
import torch
from torch import nn

from lemmata.transformers import GPT, TransformerBlock, attention_maps


def test_maps_of_every_layer_are_the_weights_of_what_it_saw():
    torch.manual_seed(0)
    block = TransformerBlock(8, 2, cross=True, causal=True, attention_dropout=0.5)
    x, memory, present = torch.randn(2, 5, 8), torch.randn(2, 4, 8), torch.arange(4) < torch.tensor([[4], [2]])
    found = attention_maps(block, x, memory=memory, memory_mask=present)
    assert list(found) == ["self_attention", "cross_attention"]
    seen = block.self_attention_norm(x)
    assert torch.equal(found["self_attention"], block.self_attention.weights(seen))
    between = x + block.eval().self_attention(seen)
    expected = block.cross_attention.weights(block.cross_attention_norm(between), memory, present)
    assert torch.allclose(found["cross_attention"], expected, atol=1e-6)
    assert not found["cross_attention"][1, ..., 2:].any()
    assert not any(each.requires_grad for each in found.values())


def test_the_model_is_left_as_it_was():
    block = TransformerBlock(8, 2).train()
    attention_maps(block, torch.randn(1, 3, 8))
    assert block.training
    assert not block.self_attention._forward_pre_hooks
    with pytest.raises(ValueError, match="x must be"):
        attention_maps(block, torch.randn(1, 3, 7))
    assert block.training
    assert not block.self_attention._forward_pre_hooks


def test_a_text_that_was_read_into_caches_is_refused(unchecked):
    model = GPT(9, width=8, depth=1, heads=2, max_length=8)
    caches = model.new_caches()
    model(torch.tensor([[1, 2, 3]]), caches=caches)
    with pytest.raises(ValueError, match="give it the whole text at once"):
        attention_maps(model, torch.tensor([[4, 5]]), caches=caches)


def test_a_model_without_attention_is_named():
    with pytest.raises(ValueError, match="Linear has no SelfAttention or CrossAttention to look at"):
        attention_maps(nn.Linear(2, 2), torch.zeros(1, 2))
