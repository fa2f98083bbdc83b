"""The small convolutional networks that all long claims of the chapter attack: one standard, one robust; digits."""

import torch
from torch import Tensor, nn

from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.robustness.adversarial_training import AdversarialTraining

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
    learn_digits(network, generator, AdversarialTraining(eps=0.0, steps=0), epochs=30)


def learn_attacked(network: nn.Module, generator: torch.Generator) -> None:
    learn_digits(network, generator, AdversarialTraining(EPS, steps=3, step=EPS / 2), epochs=60)


def learn_digits(network: nn.Module, generator: torch.Generator, loss: AdversarialTraining, epochs: int) -> None:
    torch.manual_seed(generator.initial_seed() % 2**32)  # of the attacks' random starts
    train = load("digits").train
    train = Examples(x=train.x[:, None], y=train.y)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (1 - epoch / epochs)
        for rows in torch.randperm(len(train), generator=generator).split(BATCH):
            optimizer.zero_grad()
            loss(network, train[rows])["loss"].backward()
            optimizer.step()
