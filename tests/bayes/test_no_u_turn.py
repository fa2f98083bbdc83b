"""Trajectories end where they turn back, and not before; what is drawn from them is in the target."""

import math

import pytest
import torch

from lemmata.bayes import NoUTurn, sample


def round_density(x):
    return -x.square().sum(1) / 2


def test_a_trajectory_ends_within_one_doubling_of_half_an_orbit():
    step = 0.01
    kernel = NoUTurn(round_density, step=step)
    # In many dimensions position and momentum are almost orthogonal and of one length: orbits are circles.
    state = kernel.init(torch.randn(1, 1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        state, transition = kernel.step(state, generator)
        # The ends of an arc of a circle approach each other after half a turn; doublings overshoot by a factor 2.
        assert math.pi < step * (transition.gradients + 1) < 2 * math.pi


def turned_by_recursion(kernel, momenta):
    """Whether a balanced tree of these momenta, or one of its subtrees, turned back."""
    if len(momenta) == 1:
        return False
    half = len(momenta) // 2
    total = torch.stack(momenta).sum(0)
    whole = bool(kernel._turned_back(momenta[0], momenta[-1], total))
    return whole or turned_by_recursion(kernel, momenta[:half]) or turned_by_recursion(kernel, momenta[half:])


@pytest.mark.parametrize("mass", [None, torch.tensor([0.5, 4.0], dtype=torch.float64)], ids=["round", "long"])
def test_the_subtrees_looked_at_are_those_of_the_recursion(mass):
    kernel = NoUTurn(round_density, mass=mass)
    generator = torch.Generator().manual_seed(2)
    answers = set()
    for _ in range(60):
        angles = torch.linspace(0, 1, 16) * 3.0 + 0.3 * torch.randn(16, generator=generator)
        momenta = [torch.tensor([[math.cos(a), math.sin(a)]], dtype=torch.float64) for a in angles.tolist()]
        openings, total, turned = {}, torch.zeros(1, 2, dtype=torch.float64), False
        for leaf, momentum in enumerate(momenta):
            if leaf % 2 == 0:
                openings[leaf] = momentum, total
            total = total + momentum
            turned = bool(kernel._any_part_turned(openings, leaf, momentum, total)) or turned
        assert turned == turned_by_recursion(kernel, momenta)
        assert len(openings) <= 1
        answers.add(turned)
    assert answers == {True, False}


def test_a_transition_takes_no_more_gradients_than_its_depth_allows():
    kernel = NoUTurn(round_density, step=1e-4, depth=3)
    state = kernel.init(torch.ones(5, 2))
    _, transition = kernel.step(state, torch.Generator().manual_seed(0))
    assert transition.gradients == 7
    assert not transition.divergent.any()


def test_a_step_that_is_too_long_diverges_and_stays():
    kernel = NoUTurn(lambda x: -5e5 * x.square().sum(1), step=1.0)
    state = kernel.init(torch.full((2, 2), 1e-3))
    now, transition = kernel.step(state, torch.Generator().manual_seed(0))
    assert transition.divergent.all()
    assert not transition.accepted.any()
    assert torch.equal(now.position, state.position)


def test_sample_tunes_it_to_directions_of_different_length():
    width = torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)
    start = torch.zeros(4, 3, dtype=torch.float64)
    draws = sample(lambda x: round_density(x / width), start, kernel=NoUTurn, draws=300, warmup=200, seed=0)
    summary = draws.summary().diagnostics
    assert summary.r_hat.max() < 1.03
    assert torch.allclose(draws.values.flatten(0, 1).std(0) / width, torch.ones(3, dtype=torch.float64), atol=0.15)


def test_without_doublings_there_is_no_trajectory():
    with pytest.raises(ValueError, match="depth must be >= 1, got 0"):
        NoUTurn(round_density, depth=0)
