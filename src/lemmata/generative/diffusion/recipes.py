"""What `lemmata train ddpm` does: points, digits and clothing from noise, beside a Gaussian that must lose.

The score is the energy distance of samples from test examples, as they are or by the hidden units of a classifier: near
zero where both have one law. What the defaults reach (seed 0): moons 0.004, digits -0.02, fashion 0.021; `LOST` has
what must lose. With noise as target, more noising steps and a larger learning rate fashion reached 1.18.
"""

import functools
import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure
from lemmata.generative.diffusion.ddim import ddim_sampling
from lemmata.generative.diffusion.ddpm import DDPM
from lemmata.generative.diffusion.ddpm_networks import ImageDDPM, ImageDDPMConfig, PointDDPM, PointDDPMConfig
from lemmata.generative.diffusion.sampling_times import spaced_times
from lemmata.generative.sample_figures import image_grid, point_cloud
from lemmata.marks import recipe
from lemmata.measure.sample_distances import energy_distance
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options
from lemmata.train.randomness import seeded

__all__ = ["generate_clothing", "generate_digits", "generate_fetched", "generate_points", "image_features"]

SCORED = 1000  # test examples, and as many samples
WALK = 50  # steps of DDIM
GAUSSIAN = "Gaussian with full covariance"
HOW = "as many draws from the Gaussian with the mean and covariance of the training examples, by the same measure"


@recipe("ddpm", data="moons rings", metric="energy_distance")
def generate_points(
    data: str = "moons",
    config: PointDDPMConfig = PointDDPMConfig(noising_steps=100),  # noqa: B008 - frozen
    options: Options = Options(epochs=300, batch_size=128, lr=2e-3, schedule="cosine", ema_decay=0.99, evaluate=100),  # noqa: B008
) -> Experiment:
    """Points in the plane, out of noise: two moons, or rings."""
    found = load(data)
    mean, scale = found.train.x.mean(0), found.train.x.std(0)
    train, test = (Examples(x=(part.x - mean) / scale) for part in (found.train, found.test))

    def metrics(model: nn.Module, batch: Examples) -> dict[str, float]:
        drawn = model.sample(len(batch)).to(batch.x)  # type: ignore[operator]
        return {"energy_distance": float(energy_distance(drawn, batch.x, unbiased=True))}

    def sample(system: DDPM, count: int, generator: torch.Generator) -> Figure:
        return point_cloud(system.sample(count, generator=generator), test.x)

    def picture(system: DDPM) -> Figure:
        return sample(system, 500, torch.Generator().manual_seed(0))

    arguments = {"features": 2, **chosen(config)}
    return Experiment(
        built(PointDDPM, arguments, options), arguments, train, test, options, loss=_diffusion_loss, metrics=metrics,
        metric="energy_distance", sample=sample, picture=picture, notes={"baselines": LOST[data], "how": HOW},
    )  # fmt: skip


@recipe("ddpm", data="digits", metric="energy_distance")
def generate_digits(
    data: str = "digits",
    config: ImageDDPMConfig = ImageDDPMConfig(widths=(16, 32), noising_steps=200),  # noqa: B008
    options: Options = Options(epochs=150, batch_size=128, lr=2e-3, schedule="cosine", ema_decay=0.99, evaluate=50),  # noqa: B008
) -> Experiment:
    """Handwritten digits of 8 x 8 pixels, out of noise."""
    return _generated_images(data, config, options)


@recipe("ddpm", data="fashion", metric="energy_distance")
def generate_clothing(
    data: str = "fashion",
    config: ImageDDPMConfig = ImageDDPMConfig(widths=(32, 64), patch=4, noising_steps=200, target="data"),  # noqa: B008
    options: Options = Options(epochs=80, batch_size=128, lr=3e-3, schedule="cosine", ema_decay=0.99, evaluate=40),  # noqa: B008
) -> Experiment:
    """Articles of clothing of 28 x 28 pixels, out of noise, learnt from 2,000."""
    return _generated_images(data, config, options)


@recipe("ddpm", data="fashion_mnist mnist kmnist", metric="energy_distance")
def generate_fetched(
    data: str = "fashion_mnist",
    config: ImageDDPMConfig = ImageDDPMConfig(widths=(48, 96, 192), blocks=2),  # noqa: B008
    options: Options = Options(  # noqa: B008
        epochs=40, batch_size=512, lr=1e-3, warmup=300, schedule="cosine", clip=1.0, ema_decay=0.999, evaluate=20
    ),
) -> Experiment:
    """Images of 28 x 28 pixels, out of noise, learnt from 60,000: for a GPU."""
    return _generated_images(data, config, options)


def _generated_images(data: str, config: ImageDDPMConfig, options: Options) -> Experiment:
    found = load(data)
    train, test = (Examples(x=2 * part.x[:, None] - 1) for part in (found.train, found.test[:SCORED]))

    def metrics(model: nn.Module, batch: Examples) -> dict[str, float]:
        features = image_features(data)
        drawn = model.sample(len(batch), sampler="ddim", steps=_walk_of(config)).float()  # type: ignore[operator]
        return {
            "energy_distance": float(
                energy_distance(features(drawn.cpu()), features(batch.x.float().cpu()), unbiased=True)
            )
        }

    def sample(system: DDPM, count: int, generator: torch.Generator) -> Figure:
        drawn = system.sample(count, generator=generator, sampler="ddim", steps=_walk_of(config))
        return image_grid(
            _grey_levels(drawn), f"Samples of a diffusion model of {data}", columns=math.ceil(math.sqrt(count))
        )

    arguments = {"channels": 1, "height": train.x.shape[2], "width": train.x.shape[3], **chosen(config)}
    return Experiment(
        built(ImageDDPM, arguments, options), arguments, train, test, options, loss=_diffusion_loss, metrics=metrics,
        metric="energy_distance", classes=found.classes, sample=sample, picture=_denoising_strip,
        notes={"baselines": LOST.get(data) or {GAUSSIAN: round(gaussian_score(found), 3)}, "how": HOW},
    )  # fmt: skip


def _diffusion_loss(model: nn.Module, batch: Examples) -> Tensor:
    return model.loss(batch.x)  # type: ignore[operator]


def _walk_of(config: ImageDDPMConfig) -> int:
    return min(WALK, config.noising_steps)


def _grey_levels(x: Tensor) -> Tensor:
    return ((x.float() + 1) / 2).clamp(0, 1)


def _denoising_strip(system: DDPM, rows: int = 6, columns: int = 6) -> Figure:
    """Samples on their way: from noise on the left to images on the right."""
    stops = spaced_times(len(system.steps), min(columns - 1, len(system.steps)))
    weight = next(system.parameters())
    x = torch.randn(rows, *system.shape, generator=torch.Generator().manual_seed(0)).to(weight.device)
    seen = [x]
    with evaluating(system):
        for start, end in pairwise(stops):
            x = ddim_sampling(
                system, x, system.steps, _scale_pixels(start, end), target=system.target, bounds=system.bounds
            )
            seen.append(x)
    strip = torch.stack(seen, dim=1).flatten(0, 1)  # (rows * stops, channels, height, width)
    return image_grid(_grey_levels(strip), "From noise to images", columns=len(stops))


def _scale_pixels(start: int, end: int, most: int = 7) -> list[int]:
    """Times from one to another, both included, in at most so many steps."""
    return [end + t for t in spaced_times(start - end, min(most, start - end))]


# --- What samples are measured by ---


@functools.cache
def image_features(data: str) -> Callable[[Tensor], Tensor]:
    r"""Features by which images of a data set are compared: the hidden units of a classifier of its training part.

    Pixels would do badly: a Gaussian with the right covariance is near in them, and looks like nothing. Two hidden
    layers, trained for seconds with a seed of its own; the last of them, scaled to unit variance on the test part.

    Shapes:
        images: (n, 1, height, width) from -1 to 1    returns: (n, 64)
    """
    found = load(data)
    x, y = 2 * found.train.x[:6000] - 1, found.train.y[:6000]
    with seeded(0), torch.enable_grad():
        network = MLP(x[0].numel(), len(found.classes), widths=(128, 64))
        optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
        for _ in range(400):
            rows = torch.randint(len(x), (128,))
            optimizer.zero_grad()
            functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    network.requires_grad_(False)
    centre = network.activations(2 * found.test.x[:SCORED] - 1)[-2]
    mean, scale = centre.mean(0), centre.std(0).clamp(min=1e-3)
    return lambda images: (network.activations(images)[-2] - mean) / scale


def gaussian_draws(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draws from the Gaussian with the mean and the covariance of examples (n, features)."""
    values, axes = torch.linalg.eigh(torch.cov(x.double().mT))
    z = torch.randn(count, x.shape[1], generator=generator, dtype=torch.float64)
    return x.mean(0) + ((z * values.clamp(min=0).sqrt()) @ axes.mT).to(x)


def gaussian_score(data: Dataset) -> float:
    """What the Gaussian reaches by the measure of the recipe."""
    generator = torch.Generator().manual_seed(0)
    test = data.test.x[:SCORED]
    if test.ndim == 2:
        mean, scale = data.train.x.mean(0), data.train.x.std(0)
        train, test = ((x - mean) / scale for x in (data.train.x, test))
        return float(energy_distance(gaussian_draws(train, len(test), generator), test, unbiased=True))
    drawn = gaussian_draws(2 * data.train.x.flatten(1) - 1, len(test), generator).clamp(-1, 1)
    features = image_features(data.name)
    return float(
        energy_distance(features(drawn.reshape(-1, 1, *test.shape[1:])), features(2 * test[:, None] - 1), unbiased=True)
    )


# `gaussian_score(load(data))`
LOST = {
    "moons": {"Gaussian with full covariance": 0.0270},
    "rings": {"Gaussian with full covariance": 0.0107},
    "digits": {"Gaussian with full covariance": 0.2506},
    "fashion": {"Gaussian with full covariance": 0.3070},
}
