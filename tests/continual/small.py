"""Small streams and networks that the tests of the strategies share."""

import torch
from torch import nn

from lemmata.continual import Task, TaskStream
from lemmata.data.examples import Examples


def stream(tasks=3, examples=40, features=6, classes=3, scenario="domain"):
    """Classes by the largest of the first features, in another order of the features in each task."""
    random = torch.Generator().manual_seed(0)
    found = []
    for k in range(tasks):
        x = torch.randn(examples, features, generator=random)
        both = Examples(x=x.roll(k, 1), y=x[:, :classes].argmax(1))
        found.append(Task(f"task {k + 1}", both[:-8], both[-8:], tuple(range(classes))))
    return TaskStream(tuple(found), scenario, classes)


def network(features=6, classes=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Linear(16, classes))
