"""Linearised networks: both solvers, ridge, time, several outputs, states, what is refused."""

import math

import pytest
import torch
from torch import nn

from lemmata.kernel import LinearizedNetwork, linearize
from lemmata.transformers.gpt import GPT


def network(outputs=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, outputs)).double()


def data(n=5, outputs=2):
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(n, k, generator=generator, dtype=torch.float64) for k in (3, outputs))


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_both_solvers_find_the_same(ridge):
    x, y = data()
    dual, primal = (linearize(network()).fit(x, y, ridge, solver) for solver in ("dual", "primal"))
    new = x.flip(1) + 0.3
    for time in (0.0, 0.1, 3.0, math.inf):
        assert torch.allclose(dual.at(time)(new), primal.at(time)(new), atol=1e-8)


def test_more_data_than_parameters_are_fitted_in_the_mean():
    x, y = data(60, 1)
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1)).double()
    dual, primal = (linearize(model).fit(x, y, solver=solver) for solver in ("dual", "primal"))
    assert torch.allclose(dual(x), primal(x), atol=1e-6)
    assert float((dual(x) - y).norm()) > 0.1


def test_the_model_may_be_trained_on():
    model, (x, _) = network(), data()
    linear = linearize(model)
    before = linear(x)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    assert linear(x).equal(before)


def test_states_are_those_of_the_network():
    model, (x, y) = network(), data()
    fitted = linearize(model).fit(x, 1e-4 * y + model(x).detach())
    moved = network()
    moved.load_state_dict(fitted.state_dict())
    assert torch.allclose(moved(x), fitted(x), atol=1e-6)  # a small step: the tangent is the network
    assert not torch.allclose(moved(x), model(x), atol=1e-6)


def test_attention_has_a_tangent():
    torch.manual_seed(0)
    model, x = GPT(vocab_size=5, depth=1, width=8, heads=2, max_length=4).double().eval(), torch.randint(0, 5, (2, 4))
    linear = linearize(model)
    step = {name: 1e-5 * torch.randn_like(p) for name, p in linear.start_.items()}
    with torch.no_grad():
        before = model(x)
        for name, p in model.named_parameters():
            p.add_(step[name])
        assert float((linear.along(step)(x) - model(x)).norm()) < 1e-3 * float((model(x) - before).norm())


def test_bad_input_is_answered_in_a_sentence():
    x, y = data()
    linear = LinearizedNetwork(network())
    with pytest.raises(RuntimeError, match=r"call fit\(x, y\) first"):
        linear.at(1.0)
    with pytest.raises(ValueError, match="y must be a"):
        linear.fit(x, y[:, :1])
    with pytest.raises(ValueError, match="y must be finite"):
        linear.fit(x, y * torch.nan)
    with pytest.raises(ValueError, match="solver must be one of"):
        linear.fit(x, y, solver="both")
    with pytest.raises(ValueError, match="time must be >= 0"):
        linear.fit(x, y).at(-1.0)
    with pytest.raises(ValueError, match="got 'bias'"):
        linear.along({"bias": torch.ones(2)})
    with pytest.raises(ValueError, match="requires_grad_"):
        linearize(nn.Tanh())
    with pytest.raises(ValueError, match="model must take one input, got 2, input1 and input2"):
        linearize(nn.Bilinear(2, 2, 1))
