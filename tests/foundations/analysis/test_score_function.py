"""The score and the gradients it gives: estimates from samples, dtypes, bad input."""

import pytest
import torch

from lemmata.foundations.analysis.score_function import density_gradient, expectation_gradient, score_of


def law(logits):
    return logits.log_softmax(-1)


THETA = torch.tensor([0.2, -0.4, 1.0], dtype=torch.float64)


def test_an_estimate_from_samples_comes_near_the_exact_gradient():
    values = torch.tensor([1.0, 5.0, -2.0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(THETA.softmax(-1), 20_000, replacement=True, generator=generator)
    found = expectation_gradient(values[labels], lambda t: law(t)[labels], THETA, sampled=True)
    assert torch.allclose(found, expectation_gradient(values, law, THETA), atol=0.1)


def test_samples_in_exact_proportion_give_the_expectation_itself():
    counts = torch.tensor([1, 2, 3, 4, 6])
    labels, theta = torch.repeat_interleave(torch.arange(5), counts), torch.log(counts.double() / 16)
    values = torch.tensor([1.0, 5.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    exact = expectation_gradient(values, law, theta)
    sampled = expectation_gradient(values[labels], lambda t: law(t)[labels], theta, sampled=True)
    torch.testing.assert_close(sampled, exact, rtol=0.0, atol=1e-13)
    baseline = expectation_gradient(values + 3, law, theta)  # a constant changes nothing
    torch.testing.assert_close(baseline, exact, rtol=0.0, atol=1e-13)


def test_scores_have_mean_zero():
    density = law(THETA).exp()
    assert (density[:, None] * score_of(law, THETA)).sum(0).abs().max() < 1e-15


def test_the_dtype_and_the_shape_of_the_parameters_are_kept():
    theta = torch.zeros(2, 2)
    found = density_gradient(lambda t: law(t.flatten()), theta)
    assert (found.shape, found.dtype) == ((4, 2, 2), torch.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: score_of(lambda t: law(t).sum(), THETA), ValueError, r"one number for each point, got shape \(\)"),
        (lambda: expectation_gradient(torch.ones(2).double(), law, THETA), ValueError, "each of the 3 points, got 2"),
        (lambda: expectation_gradient(torch.ones(3) / 0, law, THETA), ValueError, "values must be finite"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
