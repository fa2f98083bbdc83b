"""Adam's corrections for the start at zero: numbers, tensors in float32, and what a compiled step needs of them."""

import math

import pytest
import torch

from lemmata.optim import Adam, AdamW
from lemmata.optim.adam import correction


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.999, 0.9999])
@pytest.mark.parametrize("t", [1, 2, 1000])
def test_corrections_keep_their_digits_in_float32(beta, t):
    exact = -math.expm1(t * math.log(beta)) if beta else 1.0
    assert correction(beta, t) == pytest.approx(exact, rel=1e-12)
    found = correction(beta, torch.tensor(float(t)))
    assert found.dtype == torch.float32
    # A few roundings; 1 - beta ** t itself would lose four digits of seven.
    assert found.item() == pytest.approx(exact, rel=4 * torch.finfo(torch.float32).eps)


@pytest.mark.parametrize("foreach", [False, True])
def test_parameters_that_join_later_count_their_own_steps(foreach):
    """One parameter has a gradient from the third step on: its first step is as long as the other's was."""
    early, late = (torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimizer = Adam([early, late], lr=0.1, eps=0.0, foreach=foreach)
    for step in range(4):
        early.grad = torch.ones_like(early)
        late.grad = torch.full_like(late, -5.0) if step >= 2 else None
        optimizer.step()
    assert early.item() == pytest.approx(-0.4)
    assert late.item() == pytest.approx(0.2)
    assert [optimizer.state[p]["step"].item() for p in (early, late)] == [4, 2]


def test_the_decay_of_adamw_is_not_divided_by_gradients():
    theta = [torch.full((2,), 2.0, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    plain, decoupled = Adam(theta[:1], lr=0.1, weight_decay=0.5), AdamW(theta[1:], lr=0.1, weight_decay=0.5)
    for parameter in theta:
        parameter.grad = torch.tensor([1e-6, 1e6], dtype=torch.float64)
    plain.step()
    decoupled.step()
    torch.testing.assert_close(theta[0].detach(), torch.full((2,), 1.9, dtype=torch.float64), rtol=0, atol=1e-6)
    shrunk = 2.0 * (1 - 0.1 * 0.5) - 0.1
    torch.testing.assert_close(theta[1].detach(), torch.full((2,), shrunk, dtype=torch.float64), rtol=0, atol=2e-3)
