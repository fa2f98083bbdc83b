"""The step for one token: it computes what the model does, and leaves models alone that somebody has changed."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from lemmata.transformers.decoding_step import DecodingStep
from lemmata.transformers.generation import generate
from lemmata.transformers.gpt import GPT


def model(dtype=torch.float64, **words: Any):
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2, "max_length": 16} | words
    made = GPT(vocab_size=20, dtype=dtype, **sizes).eval()
    for values in made.parameters():
        values.data.add_(0.2 * torch.randn_like(values))  # biases and norms that matter, and attention that chooses
    return made


def text(batch=3, time=9):
    return torch.randint(20, (batch, time), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"heads": 1, "depth": 1},
        {"heads": 8, "depth": 3, "hidden": 5},
        {"activation": "relu"},
        {"activation": "tanh"},
        {"eps": 0.5},
        {"dropout": 0.5, "attention_dropout": 0.5},
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
@torch.no_grad()
def test_it_computes_what_the_model_does_and_the_caches_grow(words, batch):
    gpt, read = model(**words), text(batch)
    caches = gpt.new_caches()
    gpt(read[:, :5], caches=caches)
    step = DecodingStep(gpt, caches)
    for place in range(5, 9):
        found = step(read[:, place : place + 1])
        torch.testing.assert_close(found, gpt(read[:, : place + 1])[:, -1], rtol=1e-11, atol=1e-12)
        assert [len(cache) for cache in caches] == [place + 1] * len(caches)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
@torch.no_grad()
def test_other_precisions(dtype):
    gpt, read = model(dtype), text()
    caches, exact = gpt.new_caches(), copy.deepcopy(gpt).double()(read)[:, -1]
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled=dtype is not torch.bfloat16):
        gpt(read[:, :8], caches=caches)
        found, by_model = DecodingStep(gpt, caches)(read[:, 8:]), gpt(read)[:, -1]
    assert found.dtype is dtype
    # Both round as often, but not in the same order.
    assert (found - exact).norm() <= 4 * (by_model - exact).norm()


def doubled(layer, given, found):
    return 2 * found


def hooked(gpt):
    gpt.blocks[1].feed_forward.contract.register_forward_hook(doubled)


def hooked_before(gpt):
    gpt.blocks[0].self_attention.register_forward_pre_hook(lambda layer, given: (2 * given[0], *given[1:]))


def replaced(gpt):
    gpt.blocks[0].feed_forward.expand = nn.Sequential(gpt.blocks[0].feed_forward.expand, nn.Tanh())


def parametrized(gpt):
    nn.utils.parametrizations.weight_norm(gpt.blocks[0].self_attention.join)
    gpt.blocks[0].self_attention.join.parametrizations.weight.original0.data.mul_(3)


class Louder(GPT):
    """A model of somebody who writes the forward pass anew."""

    def hidden(self, x, mask=None, caches=None):
        return super().hidden(x, mask, caches) * torch.linspace(-1, 1, self.config.width)


def subclassed(gpt):
    gpt.__class__ = Louder


@pytest.mark.parametrize("change", [hooked, hooked_before, replaced, parametrized, subclassed])
@torch.no_grad()
def test_a_model_that_was_changed_is_called_itself(change):
    gpt = model()
    assert DecodingStep.suited(gpt)
    before, other = generate(gpt, text(), 7, temperature=0), copy.deepcopy(gpt)
    change(other)
    assert not DecodingStep.suited(other)
    found, read = generate(other, text(), 7, temperature=0), text()
    for _ in range(7):
        read = torch.cat([read, other(read)[:, -1].argmax(-1, keepdim=True)], 1)
    assert found.equal(read[:, 9:])
    assert not found.equal(before)  # so that to pass the change over would have been seen
