"""Epochs of a variational autoencoder on digits: ours through the training loop, against a loop by hand on bare torch.

Both have the same network and start, one drawn code for each image, and AdamW in its fused form. What ours does beside:
it sees that every pixel is 0 or 1, keeps a record, and evaluates once.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.data.registry import load
from lemmata.generative.autoencoders.vae import MLPVAE
from lemmata.train.loop import fit
from lemmata.train.options import Options

BATCH, LR, LATENTS, WIDTH, EPOCHS = 64, 2e-3, 16, 256, 5


class Task(NamedTuple):
    """A model with its first weights, and black-and-white images."""

    model: MLPVAE
    x: Tensor  # (images, pixels)


@entry(
    "vae_epoch",
    title="Epochs of a variational autoencoder",
    measures="five epochs of AdamW and one evaluation of the loss",
    cases={"fashion": "2,000 images of 784 pixels, perceptrons 784-256-32 and 16-256-784, batch 64, 160 steps"},
    targets={"bare loop": 1.05},
)
def clothing(case: str, device: str) -> Task:
    """Clothes in black and white."""
    x = (load(case).train.x > 0.5).float().flatten(1).to(device)
    torch.manual_seed(0)
    return Task(MLPVAE(x.shape[1], LATENTS, widths=(WIDTH,), device=device), x)


@ours("lemmata")
def by_fit(task: Task) -> Callable[[], float]:
    """Our model through our loop, as they come."""
    options = Options(epochs=EPOCHS, batch_size=BATCH, lr=LR, device=task.x.device.type)

    def train() -> float:
        model = copy.deepcopy(task.model)
        fit(model, {"x": task.x}, loss=lambda vae, batch: vae.loss(batch.x), options=options, progress=False)
        return _mean_loss(model, task.x)

    return train


@peer("bare loop")
def by_hand(task: Task) -> Callable[[], float]:
    """What one writes in twenty lines, without a class."""

    def train() -> float:
        model = copy.deepcopy(task.model)
        halves: list[Any] = [model.encoder, model.decoder]
        encoder, decoder = (nn.Sequential(half.layers[0], nn.ReLU(), half.layers[1]) for half in halves)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.0, fused=True)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(task.x), device=task.x.device).split(BATCH):
                x = task.x[rows]
                mean, log_std = encoder(x).chunk(2, 1)
                std = log_std.exp()
                logits = decoder(mean + std * torch.randn_like(std))
                error = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
                kl = (mean.square() + std.square() - 1).sum() / 2 - log_std.sum()
                optimizer.zero_grad()
                ((error + kl) / len(x)).backward()
                optimizer.step()
        return _mean_loss(model, task.x)

    return train


@torch.no_grad()
def _mean_loss(model: MLPVAE, x: Tensor) -> float:
    return float(model.loss(x, generator=torch.Generator(x.device).manual_seed(0)))


@limit("the matrix products of both halves, forwards and backwards")
def products(task: Task) -> Callable[[], None]:
    """Forwards one product for each layer; backwards two, but for the first, which needs no gradient of its input."""
    sizes = [(task.x.shape[1], WIDTH), (WIDTH, 2 * LATENTS), (LATENTS, WIDTH), (WIDTH, task.x.shape[1])]
    layers = [torch.randn(size, device=task.x.device) for size in sizes]
    steps = EPOCHS * -(-len(task.x) // BATCH)

    def compute() -> None:
        for _ in range(steps):
            for number, layer in enumerate(layers):
                x = task.x[:BATCH] if not number else layer.new_zeros(BATCH, len(layer))
                y = x @ layer
                torch.mm(x.mT, y)
                if number:
                    torch.mm(y, layer.mT)

    return compute


@agreement(within=0.03)
def loss(result: float) -> dict[str, float]:
    """Minus the bound, in nats; both draw their own noise and order."""
    return {"loss": result}
