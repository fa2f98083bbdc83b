r"""Restoration: divide by a blur's spectrum, where that can be done, and as far as the noise allows."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.certified.rounding import gamma
from lemmata.marks import system
from lemmata.vision.image_arguments import centre_of, image_of, kernel_of

__all__ = ["Restoration", "Restored", "transfer_function"]

BORDERS = ("circular", "blended")
REGULARISERS = ("identity", "gradient")
BALANCES = torch.linspace(-8, 1, 91, dtype=torch.float64)  # powers of ten between which a balance is looked for


class Restored(NamedTuple):
    """An image, the balance it was restored with, and why it is this one."""

    image: Float[Tensor, "*batch height width"]
    balance: int | float
    reason: str


@system("transfer_function", title="Transfer function of a kernel", kind="function")
def transfer_function(
    kernel: Float[Tensor, "rows columns"], size: tuple[int, int], centre: tuple[int, int] | None = None
) -> Complex[Tensor, "height half_width"]:
    r"""By what a circular convolution multiplies each frequency: $H(u, v) = \sum_{a,b} h[a,b]\,e^{-2\pi i(ua + vb)}$.

    Taps are counted from the kernel's centre, so that a symmetric kernel has a real transfer function. The sum is taken
    along one axis and then the other, which costs no more than a transform and has a rounding bound.

    Shapes:
        kernel: (rows, columns)    returns: (height, width // 2 + 1), as torch.fft.rfft2 has its frequencies

    Claims: vision.inverse_filter, vision.motion_blur_spectrum

    >>> transfer_function(torch.tensor([[0.25, 0.5, 0.25]]), (1, 4))
    tensor([[1.0000+0.j, 0.5000+0.j, 0.0000+0.j]])
    """
    row, column = centre_of(kernel.shape, centre)
    down = _fourier_waves(size[0], size[0], kernel.shape[0], row, kernel)  # (height, rows)
    across = _fourier_waves(size[1], size[1] // 2 + 1, kernel.shape[1], column, kernel)  # (half_width, columns)
    return down @ kernel.to(down.dtype) @ across.mT


def _fourier_waves(size: int, frequencies: int, taps: int, centre: int, like: Tensor) -> Tensor:
    r"""$e^{-2\pi iua}$ for all frequencies and taps; whole turns are dropped as integers, so that phases are exact."""
    places = torch.arange(taps, device=like.device) - centre
    turns = torch.outer(torch.arange(frequencies, device=like.device), places) % size
    # In quarters of a turn the values 0 and 1 come out exactly.
    angle = turns.double() * (-2 * math.pi / size)
    wave = torch.polar(torch.ones_like(angle), angle)
    quarter = (4 * turns) % size == 0
    exact = torch.tensor([1, -1j, -1, 1j], dtype=wave.dtype, device=like.device)[(4 * turns // size) % 4]
    return torch.where(quarter, exact, wave).to(torch.promote_types(like.dtype, torch.complex64))


@system(
    "restoration",
    title="Image restoration",
    kind="module",
    example="Restoration([[0.2, 0.5, 0.3]])(torch.randn(3, 6, 7))",
)
class Restoration(nn.Module):
    r"""Undo a known blur: by the inverse filter, or with a balance $\varepsilon$ between detail and noise.

    $$ J = h * I + n, \qquad \mathcal F[\hat I] = \frac{\overline{\mathcal F[h]}}{|\mathcal F[h]|^2 +
       \varepsilon}\;\mathcal F[J] $$

    the minimiser of $\|h*\hat I-J\|^2+\varepsilon\|\hat I\|^2$ (Tikhonov). It is Wiener's filter, the best linear one,
    where $\varepsilon$ is the ratio of the power spectra of noise and image, one number if both are white. Of a real
    image, which does not wrap around, the border is blended into its opposite before (`border="blended"`). Photographs
    have far more of low frequencies than of high ones: `regulariser="gradient"` has $\|\nabla\hat I\|^2$ for $\|\hat
    I\|^2$, which is a ratio of spectra that grows with the frequency.

    Shapes:
        image: (..., height, width)    returns: the same

    Claims: vision.wiener, vision.inverse_filter, vision.degradation, vision.noise_amplification
    Source: N. Wiener, Extrapolation, interpolation and smoothing of stationary time series (1949).
    Differs: scikit-image's wiener weighs frequencies by a Laplacian; here by one number, or by spectra that are given.

    >>> from lemmata.vision import motion_blur_kernel
    >>> restoration = Restoration(motion_blur_kernel(3), border="circular")
    >>> image = torch.eye(8)
    >>> torch.allclose(restoration.inverse(restoration.blur(image)), image, atol=1e-5)
    True
    """

    kernel: Tensor

    def __init__(
        self,
        kernel: Float[Tensor, "rows columns"] | Sequence[Sequence[float]],
        balance: int | float = 0.01,
        centre: tuple[int, int] | None = None,
        border: str = "blended",
        regulariser: str = "identity",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(kernel, Tensor):
            kernel = torch.tensor(kernel, device=device, dtype=dtype)
        kernel = kernel.to(device=device, dtype=dtype)
        if kernel.is_complex():
            raise TypeError(f"kernel must be real, got {kernel.dtype}: use kernel.real")
        self.register_buffer("kernel", kernel_of("kernel", kernel, kernel))
        self.centre = centre_of(kernel.shape, centre)
        self._last: tuple[tuple[Any, ...], Tensor] | None = None
        self.border = validate.one_of("border", border, BORDERS)
        self.regulariser = validate.one_of("regulariser", regulariser, REGULARISERS)
        level = math.log(validate.positive("balance", balance))
        self.log_balance = nn.Parameter(torch.tensor(level, dtype=kernel.dtype, device=kernel.device))

    def blur(self, image: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch height width"]:
        """The degradation itself: a circular convolution, whatever `border` says."""
        wide = _wide_image(image_of("image", image))
        transfer = self._kernel_transfer(image.shape, wide)
        return _multiply_spectrum(wide, transfer).to(image.dtype)

    def inverse(self, image: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch height width"]:
        """Divide by the transfer function, which must be away from zero by more than rounding at every frequency."""
        return self._filter_spectrum(image, self._inverse_response)

    def _inverse_response(self, size: torch.Size, like: Tensor) -> Tensor:
        transfer = self._kernel_transfer(size, like)
        least, bound = self.certified_gain(size, like.dtype)
        if least <= 0:
            told = f"the smallest is {float(transfer.abs().min()):.2g} and rounding up to {bound:.2g}"
            raise ValueError(
                f"the kernel cancels a frequency of {size[-2]} x {size[-1]} pixels, {told}: give a balance"
            )
        return 1 / transfer

    def certified_gain(self, size: Sequence[int], dtype: torch.dtype = torch.float64) -> tuple[float, float]:
        r"""A proved lower bound of the smallest $|H(u, v)|$, 0 or less where none is, and the rounding it allows for.

        Each sum has fewer terms than the kernel has rows and columns, four products each in complex arithmetic, and
        waves that are off by some units in the last place: $\gamma_{4(r + c) + 32}\sum|h|$ covers all of it.
        """
        kernel = self.kernel.detach().to(dtype)
        transfer = self._kernel_transfer(size, kernel).abs()
        bound = gamma(4 * sum(kernel.shape) + 32, dtype) * float(kernel.abs().sum())
        return float(transfer.min()) - bound, bound

    def noise_amplification(self, size: Sequence[int]) -> float:
        r"""By how much the inverse filter multiplies the variance of white noise: the mean of $1/|H|^2$."""
        gains = 1 / self._kernel_transfer(size, self.kernel.detach().double()).abs().square()
        return float((gains * _frequency_multiplicity(size, gains)).sum() / (size[-2] * size[-1]))

    def forward(
        self, image: Float[Tensor, "*batch height width"], balance: int | float | Tensor | None = None
    ) -> Float[Tensor, "*batch height width"]:
        """Regularised by this balance, or by its own; a tensor has one for each frequency, as rfft2 orders them."""
        plain = isinstance(balance, int | float)
        if plain:
            validate.number("balance", balance, least=0)
        chosen = self.log_balance.exp() if balance is None else balance

        def regularised(size: torch.Size, like: Tensor) -> Tensor:
            transfer = self._kernel_transfer(size, like)
            penalty = chosen * self._frequency_penalty(size, transfer.real) if balance is None or plain else chosen
            weight = 1 / (transfer.real.square() + transfer.imag.square() + penalty)
            # The conjugate times a real weight; torch would make the weight complex first.
            return torch.complex(transfer.real * weight, -transfer.imag * weight)

        return self._filter_spectrum(image, regularised)

    def wiener(
        self, image: Float[Tensor, "*batch height width"], noise: int | float | Tensor, signal: int | float | Tensor
    ) -> Float[Tensor, "*batch height width"]:
        """The best linear filter for these power spectra of noise and image; a number means white.

        Spectra are (height, width // 2 + 1), the mean of |rfft2|^2 over images, for border "circular".
        """
        for name, value in (("noise", noise), ("signal", signal)):
            if isinstance(value, Tensor) and self.border != "circular":
                raise ValueError(f"{name} as a spectrum has the frequencies of the image: use border='circular'")
            _check_spectrum(name, torch.as_tensor(value), image_of("image", image))
        if bool((torch.as_tensor(signal) == 0).any()):
            raise ValueError("signal must be a power, > 0, got 0: give a small number where there is nothing")
        ratio = torch.as_tensor(noise, dtype=image.dtype) / torch.as_tensor(signal, dtype=image.dtype)
        return self.forward(image, ratio.to(image.device))

    def restore(
        self,
        image: Float[Tensor, "*batch height width"],
        noise: int | float | None = None,
        by: str = "cross-validation",
    ) -> Restored:
        r"""Restore with a balance that the image itself, or the standard deviation of its noise, decides.

        by="noise": $\sigma^2$ over the mean square of what is penalised. by="discrepancy": what is not explained,
        $\|h*\hat I-J\|^2$, is as large as the noise, $N\sigma^2$. by="cross-validation": pixels that are left out are
        predicted best (Golub, Heath and Wahba 1979), which needs no noise level. What a border does not explain counts
        as noise: on small images with little noise cross-validation is the safest.
        """
        validate.one_of("by", by, ("cross-validation", "discrepancy", "noise"))
        if by != "cross-validation" and noise is None:
            raise ValueError(
                f"by={by!r} needs the standard deviation of the noise: give noise=, or by='cross-validation'"
            )
        if noise is not None:
            validate.number("noise", noise, least=0)
        balance, reason = self._choose_balance(image_of("image", image).detach(), noise, by)
        return Restored(self.forward(image, balance), balance, reason)

    def _choose_balance(self, image: Tensor, noise: int | float | None, by: str) -> tuple[float, str]:
        ready, size, _ = self._prepare_image(image.double())
        power = torch.fft.rfft2(ready).abs().square().reshape(-1, size[-2], size[-1] // 2 + 1).mean(0)
        transfer = self._kernel_transfer(size, ready).abs().square()
        weight = _frequency_multiplicity(size, transfer).expand_as(transfer) / (size[-2] * size[-1])
        penalty = self._frequency_penalty(size, transfer)
        if by == "noise" and noise is not None:
            weighed = weight * penalty * power / (size[-2] * size[-1])
            signal = max(float(weighed.sum() - weighed[0, 0] - noise**2 * (weight * penalty).sum()), noise**2, 1e-12)
            return noise**2 / signal, f"noise variance {noise**2:.3g} over {signal:.3g}, that of what is penalised"
        balances = 10 ** BALANCES.to(ready.device)
        left = [balance * penalty / (transfer + balance * penalty) for balance in balances]  # not explained
        misfit = torch.stack([(weight * part**2 * power).sum() for part in left]) / (size[-2] * size[-1])
        if by == "discrepancy" and noise is not None:
            k = int((misfit <= noise**2).sum().clamp(1, len(balances))) - 1  # it grows with the balance
            return float(balances[k]), f"the residual, {float(misfit[k]):.3g}, is the noise variance {noise**2:.3g}"
        free = torch.stack([(weight * part).sum() for part in left])
        score = misfit / free**2
        k = int(score.argmin())
        return float(
            balances[k]
        ), f"least generalised cross-validation, {float(score[k]):.3g}, of {len(balances)} balances"

    def _frequency_penalty(self, size: Sequence[int], like: Tensor) -> Tensor:
        r"""What multiplies the balance at each frequency: 1, or $4\sin^2\pi u + 4\sin^2\pi v$ for the gradient."""
        if self.regulariser == "identity":
            return like.new_ones(())
        u, v = (like.new_tensor(range(n)) / whole for n, whole in ((size[-1] // 2 + 1, size[-1]), (size[-2], size[-2])))
        return 4 * torch.sin(math.pi * u).square() + 4 * torch.sin(math.pi * v[:, None]).square()

    def _kernel_transfer(self, size: Sequence[int], like: Tensor) -> Tensor:
        self._check_size(size)
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return transfer_function(self.kernel.to(like), (size[-2], size[-1]), self.centre)
        # Images of one size come one after another: the last transfer function is kept.
        # What was computed in inference mode has no place in a gradient.
        mode, version = torch.is_inference_mode_enabled(), None if self.kernel.is_inference() else self.kernel._version
        key = (size[-2], size[-1], like.dtype, like.device, mode, version, self.kernel.data_ptr())
        if self._last is None or self._last[0] != key:
            self._last = key, transfer_function(self.kernel.to(like), (size[-2], size[-1]), self.centre)
        return self._last[1]

    def _check_size(self, size: Sequence[int]) -> None:
        if self.kernel.shape[0] > size[-2] or self.kernel.shape[1] > size[-1]:
            sizes = f"{tuple(self.kernel.shape)} for {size[-2]} x {size[-1]} pixels"
            raise ValueError(f"kernel must not be larger than the image, got {sizes}: crop the kernel")

    def _filter_spectrum(self, image: Tensor, response: Callable[[torch.Size, Tensor], Tensor]) -> Tensor:
        ready, size, inner = self._prepare_image(_wide_image(image_of("image", image)))
        return _multiply_spectrum(ready, response(size, ready))[(..., *inner)].to(image.dtype)

    def _prepare_image(self, image: Tensor) -> tuple[Tensor, torch.Size, tuple[slice, slice]]:
        """The image as one period of a periodic one, the size of that, and where in it the image stands."""
        height, width = image.shape[-2:]
        self._check_size(image.shape)
        if self.border == "blended":
            for axis, taps in ((-2, self.kernel.shape[0]), (-1, self.kernel.shape[1])):
                image = _blended_border(image, axis, 4 * (taps - 1))
        return image, image.shape, (slice(0, height), slice(0, width))


def _check_spectrum(name: str, value: Tensor, image: Tensor) -> None:
    """One power for all frequencies, or one for each of those that the image has."""
    height, half = image.shape[-2], image.shape[-1] // 2 + 1
    if value.ndim and value.shape[-2:] != (height, half):
        raise ValueError(f"{name} must be a number or ({height}, {half}), as rfft2 has it, got {tuple(value.shape)}")
    if not bool((value >= 0).all() & value.isfinite().all()):
        raise ValueError(f"{name} must be a power, >= 0 and finite, got {float(value.min()):g}")


def _wide_image(image: Tensor) -> Tensor:
    """In float32 at least: half precision has no Fourier transform of every size."""
    return image.to(torch.promote_types(image.dtype, torch.float32))


def _multiply_spectrum(image: Tensor, factor: Tensor) -> Tensor:
    """The image whose spectrum is multiplied by this; the transform does not take a batch of none."""
    if 0 in image.shape:
        return image
    spectrum = torch.fft.rfft2(image)
    spectrum = spectrum * factor if spectrum.requires_grad or factor.requires_grad else spectrum.mul_(factor)
    return torch.fft.irfft2(spectrum, s=image.shape[-2:])


def _blended_border(image: Tensor, axis: int, count: int) -> Tensor:
    """Behind the last row so many that lead back to the first: both are mirrored, and one fades into the other."""
    size = image.shape[axis]
    count = min(count, size)
    if not count:
        return image
    fade = torch.linspace(0, 1, count + 2, dtype=image.dtype, device=image.device)[1:-1]
    fade = (0.5 - 0.5 * torch.cos(math.pi * fade)).reshape(-1, *[1] * (-1 - axis))
    after, before = (image.narrow(axis, start, count).flip(axis) for start in (size - count, 0))
    return torch.cat([image, torch.lerp(after, before, fade)], axis)


def _frequency_multiplicity(size: Sequence[int], like: Tensor) -> Tensor:
    """How often a frequency of rfft2 stands in the whole spectrum: twice, but for those that are their own mirror."""
    times = like.new_full((size[-1] // 2 + 1,), 2.0)
    times[0] = 1.0
    if size[-1] % 2 == 0:
        times[-1] = 1.0
    return times
