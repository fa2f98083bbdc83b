"""SGLD and SGHMC: optimisers at temperature 0, the exact spread of their chains, and chains that go on to the bit."""

import copy
import math

import pytest
import torch
from torch import nn

from lemmata.bayes import SGHMC, SGLD, posterior_energy
from lemmata.testing import check_optimizer
from lemmata.train import Watcher, fit

BOTH = [(SGLD, {}), (SGHMC, {"friction": 3.0})]


@pytest.mark.parametrize(("kind", "more"), BOTH)
def test_without_noise_they_are_optimisers(kind, more):
    check_optimizer(kind, lr=0.05, data_size=2, temperature=0.0, prior_variance=3.0, **more)


@pytest.mark.parametrize(("kind", "more"), BOTH)
def test_with_noise_they_keep_what_can_be_kept(kind, more):
    """Not: the closure's way, since the noise has gone on, nor another order, since the noise comes in order."""
    check_optimizer(kind, lr=0.01, data_size=2, temperature=1e-3, skip=["closure", "order"], **more)


def quadratic(kind, count=40_000, seed=0, **words):
    """As many chains with the mean loss w^2 / 2 of four examples and a prior of variance 1: curvature 5."""
    w = nn.Parameter(torch.zeros(count, dtype=torch.float64))
    generator = torch.Generator().manual_seed(seed)
    return w, kind([w], data_size=4, prior_variance=1.0, generator=generator, **words)


def walk(w, sampler, steps):
    for _ in range(steps):
        w.grad = w.detach().clone()
        sampler.step()
    return w.detach()


def within(found, variance, count=40_000):
    """Seven standard errors of a variance of normal numbers."""
    return abs(float(found.var()) / variance - 1) < 7 * math.sqrt(2 / count)


@pytest.mark.parametrize("temperature", [1.0, 0.25])
def test_the_spread_of_langevins_chains_is_that_of_their_recursion(temperature):
    """v = (1 - 5 lr)^2 v + 2 lr T."""
    lr = 0.1
    w = walk(*quadratic(SGLD, lr=lr, temperature=temperature), 60)
    assert within(w, 2 * lr * temperature / (1 - (1 - 5 * lr) ** 2))


def test_the_spread_of_chains_with_momentum_is_that_of_their_recursion():
    """Position and velocity are a linear map of themselves plus noise: their covariance solves C = A C A' + Q."""
    lr, friction = 0.2, 1.5
    kept, pull = 1 - lr * friction, -lr * 5
    step = torch.tensor([[1 + lr * pull, lr * kept], [pull, kept]], dtype=torch.float64)
    noise = torch.tensor([lr, 1.0], dtype=torch.float64)
    added = 2 * friction * lr * noise[:, None] * noise
    flat = torch.linalg.solve(torch.eye(4, dtype=torch.float64) - torch.kron(step, step), added.flatten())
    w, sampler = quadratic(SGHMC, lr=lr, friction=friction)
    walk(w, sampler, 150)
    assert within(w.detach(), float(flat[0]))
    assert within(sampler.state[w]["velocity"], float(flat[3]))
    assert abs(float(flat[0]) - 1 / 5) < 0.02  # what it is for small lr


def test_without_noise_momentum_is_torchs():
    start = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    lr, friction, size = 0.1, 2.0, 30
    pairs = [
        (ours, SGHMC([ours], lr, size, friction, temperature=0.0)),
        (theirs, torch.optim.SGD([theirs], lr**2 * size, momentum=1 - lr * friction)),
    ]
    for w, optimizer in pairs:
        for _ in range(20):
            optimizer.zero_grad()
            (w**2 + w**4 / 8).mean().backward()
            optimizer.step()
    assert torch.allclose(ours, theirs, rtol=1e-12)


def test_a_step_without_noise_descends_the_posterior_energy():
    torch.manual_seed(0)
    model = nn.Linear(3, 1, dtype=torch.float64)
    x, y = torch.randn(12, 3, dtype=torch.float64), torch.randn(12, dtype=torch.float64)
    energy = posterior_energy(model, (x, y), prior_variance=0.3, noise=1.0)
    expected = energy.start - 1e-3 * torch.autograd.functional.jacobian(energy, energy.start)
    sampler = SGLD(model.parameters(), lr=1e-3, data_size=12, prior_variance=0.3, temperature=0.0)
    ((model(x)[:, 0] - y).square() / 2).mean().backward()
    sampler.step()
    assert torch.allclose(energy.start, expected, rtol=1e-12)


@pytest.mark.parametrize(("kind", "more"), BOTH)
def test_many_at_once_draw_the_same_noise_as_one_by_one(kind, more):
    ends = []
    for foreach in (False, True):
        theta = [nn.Parameter(torch.ones(shape).double()) for shape in ((4, 3), (3,))]
        generator = torch.Generator().manual_seed(5)
        sampler = kind(theta, lr=0.05, data_size=3, prior_variance=2.0, generator=generator, foreach=foreach, **more)
        for _ in range(5):
            for each in theta:
                each.grad = each.detach().clone()
            sampler.step()
        ends.append(torch.cat([each.detach().flatten() for each in theta]))
    assert torch.allclose(*ends, rtol=1e-13)


@pytest.mark.parametrize(("kind", "more"), BOTH)
def test_a_saved_chain_goes_on_with_the_same_noise(kind, more):
    w, sampler = quadratic(kind, count=5, lr=0.05, **more)
    walk(w, sampler, 3)
    saved, place = copy.deepcopy(sampler.state_dict()), w.detach().clone()
    expected = walk(w, sampler, 4).clone()
    other, again = quadratic(kind, count=5, seed=9, lr=0.5 / 3, **more)
    other.data.copy_(place)
    again.load_state_dict(saved)
    assert torch.equal(walk(other, again, 4), expected)
    plain = kind([nn.Parameter(torch.zeros(5).double())], lr=0.05, data_size=4, **more)
    with pytest.raises(ValueError, match="has a generator's state: build"):
        plain.load_state_dict(saved)
    with pytest.raises(ValueError, match="has no generator's state"):
        again.load_state_dict(plain.state_dict())


@pytest.mark.parametrize(("kind", "more"), BOTH)
def test_in_fit_a_killed_chain_resumes_to_the_bit(kind, more, tmp_path):
    x = torch.randn(24, 3, generator=torch.Generator().manual_seed(1))
    data, chosen = (x, x @ torch.tensor([[1.0], [-2.0], [0.5]])), {"epochs": 4, "batch_size": 8, "device": "cpu"}

    class StopAfter(Watcher):
        def stepped(self, step, epoch, numbers):
            if step == 5:
                raise KeyboardInterrupt

    def line():
        torch.manual_seed(0)
        return nn.Linear(3, 1)

    def made(parameters):
        return kind(parameters, lr=1e-3, data_size=24, prior_variance=1.0, **more)

    whole = fit(line(), data, optimizer=made, schedule="cosine", **chosen)
    with pytest.raises(KeyboardInterrupt):
        fit(line(), data, optimizer=made, schedule="cosine", save=1, out=tmp_path, watchers=[StopAfter()], **chosen)
    cut = fit(line(), data, optimizer=made, schedule="cosine", save=1, out=tmp_path, resume=True, **chosen)
    assert torch.equal(cut.system.weight, whole.system.weight)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"data_size": 0}, ValueError, "data_size must be > 0, got 0"),
        ({"temperature": -1.0}, ValueError, "temperature must be >= 0, got -1.0"),
        ({"prior_variance": 0.0}, ValueError, "prior_variance must be > 0, got 0.0"),
        ({"lr": -0.1}, ValueError, "lr must be >= 0"),
        ({"lr": float("nan")}, ValueError, "lr must be finite"),
        ({"friction": -1.0}, ValueError, "friction must be >= 0, got -1.0"),
        ({"friction": 30.0}, ValueError, "lr \\* friction must be at most 1, got 3: use a smaller"),
    ],
)
def test_bad_options_are_refused(change, kind, words):
    given = {"lr": 0.1, "data_size": 5} | change
    make = SGHMC if "friction" in change else SGLD
    with pytest.raises(kind, match=words):
        make([nn.Parameter(torch.zeros(2))], **given)


def test_weight_decay_is_said_as_a_prior():
    group = {"params": [nn.Parameter(torch.zeros(2))], "weight_decay": 0.1}
    with pytest.raises(ValueError, match="use prior_variance"):
        SGLD([group], lr=0.1, data_size=5)
