r"""A network with the faults that people make, for `lemmata audit --demo`: see what a report says about each."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.images import digits
from lemmata.train.randomness import seeded

__all__ = []  # for `lemmata audit --demo`

TRAINED = 150  # examples, few enough that every probe can look at all of them
LEAKED = 40  # of the 359 test examples that were trained on too


class FaultyDigits(nn.Module):
    r"""A small residual network that learns in spite of all that is wrong with it.

    Shapes:
        x: (batch, 8, 8)    returns: probabilities (batch, 10), where the loss wants logits
    """

    def __init__(self, width: int = 64):
        super().__init__()
        self.stem = nn.Linear(64, width)
        self.middle = nn.Linear(width, width)
        self.head = nn.Linear(width, 10)
        with torch.no_grad():
            self.middle.bias.fill_(-1000.0)  # no input lifts it above zero: every unit of the layer is dead

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.stem(x.flatten(1)))  # (batch, width)
        h = h + functional.relu(self.middle(h))
        return self.head(h).softmax(dim=1)  # (batch, classes)


def faulty() -> dict[str, Any]:
    r"""What `audit` takes: a network that was trained on some of its test examples too, ends in a softmax though its
    loss has one, is too sure of itself, has a layer that is dead, and is given a step at which it would diverge.

    >>> sorted(faulty())
    ['batch_size', 'data', 'loss', 'lr', 'model', 'name', 'optimizer', 'test']
    """
    data = digits()
    test = 16 * data.test.x  # raw counts of ink, as the scanner gave them: nothing is standardised
    x = torch.cat([16 * data.train.x[:TRAINED], test[:LEAKED]])
    y = torch.cat([data.train.y[:TRAINED], data.test.y[:LEAKED]])
    with seeded(0):
        model = FaultyDigits()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        for _ in range(40):
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        for value in model.head.parameters():
            value.mul_(3.0)  # far too sure of itself, and no more often right
    model.zero_grad()
    return {
        "model": model,
        "data": (x, y),
        "test": (test, data.test.y),
        "loss": "cross_entropy",
        "optimizer": "sgd",
        "lr": 1.0,
        "batch_size": 64,
        "name": "the demo's network",
    }
