"""Candidates by their shares: what is chosen, by which data, and what is refused."""

import pytest
import torch
from torch import nn

from lemmata.data import Examples
from lemmata.meta import Elementwise, MixedOperation, search_architecture


def waves(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(n, 1, generator=generator)
    return Examples(x=x, y=x.sin())


def mixture():
    return MixedOperation({name: Elementwise(name) for name in ("relu", "sin", "square", "tanh")})


def test_a_mixture_is_the_sum_by_its_shares():
    mixed, x = mixture(), torch.randn(5, 2)
    with torch.no_grad():
        mixed.alpha.copy_(torch.tensor([0.0, 1.0, 2.0, -1.0]))
    parts = [x.relu(), x.sin(), x.square(), x.tanh()]
    wanted = sum(share * part for share, part in zip(mixed.shares.values(), parts, strict=True))
    assert torch.allclose(mixed(x), wanted, atol=1e-6)
    assert sum(mixed.shares.values()) == pytest.approx(1, abs=1e-6)
    assert mixed.choose() == "square"


def test_the_operation_behind_the_data_is_chosen():
    torch.manual_seed(0)
    model = nn.Sequential(MixedOperation({name: Elementwise(name) for name in ("square", "sin")}), nn.Linear(1, 1))
    assert search_architecture(model, waves(64, 0), waves(64, 1), steps=60) == {"0": "sin"}
    assert all(part.grad is None or not part.grad.any() for part in model.parameters())


def test_the_shares_follow_the_validation_data():
    """The training data cannot tell identity from relu; the validation data can."""
    x = torch.rand(32, 1)
    train, validation = Examples(x=x, y=x), Examples(x=-x, y=-x)
    for order in (("identity", "relu"), ("relu", "identity")):
        model = nn.Sequential(MixedOperation({name: Elementwise(name) for name in order}))
        assert search_architecture(model, train, validation, steps=20) == {"0": "identity"}


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    data = waves(8, 0)
    for choose, said in (
        (lambda: Elementwise("cube"), "name must be one of identity, relu, sin, square, tanh, got 'cube'"),
        (lambda: MixedOperation({"a": nn.ReLU()}), "operations must be two or more to choose from, got 1"),
        (lambda: search_architecture(nn.Linear(1, 1), data, data), "model must have a MixedOperation, got none"),
        (lambda: search_architecture(mixture(), data, data, steps=0), "steps must be >= 1, got 0"),
        (lambda: search_architecture(mixture(), data, data, architecture_lr=0.0), "architecture_lr must be > 0"),
        (lambda: search_architecture(mixture(), data, Examples(x=data.x, y=data.y / 0), 2), "lower lr"),
    ):
        with pytest.raises(ValueError, match=said):
            choose()
