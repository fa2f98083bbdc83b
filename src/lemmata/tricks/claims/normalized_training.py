"""What normalisation does for the training of a deep network that starts badly, and what of it does that."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.initialization import initialize


class Placebo(nn.Module):
    """The scale and the shift of a normalisation, and nothing else of it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x + self.bias


LAYERS = {"batch": BatchNorm, "placebo": Placebo, "none": None}


def deep_network(normalization: str, gain: float) -> nn.Sequential:
    """Ten layers of 64 tanh units; with a gain of 1, LeCun's weights, which keep the variance."""
    parts: list[nn.Module] = []
    layer = LAYERS[normalization]
    for _ in range(10):
        parts += [nn.Linear(64, 64), *([layer(64)] if layer else []), nn.Tanh()]
    network = nn.Sequential(*parts, nn.Linear(64, 10))
    initialize(network, "lecun", gain=gain)
    return network


def learn_digits(network: nn.Module, generator: torch.Generator, lr: float, learnt: str) -> None:
    """Two hundred steps on batches of 128, of all parameters or of those that have this name in a normalisation."""
    x, y = digits()
    if learnt != "all":
        network.requires_grad_(False)
        for layer in network.modules():
            if isinstance(layer, BatchNorm):
                layer.get_parameter(learnt).requires_grad_()
    chosen = [values for values in network.parameters() if values.requires_grad]
    optimizer = torch.optim.SGD(chosen, lr=lr, momentum=0.9)
    for _ in range(200):
        batch = torch.randint(len(x), (128,), generator=generator)
        optimizer.zero_grad()
        functional.cross_entropy(network(x[batch]), y[batch]).backward()
        optimizer.step()


def digits() -> tuple[Tensor, Tensor]:
    data = load("digits").train
    x = data.x.flatten(1).float()
    return x - x.mean(0), data.y


def trained_loss(draw, normalization, lr=0.01, gain=1 / 3, learnt="all"):
    """Of the examples it was trained on, as one batch: whether it can be optimised is what is asked."""
    settings = {"normalization": normalization, "gain": gain, "lr": lr, "learnt": learnt}
    network = draw.trained(deep_network, learn_digits, **settings)
    x, y = digits()
    with torch.no_grad():
        return float(functional.cross_entropy(network.train()(x), y))


@claim("norm.effectiveness")
@lie("a scale and a shift do the same", layer="placebo")
@lie("the shifts alone learn more than the scales alone", more="bias")
def normalisation_makes_deep_networks_trainable(draw, layer="batch", more="weight"):
    """Digits, from weights of a third of the size that keeps the variance, with short steps and ten times longer."""
    without = min(trained_loss(draw, "none", lr) for lr in (0.01, 0.1))
    less = {"weight": "bias", "bias": "weight"}[more]
    alone, other = (trained_loss(draw, "batch", 0.05, 1.0, learnt) for learnt in (more, less))
    return all_of(
        reaches(without, 2.2, detail="loss without normalisation; equal probabilities have log 10 = 2.303"),
        reaches(
            trained_loss(draw, layer),
            without / 2,
            at_most=True,
            detail="loss with normalisation, against half without",
        ),
        reaches(trained_loss(draw, layer, lr=0.1), without / 2, at_most=True, detail="with steps ten times as long"),
        reaches(alone, other, at_most=True, detail="loss where only one of both is learnt"),
    )
