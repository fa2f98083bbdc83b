"""The gradient penalty: norms of each example, between the two kinds, and what it refuses."""

import pytest
import torch
from torch import nn

from lemmata.generative.adversarial.slope_penalty import gradient_norms, gradient_penalty


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_quadratic_critic_has_the_slope_of_where_it_is_asked(dtype):
    real, fake = torch.zeros(50, 2, 3, 3, dtype=dtype), torch.ones(50, 2, 3, 3, dtype=dtype)
    norms = gradient_norms(lambda x: x.square().flatten(1).sum(1) / 2, real, fake, generator=torch.Generator())
    assert norms.dtype == dtype
    assert 0 <= float(norms.detach().min()) < 0.5 < float(norms.detach().std() * 5)
    assert float(norms.detach().max()) <= 18**0.5


def test_the_same_generator_asks_at_the_same_points():
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(2, 6, 4)
    first, second = (gradient_penalty(critic, *x, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, gradient_penalty(critic, *x, generator=torch.Generator().manual_seed(2)))


def test_a_flat_critic_sends_a_gradient_that_is_a_number():
    critic = nn.Linear(4, 1)
    nn.init.zeros_(critic.weight)
    gradient_penalty(critic, torch.randn(5, 4), torch.randn(5, 4)).backward()
    assert critic.weight.grad is not None
    assert bool(critic.weight.grad.isfinite().all())


def test_second_derivatives():
    critic = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    real, fake = torch.randn(2, 4, 3, dtype=torch.float64)

    def penalty(weight):
        named = {"0.weight": weight}
        return gradient_penalty(
            lambda x: torch.func.functional_call(critic, named, x),
            real,
            fake,
            generator=torch.Generator().manual_seed(0),
        )

    first = next(critic.parameters())
    assert torch.autograd.gradcheck(penalty, first.detach().clone().requires_grad_())


def test_r1_is_the_penalty_of_real_examples_with_target_zero():
    critic = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    expected = critic.weight.square().sum()
    torch.testing.assert_close(gradient_penalty(critic, x, x, target=0.0), expected)


@pytest.mark.parametrize(("a", "b"), [((3, 2), (3, 5)), ((3,), (3,)), ((0, 2), (0, 2))])
def test_batches_that_do_not_match_are_refused(a, b):
    with pytest.raises(ValueError, match="real and fake must be"):
        gradient_norms(lambda x: x.sum(1), torch.zeros(a), torch.zeros(b))
