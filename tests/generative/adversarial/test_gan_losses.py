"""Losses of decoder and discriminator: extreme logits, batches of unequal size, and parity with torch."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from lemmata.generative.adversarial.gan_losses import discriminator_loss, minimax_loss, non_saturating_loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_as_torchs_cross_entropy_with_labels(dtype):
    real, fake = torch.randn(40, 1, 3, 3, dtype=dtype), torch.randn(7, 1, dtype=dtype)
    said = functional.binary_cross_entropy_with_logits
    expected = (said(real, torch.ones_like(real)) + said(fake, torch.zeros_like(fake))) / 2
    near: Any = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(discriminator_loss(real, fake), expected, **near)
    torch.testing.assert_close(non_saturating_loss(fake), said(fake, torch.ones_like(fake)), **near)
    torch.testing.assert_close(minimax_loss(fake), -said(fake, torch.zeros_like(fake)), **near)


@pytest.mark.parametrize("loss", [minimax_loss, non_saturating_loss])
def test_no_logit_is_too_large(loss):
    logits = torch.tensor([-1e30, -200.0, 200.0, 1e30], requires_grad=True)
    loss(logits).backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
    assert bool((logits.grad <= 0).all())
    assert torch.isfinite(loss(logits[1:3]))


def test_the_logit_of_what_never_occurs_may_be_infinite():
    assert float(discriminator_loss(torch.tensor([torch.inf]), torch.tensor([-torch.inf]))) == 0


def test_gradients():
    real, fake = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(discriminator_loss, (real, fake))


def test_no_logits_are_refused():
    with pytest.raises(ValueError, match="fake must hold at least one logit"):
        minimax_loss(torch.zeros(0))
