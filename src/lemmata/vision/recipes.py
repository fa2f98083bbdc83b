"""What can be trained in this chapter: the balance of a restoration, a threshold, and the noise of a sensor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.recipes_unet import BASELINES as OTSU
from lemmata.convolution.recipes_unet import hidden_objects
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Image, Line, Points
from lemmata.marks import recipe
from lemmata.measure.image_quality import psnr, ssim
from lemmata.measure.segmentation_measures import intersection_over_union
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.vision.image_noise import add_gaussian_noise
from lemmata.vision.motion_blur import motion_blur_kernel
from lemmata.vision.restoration import Restoration
from lemmata.vision.sensor import Sensor
from lemmata.vision.thresholding import Threshold

__all__ = [
    "RestorationConfig",
    "SensorConfig",
    "ThresholdingConfig",
    "calibrate_sensor",
    "find_by_contrast",
    "restore_photographs",
]

SIDE = 96  # pixels of the windows that are restored
PHOTOGRAPHS = {"train": ("camera", "coffee"), "test": ("cat",)}  # no window of the test was learnt from


def _grey_photographs(part: str) -> list[Tensor]:
    return [load("photos").parts[name].x[0].mean(0) for name in PHOTOGRAPHS[part]]  # (height, width) each


# --- Restoration: one number, by gradient descent ---


@dataclass(frozen=True)
class RestorationConfig:
    """The motion that blurs, the noise after it, and where the balance begins."""

    length: float = 9.0
    """Length of the motion in pixels."""
    angle: float = 30.0
    """Its direction in degrees, counter-clockwise from the right."""
    noise: float = 0.01
    """Standard deviation of the noise after the blur."""
    balance: float = 1.0
    """The balance to begin with."""
    windows: int = 64
    """Windows of photographs to learn from."""

    def __post_init__(self) -> None:
        validate.number("length", self.length, above=0, most=31)
        validate.finite_number("angle", self.angle)
        validate.number("noise", self.noise, least=0)
        validate.positive("balance", self.balance)
        validate.count("windows", self.windows, most=10_000)


@recipe("restoration", data="photos", metric="psnr")
def restore_photographs(
    data: str = "photos",
    config: RestorationConfig = RestorationConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=10, batch_size=16, lr=0.3, schedule="cosine", evaluate=2),  # noqa: B008
) -> Experiment:
    """The balance between detail and noise that restores photographs best after motion blur."""
    del data  # there are no other photographs
    kernel = motion_blur_kernel(config.length, config.angle)
    train, test = (_blurred_windows(part, kernel, config, options.seed) for part in ("train", "test"))
    arguments = {"kernel": kernel.tolist(), "balance": config.balance, "regulariser": "gradient"}
    system = Restoration(**arguments)

    def loss(system: nn.Module, batch: Examples) -> Tensor:
        return (system(batch.x) - batch.y).square().mean()

    def metrics(system: nn.Module, batch: Examples) -> dict[str, float]:
        return _image_scores(system(batch.x).clamp(0, 1), batch.y)

    lost = {
        "the blurred image": _image_scores(test.x.clamp(0, 1), test.y)["psnr"],
        "the plain inverse": _image_scores(system(test.x, 1e-9).detach().clamp(0, 1), test.y)["psnr"],
    }
    return Experiment(
        system, arguments, train, test, options, loss=loss, metrics=metrics, metric="psnr", largest=True,
        picture=_restored_figure(test), notes={"baselines": lost, "how": "decibels, on the same test windows"},
    )  # fmt: skip


def _blurred_windows(part: str, kernel: Tensor, config: RestorationConfig, seed: int) -> Examples:
    """Windows of photographs as a camera in motion sees them, and as they are."""
    drawn = torch.Generator().manual_seed(2 * seed + (part == "test"))
    rows, columns = kernel.shape
    x, y = [], []
    images = _grey_photographs(part)
    for k in range(config.windows if part == "train" else 24):
        image = images[k % len(images)]
        top, left = (
            int(torch.randint(n - SIDE - m, (1,), generator=drawn))
            for n, m in zip(image.shape, kernel.shape, strict=True)
        )
        seen = image[top : top + SIDE + rows - 1, left : left + SIDE + columns - 1]
        blurred = functional.conv2d(seen[None, None], kernel[None, None])[0, 0]  # symmetric: correlation is convolution
        x.append(add_gaussian_noise(blurred, config.noise, drawn))
        y.append(seen[rows // 2 :, columns // 2 :][:SIDE, :SIDE])
    return Examples(x=torch.stack(x), y=torch.stack(y))


def _image_scores(found: Tensor, truth: Tensor) -> dict[str, float]:
    return {"psnr": psnr(found, truth, 1.0).mean().item(), "ssim": ssim(found, truth, 1.0).mean().item()}


def _restored_figure(test: Examples, shown: int = 3) -> Callable[[Restoration], Figure]:
    def picture(system: Restoration) -> Figure:
        x, y = test.x[:shown], test.y[:shown]
        with torch.no_grad():
            found = system(x.to(system.log_balance)).cpu().clamp(0, 1)
        marks = []
        for k in range(shown):
            for pixels, name in ((x[k].clamp(0, 1), "blurred"), (found[k], "restored"), (y[k], "truth")):
                decibels = "" if name == "truth" else f", {float(psnr(pixels, y[k], 1.0)):.1f} dB"
                marks.append(Image((pixels * 255).round().div(255), name + decibels))
        return Figure(
            "Test windows, restored", marks=marks, note=f"Balance {float(system.log_balance.detach().exp()):.3g}."
        )

    return picture


# --- A threshold: the best of all, by counting ---


@dataclass(frozen=True)
class ThresholdingConfig:
    """How many scenes are looked at."""

    scenes: int = 600
    """Training scenes."""

    def __post_init__(self) -> None:
        validate.count("scenes", self.scenes, most=100_000)


@recipe("thresholding", data="glyphs furniture", metric="iou")
def find_by_contrast(
    data: str = "glyphs",
    config: ThresholdingConfig = ThresholdingConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=1, batch_size=100, device="cpu"),  # noqa: B008
) -> Experiment:
    """How far from the median grey of its scene a pixel must be to belong to the object that is hidden there."""
    train, test = (_contrast_scenes(data, part, n) for part, n in (("train", config.scenes), ("test", 300)))
    system = Threshold(1.0)

    def picture(system: Threshold) -> Figure:
        marks = []
        for k in range(4):
            found = system(test.x[k])
            iou = float(intersection_over_union(found[None], test.y[k : k + 1] == 1))
            columns = ((test.x[k], "contrast"), (test.y[k].float(), "truth"), (found.float(), f"found, {iou:.2f}"))
            marks += [Image(pixels.mul(1000).round().div(1000), label) for pixels, label in columns]
        return Figure("Hidden objects", marks=marks, note=f"Threshold {float(system.level):.3f} of the contrast.")

    how = "on the same test scenes; a U-Net finds the objects themselves, 0.75 of furniture: lemmata train unet"
    return Experiment(
        system, {"level": 1.0}, train, test, options, learner=ThresholdLearner(system), metric="iou", largest=True,
        classes=("photograph", "object"), picture=picture, notes={"baselines": OTSU[data], "how": how},
    )  # fmt: skip


def _contrast_scenes(data: str, part: str, count: int) -> Examples:
    """Scenes with hidden objects, as distances from their median grey."""
    scenes = hidden_objects(data, part, count)
    median = scenes.x.flatten(1).median(1).values
    return Examples(x=(scenes.x - median[:, None, None]).abs(), y=scenes.y)


class ThresholdLearner:
    """Adds up how well every level agrees with the ground truth, and keeps the best one."""

    def __init__(self, system: Threshold, levels: int = 200) -> None:
        self.system, self.levels = system, levels
        self.scores = torch.zeros(levels, dtype=torch.float64)

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        truth = batch.y == 1
        for k in range(self.levels):
            self.scores[k] += intersection_over_union(batch.x >= k / self.levels, truth).sum().cpu()
        best = int(self.scores.argmax())
        self.system.level.fill_(best / self.levels)
        return {"loss": 1 - float(intersection_over_union(self.system(batch.x), truth).mean())}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        found, truth = self.system(examples.x), examples.y == 1
        accuracy = (found == truth).double().mean().item()
        return {"iou": intersection_over_union(found, truth).mean().item(), "accuracy": accuracy}

    def state(self) -> dict[str, Tensor]:
        return {"scores": self.scores}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.scores = state["scores"].cpu()


# --- A sensor: gain and read noise from bursts ---


@dataclass(frozen=True)
class SensorConfig:
    """The sensor that is to be found out, and how often it looks."""

    gain: float = 0.37
    """Its gain in digital numbers for each electron."""
    read_noise: float = 6.5
    """Its read noise in electrons."""
    white: float = 4000.0
    """Electrons in a white pixel."""
    pixels: int = 4000
    """Pixels of photographs that are looked at."""
    frames: int = 16
    """Frames of each."""

    def __post_init__(self) -> None:
        validate.positive("gain", self.gain)
        validate.number("read_noise", self.read_noise, least=0)
        validate.positive("white", self.white)
        validate.count("pixels", self.pixels, least=10, most=10**6)
        validate.count("frames", self.frames, least=2, most=1000)


@recipe("sensor", data="photos", metric="nll")
def calibrate_sensor(
    data: str = "photos",
    config: SensorConfig = SensorConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=100, lr=0.1, optimizer="adam", schedule="cosine", evaluate=4),  # noqa: B008
) -> Experiment:
    """Gain and read noise of an unknown sensor from how its frames of the same scene differ (photon transfer)."""
    del data
    unknown = Sensor(full_well=4 * config.white, gain=config.gain, read_noise=config.read_noise, bits=16)
    train, test = (_frame_bursts(part, unknown, config, options.seed) for part in ("train", "test"))
    arguments = {"full_well": 4 * config.white, "gain": 1.0, "read_noise": 1.0, "bits": 16}
    system = Sensor(**arguments)
    constant = train.x.var(1).mean()

    def loss(system: Sensor, batch: Examples) -> Tensor:
        return _frame_nll(batch.x, system.variance_at(batch.x.mean(1)))

    def metrics(system: Sensor, batch: Examples) -> dict[str, float]:
        off = [
            abs(float(found.detach()) / true - 1)
            for found, true in ((system.gain, config.gain), (system.read_noise, config.read_noise or 1.0))
        ]
        return {"nll": loss(system, batch).item(), "gain error": off[0], "read noise error": off[1]}

    def picture(system: Sensor) -> Figure:
        mean, variance = test.x.mean(1), test.x.var(1)
        order = mean.argsort()
        groups = [part for part in order.split(max(1, len(order) // 25)) if len(part)]
        means, variances = ([float(of[part].mean()) for part in groups] for of in (mean, variance))
        across = torch.linspace(64, max(means), 50)
        line = Line(across, system.variance_at(across.to(system.gain)).detach().cpu(), "the sensor that was found")
        flat = Line([64, max(means)], [float(constant)] * 2, "constant noise")
        found = f"Gain {float(system.gain.detach()):.3f}, read noise {float(system.read_noise.detach()):.2f} electrons."
        marks = [Points(means, variances, "measured"), line, flat]
        return Figure("Photon transfer curve", "mean, digital numbers", "variance", marks, note=found)

    lost = {"constant noise": float(_frame_nll(test.x, constant))}
    return Experiment(
        system, arguments, train, test, options, loss=loss, metrics=metrics, metric="nll", picture=picture,
        notes={"baselines": lost, "how": "negative log-likelihood of a digital number, on the same test bursts"},
    )  # fmt: skip


def _frame_bursts(part: str, sensor: Sensor, config: SensorConfig, seed: int) -> Examples:
    """Digital numbers of pixels of photographs, frame after frame: (pixels, frames)."""
    drawn = torch.Generator().manual_seed(2 * seed + (part == "test"))
    light = torch.cat([image.flatten() for image in _grey_photographs(part)])
    light = light[torch.randint(len(light), (config.pixels,), generator=drawn)] * config.white
    with torch.no_grad():
        return Examples(x=sensor(light[:, None].expand(-1, config.frames).contiguous(), drawn))


def _frame_nll(x: Tensor, variance: Tensor) -> Tensor:
    """Of a digital number under a normal distribution around the mean of its burst, which costs a degree of freedom."""
    spread = x.var(1)  # unbiased
    return 0.5 * (spread / variance + torch.log(2 * torch.pi * variance)).mean()
