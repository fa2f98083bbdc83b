"""A prior on codes: what is lowered, and what becomes of the codes of digits; the trainings that others share."""

import torch
from torch import Tensor

from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.generative.autoencoders.latent_penalty import (
    AdversarialAutoencoder,
    MMDAutoencoder,
    WassersteinAutoencoder,
)
from lemmata.judge import all_of, claim, close, lie, reaches
from lemmata.measure.sample_distances import energy_distance

KINDS = {
    "adversarial": (AdversarialAutoencoder, {}, 120),
    "wasserstein": (WassersteinAutoencoder, {"constraint": "clipping", "largest_weight": 0.1}, 300),
}
WEIGHTS = {"adversarial": 2.0, "wasserstein": 10.0}


def digit_autoencoder(kind: str, weight: float) -> AdversarialAutoencoder | WassersteinAutoencoder:
    """Images of 64 pixels into codes of two numbers."""
    model, more, _ = KINDS[kind]
    return model(64, code=2, widths=(128,), critic_widths=(64, 64), pixels=True, penalty_weight=weight, **more)


def learn_digits(model: AdversarialAutoencoder | WassersteinAutoencoder, generator: torch.Generator, kind: str) -> None:
    torch.manual_seed(generator.initial_seed() % 2**32)  # of the draws of the prior
    x, epochs = load("digits").train.x, KINDS[kind][2]
    turns = 3 if kind == "wasserstein" else 1
    learner = TwoPlayer(model, *model.players(lr=3e-3), critic_steps=turns, schedule="linear")
    for epoch in range(epochs):
        for rows in torch.randperm(len(x), generator=generator).split(128):
            learner.step(Examples(x=x[rows]), epoch / epochs)


def trained_autoencoder(draw, kind, weight):
    """With this weight of the penalty; with 0 the critic changes nothing, so one training does for both kinds."""
    kind = kind if weight else "adversarial"
    return draw.trained(digit_autoencoder, learn_digits, kind=kind, weight=weight)


def squared_error(model, x) -> float:
    """The mean over images of the squared distance to their reconstructions."""
    return float((model(x).detach() - x).square().flatten(1).sum(1).mean())


def kernel_means(codes, prior) -> Tensor:
    """The unbiased MMD², pair by pair, of the kernel that the model has."""
    wide = 2.0 * codes.shape[1]

    def mean(x, y, itself):
        values = [
            wide / (wide + (a - b).square().sum()) for i, a in enumerate(x) for j, b in enumerate(y) if itself or i != j
        ]
        return torch.stack(values).mean()

    return mean(codes, codes, False) - 2 * mean(codes, prior, True) + mean(prior, prior, False)


@claim("ae.latent_prior")
@lie("without a penalty the codes follow the prior as well", factor=0.0)
@lie("the error of reconstructions does not count", error=0.0)
@lie("the penalty counts half", half=0.5)
def codes_are_drawn_to_the_prior(draw, factor=1.0, error=1.0, half=1.0, model=MMDAutoencoder):
    """The objective against kernel means pair by pair; energy distances of held-out codes to the prior, two critics."""
    values, expected = [], []
    for weight in (0.0, 1.0, 30.0):
        found = model(5, code=2, widths=(4,), penalty_weight=weight, dtype=torch.float64)
        x, prior = draw.normal(7, 5), draw.normal(6, 2)
        lost = (found(x) - x).square().sum(1).mean()
        values.append(found.objective(x, prior))
        expected.append(error * lost + half * weight * kernel_means(found.encode(x), prior))
    evidence = [close(torch.stack(values), torch.stack(expected), ulps=1e4)]
    x, prior = load("digits").test.x, draw.normal(2000, 2).float()
    plain = trained_autoencoder(draw, "adversarial", 0.0)
    before = float(energy_distance(plain.encode(x).detach(), prior))
    for kind, weight in WEIGHTS.items():
        drawn = trained_autoencoder(draw, kind, factor * weight)
        fall = before / float(energy_distance(drawn.encode(x).detach(), prior))
        rise = squared_error(drawn, x) / squared_error(plain, x)
        evidence.append(reaches(fall, 20.0, detail=f"times nearer to the prior, {kind}"))
        evidence.append(reaches(rise, 2.0, at_most=True, detail=f"times the error, {kind}"))
    return all_of(*evidence)
