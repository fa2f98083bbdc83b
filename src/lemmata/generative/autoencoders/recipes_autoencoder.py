"""What can be trained of autoencoders without a prior: photographs without their noise, digits in eight numbers.

What the defaults reach (seed 0): the photograph of the camera with noise of 25/255 comes back at 28.9 dB, where the
best Gaussian filter makes it 26.6 (and non-local means, which average similar patches, 27.6); eight numbers lose 0.82
of a test digit, squared, where eight principal components lose 1.55.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from scipy import ndimage
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.generative.autoencoders.deep_autoencoder import DeepAutoencoder, DeepAutoencoderConfig
from lemmata.generative.autoencoders.denoising_autoencoder import ImageDenoiser, ImageDenoiserConfig
from lemmata.generative.sample_figures import image_grid
from lemmata.marks import recipe
from lemmata.measure.image_quality import psnr
from lemmata.measure.principal_axes import principal_axes
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options

__all__ = ["PhotoDenoiserConfig", "best_gaussian_filter", "denoise_photographs", "squeeze_digits"]

PATCH = 40  # pixels along a side of what is learnt from


# --- Photographs ---


@dataclass(frozen=True)
class PhotoDenoiserConfig(ImageDenoiserConfig):
    """What can be chosen of a denoiser, and how much it sees."""

    noise_level: float = 25 / 255
    """Standard deviation of the noise; pixels are from 0 to 1."""
    patches: int = 1600
    """Patches of photographs to learn from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("patches", self.patches, most=100_000)


@recipe("denoising_autoencoder", data="photos", metric="psnr")
def denoise_photographs(
    data: str = "photos",
    config: PhotoDenoiserConfig = PhotoDenoiserConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=6, batch_size=16, lr=3e-3, schedule="cosine", warmup=20, evaluate=2),  # noqa: B008
) -> Experiment:
    """A photograph without its noise, by what two others, of a cat and of coffee, have in common with it."""
    del data  # there are no other photographs
    train = Examples(x=_photo_patches(config.patches, options.seed))
    test = Examples(x=load("photos").parts["camera"].x)  # (1, 1, 256, 256), from which nothing is learnt
    arguments = {"channels": 1, **chosen(config, without=("patches",))}
    model = built(ImageDenoiser, arguments, options)

    def noisy(system: ImageDenoiser, x: Tensor) -> Tensor:
        return system.corrupt(x.cpu(), torch.Generator().manual_seed(0)).to(x)  # the same noise in every evaluation

    def metrics(system: ImageDenoiser, batch: Examples) -> dict[str, float]:
        return {"psnr": _mean_decibels(system(noisy(system, batch.x)), batch.x)} if not system.training else {}

    def loss(system: ImageDenoiser, batch: Examples) -> Tensor:
        return system.loss(batch.x)

    def picture(system: ImageDenoiser) -> Figure:
        x = test.x.to(next(system.parameters()))
        with evaluating(system):
            seen = noisy(system, x)
            found = system(seen)
        filtered = best_gaussian_filter(seen.cpu(), x.cpu())
        columns = (("noisy", seen), ("Gaussian filter", filtered), ("denoised", found), ("truth", x))
        marks = []
        for name, image in columns:
            decibels = "" if name == "truth" else f", {_mean_decibels(image.to(x), x):.1f} dB"
            part = image[0, 0, 40:168, 60:188].detach().cpu().double().clamp(0, 1)
            marks.append(Image(part.mul(255).round().div(255), name + decibels))
        return Figure("A part of the photograph that was not learnt from", marks=marks)

    def sample(system: ImageDenoiser, count: int, generator: torch.Generator) -> Figure:
        """Squares of the photograph with fresh noise, and what becomes of them."""
        corners = torch.randint(256 - 96, (count, 2), generator=generator).tolist()
        clean = torch.stack([test.x[0, :, top : top + 96, left : left + 96] for top, left in corners])
        seen = system.corrupt(clean, generator).to(next(system.parameters()))
        with evaluating(system):
            images = torch.stack([seen, system(seen)], 1).flatten(0, 1)  # (2 * count, 1, 96, 96)
        return image_grid(images, "Noise, and without it", labels=["noisy", "denoised"] * count)

    seen = noisy(model, test.x)
    lost = {
        "noisy": _mean_decibels(seen, test.x),
        "Gaussian filter": _mean_decibels(best_gaussian_filter(seen, test.x), test.x),
    }
    return Experiment(
        model, arguments, train, test, options, loss=loss, metrics=metrics, metric="psnr", largest=True,
        picture=picture, sample=sample,
        notes={"baselines": lost, "how": "decibels, the same noise; the best of all filter widths"},
    )  # fmt: skip


def _photo_patches(count: int, seed: int) -> Tensor:
    """Squares of two photographs in grey, turned, mirrored, and some of them as negatives, (count, 1, 40, 40)."""
    drawn = torch.Generator().manual_seed(seed)
    images = [channel for name in ("cat", "coffee") for channel in load("photos").parts[name].x[0]]
    images += [load("photos").parts[name].x[0].mean(0) for name in ("cat", "coffee")]
    patches = []
    for _ in range(count):
        which, turns, mirror, negative = (int(torch.randint(n, (), generator=drawn)) for n in (len(images), 4, 2, 2))
        image = images[which]
        top, left = (int(torch.randint(n - PATCH, (), generator=drawn)) for n in image.shape)
        patch = torch.rot90(image[top : top + PATCH, left : left + PATCH], turns)
        patch = patch.flip(1) if mirror else patch
        patches.append(1 - patch if negative else patch)
    return torch.stack(patches)[:, None]


def best_gaussian_filter(noisy: Tensor, truth: Tensor) -> Tensor:
    """The images (n, 1, height, width) blurred by the width that comes nearest to the truth."""
    widths = [0.6 + 0.05 * k for k in range(30)]
    blurred = [torch.from_numpy(ndimage.gaussian_filter(noisy.numpy(), (0, 0, w, w))) for w in widths]
    return max(blurred, key=lambda image: _mean_decibels(image, truth))


def _mean_decibels(image: Tensor, truth: Tensor) -> float:
    return psnr(image.clamp(0, 1)[:, 0], truth[:, 0], 1.0).mean().item()


# --- Digits ---


@recipe("deep_autoencoder", data="digits", metric="error")
def squeeze_digits(
    data: str = "digits",
    config: DeepAutoencoderConfig = DeepAutoencoderConfig(),  # noqa: B008
    options: Options = Options(epochs=80, batch_size=64, lr=3e-3, schedule="cosine", evaluate=20),  # noqa: B008
) -> Experiment:
    """Handwritten digits in a few numbers each, and what these numbers still tell of them."""
    found = load(data)
    train, test = (Examples(x=part.x) for part in (found.train, found.test))
    arguments = {"inputs": train.x[0].numel(), **chosen(config)}
    flat = _principal_reconstruction(train.x, config.code)

    def loss(model: DeepAutoencoder, batch: Examples) -> dict[str, Tensor]:
        error = model.loss(batch.x)
        return {"loss": error, "error": error.detach()}

    def picture(model: DeepAutoencoder) -> Figure:
        x = test.x[:16]
        with evaluating(model):
            back = model(x.to(next(model.parameters()))).cpu()
        kinds = ((x, "test digits"), (back, f"from {config.code} numbers"), (flat(x), f"{config.code} components"))
        grids = [(image_grid(images, columns=4).marks[0], name) for images, name in kinds]
        marks = [Image(grid.pixels, name) for grid, name in grids]  # type: ignore[union-attr]
        return Figure("Digits and what is left of them", marks=marks)

    def sample(model: DeepAutoencoder, count: int, generator: torch.Generator) -> Figure:
        """Rows of as many digits between two of the test, along a straight line of codes."""
        ends = test.x[torch.randint(len(test), (2 * count,), generator=generator)].to(next(model.parameters()))
        with evaluating(model):
            first, last = model.encode(ends).view(2, count, 1, -1)
            along = torch.linspace(0, 1, count).to(ends)[:, None]
            images = model.decode((first + along * (last - first)).flatten(0, 1)).view(-1, *x_shape)
        return image_grid(images, "From one digit to another", columns=count)

    x_shape = train.x.shape[1:]
    baseline = {f"{config.code} principal components": float((flat(test.x) - test.x).square().flatten(1).sum(1).mean())}
    return Experiment(
        built(DeepAutoencoder, arguments, options), arguments, train, test, options, loss=loss, metric="error",
        picture=picture, sample=sample, notes={"baselines": baseline, "how": "squared distance, the same test digits"},
        predict=_code_map,
    )  # fmt: skip


def _code_map(model: Any, examples: Examples) -> dict[str, Tensor]:
    """The numbers of each example's code."""
    code = model.encode(examples.x)
    return {f"code {k}": code[:, k] for k in range(code.shape[1])}


def _principal_reconstruction(train: Tensor, size: int) -> Callable[[Tensor], Tensor]:
    """What is left of images on so many principal axes."""
    rows = train.flatten(1)
    mean = rows.mean(0)
    axes = principal_axes(rows - mean)[0][:size]
    return lambda x: (mean + (x.flatten(1) - mean) @ axes.mT @ axes).view(x.shape)
