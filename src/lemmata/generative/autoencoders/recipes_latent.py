"""What `lemmata train aae`, `waae` and `mmd_autoencoder` do: digits in few numbers that follow a normal distribution.

New digits are decoded draws of that distribution. They are held against test images by the measure of `lemmata train
ddpm`, the energy distance between features of a small classifier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Line, Points
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.generative.autoencoders.latent_penalty import (
    AdversarialAutoencoder,
    AdversarialAutoencoderConfig,
    CriticPenalty,
    LatentPenalty,
    LatentPenaltyConfig,
    MMDAutoencoder,
    WassersteinAutoencoder,
    WassersteinAutoencoderConfig,
)
from lemmata.generative.diffusion.recipes import HOW, LOST, image_features
from lemmata.generative.sample_figures import image_grid
from lemmata.marks import recipe
from lemmata.measure.sample_distances import energy_distance
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options

__all__ = ["AdversarialLatent", "WassersteinLatent", "encode_digits"]

# `lemmata train aae --penalty-weight 0`, seed 0, as tests/generative/autoencoders/test_recipes_latent.py measures it.
PLAIN = {"plain autoencoder, a Gaussian fitted to its codes": 0.088}


@dataclass(frozen=True)
class AdversarialLatent(AdversarialAutoencoderConfig):
    """What can be chosen of an adversarial autoencoder and its training."""

    critic_steps: int = 1
    """Steps of the critic to one of encoder and decoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("critic_steps", self.critic_steps)


@dataclass(frozen=True)
class WassersteinLatent(WassersteinAutoencoderConfig):
    """What can be chosen of a Wasserstein autoencoder and its training."""

    critic_steps: int = 3
    """Steps of the critic to one of encoder and decoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("critic_steps", self.critic_steps)


KINDS: dict[str, tuple[type[LatentPenalty], type]] = {
    "aae": (AdversarialAutoencoder, AdversarialAutoencoderConfig),
    "waae": (WassersteinAutoencoder, WassersteinAutoencoderConfig),
    "mmd_autoencoder": (MMDAutoencoder, LatentPenaltyConfig),
}
NETWORK: dict[str, Any] = {"code": 8, "widths": (256, 128), "pixels": True}
SHORT = Options(epochs=300, batch_size=128, optimizer="adam", lr=2e-3, schedule="linear", evaluate=100)
LONG = replace(SHORT, epochs=500, ema_decay=0.995, evaluate=250)


USUAL: Mapping[str, LatentPenaltyConfig] = {
    "aae": AdversarialLatent(**NETWORK),
    "waae": WassersteinLatent(**NETWORK),
    "mmd_autoencoder": LatentPenaltyConfig(**NETWORK, penalty_weight=30.0),
}
USUAL_TRAINING: Mapping[str, Options] = {"aae": SHORT, "waae": LONG, "mmd_autoencoder": SHORT}


@recipe("aae", "waae", "mmd_autoencoder", data="digits", metric="energy_distance")
def encode_digits(
    data: str = "digits",
    config: LatentPenaltyConfig = USUAL,  # type: ignore[assignment] - each system has its own
    options: Options = USUAL_TRAINING,  # type: ignore[assignment]
    system: str = "aae",
) -> Experiment:
    """Handwritten digits of 8 x 8 pixels into codes that follow a normal distribution, and new ones out of it."""
    found = load(data)
    train, test = Examples(x=found.train.x), Examples(x=found.test.x)
    kind, of_the_system = KINDS[system]
    arguments = {"inputs": train.x[0].numel(), **chosen(config, of_the_system)}
    model = built(kind, arguments, options)

    def metrics(model: LatentPenalty, batch: Examples) -> dict[str, float]:
        drawn = _decoded_images(model, len(batch), torch.Generator().manual_seed(0)).view(batch.x.shape)
        features = image_features(data)
        described = (features(2 * x[:, None].float().cpu() - 1) for x in (drawn, batch.x))
        error = (model(batch.x) - batch.x).square().flatten(1).sum(1).mean()
        prior = torch.randn(2000, model.config.code, generator=torch.Generator().manual_seed(1)).to(batch.x)
        return {
            "energy_distance": float(energy_distance(*described, unbiased=True)),
            "squared_error": float(error),
            "codes_to_prior": float(energy_distance(model.encode(batch.x), prior, unbiased=True)),
        }

    def sample(model: LatentPenalty, count: int, generator: torch.Generator) -> Figure:
        drawn = _decoded_images(model, count, generator).view(count, *train.x.shape[1:])
        return image_grid(drawn, "Digits decoded from draws of the prior", columns=6)

    def picture(model: LatentPenalty) -> Figure:
        return _latent_map(model, found.test, found.classes)

    learner = _two_players(model, config, options, metrics) if isinstance(model, CriticPenalty) else None
    return Experiment(
        model, arguments, train, test, options, learner=learner, metrics=metrics, metric="energy_distance",
        loss=lambda model, batch: model.loss(batch.x), sample=sample, picture=picture, classes=found.classes,
        notes={"baselines": {**LOST[data], **(PLAIN if isinstance(model, CriticPenalty) else {})}, "how": HOW},
    )  # fmt: skip


def _two_players(model: CriticPenalty, config: Any, options: Options, metrics: Any) -> TwoPlayer:
    """What the options of one loss say of two players is refused rather than passed over."""
    validate.one_of("optimizer", options.optimizer, ("adam",))
    for name, usual in (("weight_decay", 0.0), ("clip", None), ("accumulate", 1), ("warmup", 0), ("momentum", None)):
        if getattr(options, name) != usual:
            raise ValueError(f"{name} is not known to two players: leave it out, or set it to {usual}")
    more = {"schedule": options.schedule, "ema_decay": options.ema_decay, "metrics": metrics}
    return TwoPlayer(model, *model.players(options.lr), critic_steps=config.critic_steps, **more)


def _decoded_images(model: LatentPenalty, count: int, generator: torch.Generator) -> Tensor:
    """Samples in evaluation mode; the codes are drawn on the CPU, so that they are the same wherever the model is."""
    z = torch.randn(count, model.config.code, generator=generator).to(next(model.parameters()))
    with evaluating(model):
        return model.decode(z)


def _latent_map(model: LatentPenalty, examples: Examples, classes: tuple[str, ...]) -> Figure:
    """Codes in the plane in which the classes lie farthest apart; the prior is the same in every plane."""
    with evaluating(model):
        codes = model.encode(examples.x.to(next(model.parameters()))).cpu().double()  # (images, code)
    means = torch.stack([codes[examples.y == k].mean(0) for k in range(len(classes))])
    _, _, axes = torch.linalg.svd(means - means.mean(0), full_matrices=False)
    if codes.shape[1] > 2:
        codes = codes @ axes[:2].mT  # (images, 2)
    turn = torch.linspace(0, 2 * torch.pi, 90)
    rings = [Line((r * turn.cos()).tolist(), (r * turn.sin()).tolist()) for r in (1.1774, 2.4477)]
    clouds = []
    for k, name in enumerate(classes):
        own = codes[examples.y == k]
        clouds.append(Points(_rounded_numbers(own[:, 0]), _rounded_numbers(own[:, 1]), name))
    note = "Half of the prior's draws lie in the inner circle, and 95 % in the outer one."
    return Figure("Codes of test images", "first axis of the code", "second axis", [*clouds, *rings], note=note)


def _rounded_numbers(values: Tensor) -> list[float]:
    return values.mul(1000).round().div(1000).tolist()
