"""Two epochs of an adversarial network: the loop of the course with its learner, against a loop by hand.

Both train the same convolutional networks on 1,438 digits from the same weights, with Adam, a step of the decoder and
one of the critic on each batch; noise and the order of batches are each one's own.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.data.registry import load
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.train.loop import fit
from lemmata.train.options import Options

EPOCHS, BATCH = 2, 128
LR = 1e-4  # so small that samples have hardly changed, and both contenders' are alike
NETWORKS: dict[str, dict[str, Any]] = {"convolution": {"network": "convolution"}, "mlp": {"widths": (64, 64)}}


class Task(NamedTuple):
    """A decoder and a critic with their first weights, and the images."""

    model: GAN
    x: Tensor


@entry(
    "gan_epoch",
    title="Epochs of an adversarial network",
    measures="two epochs of 12 batches, each a step of the decoder and a step of the critic",
    cases={
        "convolution": "digits, 8 x 8 pixels: transposed convolutions with 64 and 32 maps, batches of 128",
        "mlp": "digits, 8 x 8 pixels: perceptrons of two hidden layers with 64 units, batches of 128",
    },
    targets={"a loop by hand": 1.05},
)
def images(case: str, device: str) -> Task:
    """Every contender takes copies of the same networks."""
    torch.manual_seed(0)
    return Task(GAN((8, 8), **NETWORKS[case]).to(device), load("digits").train.x.to(device))


@ours("lemmata")
def by_two_players(task: Task) -> Callable[[], float]:
    """`fit` with the learner of two players."""

    options = Options(epochs=EPOCHS, batch_size=BATCH, device=task.x.device.type)

    def train() -> float:
        model = copy.deepcopy(task.model)
        fit(model, task.x, learner=TwoPlayer(model, *model.players(LR)), options=options)
        return brightness(model)

    return train


@peer("a loop by hand")
def by_hand(task: Task) -> Callable[[], float]:
    """What one writes: two optimisers, and labels of ones and zeros."""

    def train() -> float:
        model = copy.deepcopy(task.model)
        decoder, critic = model.decoder, model.critic
        for_decoder = torch.optim.Adam(decoder.parameters(), LR, betas=(0.5, 0.999))
        for_critic = torch.optim.Adam(critic.parameters(), LR, betas=(0.5, 0.999))
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(task.x), device=task.x.device).split(BATCH):
                x = task.x[rows]
                ones, zeros = x.new_ones(len(x), 1), x.new_zeros(len(x), 1)
                fake = decoder(torch.randn(len(x), model.latent, device=x.device))
                loss = binary_cross_entropy_with_logits(critic(fake), ones)
                for_decoder.zero_grad()
                loss.backward()
                for_decoder.step()
                with torch.no_grad():
                    fake = decoder(torch.randn(len(x), model.latent, device=x.device))
                said = binary_cross_entropy_with_logits
                loss = (said(critic(x), ones) + said(critic(fake), zeros)) / 2
                for_critic.zero_grad()
                loss.backward()
                for_critic.step()
        return brightness(model)

    return train


@limit("the forward and backward passes alone, without optimisers, noise and a loop's bookkeeping")
def passes(task: Task) -> Callable[[], None]:
    """A pass of the decoder and one of the critic backwards for each, on as many batches."""
    model = copy.deepcopy(task.model)
    batches = task.x.split(BATCH) * EPOCHS
    z = torch.randn(BATCH, model.latent, device=task.x.device)

    def compute() -> None:
        for x in batches:
            model.critic(model.decoder(z[: len(x)])).mean().backward(inputs=list(model.decoder.parameters()))
            with torch.no_grad():
                fake = model.decoder(z[: len(x)])
            (model.critic(x).mean() - model.critic(fake).mean()).backward(inputs=list(model.critic.parameters()))

    return compute


def brightness(model: GAN) -> float:
    """The mean pixel of a thousand samples."""
    return float(model.eval().sample(1000).mean())


@agreement(within=0.1)
def samples(result: float) -> dict[str, float]:
    """The mean pixel."""
    return {"mean pixel": result}
