"""What the claims about information do not say: bad input, dtypes, gradients at zero, parity with torch and scipy."""

import math

import pytest
import torch
from scipy import stats
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

from lemmata.foundations import (
    change_of_measure_bound,
    conditional_entropy,
    cross_entropy,
    empirical_distribution,
    empirical_joint,
    entropy,
    gibbs_distribution,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    sampled_entropy,
    sampled_kl,
    surprisal,
    total_variation,
)

P, Q = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5])
PAIRS = [cross_entropy, kl_divergence, jensen_shannon, total_variation]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_floating_dtype_is_kept(dtype):
    for function in PAIRS:
        assert function(P.to(dtype), Q.to(dtype)).dtype is dtype
    assert entropy(P.to(dtype)).dtype is surprisal(Q.to(dtype)).dtype is dtype
    assert mutual_information(torch.full((2, 2), 0.25, dtype=dtype)).dtype is dtype


def test_one_law_and_any_batch_of_them_are_taken():
    for function in PAIRS:
        assert function(P, Q).shape == ()
        assert function(P.expand(4, 1, 3), Q.expand(5, 3)).shape == (4, 5)
    assert (
        mutual_information(torch.full((7, 2, 2), 0.25)).shape
        == conditional_entropy(torch.full((7, 2, 2), 0.25)).shape
        == (7,)
    )


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
    assert math.copysign(1, surprisal(torch.tensor(1.0))) == 1


def test_sampled_divergence_estimates_with_an_error():
    p, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0)
    x = p.sample((4000, 2))
    found = sampled_kl(p.log_prob(x), q.log_prob(x))
    assert found.value.shape == found.standard_error.shape == (2,)
    assert ((found.value - 0.5).abs() < 5 * found.standard_error).all()


def test_labels_may_be_any_integers_and_batched():
    labels = torch.tensor([[0, 1, 1], [2, 2, 2]], dtype=torch.int32)
    assert empirical_distribution(labels, 3, torch.float32).dtype is torch.float32
    assert sampled_entropy(labels, 3).shape == (2,)
    assert empirical_joint(labels, labels, (3, 3)).diagonal(dim1=-2, dim2=-1).equal(empirical_distribution(labels, 3))
    assert mutual_information(empirical_joint(labels, labels, (3, 3)))[1] == 0


def test_sampled_entropy_is_corrected_by_half_the_outcomes_seen_per_sample():
    labels = torch.randint(0, 5, (3, 40), generator=torch.Generator().manual_seed(0))
    share = torch.stack([(labels == label).double().mean(-1) for label in range(7)], -1)  # two of them never seen
    seen = torch.tensor([len(set(row)) for row in labels.tolist()])
    assert empirical_distribution(labels, 7).equal(share)
    assert empirical_distribution(labels[0], 7).equal(share[0])
    torch.testing.assert_close(sampled_entropy(labels, 7), entropy(share) + (seen - 1) / 80)
    assert sampled_entropy(labels[0], 7).equal(sampled_entropy(labels, 7)[0])
    assert sampled_entropy(labels, 7, corrected=False).equal(entropy(share))


def test_the_correction_takes_most_of_the_bias_of_a_coin():
    heads = torch.arange(21)
    tosses = (torch.arange(20) < heads[:, None]).long()  # one sample for each number of heads
    chance = torch.tensor(stats.binom.pmf(heads.numpy(), 20, 0.3))
    true = entropy(torch.tensor([0.3, 0.7], dtype=torch.float64))
    plain, corrected = (
        abs(float((chance * sampled_entropy(tosses, 2, corrected=on)).sum() - true)) for on in (False, True)
    )
    assert plain > 0.02
    assert 10 * corrected < plain


def test_tilting_by_a_constant_changes_nothing():
    torch.testing.assert_close(gibbs_distribution(Q, torch.full((3,), 7.0)), Q)
    assert gibbs_distribution(P, torch.tensor([0.0, 0.0, 1e30])).tolist() == [0.5, 0.5, 0.0]


LABELS = torch.tensor([0, 1, 2])


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
        (lambda: surprisal(torch.tensor([1.5])), ValueError, "p must lie between 0 and 1, got 1.5"),
        (
            lambda: mutual_information(torch.ones(2, 2)),
            ValueError,
            r"joint must sum to 1 over its axes \(-2, -1\), got 4",
        ),
        (lambda: mutual_information(P), ValueError, "joint must have at least 2 axes"),
        (lambda: conditional_entropy(P), ValueError, "joint must have at least 2 axes"),
        (
            lambda: empirical_distribution(LABELS, 2),
            ValueError,
            "labels must lie from 0 to 1, got 0 to 2: raise the number of classes",
        ),
        (lambda: empirical_distribution(LABELS - 1, 3), ValueError, "labels must lie from 0 to 2, got -1 to 1"),
        (lambda: empirical_distribution(LABELS.float(), 3), TypeError, "labels must be a tensor of whole numbers"),
        (lambda: empirical_distribution([0], 3), TypeError, "labels must be a tensor of whole numbers, got list"),
        (lambda: empirical_distribution(LABELS[:0], 3), ValueError, "labels must hold at least one sample"),
        (lambda: empirical_distribution(LABELS, 0), ValueError, "classes must be >= 1"),
        (lambda: empirical_joint(LABELS, LABELS[:2], (3, 3)), ValueError, "x and y must be paired"),
        (lambda: empirical_joint(LABELS, LABELS, (3, 2)), ValueError, "y must lie from 0 to 1"),
        (lambda: sampled_entropy(LABELS, 3, corrected=1), TypeError, "corrected must be True or False"),
        (lambda: sampled_kl(torch.zeros(1), torch.zeros(1)), ValueError, "log_p must hold two samples or more"),
        (lambda: sampled_kl(torch.zeros(2), torch.zeros(3)), ValueError, "log_p and log_q must be"),
        (
            lambda: sampled_kl(torch.zeros(2), torch.tensor([0.0, math.nan])),
            ValueError,
            "log_q must hold log-densities",
        ),
        (
            lambda: change_of_measure_bound(P, Q, torch.zeros(2)),
            ValueError,
            "x must hold one number for each of 3 outcomes",
        ),
        (lambda: gibbs_distribution(P, torch.tensor([math.inf, 0.0, 0.0])), ValueError, "x must be finite"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_samples_in_the_proportions_of_a_distribution_have_its_entropy():
    counts = torch.tensor([1, 2, 5, 8, 0, 0])  # two outcomes never occur
    drawn = torch.repeat_interleave(torch.arange(6), counts)
    assert torch.equal(empirical_distribution(drawn, 6), counts.double() / 16)
    found = sampled_entropy(drawn, 6, corrected=False)
    torch.testing.assert_close(found, surprisal(counts.double() / 16)[drawn].mean())


def test_samples_in_the_proportions_of_p_have_its_divergence():
    p, q = torch.tensor([5.0, 2.0, 1.0]).double() / 8, torch.tensor([0.25, 0.25, 0.5]).double()
    drawn = torch.tensor([0] * 5 + [1] * 2 + [2])
    found, ratios = sampled_kl(p.log()[drawn], q.log()[drawn]), (p / q).log()[drawn]
    torch.testing.assert_close(found.value, kl_divergence(p, q))
    torch.testing.assert_close(found.standard_error, ratios.std() / math.sqrt(8))
    assert sampled_kl(torch.zeros(2).double(), torch.tensor([0.0, -math.inf]).double()).value == math.inf


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


def test_conditional_entropy_is_the_mean_over_the_conditions():
    table = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)).double()
    table = table / table.sum()
    columns = entropy((table / table.sum(0)).mT)
    torch.testing.assert_close(conditional_entropy(table), (table.sum(0) * columns).sum())
    joint = entropy(table.sum(0)) + entropy(table.sum(1)) - entropy(table.flatten())
    torch.testing.assert_close(mutual_information(table), joint)


def test_pairs_are_counted_into_tables():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(0, size, (5, 400), generator=generator) for size in (3, 4))
    counted = torch.stack([((x == i) & (y == j)).double().mean(-1) for i in range(3) for j in range(4)], -1)
    torch.testing.assert_close(empirical_joint(x, y, (3, 4)).flatten(1), counted)
    torch.testing.assert_close(empirical_joint(x[0], y[0], (3, 4)).flatten(), counted[0])


def test_exponentials_that_overflow_or_vanish_are_measured():
    p, q, x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0)).double()
    p, q = p.softmax(-1), q.softmax(-1)
    shifted = change_of_measure_bound(q, p, torch.stack([x + 800, x - 800])) - change_of_measure_bound(q, p, x)
    torch.testing.assert_close(shifted, torch.tensor([800.0, -800.0]).double())
    torch.testing.assert_close(gibbs_distribution(p, (q / p).log()), q)


def test_what_an_impossible_outcome_would_give_does_not_matter():
    p, x = torch.tensor([[0.5, 0.5, 0.0], [3.0, 3.0, 1e4]], dtype=torch.float64)
    assert torch.equal(gibbs_distribution(p, x), p)
    assert float(change_of_measure_bound(p, p, x)) == 3.0
    one, other = torch.eye(2, dtype=torch.float64)
    assert change_of_measure_bound(one, other, x[:2]) == math.inf
