"""A small classifier of digits for the chapter's tests, and what can stand before and behind it."""

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data import load


def digits(count: int = 40) -> tuple[Tensor, Tensor]:
    test = load("digits").test
    return test.x[:count, None], test.y[:count]  # (count, 1, 8, 8), (count,)


@functools.cache
def _weights(seed: int) -> dict[str, Tensor]:
    network, train = _network(seed), load("digits").train
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        functional.cross_entropy(network(train.x[:, None]), train.y).backward()
        optimizer.step()
    return network.state_dict()


def _network(seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def classifier(seed: int = 0) -> nn.Module:
    """Above 95 % of the test images, in a quarter of a second; another seed is another network."""
    network = _network(seed)
    network.load_state_dict(_weights(seed))
    return network.eval()


class Changed(nn.Module):
    """A network with something before and something behind it."""

    def __init__(self, before=None, behind=None, seed: int = 0):
        super().__init__()
        self.network, self.before, self.behind = classifier(seed), before, behind
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.before is None else self.before(x)
        logits = self.network(x)
        return logits if self.behind is None else self.behind(logits)
