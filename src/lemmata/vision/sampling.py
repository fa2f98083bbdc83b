r"""Samples and what they keep: spectra that repeat, reconstruction by sinc or Gaussian, images of another size."""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.image_arguments import image_of
from lemmata.vision.image_filter import filter_image
from lemmata.vision.separable_kernel import Separable
from lemmata.vision.smoothing_kernels import gaussian_kernel

__all__ = [
    "gaussian_reconstruct",
    "periodic_reconstruct",
    "resize_image",
    "sampled_spectrum",
    "siemens_star",
    "sinc_reconstruct",
]


@system("sampled_spectrum", title="Spectrum of samples", kind="function")
def sampled_spectrum(
    samples: Float[Tensor, "*batch n"], positions: Float[Tensor, "n"], frequencies: Float[Tensor, "*u"]
) -> Complex[Tensor, "*shape"]:
    r"""The transform of a train of deltas, $F_s(u) = \sum_n f(x_n)\,e^{-2\pi iux_n}$.

    For $x_n = n\Delta$ it repeats: $F_s(u) = \frac1\Delta\sum_k F(u - k/\Delta)$.

    Shapes:
        samples: (..., n), positions: (n,), frequencies: any shape    returns: (..., *frequencies), complex

    Claims: vision.sampling

    >>> sampled_spectrum(torch.ones(4), torch.arange(4.0), torch.tensor([0.0, 1.0])).real
    tensor([4., 4.])
    """
    _sample_distance(samples, positions)
    turns = positions[:, None] * frequencies.flatten()  # (n, frequencies)
    waves = torch.polar(torch.ones_like(turns), -2 * math.pi * turns)
    return (samples.to(waves.dtype) @ waves).reshape(*samples.shape[:-1], *frequencies.shape)


@system("sinc_reconstruct", title="Sinc reconstruction", kind="function")
def sinc_reconstruct(
    samples: Float[Tensor, "*batch n"], positions: Float[Tensor, "n"], x: Float[Tensor, "*points"]
) -> Float[Tensor, "*shape"]:
    r"""The band-limited function through samples: $\hat f(x) = \sum_n f(n\Delta)\,\mathrm{sinc}(x/\Delta - n)$.

    It is $f$ iff nothing of its spectrum lies outside $|u| < \frac1{2\Delta}$ (Shannon).

    Shapes:
        samples: (..., n), positions: (n,) with equal steps, x: any shape    returns: (..., *x)

    Claims: vision.sinc, vision.gaussian_reconstruction
    Source: C. Shannon, Communication in the presence of noise (1949).

    >>> sinc_reconstruct(torch.tensor([0.0, 1.0, 0.0]), torch.arange(3.0), torch.tensor([1.0, 1.5]))
    tensor([1.0000, 0.6366])
    """
    step = _sample_distance(samples, positions)
    return _weighted_sum(samples, torch.sinc((x.flatten() - positions[:, None]) / step), x)


@system("periodic_reconstruct", title="Dirichlet reconstruction", kind="function")
def periodic_reconstruct(samples: Float[Tensor, "*batch n"], x: Float[Tensor, "*points"]) -> Float[Tensor, "*shape"]:
    r"""The same for a function of period $n$ with samples at $0, \dots, n-1$: all sincs of a sample, added up.

    $$ \hat f(x) = \sum_k f(k)\,D_n(x - k), \qquad
       D_n(t) = \frac{\sin \pi t}{n\sin(\pi t/n)} \;(n \text{ odd}), \quad \frac{\sin \pi t}{n\tan(\pi t/n)} \;(n
       \text{ even}) $$

    Shapes:
        samples: (..., n), x: any shape    returns: (..., *x)

    Claims: vision.sinc, vision.sampling

    >>> periodic_reconstruct(torch.tensor([1.0, 0.0, -1.0, 0.0]), torch.tensor([0.5]))
    tensor([0.7071])
    """
    n = samples.shape[-1]
    _sample_distance(samples, torch.arange(n, dtype=samples.dtype, device=samples.device))
    t = x.flatten() - torch.arange(n, dtype=x.dtype, device=x.device)[:, None]  # (n, points)
    t = t - n * torch.round(t / n)  # one period: the quotient of small numbers near a sample
    ratio = torch.sinc(t) / torch.sinc(t / n)
    return _weighted_sum(samples, ratio if n % 2 else ratio * torch.cos(math.pi * t / n), x)


@system("gaussian_reconstruct", title="Gaussian reconstruction", kind="function")
def gaussian_reconstruct(
    samples: Float[Tensor, "*batch n"], positions: Float[Tensor, "n"], x: Float[Tensor, "*points"], sigma: int | float
) -> Float[Tensor, "*shape"]:
    r"""Samples convolved with a Gaussian, $\hat f(x) = \Delta\sum_n f(x_n)\,g_\sigma(x - x_n)$.

    Its spectrum is that of the samples times $\Delta\,e^{-2\pi^2\sigma^2u^2}$: replicas fade, and so does the band.

    Shapes:
        samples: (..., n), positions: (n,) with equal steps, x: any shape    returns: (..., *x)

    Claims: vision.gaussian_reconstruction

    >>> gaussian_reconstruct(torch.ones(9), torch.arange(9.0), torch.tensor([4.0, 4.5]), sigma=1.0)
    tensor([1.0000, 1.0000])
    """
    step, sigma = _sample_distance(samples, positions), float(validate.positive("sigma", sigma))
    scaled = (x.flatten() - positions[:, None]) / sigma
    return _weighted_sum(samples, torch.exp(-0.5 * scaled**2) * (step / (sigma * math.sqrt(2 * math.pi))), x)


def _weighted_sum(samples: Tensor, weights: Tensor, x: Tensor) -> Tensor:
    return (samples @ weights.to(samples)).reshape(*samples.shape[:-1], *x.shape)


def _sample_distance(samples: Tensor, positions: Tensor) -> float:
    """The distance of neighbouring samples, once they fit together and are equally far apart."""
    validate.floating("samples", samples)
    if samples.ndim == 0 or validate.floating("positions", positions).shape != samples.shape[-1:]:
        fit = f"({samples.shape[-1] if samples.ndim else 1},)"
        raise ValueError(f"positions must be {fit} to fit samples, got shape {tuple(positions.shape)}")
    if len(positions) == 1:
        return 1.0
    step = float(positions[-1] - positions[0]) / (len(positions) - 1)
    off = float((positions.diff() - step).abs().max())
    if step <= 0 or off > 8 * torch.finfo(positions.dtype).eps * float(positions.abs().max()):
        raise ValueError("positions must increase in equal steps: use torch.arange or torch.linspace")
    return step


# --- Images ---


@system("resize_image", title="Resizing with a pre-filter", kind="function")
def resize_image(
    image: Float[Tensor, "*batch height width"], size: tuple[int, int], antialias: bool = True
) -> Float[Tensor, "*batch new_height new_width"]:
    r"""Sampled anew by bilinear interpolation, after a Gaussian that takes away what the new grid cannot hold.

    $\sigma = \max(0, (s - 1)/2)$ pixels for a factor $s$, as scikit-image chooses it; pixels are squares, whose centres
    are compared.

    Shapes:
        image: (..., height, width)    returns: (..., *size)

    Differs: `antialias=False` shows the aliases that the filter prevents.

    >>> resize_image(torch.eye(4), (2, 2), antialias=False)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    image_of("image", image)
    for number in size:
        validate.count("size", number)
    if validate.flag("antialias", antialias):
        for axis, (old, new) in enumerate(zip(image.shape[-2:], size, strict=True)):
            if (sigma := (old / new - 1) / 2) > 0:
                turned = image.transpose(-2, -1) if axis else image
                image = _smoothed_columns(turned, sigma)
                image = image.transpose(-2, -1) if axis else image
    flat = image.reshape(-1, 1, *image.shape[-2:])
    small = functional.interpolate(flat, size=tuple(size), mode="bilinear", align_corners=False)
    return small.reshape(*image.shape[:-2], *small.shape[-2:])


def _smoothed_columns(image: Tensor, sigma: int | float) -> Tensor:
    column = gaussian_kernel(sigma, dtype=image.dtype).column
    return filter_image(image, Separable(column, column.new_ones(1)), "reflect" if image.shape[-2] > 1 else "replicate")


@system("siemens_star", title="Siemens star", kind="function")
def siemens_star(size: int = 256, spokes: int = 36) -> Float[Tensor, "size size"]:
    r"""Spokes that meet in the middle, $\tfrac12 + \tfrac12\cos(s\varphi)$: every frequency up to any resolution.

    At radius $r$ there are $s/(2\pi r)$ periods for each pixel.

    Shapes:
        returns: (size, size) in $[0, 1]$

    >>> siemens_star(5, spokes=2)[2]
    tensor([1., 1., 1., 1., 1.])
    """
    validate.count("size", size, least=2)
    validate.count("spokes", spokes)
    places = torch.arange(size, dtype=torch.get_default_dtype()) - (size - 1) / 2
    angle = torch.atan2(-places[:, None], places[None, :])
    return 0.5 + 0.5 * torch.cos(spokes * angle)
