"""The gradient noise scale: the covariance of single examples, unbiased for larger batches, bad input."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.gradient_noise import gradient_noise_scale


def problem(examples=24):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    return model, torch.randn(examples, 4).double(), torch.randn(examples, 2).double()


def single_gradients(model, x, y):
    rows = []
    for k in range(len(x)):
        values = torch.autograd.grad(functional.mse_loss(model(x[k : k + 1]), y[k : k + 1]), list(model.parameters()))
        rows.append(torch.cat([v.flatten() for v in values]))
    return torch.stack(rows)


def test_from_single_examples_it_is_the_trace_of_their_covariance():
    model, x, y = problem()
    rows = single_gradients(model, x, y)
    found = gradient_noise_scale(model, functional.mse_loss, list(zip(x.split(1), y.split(1), strict=True)))
    variance = torch.cov(rows.mT).trace().item()
    assert found.variance == pytest.approx(variance)
    assert found.gradient_square == pytest.approx(rows.mean(0).square().sum().item() - variance / len(x))
    assert found.scale == pytest.approx(found.variance / found.gradient_square)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("size", [2, 4])
def test_from_batches_it_is_right_in_the_mean(size):
    """Over all ways to deal the examples out, which is drawing without replacement from these."""
    model, x, y = problem(8)
    rows = single_gradients(model, x, y)
    generator, found = torch.Generator().manual_seed(0), []
    for _ in range(300):
        order = torch.randperm(8, generator=generator)
        batches = list(zip(x[order].split(size), y[order].split(size), strict=True))
        found.append(gradient_noise_scale(model, functional.mse_loss, batches))
    variances = torch.tensor([one.variance for one in found])
    expected = torch.cov(rows.mT).trace().item()
    error = variances.std().item() / math.sqrt(len(found))
    assert abs(variances.mean().item() - expected) <= 6.2 * error


def test_batches_that_do_not_tell_the_gradient_from_nothing():
    model, x = nn.Linear(1, 1, bias=False), torch.ones(1, 1)
    found = gradient_noise_scale(model, lambda f, y: (f * y).mean(), [(x, x), (x, -x)])
    assert found.scale == math.inf
    assert found.gradient_square < 0


def test_the_counts_of_batch_normalisation_stay_as_they_were():
    model, x, y = problem()
    model.insert(1, nn.BatchNorm1d(5).double())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradient_noise_scale(model, functional.mse_loss, list(zip(x.split(4), y.split(4), strict=True)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_bad_batches_are_answered_in_words():
    model, x, y = problem(5)
    for batches in ([(x, y)], [], list(zip(x.split(2), y.split(2), strict=True))):
        with pytest.raises(ValueError, match="batches must be at least two of one size"):
            gradient_noise_scale(model, functional.mse_loss, batches)
    with pytest.raises(ValueError, match="model must have parameters that require gradients"):
        gradient_noise_scale(model.requires_grad_(False), functional.mse_loss, [(x, y), (x, y)])
