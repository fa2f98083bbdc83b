"""Momentum while the learning rate changes, and the options of torch that are offered or answered with a sentence."""

import pytest
import torch

from lemmata.optim import GradientDescent, HeavyBall, RMSprop


@pytest.mark.parametrize("foreach", [False, True])
def test_a_heavy_ball_keeps_its_displacement_when_the_lr_changes(foreach):
    """By the formula in iterates alone, which knows of no velocity."""
    w, rates, path = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True), [0.2, 0.05, 0.3, 0.0, 0.1], []
    optimizer = HeavyBall([w], lr=1.0, momentum=0.5, foreach=foreach)
    for lr in rates:
        path.append(w.detach().clone())
        optimizer.param_groups[0]["lr"] = lr
        w.grad = 3 * w.detach()
        optimizer.step()
    path.append(w.detach().clone())
    before = path[0]
    for lr, now, after in zip(rates, path, path[1:], strict=False):
        torch.testing.assert_close(after, now - lr * 3 * now + 0.5 * (now - before))
        before = now


@pytest.mark.parametrize("way", [{"foreach": False}, {"foreach": True}, {"fused": True}])
def test_nesterov_in_gradient_descent_is_torchs(way):
    ends = []
    for kind in (GradientDescent, torch.optim.SGD):
        w = torch.linspace(-1, 1, 7, dtype=torch.float64).requires_grad_()
        optimizer = kind([w], lr=0.05, momentum=0.9, weight_decay=0.1, nesterov=True, **way)
        for step in range(50):
            optimizer.param_groups[0]["lr"] = 0.05 / (1 + step)
            w.grad = (w.detach() * 5).sin()
            optimizer.step()
        ends.append(w.detach())
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-13)


def test_options_of_torch_that_are_not_offered_name_what_is():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"dampening must be 0, got 0\.5: use torch\.optim\.SGD"):
        GradientDescent([w], momentum=0.9, dampening=0.5)
    with pytest.raises(ValueError, match=r"nesterov needs momentum > 0, got 0\.0: use momentum=0\.9"):
        GradientDescent([w], nesterov=True)
    with pytest.raises(ValueError, match=r"centered must be False: use torch\.optim\.RMSprop"):
        RMSprop([w], centered=True)
