"""Reptile: plain descent on its loss takes the step that is in the paper, and what it refuses."""

import pytest
import torch
from tests.meta.test_maml import network, tasks
from torch import nn
from torch.nn import functional

from lemmata.data import Examples
from lemmata.meta import Reptile


def test_plain_descent_moves_towards_the_mean_of_torchs_own_steps():
    model, batch, ends = network(), tasks(), []
    for x, y, query_x, query_y in zip(*batch, strict=True):
        copy = network()
        optimizer = torch.optim.SGD(copy.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            functional.mse_loss(copy(torch.cat([x, query_x])), torch.cat([y, query_y])).backward()
            optimizer.step()
        ends.append([part.detach() for part in copy.parameters()])
    wanted = [
        start + 0.25 * (torch.stack(each).mean(0) - start)
        for start, *each in zip(network().parameters(), *ends, strict=True)
    ]
    Reptile(model, 4, 0.1).loss(batch).backward()
    torch.optim.SGD(model.parameters(), lr=0.25).step()
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in zip(model.parameters(), wanted, strict=True))


def test_the_loss_is_that_of_the_adapted_parameters():
    batch, reptile = tasks(), Reptile(network(), 30, 0.2)
    assert 0 < reptile.loss(batch).item() < 0.8 * Reptile(network(), 1, 1e-9).loss(batch).item()


def test_integer_targets_are_classes():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 6, 3, generator=generator)
    y = torch.arange(12).reshape(2, 6) % 2
    x[..., 0] = 2.0 * y - 1
    reptile = Reptile(nn.Linear(3, 2), 40, 0.5)
    assert bool((reptile(x, y, x).argmax(2) == y).all())
    reptile.loss(Examples(x=x, y=y, query_x=x, query_y=y)).backward()


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        Reptile(network(), 0)
    with pytest.raises(ValueError, match="model must normalise by the task"):
        Reptile(nn.BatchNorm2d(2))
    with pytest.raises(ValueError, match="query_x must be"):
        Reptile(network())(tasks().x, tasks().y, torch.zeros(3))
