"""The bound's parts: shapes, dtypes, limits, agreement with torch's distributions, and what is refused."""

import math

import pytest
import torch
from torch import distributions

from lemmata.generative.autoencoders.elbo import (
    discrete_elbo,
    importance_weighted_bound,
    linear_gaussian_elbo,
    linear_gaussian_gap,
    reparameterize,
    standard_normal_kl,
)


def test_a_draw_is_torchs():
    mean, std = torch.randn(5, 3), torch.rand(5, 3) + 0.1
    torch.manual_seed(0)
    theirs = distributions.Normal(mean, std).rsample((7,))
    torch.manual_seed(0)
    noise = torch.normal(torch.zeros(7, 5, 3), torch.ones(7, 5, 3))
    assert torch.allclose(reparameterize(mean, std, noise), theirs)
    full = reparameterize(mean, torch.diag_embed(std), noise)
    assert torch.allclose(full, theirs, atol=1e-6)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.05)])
def test_both_forms_of_a_divergence_agree(dtype, within):
    mean, std = torch.randn(4, 3).to(dtype), (torch.rand(4, 3) + 0.5).to(dtype)
    plain, full = standard_normal_kl(mean, std), standard_normal_kl(mean, torch.diag_embed(std))
    assert plain.dtype == dtype
    assert torch.allclose(plain, full, rtol=within, atol=within)
    assert torch.autograd.gradcheck(standard_normal_kl, (mean.double().requires_grad_(), std.double().requires_grad_()))


def test_a_state_that_q_leaves_out_counts_nothing():
    terms = discrete_elbo(torch.tensor([-math.inf, -1.0]), torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    assert float(terms.value) == pytest.approx(-1 - math.log(2))
    q = torch.tensor([0.0, 1.0], requires_grad=True)
    discrete_elbo(torch.tensor([-math.inf, -1.0]), torch.tensor([0.5, 0.5]), q).reconstruction.backward()
    assert bool(q.grad.isfinite().all())


def test_more_draws_never_lower_the_bound_and_their_axis_is_the_first():
    log_weights = 2 * torch.randn(4000, 3, 6, dtype=torch.float64)
    means = [importance_weighted_bound(log_weights[:, :k].transpose(0, 1)).mean() for k in (1, 2, 3)]
    assert means[0] < means[1] < means[2] < 2.0  # log E w = 2
    assert importance_weighted_bound(log_weights).shape == (3, 6)
    same = torch.full((50, 2), -7.0)
    assert torch.allclose(importance_weighted_bound(same), torch.full((2,), -7.0))


def test_one_spread_serves_all_examples():
    x, weight, bias = torch.randn(6, 4).double(), torch.randn(4, 2).double(), torch.randn(4).double()
    mean, std = torch.randn(6, 2).double(), torch.rand(1, 2).double() + 0.1
    noise = torch.rand(4).double() + 0.1
    one = linear_gaussian_elbo(x, mean, std, weight, bias, noise)
    many = linear_gaussian_elbo(x, mean, torch.diag_embed(std.expand(6, 2)), weight, bias, noise)
    assert torch.allclose(one.value, many.value)
    assert bool((linear_gaussian_gap(x, mean, std, weight, bias, noise) >= 0).all())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: standard_normal_kl(torch.zeros(4, 3), torch.ones(4, 2)), "scale must be"),
        (lambda: reparameterize(torch.zeros(3), torch.ones(2, 2), torch.zeros(3)), "scale must be"),
        (lambda: discrete_elbo(torch.zeros(3), torch.ones(3) / 3, torch.ones(3)), "must sum to 1"),
        (lambda: importance_weighted_bound(torch.zeros(0, 3)), "at least one draw"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
