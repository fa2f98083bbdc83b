"""The Fourier transform of samples: agreement with torch's FFT and scipy, gradients, dtypes, and bad input."""

import math

import numpy
import pytest
import scipy.integrate
import torch

from lemmata.convolution import convolve, fourier_transform, inverse_fourier_transform

T = torch.arange(-8, 24, dtype=torch.float64) / 4


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_a_grid_from_zero_in_steps_of_one_is_torchs_fft(n):
    f, t = torch.randn(3, n, dtype=torch.complex128), torch.arange(n).double()
    F, u = fourier_transform(f, t)
    torch.testing.assert_close(F, torch.fft.fftshift(torch.fft.fft(f), -1), rtol=0, atol=1e-13)
    assert torch.equal(u, torch.fft.fftshift(torch.fft.fftfreq(n)).double().mul(n).round() / n)
    back, start = inverse_fourier_transform(F, u, start=0.0)
    torch.testing.assert_close(back, f, rtol=0, atol=1e-13)
    torch.testing.assert_close(start, t, rtol=0, atol=1e-13)


def test_without_a_start_the_function_is_centred_at_zero():
    t = (torch.arange(9) - 4).double() / 2
    f = torch.randn(9, dtype=torch.float64)
    back, places = inverse_fourier_transform(*fourier_transform(f, t))
    torch.testing.assert_close(places, t, rtol=0, atol=1e-14)
    torch.testing.assert_close(back, f.to(back), rtol=0, atol=1e-13)


def test_one_start_serves_all_grids():
    f, x = torch.randn(5, 6, dtype=torch.float64), torch.arange(6).double() / 2
    F, u, v = fourier_transform(f, x[:5] + 3, x + 3)
    together, apart = (inverse_fourier_transform(F, u, v, start=start) for start in (3, [3.0, 3]))
    assert all(torch.equal(one, other) for one, other in zip(together, apart, strict=True))
    torch.testing.assert_close(together[0], f.to(F), rtol=0, atol=1e-12)
    assert [float(grid[len(grid) // 2]) for grid in inverse_fourier_transform(F, u, v)[1:]] == [0.0, 0.0]


def test_the_integral_as_scipy_computes_it():
    t = torch.arange(-400, 500).double() / 16
    F, u = fourier_transform(1 / torch.cosh(math.pi * (t - 1)), t)

    def integral(wave, frequency):
        def at(t):
            return wave(2 * math.pi * frequency * t) / numpy.cosh(math.pi * (t - 1))

        return scipy.integrate.quad(at, -20, 20, epsabs=1e-12, limit=200)[0]

    for j in (450, 460, 425):
        frequency = float(u[j])
        expected = complex(integral(math.cos, frequency), -integral(math.sin, frequency))
        assert abs(complex(F[j]) - expected) < 1e-10
        assert abs(abs(complex(F[j])) - 1 / math.cosh(math.pi * frequency)) < 1e-13  # sech is its own transform


def test_what_a_grid_cannot_tell_apart_is_added_up():
    """Poisson: the sum is the transform at u, and at all frequencies that differ from it by whole 1/step."""
    step, centre = 0.9, 0.3
    t = step * torch.arange(-20, 21).double() + 0.1
    F, u = fourier_transform(torch.exp(-math.pi * (t - centre) ** 2), t)
    m = torch.arange(-4, 5).double()[:, None]
    aliases = torch.exp(-math.pi * (u + m / step) ** 2 - 2j * math.pi * ((u + m / step) * centre - m * t[0] / step))
    torch.testing.assert_close(F, aliases.sum(0), rtol=0, atol=1e-13)
    assert float((F - aliases[4]).abs().max()) > 0.1


def test_axes_are_transformed_apart_and_batches_kept():
    f = torch.randn(2, 5, 32, dtype=torch.float64)
    x = torch.arange(5).double() - 1
    both, u, v = fourier_transform(f, x, T)
    once = fourier_transform(f, T)[0]  # (2, 5, 32), over the last axis
    twice = fourier_transform(once.mT.contiguous(), x)[0].mT
    torch.testing.assert_close(both, twice, rtol=0, atol=1e-12)
    back, *_ = inverse_fourier_transform(both, u, v, start=[-1, -2.0])
    torch.testing.assert_close(back, f.to(back), rtol=0, atol=1e-12)
    torch.testing.assert_close(fourier_transform(f[1], x, T)[0], both[1], rtol=0, atol=1e-12)


def test_convolution_by_spectra_keeps_places():
    f, h = torch.exp(-(T[:8] ** 2)), torch.randn(8, dtype=torch.float64)
    padded = [torch.nn.functional.pad(signal, (0, 24)) for signal in (f, h)]
    (F, u), (H, _) = (fourier_transform(signal, T) for signal in padded)
    both, t = inverse_fourier_transform(F * H, u, start=-4.0)  # both begin at -2
    torch.testing.assert_close(both[:15].real, convolve(f, h) / 4, rtol=0, atol=1e-13)
    assert float(t[0]) == -4.0


def test_parseval_and_gradients():
    f = torch.randn(32, dtype=torch.float64, requires_grad=True)
    F, u = fourier_transform(f, T)
    energy = F.abs().square().sum() * (u[1] - u[0])
    torch.testing.assert_close(energy, f.square().sum() / 4)
    assert torch.autograd.gradcheck(lambda f: fourier_transform(f, T)[0], f)
    assert torch.autograd.gradcheck(
        lambda F: inverse_fourier_transform(F, u, start=3.0)[0], F.detach().requires_grad_()
    )


@pytest.mark.parametrize(
    ("dtype", "found", "eps"),
    [
        (torch.bfloat16, torch.complex64, 2**-8),
        (torch.float16, torch.complex64, 2**-11),
        (torch.float32, torch.complex64, 2**-20),
        (torch.complex64, torch.complex64, 2**-20),
        (torch.float64, torch.complex128, 2**-48),
    ],
)
def test_dtypes(dtype, found, eps):
    f = torch.exp(-((T - 1) ** 2))
    F, u = fourier_transform(f.to(dtype), T.float())
    expected, _ = fourier_transform(f, T)
    assert F.dtype == found
    assert u.dtype == torch.float32
    # The transform is at most the sum of 32 values of at most one; what was rounded first is off by eps of each.
    torch.testing.assert_close(F.to(expected), expected, rtol=0, atol=eps * float(f.sum()) / 4)


def test_long_float32_grids_keep_their_phases():
    """A million points: phases taken in float32 would be off by a third of a turn."""
    t = torch.arange(-500_000, 500_000) / 1024.0
    F, u = fourier_transform(torch.exp(-math.pi * (t - 3.0) ** 2), t)
    expected = torch.exp(-math.pi * u.double() ** 2 - 6j * math.pi * u.double())
    assert float((F - expected).abs().max()) < 1e-5


def test_compiled_and_without_values(unchecked):
    f = torch.randn(2, 32, dtype=torch.float64)
    compiled = torch.compile(fourier_transform, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(f, T)[0], fourier_transform(f, T)[0])
    assert fourier_transform(f.to("meta"), T.to("meta"))[0].shape == (2, 32)


@pytest.mark.parametrize(
    ("grids", "error", "message"),
    [
        ((), ValueError, "f needs a grid for each axis that is transformed, got none: give t"),
        ((T[:31],), ValueError, r"f must be \(..., 31\) to fit the grids t, got shape \(2, 32\)"),
        ((T, T, T), ValueError, r"f must be \(..., 32, 32, 32\)"),
        ((T[:1],), ValueError, r"t must have one axis and two points or more, got shape \(1,\)"),
        ((T[None],), ValueError, "t must have one axis"),
        ((T.flip(0),), ValueError, "t must increase from each point to the next: sort it"),
        ((T * 0,), ValueError, "t must increase"),
        ((T.exp(),), ValueError, r"t must have equal steps, its points are off by up to .*: use torch.linspace"),
        ((T + 1e-6 * (T == 1),), ValueError, "off by up to 1e-06"),
        ((T / 0,), ValueError, "t must be finite"),
        ((T.long(),), TypeError, "t must be floating point"),
        ((T.tolist(),), TypeError, "t must be a tensor, got list"),
    ],
)
def test_bad_grids_are_named(unchecked, grids, error, message):
    with pytest.raises(error, match=message):
        fourier_transform(torch.zeros(2, 32), *grids)


def test_bad_samples_and_starts_are_named(unchecked):
    with pytest.raises(TypeError, match=r"f must hold floating-point or complex numbers, got torch.int64: use"):
        fourier_transform(torch.zeros(32).long(), T)
    with pytest.raises(TypeError, match="F must be a tensor, got list"):
        inverse_fourier_transform([1.0], T)
    with pytest.raises(ValueError, match="start must be one number or one for each of the 1 grids, got 2"):
        inverse_fourier_transform(torch.zeros(32), T, start=(0.0, 1.0))
    with pytest.raises(ValueError, match="start must be finite, got nan"):
        inverse_fourier_transform(torch.zeros(32), T, start=math.nan)
    with pytest.raises(TypeError, match="start must be a number, got Tensor"):
        inverse_fourier_transform(torch.zeros(32), T, start=torch.tensor(1.0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start must be a number, got str"):
        inverse_fourier_transform(torch.zeros(32), T, start=["zero"])
