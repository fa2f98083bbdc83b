"""The small convolutional networks that all long claims of the chapter attack: one standard, one robust; digits."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.registry import load

EPS = 0.2  # of the robust network's training, in the units of the image
BATCH = 64


def conv_network(repetition: int = 0) -> nn.Module:
    """Images (batch, 1, 8, 8) in [0, 1] to ten logits; each repetition begins at other weights."""
    torch.manual_seed(torch.initial_seed() + 1000 * repetition)
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()]  # (batch, 16, 8, 8)
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]  # (batch, 32, 4, 4)
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(512, 10))


def standard_classifier(draw, seed=0):
    """Trained on the images as they are; each further seed is another network, trained from other weights."""
    return draw.trained(conv_network, learn_clean, repetition=seed)


def robust_classifier(draw):
    """Trained on the worst images that three steps find within `EPS` in the maximum norm."""
    return draw.trained(conv_network, learn_attacked)


def held_out_digits(count=100) -> tuple[Tensor, Tensor]:
    """The first test images (count, 1, 8, 8), their classes (count,)."""
    test = load("digits").test
    return test.x[:count, None], test.y[:count]


def learn_clean(network: nn.Module, generator: torch.Generator, repetition: int) -> None:
    generator.manual_seed(generator.initial_seed() + repetition)
    _learn(network, generator, epochs=30)


def learn_attacked(network: nn.Module, generator: torch.Generator) -> None:
    _learn(network, generator, epochs=60, steps=3)


def _learn(network: nn.Module, generator: torch.Generator, epochs: int, steps: int = 0) -> None:
    images, classes = load("digits").train.x[:, None], load("digits").train.y
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (1 - epoch / epochs)
        for rows in torch.randperm(len(images), generator=generator).split(BATCH):
            x, y = images[rows], classes[rows]
            if steps:
                x = _worst_nearby(network, x, y, steps, generator)
            optimizer.zero_grad()
            functional.cross_entropy(network(x), y).backward()
            optimizer.step()


def _worst_nearby(network: nn.Module, x: Tensor, y: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """Projected gradient ascent from a random start, kept this plain because it runs a thousand times."""
    nearby = (x + EPS * (2 * torch.rand(x.shape, generator=generator) - 1)).clamp(0, 1)
    for _ in range(steps):
        nearby.requires_grad_()
        (gradient,) = torch.autograd.grad(functional.cross_entropy(network(nearby), y), nearby)
        nearby = nearby.detach() + EPS / 2 * gradient.sign()
        nearby = torch.min(torch.max(nearby, x - EPS), x + EPS).clamp(0, 1)
    return nearby
