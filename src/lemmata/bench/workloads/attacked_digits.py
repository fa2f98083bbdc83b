"""What the contests of attacks share: a classifier of digits, images to attack, what bare passes cost, what counts."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.registry import load

EPOCHS, BATCH, LR = 5, 64, 3e-3


class Attacked(NamedTuple):
    """A trained classifier, images that it answers rightly, their classes, and the norm that is not to be exceeded."""

    network: nn.Module
    x: Tensor  # (count, channels, height, width)
    y: Tensor  # (count,)
    mean_norm: float = float("inf")  # in the 2-norm, of the published algorithm's examples


class Found(NamedTuple):
    """What an attack gave back for whom."""

    task: Attacked
    examples: Tensor


def attacked_digits(count: int, device: str, larger: int = 1, contrast: float = 1.0) -> Attacked:
    """Test images, each pixel of which is repeated `larger` times in a row and a column; less contrast is about 1/2."""
    data, network = load("digits"), _trained_network(larger, contrast)
    x, y = _changed_images(data.test.x, larger, contrast), data.test.y  # (n, 1, 8 * larger, 8 * larger)
    with torch.no_grad():
        right = (network(x).argmax(1) == y).nonzero()[:count, 0]
    return Attacked(network.to(device), x[right].to(device), y[right].to(device))


def _changed_images(x: Tensor, larger: int, contrast: float) -> Tensor:
    changed = 0.5 + contrast * (x[:, None] - 0.5)  # (n, 1, 8, 8)
    return changed.repeat_interleave(larger, 2).repeat_interleave(larger, 3)


def _trained_network(larger: int, contrast: float) -> nn.Module:
    """Two convolutions and an affine map; the same in every process."""
    train = load("digits").train
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()]  # (batch, 16, 8, 8)
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]  # (batch, 32, 4, 4)
        network = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(512 * larger**2, 10))
        optimizer = torch.optim.Adam(network.parameters(), LR)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(train.x)).split(BATCH):
                optimizer.zero_grad()
                logits = network(_changed_images(train.x[rows], larger, contrast))
                functional.cross_entropy(logits, train.y[rows]).backward()
                optimizer.step()
    return frozen(network)


def frozen(network: nn.Module) -> nn.Module:
    """In evaluation mode; only gradients of images are asked for."""
    return network.eval().requires_grad_(False)


def bare_passes(network: nn.Module, x: Tensor, y: Tensor, passes: int, answers: int = 0) -> Callable[[], None]:
    """As many gradients of the loss by the images, and as many answers without a gradient."""

    def compute() -> None:
        images = x.clone().requires_grad_()
        for _ in range(passes):
            torch.autograd.grad(functional.cross_entropy(network(images), y, reduction="sum"), images)
        with torch.no_grad():
            for _ in range(answers):
                network(x)

    return compute


def projected_ascent(network: nn.Module, x: Tensor, y: Tensor, eps: float, step: float, steps: int) -> Tensor:
    """Signs of gradients, ball and box: what one writes without a package."""
    images = x
    for _ in range(steps):
        images = images.detach().requires_grad_()
        loss = functional.cross_entropy(network(images), y, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, images)
        moved = images.detach() + step * gradient.sign()
        images = (x + (moved - x).clamp(-eps, eps)).clamp(0, 1)
    return images.detach()


def wrong_answers(found: Found) -> Tensor:
    """Which examples are in the box and are answered wrongly, by the network as it was trained."""
    with torch.no_grad():
        wrong = found.task.network(found.examples).argmax(1) != found.task.y
    inside = ((found.examples >= 0) & (found.examples <= 1)).flatten(1).all(1)
    return wrong & inside


def mean_norm(found: Found) -> float:
    """In the 2-norm, of the examples that are answered wrongly: what failed has none, whatever was given back."""
    wrong = wrong_answers(found)
    return float((found.examples - found.task.x)[wrong].flatten(1).norm(dim=1).mean()) if wrong.any() else 0.0


def beside_published(found: Found) -> dict[str, float]:
    """The fraction answered wrongly, and by which fraction the mean norm is larger than the published algorithm's."""
    larger = max(0.0, mean_norm(found) / found.task.mean_norm - 1)
    return {"answered wrongly": float(wrong_answers(found).double().mean()), "larger mean norm": larger}
