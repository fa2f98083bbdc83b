"""What `lemmata train gan` and `lemmata train wgan` do: points and digits out of noise, beside a Gaussian.

The measure is that of `lemmata train ddpm`: the energy distance of as many samples as there are test examples, for
images between features of a small classifier. Seed 0 reaches 0.005 (gan) and 0.003 (wgan) on rings, where a Gaussian
has 0.011, and 0.09 and 0.04 on digits, where it has 0.25.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure
from lemmata.generative.adversarial.adversarial_pair import AdversarialPair
from lemmata.generative.adversarial.gan import GAN, GANConfig
from lemmata.generative.adversarial.two_player import PLAYS, TwoPlayer
from lemmata.generative.adversarial.wgan import WGAN, WGANConfig
from lemmata.generative.diffusion.recipes import HOW, LOST, image_features
from lemmata.generative.sample_figures import image_grid, point_cloud
from lemmata.marks import recipe
from lemmata.measure.sample_distances import energy_distance
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options

__all__ = ["GANGame", "WGANGame", "generate_digits", "generate_points"]


@dataclass(frozen=True)
class GANGame(GANConfig):
    """What can be chosen of an adversarial network and its training."""

    play: str = "alternating"
    """Who moves when: alternating, simultaneous or extragradient."""
    critic_steps: int = 1
    """Steps of the critic to one of the decoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_game(self.play, self.critic_steps)


@dataclass(frozen=True)
class WGANGame(WGANConfig):
    """What can be chosen of a Wasserstein network and its training."""

    play: str = "alternating"
    """Who moves when: alternating, simultaneous or extragradient."""
    critic_steps: int = 3
    """Steps of the critic to one of the decoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_game(self.play, self.critic_steps)


def _check_game(play: str, critic_steps: int) -> None:
    validate.one_of("play", play, PLAYS)
    validate.count("critic_steps", critic_steps)


KINDS: dict[str, tuple[type[AdversarialPair], type]] = {"gan": (GAN, GANConfig), "wgan": (WGAN, WGANConfig)}
# Adam alone is played with here, and its betas are those of `two_player`.
POINTS = Options(epochs=375, batch_size=128, optimizer="adam", lr=2e-3, schedule="linear", ema_decay=0.99, evaluate=75)
POINT_GAMES = {
    "gan": GANGame(latent=4, widths=(128, 128)),
    "wgan": WGANGame(latent=4, widths=(128, 128), penalty_weight=0.1, critic_steps=2),
}
DIGITS = replace(POINTS, epochs=150, lr=1e-3, ema_decay=0.995, evaluate=50)
DIGIT_OPTIONS = {"gan": DIGITS, "wgan": replace(DIGITS, epochs=100, evaluate=25)}
DIGIT_GAMES = {
    "gan": GANGame(latent=16, network="convolution"),
    "wgan": WGANGame(latent=16, network="convolution"),
}


@recipe("gan", "wgan", data="rings", metric="energy_distance")
def generate_points(
    data: str = "rings",
    config: Any = POINT_GAMES,
    options: Options = POINTS,
    system: str = "gan",
) -> Experiment:
    """Points on two rings, out of noise."""
    found = load(data)
    mean, scale = found.train.x.mean(0), found.train.x.std(0)
    train, test = (Examples(x=(part.x - mean) / scale) for part in (found.train, found.test))

    def figure(samples: Tensor) -> Figure:
        return point_cloud(samples, test.x)

    return _make_experiment(data, system, config, options, train, test, lambda x: x, figure)


@recipe("gan", "wgan", data="digits", metric="energy_distance")
def generate_digits(
    data: str = "digits",
    config: Any = DIGIT_GAMES,
    options: Any = DIGIT_OPTIONS,
    system: str = "gan",
) -> Experiment:
    """Handwritten digits of 8 x 8 pixels, out of noise."""
    found = load(data)
    train, test = Examples(x=found.train.x), Examples(x=found.test.x)
    name = "an adversarial network" if system == "gan" else "a Wasserstein network"

    def described(x: Tensor) -> Tensor:
        return image_features(data)(2 * x[:, None].float().cpu() - 1)

    def figure(samples: Tensor) -> Figure:
        return image_grid(samples, f"Digits of {name}", columns=10)

    return _make_experiment(data, system, config, options, train, test, described, figure)


def _make_experiment(
    data: str,
    system: str,
    config: Any,
    options: Options,
    train: Examples,
    test: Examples,
    described: Callable[[Tensor], Tensor],
    figure: Callable[[Tensor], Figure],
) -> Experiment:
    """The experiment of two players; samples are compared with test examples by what describes both."""
    _check_options(options)
    kind, of_the_system = KINDS[system]
    arguments = {"shape": list(train.x.shape[1:]), **chosen(config, of_the_system)}
    model = built(kind, arguments, options)

    def metrics(model: AdversarialPair, batch: Examples) -> dict[str, float]:
        drawn = _drawn_samples(model, len(batch), torch.Generator().manual_seed(0))
        apart = energy_distance(described(drawn.cpu()), described(batch.x.cpu()), unbiased=True)
        return {"energy_distance": float(apart)}

    def sample(model: AdversarialPair, count: int, generator: torch.Generator) -> Figure:
        return figure(_drawn_samples(model, count, generator))

    def picture(model: AdversarialPair) -> Figure:
        return sample(model, 50 if len(model.shape) > 1 else 500, torch.Generator().manual_seed(0))

    learner = TwoPlayer(
        model, *model.players(options.lr), play=config.play, critic_steps=config.critic_steps,
        schedule=options.schedule, ema_decay=options.ema_decay, metrics=metrics,
    )  # fmt: skip
    return Experiment(
        model, arguments, train, test, options, learner=learner, metric="energy_distance", sample=sample,
        picture=picture, notes={"baselines": LOST[data], "how": HOW},
    )  # fmt: skip


def _drawn_samples(model: AdversarialPair, count: int, generator: torch.Generator) -> Tensor:
    """Samples in evaluation mode; the noise is drawn on the CPU, so that it is the same wherever the model is."""
    home, training = next(model.parameters()), model.training
    z = torch.randn(count, model.latent, generator=generator).to(home)
    with torch.no_grad():
        samples = model.eval().decode(z)
    model.train(training)
    return samples


def _check_options(options: Options) -> None:
    """What the options of one loss say of two players: refused rather than passed over."""
    validate.one_of("optimizer", options.optimizer, ("adam",))
    for name, usual in (("weight_decay", 0.0), ("clip", None), ("accumulate", 1), ("warmup", 0), ("momentum", None)):
        if getattr(options, name) != usual:
            raise ValueError(f"{name} is not known to two players: leave it out, or set it to {usual}")
