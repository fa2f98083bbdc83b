"""Extragradient: games that descent circles around, and what an optimiser owes its users."""

import math

import pytest
import torch
from torch import nn

from lemmata.optim import Extragradient
from lemmata.testing import check_optimizer


def bilinear(lr, kind=Extragradient):
    x, y = (nn.Parameter(torch.tensor([1.0]).double()) for _ in range(2))
    optimizer = kind([{"params": [x]}, {"params": [y], "maximize": True}], lr=lr)

    def closure():
        optimizer.zero_grad()
        loss = (x * y).sum()
        loss.backward()
        return loss

    return x, y, optimizer, closure


def test_a_step_on_a_bilinear_game_contracts_as_the_formula_says():
    """x' = x - lr (y + lr x), y' = y + lr (x - lr y): by sqrt((1 - lr^2)^2 + lr^2)."""
    lr = 0.3
    x, y, optimizer, closure = bilinear(lr)
    for _ in range(50):
        before = math.hypot(x.item(), y.item())
        assert optimizer.step(closure).shape == ()
        assert math.isclose(math.hypot(x.item(), y.item()) / before, math.hypot(1 - lr**2, lr), rel_tol=1e-12)


def test_descent_and_ascent_spiral_outwards_where_it_converges():
    ends = {}
    for kind in (torch.optim.SGD, Extragradient):
        x, y, optimizer, closure = bilinear(0.3, kind)
        for _ in range(200):
            optimizer.step(closure)
        ends[kind] = math.hypot(x.item(), y.item())
    assert ends[torch.optim.SGD] > 1e3
    assert ends[Extragradient] < 1e-3


def test_on_a_quadratic_it_is_two_terms_of_the_exponential():
    weight = nn.Parameter(torch.tensor([1.0, 1.0]).double())
    curvature, lr = torch.tensor([1.0, 4.0]).double(), 0.1
    optimizer = Extragradient([weight], lr=torch.tensor(lr))

    def closure():
        (curvature * weight**2 / 2).sum().backward()  # gradients of the first pass are forgotten by the step itself

    optimizer.step(closure)
    z = lr * curvature
    torch.testing.assert_close(weight.detach(), 1 - z + z**2, rtol=0, atol=1e-7)


def test_what_is_not_chosen_are_short_steps_downwards():
    assert Extragradient([nn.Parameter(torch.ones(1))]).defaults == {"lr": 1e-2, "maximize": False}


def test_a_failing_second_pass_leaves_the_parameters_where_they_were():
    x, y, optimizer, closure = bilinear(0.3)
    calls = []

    def failing():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return closure()

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(failing)
    assert (x.item(), y.item()) == (1.0, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_dtypes_are_kept(dtype):
    weight = nn.Parameter(torch.ones(3, dtype=dtype))
    optimizer = Extragradient([weight], lr=0.5)
    optimizer.step(lambda: (weight * weight.conj()).real.sum().backward())
    assert weight.dtype == dtype
    assert weight.detach().abs().max() < 1.1


def test_bad_input_is_answered():
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match="lr must be >= 0, got -1"):
        Extragradient([weight], lr=-1.0)
    with pytest.raises(ValueError, match=r"lr must be a number or a tensor without axes, got shape \(1,\)"):
        Extragradient([weight], lr=torch.tensor([0.1]))
    with pytest.raises(ValueError, match="closure must call backward"):
        Extragradient([weight]).step(lambda: None)
    table = nn.Embedding(4, 2, sparse=True)
    with pytest.raises(ValueError, match="dense gradients"):
        Extragradient(table.parameters()).step(lambda: table(torch.tensor([1])).sum().backward())
    with pytest.raises(ValueError, match="dense gradients"):  # in the second group, when the first has moved
        Extragradient([{"params": [weight]}, {"params": table.parameters()}]).step(
            lambda: (weight * table(torch.tensor([1]))).sum().backward()
        )
    assert weight.item() == 1.0


def test_it_conforms():
    check_optimizer(Extragradient, lr=0.05)
