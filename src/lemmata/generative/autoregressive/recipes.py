"""What can be trained in this chapter's autoregressive room: binary digits pixel by pixel, and speech by its echo.

What the defaults reach (seed 0), in nats: digits 17.4 an image by made, 17.7 by pixel_network, where independent pixels
have 24.4; speech -1.99 a sample by linear_autoregression, where white noise as loud has -0.88.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.convolution.recipes_sound import HELD_OUT
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.data.sound import mu_law_inverse, wav_bytes
from lemmata.figure import Figure, Image, Line
from lemmata.generative.autoregressive.linear_autoregression import (
    LinearAutoregression,
    autocovariances,
    levinson_durbin,
)
from lemmata.generative.autoregressive.masked_network import MADE, MADEConfig
from lemmata.generative.autoregressive.pixel_network import PixelNetwork, PixelNetworkConfig
from lemmata.generative.sample_figures import image_grid
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options

__all__ = ["LinearAutoregressionConfig", "draw_digits", "foretell_speech", "independent_pixel_nats"]

SIDE = 8  # pixels along a side of a digit
SHOWN = 36  # images of a figure, six by six: images side by side are drawn as squares


# --- Binary digits ---


@recipe("made", data="digits", metric="nll")
def draw_digits(
    data: str = "digits",
    config: MADEConfig = MADEConfig(widths=(512,)),  # noqa: B008 - frozen
    options: Options = Options(epochs=60, batch_size=64, lr=3e-3, schedule="cosine", evaluate=20),  # noqa: B008
) -> Experiment:
    """Ten handwritten digits in ink or none: how probable each pixel is, given those before it, and new digits."""
    return _digit_experiment(data, MADE, {"inputs": SIDE * SIDE, **chosen(config)}, options)


@recipe("pixel_network", data="digits", metric="nll")
def draw_digits_by_convolution(
    data: str = "digits",
    config: PixelNetworkConfig = PixelNetworkConfig(depth=5),  # noqa: B008
    options: Options = Options(epochs=50, batch_size=64, lr=4e-3, schedule="cosine", evaluate=10),  # noqa: B008
) -> Experiment:
    """The same digits by convolutions that look up and to the left."""
    return _digit_experiment(data, PixelNetwork, chosen(config), options)


def _digit_experiment(data: str, kind: Any, arguments: Mapping[str, Any], options: Options) -> Experiment:
    found = load(data)
    train, test = (Examples(x=(part.x > 0.5).float()) for part in (found.train, found.test))

    def loss(model: Any, batch: Examples) -> dict[str, Tensor]:
        nll = model.loss(batch.x)
        return {"loss": nll, "nll": nll.detach()}

    def sample(model: Any, count: int, generator: torch.Generator) -> Figure:
        size = {} if isinstance(model, MADE) else {"height": SIDE, "width": SIDE}
        with evaluating(model):
            images = model.sample(count, generator=generator, **size).view(-1, SIDE, SIDE)
        return image_grid(images, "Digits, drawn pixel by pixel", columns=6)

    def picture(model: Any) -> Figure:
        drawn = torch.Generator(next(model.parameters()).device).manual_seed(0)
        made = sample(model, SHOWN, drawn)
        real = image_grid(test.x[:SHOWN], columns=6)
        marks = [Image(part.marks[0].pixels, name) for part, name in ((made, "drawn"), (real, "test"))]  # type: ignore[union-attr]
        return Figure("Digits, drawn and real", marks=marks)

    baseline = {"independent pixels": independent_pixel_nats(train.x, test.x)}
    return Experiment(
        built(kind, arguments, options), arguments, train, test, options, loss=loss, metric="nll",
        picture=picture, sample=sample, notes={"baselines": baseline, "how": "nats an image, the same test images"},
    )  # fmt: skip


def independent_pixel_nats(train: Tensor, test: Tensor) -> float:
    """The nats of a test image where each pixel is ink as often as in training, one image of each kind added."""
    rate = (train.sum(0) + 1) / (len(train) + 2)
    return -float((test * rate.log() + (1 - test) * (1 - rate).log()).flatten(1).sum(1).mean())


# --- Speech ---


@dataclass(frozen=True)
class LinearAutoregressionConfig:
    """What can be chosen of a linear autoregression, and of how it hears."""

    order: int = 16
    """Samples before each that foretell it."""
    window: int = 1024
    """Samples heard in one piece."""

    def __post_init__(self) -> None:
        validate.count("order", self.order, most=256)
        validate.count("window", self.window, least=2 * self.order + 1)


@recipe("linear_autoregression", data="speech", metric="nll")
def foretell_speech(
    data: str = "speech",
    config: LinearAutoregressionConfig = LinearAutoregressionConfig(),  # noqa: B008
    options: Options = Options(epochs=1, batch_size=32, device="cpu"),  # noqa: B008
) -> Experiment:
    """Numbers spoken by one voice: each sample from a few before it, by the Yule-Walker equations."""
    found = load(data)
    train, test = (torch.cat(_spoken_waves(found, held_out)) for held_out in (False, True))
    heard, tested = (Examples(x=wave.unfold(0, config.window, config.window)) for wave in (train, test))
    rate, arguments = found.extra["rate"], {"order": config.order}
    system = LinearAutoregression(config.order)

    def sample(model: LinearAutoregression, count: int, generator: torch.Generator, length: int = 8000) -> bytes:
        waves = model.sample(count, length=length, generator=generator).float()
        return wav_bytes(0.25 * (waves / waves.std()).flatten(), rate)

    def picture(model: LinearAutoregression) -> Figure:
        frequency = torch.arange(1, config.window // 2) / config.window
        said = torch.fft.rfft(tested.x - tested.x.mean(), norm="ortho").abs().square().mean(0)[1:-1]
        with torch.no_grad():
            lines = [(said, "test words"), (model.spectrum(frequency), f"the model, order {model.order}")]
        marks = [Line(frequency * rate, 10 * values.log10(), name) for values, name in lines]
        note = "A few weights follow the resonances of the voice, not the single harmonics between them."
        return Figure("What the voice sounds like", "hertz", "decibels", marks, note=note)

    white = 0.5 * math.log(2 * math.pi * float(heard.x.var())) + 0.5 * float(tested.x.var() / heard.x.var())
    return Experiment(
        system, arguments, heard, tested, options, learner=YuleWalker(system), metric="nll", picture=picture,
        sample=sample, notes={"baselines": {"white noise as loud": white}, "how": "nats a sample, of words held out"},
    )  # fmt: skip


def _spoken_waves(words: Dataset, held_out: bool) -> list[Tensor]:
    """The wave of each word that is learnt from, or of each that is held out."""
    chosen_words = [place for place, name in enumerate(words.classes) if (name in HELD_OUT) == held_out]
    return [mu_law_inverse(words.train.code[place, : words.train.length[place]]) for place in chosen_words]


class YuleWalker:
    """Adds up autocovariances batch by batch, and solves for the weights anew after each."""

    def __init__(self, system: LinearAutoregression) -> None:
        self.system = system
        self.sums = torch.zeros(system.order + 1, dtype=torch.float64)
        self.windows = 0

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        x = batch.x.double().cpu()
        self.sums += len(x) * autocovariances(x, self.system.order)
        self.windows += len(x)
        predictors, left = levinson_durbin(self.sums / self.windows)
        self.system.load_state_dict(
            LinearAutoregression.of(predictors[-1], float(left[-1])).state_dict()  # a wave has no mean
        )
        return {"loss": float(self.system.loss(batch.x).detach())}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        nll = float(self.system.loss(examples.x).detach())
        return {"loss": nll, "nll": nll}

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "windows": self.windows}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.sums, self.windows = state["sums"], state["windows"]
