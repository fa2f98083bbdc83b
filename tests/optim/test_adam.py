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


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
@pytest.mark.parametrize("way", [{"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"lr": 0.05, "betas": (0.6, 0.8), "eps": 0.3, "weight_decay": 0.2},
        {"lr": 0.05, "betas": (0.0, 0.5), "maximize": True},
        {"lr": 0.05, "weight_decay": 0.0},
    ],
)
def test_thirty_steps_are_those_of_torch(kind, way, words):
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((3, 2), (4,), ())]
    ours, theirs = ([values.clone().requires_grad_() for values in start] for _ in range(2))
    optimizers = {"Adam": Adam, "AdamW": AdamW}[kind](ours, **words, **way), getattr(torch.optim, kind)(theirs, **words)
    for _ in range(30):
        for mine, yours in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, dtype=torch.float64, generator=generator)
            yours.grad = mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    # Thirty steps of some ten roundings each.
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)
    for name in ("exp_avg", "exp_avg_sq", "step"):  # each can go on with what the other has saved
        mine, yours = ([state[name].double() for state in each.state.values()] for each in optimizers)
        torch.testing.assert_close(mine, yours, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("foreach", [False, True])
def test_a_learning_rate_may_be_a_tensor(foreach):
    theta = [torch.full((2,), 2.0, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    for parameter, lr in zip(theta, (0.25, torch.tensor(0.25, dtype=torch.float64)), strict=True):
        optimizer = AdamW([parameter], lr=lr, weight_decay=0.5, foreach=foreach)
        for _ in range(3):
            parameter.grad = parameter.detach().clone()
            optimizer.step()
    torch.testing.assert_close(theta[0], theta[1], rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("betas", "error", "message"),
    [
        (0.9, TypeError, "betas must be two numbers, got 0.9"),
        ((0.9, 0.99, 0.999), TypeError, r"betas must be two numbers, got \(0.9, 0.99, 0.999\)"),
        ((1.0, 0.9), ValueError, r"betas\[0\] must be"),
        ((0.9, -0.1), ValueError, r"betas\[1\] must be"),
    ],
)
def test_bad_betas_are_named(betas, error, message, unchecked):
    with pytest.raises(error, match=message):
        Adam([torch.zeros(1, requires_grad=True)], betas=betas)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), [(Adam, torch.optim.Adam), (AdamW, torch.optim.AdamW)])
def test_a_learning_rate_in_float32_does_not_round_steps_in_float64(ours, theirs, foreach):
    ends, lr = [], torch.tensor(0.01)
    for kind, rate in ((ours, lr), (theirs, lr.item())):
        w = torch.linspace(-1, 1, 7, dtype=torch.float64).requires_grad_()
        optimizer = kind([w], lr=rate, weight_decay=0.1, foreach=foreach)
        for _ in range(50):
            optimizer.zero_grad()
            (w.sin() * torch.arange(7)).sum().backward()
            optimizer.step()
        ends.append(w.detach())
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-13)  # rounded to float32 they were 2e-8 apart


@pytest.mark.parametrize("way", [{"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize(("ours", "theirs"), [(Adam, torch.optim.Adam), (AdamW, torch.optim.AdamW)])
def test_amsgrad_is_torchs(ours, theirs, way):
    ends = []
    for kind in (ours, theirs):
        w = torch.linspace(-1, 1, 7, dtype=torch.float64).requires_grad_()
        optimizer = kind([w], lr=0.05, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True, **way)
        for step in range(50):
            if step == 25 and kind is ours:  # the state goes there and back
                other = theirs([w], lr=0.05, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True, **way)
                other.load_state_dict(optimizer.state_dict())
                optimizer.load_state_dict(other.state_dict())
            w.grad = (w.detach() * 5).sin() / (1 + step)  # gradients that shrink, where the largest counts
            optimizer.step()
        ends.append(w.detach())
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-13)
