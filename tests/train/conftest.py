"""What tests of interrupted runs share: a small run that draws from every generator, and ways to cut it."""

import os
import random
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from lemmata.train import Options, Watcher, checkpoint, fit

X = torch.rand(22, 4, generator=torch.Generator().manual_seed(1))
TRAIN = (X, (X.sum(1) > 2).long())
TEST = (X + 0.1, TRAIN[1])
STEPS = 12  # three epochs of 4: batches of 6, 6, 6 and 4


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 2))


def noisy_loss(system, batch):
    """A loss that draws from every global generator; numpy and random keep half a pair of normal ones for next time."""
    drawn = torch.rand(1).item() + np.random.rand() + random.random()  # noqa: NPY002
    if drawn < 1.5:
        drawn += np.random.randn() + random.gauss(0, 1)  # noqa: NPY002
    return nn.functional.cross_entropy(system(batch.x), batch.y) * (1 + 0.1 * drawn)


WORDS = {"optimizer": "adamw", "weight_decay": 0.1, "ema_decay": 0.8, "clip": 0.5, "schedule": "cosine", "warmup": 2}


def train(out, watchers=(), resume=False, repeat=1, **words):
    options = Options(**{"epochs": 3, "batch_size": 6, "lr": 0.05, "device": "cpu", "accumulate": 2} | WORDS | words)
    examples = (X.repeat(repeat, 1), TRAIN[1].repeat(repeat))
    more = {"out": out, "resume": resume, "watchers": watchers}
    return fit(network(), examples, test=TEST, loss=noisy_loss, options=options, **more)


def end(run):
    """All that a run leaves but the time it took."""
    log = (run.folder / "log.jsonl").read_text()
    last = checkpoint.newest(run.folder / "checkpoints").state
    state = {name: value for name, value in last["loop"].items() if name != "seconds"}
    tensors = [*run.system.state_dict().values(), *leaves(last["learner"]), *leaves(last["random"])]
    return (run.scores, run.best, run.steps, run.epochs, run.stopped, log, state), [t.clone() for t in tensors]


def leaves(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [leaf for item in items for leaf in leaves(item)]


def equal(one, other):
    return one[0] == other[0] and len(one[1]) == len(other[1]) and all(map(torch.equal, one[1], other[1]))


class At(Watcher):
    """Does something when an event of a step is told."""

    def __init__(self, event, step, action):
        self.wanted, self.action = (event, step), action
        for name in ("stepped", "evaluated", "saved"):
            setattr(self, name, lambda step, *_, name=name: self.hear(name, step))

    def hear(self, name, step):
        if (name, step) == self.wanted:
            self.action()


def interrupt(number=signal.SIGTERM):
    return lambda: os.kill(os.getpid(), number)


def die():
    raise KeyboardInterrupt  # at once, as by a second Ctrl-C: nothing more is saved


class Saved(Watcher):
    """Notes what is saved."""

    def __init__(self):
        self.steps = []

    def saved(self, step, path):
        self.steps.append(step)


@pytest.fixture(scope="session")
def noisy():
    """The run above: `train` it, cut it by a watcher, and compare its `end`."""
    names = {"train": train, "end": end, "equal": equal, "At": At, "Saved": Saved, "interrupt": interrupt, "die": die}
    return SimpleNamespace(network=network, X=X, TRAIN=TRAIN, STEPS=STEPS, **names)


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    return end(train(tmp_path_factory.mktemp("unbroken") / "run"))


@pytest.fixture
def no_waiting(monkeypatch):
    """Whether disks are waited for is asked elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
