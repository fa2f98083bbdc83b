"""Optimisers that are learnt: the unrolled loop against torch's own, and what they refuse."""

import pytest
import torch

from lemmata.meta import LearnedOptimizer, LearnedRates, unroll


def bowls(count=3, size=4):
    """Quadratic problems, each with its own curvature: theta -> losses (count,)."""
    generator = torch.Generator().manual_seed(0)
    curvature = torch.rand(count, size, generator=generator, dtype=torch.float64) + 0.5
    return curvature, lambda theta: 0.5 * (curvature * theta.square()).sum(1)


def test_equal_rates_are_torchs_gradient_descent():
    _, objective = bowls()
    start = torch.ones(3, 4, dtype=torch.float64)
    end, losses = unroll(LearnedRates(4, 0.3).double(), objective, start, 5)
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([theta], lr=0.3)
    for step in range(5):
        assert torch.allclose(losses[step], objective(theta))
        optimizer.zero_grad()
        objective(theta).sum().backward()
        optimizer.step()
    assert torch.allclose(end, theta)
    assert losses.shape == (6, 3)


def test_rates_learn_through_the_steps_what_the_curvature_asks_for():
    curvature, objective = bowls(1)
    rates = LearnedRates(4, 0.1).double()
    optimizer = torch.optim.Adam(rates.parameters(), lr=0.1)
    for _ in range(120):
        optimizer.zero_grad()
        unroll(rates, objective, torch.ones(1, 4, dtype=torch.float64), 1)[1][-1].sum().backward()
        optimizer.step()
    assert torch.allclose(rates.log_rates.exp(), 1 / curvature[0], rtol=1e-2)  # one step of each ends at the minimum


def test_a_network_serves_problems_of_any_size_and_each_alone():
    torch.manual_seed(0)
    network, (_, objective) = LearnedOptimizer().double(), bowls()
    start = torch.ones(3, 4, dtype=torch.float64)
    end, losses = unroll(network, objective, start, 3)
    losses.sum().backward()
    assert all(part.grad is not None and bool(part.grad.isfinite().all()) for part in network.parameters())
    curvature, _ = bowls()
    alone, _ = unroll(network, lambda theta: 0.5 * (curvature[1:2] * theta.square()).sum(1), start[1:2], 3)
    assert torch.allclose(alone, end[1:2])
    assert network(torch.ones(2, 9, dtype=torch.float64))[0].shape == (2, 9)


def test_no_step_is_the_start():
    _, objective = bowls()
    start = torch.ones(3, 4, dtype=torch.float64)
    end, losses = unroll(LearnedRates(4).double(), objective, start, 0)
    assert torch.equal(end, start)
    assert losses.shape == (1, 3)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    for choose, said in (
        (lambda: LearnedRates(0), "parameters must be >= 1, got 0"),
        (lambda: LearnedRates(2, lr=0.0), "lr must be > 0, got 0"),
        (lambda: LearnedRates(2)(torch.ones(1, 3)), r"gradient must be \(batch, ...\) with 2 values each"),
        (lambda: LearnedOptimizer(scale=-1.0), "scale must be > 0, got -1"),
        (
            lambda: LearnedOptimizer()(torch.ones(1, 3), torch.ones(2, 1, 4)),
            "state must be two of the size of gradient",
        ),
        (lambda: unroll(LearnedRates(2), lambda theta: theta.sum(1), torch.ones(1, 2), -1), "steps must be >= 0"),
    ):
        with pytest.raises(ValueError, match=said):
            choose()
