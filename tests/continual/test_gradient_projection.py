"""Gradient projection: old outputs stay, with any optimiser and with convolutions; what it cannot keep is refused."""

import itertools

import pytest
import torch
from tests.continual.small import network, stream
from torch import nn

from lemmata.continual import GradientProjection, GradientProjectionConfig, Task, TaskStream, learn
from lemmata.data.examples import Examples


def low_rank_stream(shape=(6,), rank=2):
    """Two tasks whose inputs lie in few directions, so that a network has room for both."""
    random = torch.Generator().manual_seed(0)
    size = torch.Size(shape).numel()
    tasks = []
    for k in range(2):
        inner = torch.randn(40, rank, generator=random, dtype=torch.float64)
        x = inner @ torch.randn(rank, size, generator=random, dtype=torch.float64)
        both = Examples(x=x.view(40, *shape), y=(inner[:, 0] > 0).long())
        tasks.append(Task(f"task {k + 1}", both, both, (0, 1)))
    return TaskStream(tuple(tasks), "domain", 2)


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 60, bias=False), nn.Tanh(), nn.Linear(60, 2)).double()


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 6, 2, stride=2, padding=1), nn.Tanh(), nn.GroupNorm(2, 6), nn.Flatten(), nn.Linear(24, 2)
    ).double()


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize(("make", "shape"), [(perceptron, (6,)), (convolutional, (1, 2, 2))])
def test_at_full_energy_old_outputs_stay_whatever_the_optimizer(make, shape, optimizer):
    tasks, model = low_rank_stream(shape), make()
    then = {}

    class Noting(GradientProjection):
        def after_task(self, data):
            super().after_task(data)
            if self.task == 0:
                then["outputs"] = self.model(tasks[0].train.x).detach()
                then["weights"] = [part.detach().clone() for part in self.model.parameters()]

    strategy = Noting(model, energy=1.0)
    learn(model, tasks, strategy, epochs=6, batch_size=10, lr=0.01, optimizer=optimizer, weight_decay=0.1,
          precision="float64")  # fmt: skip
    moved = max(float((a - b).detach().abs().max()) for a, b in zip(model.parameters(), then["weights"], strict=True))
    assert float((model(tasks[0].train.x) - then["outputs"]).detach().abs().max()) < 1e-10
    assert moved > 1e-4 or make is convolutional  # a small convolution has no room left


def test_patches_are_what_a_convolution_is_protected_on():
    model = convolutional()
    strategy = GradientProjection(model)
    found = strategy.activations(torch.randn(3, 1, 2, 2).double())
    assert {name: tuple(rows.shape) for name, rows in found.items()} == {"0": (3 * 4, 4), "4": (3, 24)}
    assert not any(part._forward_hooks for part in model.modules())


def test_many_patches_are_thinned_evenly():
    model = nn.Sequential(nn.Conv2d(1, 1, 1))
    rows = GradientProjection(model).activations(torch.arange(20_000.0).view(2, 1, 100, 100))["0"]
    assert rows.shape == (4096, 1)
    assert (float(rows[0]), float(rows[-1])) == (0.0, 19_999.0)


def test_ranks_grow_and_what_is_not_a_weight_stays_after_the_first_task():
    model = network()
    biases, ranks = [], []

    class Noting(GradientProjection):
        def after_task(self, data):
            super().after_task(data)
            ranks.append(dict(self.ranks))
            biases.append(model[0].bias.detach().clone())

    strategy = Noting(model, energy=0.6)
    assert strategy.ranks == {"0": 0, "2": 0}
    learn(model, stream(), strategy, epochs=2, batch_size=8, lr=0.01)
    assert all(one[name] <= two[name] for one, two in itertools.pairwise(ranks) for name in one)
    assert torch.equal(biases[0], biases[2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "model must not mix examples, 1 is a BatchNorm1d"),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), "use GroupNorm"),
        (lambda: nn.ReLU(), "model must have linear or convolutional layers, got none"),
        (lambda: nn.Conv2d(2, 2, 1, groups=2), "must be a convolution without groups"),
        (lambda: nn.Conv2d(2, 2, 3, padding="same"), "with padding as a number"),
    ],
)
def test_networks_that_cannot_be_kept_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        GradientProjection(make())


@pytest.mark.parametrize(
    ("words", "message"), [({"energy": 1.1}, "energy must be"), ({"size": 0}, "size must be >= 1")]
)
def test_bad_choices_are_refused_in_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        GradientProjectionConfig(**words)
