"""Which of the two parameters of a normalisation is worth more: in a deep net the scale, in a shallow one the shift."""

import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.claims.normalized_training import trained_loss
from lemmata.tricks.initialization import initialize

NETWORKS = 4
TASKS = {"digits": (64, 64, 8, 10, 0.003), "moons": (2, 32, 1, 2, 0.01)}  # inputs, width, hidden layers, classes, lr


def networks(task, learnt):
    """Rectified units behind batch normalisation, of which the parameters named in `learnt` are free."""
    inputs, width, depth, classes, _ = TASKS[task]
    found = nn.ModuleList()
    for _ in range(NETWORKS):
        parts: list[nn.Module] = []
        for number in range(depth):
            parts += [nn.Linear(width if number else inputs, width, bias=False), BatchNorm(width), nn.ReLU()]
        network = nn.Sequential(*parts, nn.Linear(width, classes))
        initialize(network, "he")
        for layer in [*network][1:-1:3]:
            for name, values in layer.named_parameters():
                values.requires_grad_(name in learnt)
        found.append(network)
    return found


def learn(many, generator, task):
    """A hundred steps on digits, or twice as many on moons, on batches of 128, the same for all that is compared."""
    x, y = examples(task)
    for network in many:
        free = [values for values in network.parameters() if values.requires_grad]
        optimizer = torch.optim.Adam(free, lr=TASKS[task][-1])
        for _ in range(100 if task == "digits" else 200):
            batch = torch.randint(len(x), (128,), generator=generator)
            optimizer.zero_grad()
            functional.cross_entropy(network(x[batch]), y[batch]).backward()
            optimizer.step()


def examples(task):
    data = load(task).train
    x = data.x.flatten(1).float()
    return x - x.mean(0), data.y


def _log_loss(draw, task, learnt):
    """The mean over the networks of the logarithm of the training loss."""
    many, (x, y) = draw.trained(networks, learn, task=task, learnt=learnt), examples(task)
    with torch.no_grad():
        return sum(math.log(functional.cross_entropy(each(x), y)) for each in many) / NETWORKS


@claim("norm.scale_over_shift")
@lie("where nothing else is learnt, shifts do more", more="bias")
@lie("in a shallow net the scale is worth more, too", shallow="weight")
def scales_matter_in_deep_nets_and_shifts_in_shallow_ones(draw, more="weight", shallow="bias"):
    """Digits in ten layers of which nothing else is learnt, and in eight of which all is; two moons in one layer."""
    other = {"weight": "bias", "bias": "weight"}
    alone = {name: trained_loss(draw, "batch", 0.05, 1.0, name) for name in ("weight", "bias")}
    deep = {name: _log_loss(draw, "digits", name) for name in ("weight", "weight bias")}
    flat = {name: _log_loss(draw, "moons", name) for name in ("weight", "bias")}
    return all_of(
        reaches(
            alone[more], alone[other[more]], at_most=True, detail="digits: loss where one of both is all that learns"
        ),
        reaches(deep["weight"], deep["weight bias"] + math.log(1.5), at_most=True, detail="log loss without shifts"),
        reaches(flat[shallow], flat[other[shallow]] - math.log(2), at_most=True, detail="moons: half of the other's"),
    )
