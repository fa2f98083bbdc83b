"""What the claims about information do not say: bad input, dtypes, gradients at zero, parity with torch and scipy."""

import math

import pytest
import torch
from scipy import stats
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

from lemmata.foundations import (
    cross_entropy,
    entropy,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    total_variation,
)

P, Q = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5])
PAIRS = [cross_entropy, kl_divergence, jensen_shannon, total_variation]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_floating_dtype_is_kept(dtype):
    for function in PAIRS:
        assert function(P.to(dtype), Q.to(dtype)).dtype is dtype
    assert entropy(P.to(dtype)).dtype is dtype
    assert mutual_information(torch.full((2, 2), 0.25, dtype=dtype)).dtype is dtype


def test_one_law_and_any_batch_of_them_are_taken():
    for function in PAIRS:
        assert function(P, Q).shape == ()
        assert function(P.expand(4, 1, 3), Q.expand(5, 3)).shape == (4, 5)
    assert mutual_information(torch.full((7, 2, 2), 0.25)).shape == (7,)


def test_values_are_those_of_torch_and_scipy():
    p, q = torch.randn(2, 10, 6, dtype=torch.float64).softmax(-1)
    torch.testing.assert_close(entropy(p), Categorical(probs=p).entropy())
    torch.testing.assert_close(kl_divergence(p, q), torch_kl(Categorical(probs=p), Categorical(probs=q)))
    torch.testing.assert_close(kl_divergence(p, q), torch.tensor(stats.entropy(p, q, axis=-1)))


@pytest.mark.parametrize("function", PAIRS[:3])
def test_gradients_pass_gradcheck_inside_the_simplex(function):
    logits = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: function(z[0].softmax(-1), z[1].softmax(-1)), logits)


@pytest.mark.parametrize("function", PAIRS[:3])
def test_a_probability_of_zero_gives_a_finite_gradient(function):
    p, q = P.clone().requires_grad_(), Q.clone().requires_grad_()
    function(p, q).backward()
    assert p.grad is not None
    assert q.grad is not None
    assert p.grad.isfinite().all()
    assert q.grad.isfinite().all()
    p.grad = None
    entropy(p).backward()
    assert p.grad.isfinite().all()


def test_softmax_that_underflows_still_has_an_entropy_and_a_gradient():
    logits = torch.tensor([0.0, -500.0], requires_grad=True)
    value = entropy(logits.softmax(-1))
    value.backward()
    assert value == 0
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_certainty_has_positive_zero_entropy():
    assert math.copysign(1, entropy(torch.tensor([1.0, 0.0]))) == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: entropy(2 * P),
            ValueError,
            r"p must sum to 1 over its axis -1, got 2: use p / p.sum\(-1, keepdim=True\)",
        ),
        (lambda: entropy(torch.tensor([1.5, -0.5])), ValueError, "p must hold probabilities, got -0.5"),
        (lambda: entropy(P * math.nan), ValueError, "p must be finite"),
        (lambda: entropy(torch.ones(0)), ValueError, "p must not be empty"),
        (lambda: entropy(torch.tensor(1.0)), ValueError, "p must have at least 1 axis, got shape"),
        (lambda: entropy([1.0]), TypeError, "p must be a tensor, got list"),
        (lambda: kl_divergence(P, Q / 2), ValueError, "q must sum to 1"),
        (
            lambda: kl_divergence(P, torch.tensor([0.5, 0.5])),
            ValueError,
            "p and q must be over the same outcomes, got 3 and 2",
        ),
        (lambda: jensen_shannon(P.long(), Q), TypeError, "p must be floating point"),
        (
            lambda: mutual_information(torch.ones(2, 2)),
            ValueError,
            r"joint must sum to 1 over its axes \(-2, -1\), got 4",
        ),
        (lambda: mutual_information(P), ValueError, "joint must have at least 2 axes"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_gradient_of_the_divergence_in_logits_is_a_difference():
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(5, generator=generator).double().softmax(-1)
    logits = torch.randn(5, generator=generator).double().requires_grad_()
    (slope,) = torch.autograd.grad(kl_divergence(p, logits.softmax(-1)), logits)
    torch.testing.assert_close(slope, logits.detach().softmax(-1) - p)


@pytest.mark.parametrize("function", PAIRS)
def test_batches_broadcast_entry_by_entry(function):
    p, q = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    one_by_one = torch.stack([function(p, row) for row in q], 1)
    torch.testing.assert_close(function(p[:, None], q), one_by_one)


def test_mutual_information_is_what_the_entropies_of_the_margins_count_twice():
    table = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)).double()
    table = table / table.sum()
    twice = entropy(table.sum(0)) + entropy(table.sum(1)) - entropy(table.flatten())
    torch.testing.assert_close(mutual_information(table), twice)
