"""Convolution of signals: its algebra, polynomials multiplied, spectra, and operators that commute with shifts."""

import math

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from lemmata.convolution.claims.fourier import gaussian, turn
from lemmata.convolution.convolution_cost import direct_operations, fft_operations
from lemmata.convolution.discrete_convolution import convolve, correlate
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie, slope_is


def _integer_signal(draw, *sizes):
    """A signal of whole numbers that is not its own mirror image, nor one of a single value."""
    return draw.integers(-9, 10, *sizes)


@claim("conv.commutative")
@lie("cross-correlation commutes too", operation=correlate)
def convolution_commutes(draw, operation=convolve):
    """Signals of all lengths from 1 to 7, in whole numbers; two of three dimensions."""
    pairs = [(_integer_signal(draw, n), _integer_signal(draw, m)) for n in range(1, 8) for m in range(1, 8)]
    pairs.append((_integer_signal(draw, 3, 4, 2), _integer_signal(draw, 2, 3, 3)))
    return always(torch.equal(operation(f, h), operation(h, f)) for f, h in pairs)


@claim("conv.associative")
@lie("cross-correlation is associative too", operation=correlate)
def convolution_is_associative(draw, operation=convolve):
    """Signals of all lengths from 1 to 5, in whole numbers; three of two dimensions."""
    lengths = [(a, b, c) for a in range(1, 6) for b in range(1, 6) for c in range(1, 6)]
    triples = [[_integer_signal(draw, n) for n in sizes] for sizes in lengths]
    triples.append([_integer_signal(draw, 3, 2), _integer_signal(draw, 2, 4), _integer_signal(draw, 3, 3)])
    return always(torch.equal(operation(operation(f, g), h), operation(f, operation(g, h))) for f, g, h in triples)


def _shift_ahead(f, delta):
    return f.roll(-delta)  # f[t + delta]: what is rolled around is zero


def _shift_back(f, delta):
    return f.roll(delta)


def _no_shift(f, delta):
    return f


@claim("conv.shift_equivariant")
@lie("the integrand is f(t - δ)", printed="003/1", inside=_shift_back)
@lie("the result does not move: invariance", outside=_no_shift)
@lie("the result moves the other way", outside=_shift_back)
def convolution_moves_with_its_signal(draw, inside=_shift_ahead, outside=_shift_ahead, operation=convolve):
    """Signals of 8 whole numbers among zeros, for all shifts from -5 to 5."""
    f, h = torch.zeros(20, dtype=torch.int64), _integer_signal(draw, 4)
    f[6:14] = draw.integers(1, 10, 8)
    shifts = range(-5, 6)
    moved = [operation(inside(f, delta), h) for delta in shifts]
    return exactly(torch.stack(moved), torch.stack([outside(operation(f, h), delta) for delta in shifts]))


def _circular_convolution(f, h):
    """Convolution on a circle: what sticks out of the whole convolution comes back at the other end."""
    y = convolve(f, h)
    for axis, n in enumerate(f.shape):
        sticks_out = y.narrow(axis, n, y.shape[axis] - n)
        y = y.narrow(axis, 0, n).clone()
        y.narrow(axis, 0, sticks_out.shape[axis]).add_(sticks_out)
    return y


def _long_enough(n, m):
    return n + m - 1


def _unpadded_length(n, m):
    return max(n, m)


@claim("conv.fourier_theorem")
@lie("spectra are convolved", joined=_circular_convolution)
@lie("nothing is padded", length=_unpadded_length)
@lie("the discrete dual without 1/n", power=0.0)
def spectra_multiply(draw, joined=torch.mul, length=_long_enough, power=-1.0):
    """On circles and on a torus, even and odd; linear convolution of signals that are padded; and the dual."""
    ffts, products, duals, convolved = [], [], [], []
    for shape in ((2,), (7,), (16,), (6, 5)):
        f, h = draw.normal(*shape), draw.normal(*shape)
        F, H = torch.fft.fftn(f), torch.fft.fftn(h)
        ffts.append(torch.fft.fftn(_circular_convolution(f, h)).flatten())
        products.append(joined(F, H).flatten())
        duals.append(torch.fft.fftn(f * h).flatten())
        convolved.append(f.numel() ** power * _circular_convolution(F, H).flatten())
    f, h = draw.normal(20), draw.normal(9)
    long = length(20, 9)
    linear = torch.fft.irfft(torch.fft.rfft(f, long) * torch.fft.rfft(h, long), long)
    whole = convolve(f, h, method="definition")
    return all_of(
        close(torch.cat(ffts), torch.cat(products), ulps=1000),
        close(torch.cat(duals), torch.cat(convolved), ulps=1000),
        close(functional.pad(linear, (0, len(whole) - long)), whole, ulps=1000),
        close(convolve(f, h, method="fft"), whole, ulps=1000),
    )


def _n_log_n(n):
    return n * math.log2(n)


def _square_count(n):
    return n * n


def _counted_transform(x, counts):
    """The Fourier transform of 2^j complex numbers by halves, and the real operations that each step takes."""
    n = x.shape[-1]
    if n == 1:
        return x
    even, odd = _counted_transform(x.unflatten(-1, (n // 2, 2)).mT, counts).unbind(-2)
    odd = odd * turn(-torch.arange(n // 2).double() / n)
    counts.append(odd.numel() * (6 + 2 + 2))  # a product of complex numbers takes six, a sum or difference two
    return torch.cat([even + odd, even - odd], -1)


def _by_counted_transforms(signals, kernels, length):
    """Two real signals with each of two real kernels: (kernels, signals, length), and how many operations it took.

    A complex number holds two signals, and after a product with the spectrum of a real kernel their convolutions.
    """
    counts = []
    both, pair = (functional.pad(torch.complex(*two), (0, length - two.shape[1])) for two in (signals, kernels))
    spectra, mixed = _counted_transform(torch.stack([both, pair]), counts)
    mirrored = mixed[-torch.arange(length) % length].conj()
    apart = torch.stack([mixed + mirrored, -1j * (mixed - mirrored)])  # twice the spectrum of each kernel
    products = spectra * apart
    counts += [2 * apart.numel(), 6 * products.numel()]
    found = _counted_transform(products.conj(), counts).conj() / (2 * length)
    return torch.stack([found.real, found.imag], 1), sum(counts)


def _counted_products(n, k):
    """Operations of torch's kernel for n outputs, counted by torch while it runs without numbers."""
    with FlopCounterMode(display=False) as counter:
        functional.conv1d(torch.empty(1, 1, n + k - 1, device="meta"), torch.empty(1, 1, k, device="meta"))
    return counter.get_total_flops()


@claim("conv.fft_cost")
@lie(
    "a kernel of 300 is short",
    short=300,
    regime="where spectra begin to pay depends on more than the kernel",
    loose="an even shorter kernel needs even fewer operations",
)
@lie("transforms cost n² operations", grows=_square_count)
def spectra_pay_for_long_kernels(draw, short=3, grows=_n_log_n):
    """Operations counted as they are done, by the definition and by transforms in halves; and as the library says."""
    found, definition, spectral, told, growth = [], [], [], [], []
    for n, k in ((1024, short), (4096, 4096), *((2**j - 2, 3) for j in range(8, 14))):
        signals, kernels, length = draw.normal(2, n), draw.normal(2, k), 2 ** (n + k - 2).bit_length()
        convolved, operations = _by_counted_transforms(signals, kernels, length)
        found.append(convolved[1, 0, : n + k - 1])
        definition.append(convolve(signals[0], kernels[1], method="definition"))
        spectral.append(operations / 4)  # of one signal and one kernel, whose spectrum another shares
        told.append(fft_operations((2, 1, length), (2, 1, k)) / 4)
        growth.append(spectral[-1] / grows(length))
    sizes = [(1024, short), (4096, 4096), (100, 3), (1000, 300)]
    direct = [_counted_products(n, k) for n, k in sizes]
    return all_of(
        close(torch.cat(found), torch.cat(definition), ulps=1000),
        at_most(direct[0], spectral[0], detail="a short kernel by its definition"),
        at_most(spectral[1], direct[1], detail="a long one by spectra"),
        at_most(max(growth[2:]) / min(growth[2:]), 1.1),  # 5 and 4/log n for the products: 5.5 to 5.3
        exactly(direct, [direct_operations((1, 1, n + k - 1), (1, 1, k), (n,)) for n, k in sizes]),
        exactly(direct, [2 * n * k for n, k in sizes]),
        exactly(spectral, told),
    )


def _averaged_shifts(T, n):
    """The mean of T over all shifts: what commutes with them."""
    return torch.stack([T.roll((k, k), (0, 1)) for k in range(n)]).mean(0).__matmul__


def _only_linear(T, n):
    return T.__matmul__


def _only_equivariant(T, n):
    return lambda f: _circular_convolution(f, T[0]) ** 2


def _narrowing_peaks(x, width):
    """Peaks of the mass one, which become a unit mass at zero as their width falls."""
    return gaussian(x, 0.0, width)


def _of_one_width(x, width):
    return gaussian(x, 0.0, 0.5)


def _linear_recursion(f):
    """Linear and the same at every place: y[t] = f[t] + 2 y[t-1] - 3 y[t-2], from rest."""
    y = [0, 0]
    for value in f.tolist():
        y.append(value + 2 * y[-1] - 3 * y[-2])
    return torch.tensor(y[2:])


@claim("conv.characterisation")
@lie("any linear operator is a convolution", operator=_only_linear)
@lie("any shift-equivariant operator is a convolution", operator=_only_equivariant)
@lie("shift-equivariant operators have n² free numbers", power=2.0)
@lie("on the real line the identity is the convolution with a function", peak=_of_one_width)
def what_commutes_with_shifts_is_a_convolution(draw, operator=_averaged_shifts, power=1.0, peak=_narrowing_peaks):
    """Circles of 2 to 8 places, and all that commutes with their shifts; a recursion on the integers; narrow peaks."""
    applied, convolved, moved, shifted, dimensions, sizes = ([] for _ in range(6))
    for n in range(2, 9):
        impulse, identity = torch.eye(n).double()[0], torch.eye(n).double()
        T, f = operator(draw.normal(n, n), n), draw.normal(n)
        h = T(impulse)
        applied.append(T(f))
        convolved.append(_circular_convolution(f, h))
        moved.append(_circular_convolution(f.roll(1), h))
        shifted.append(_circular_convolution(f, h).roll(1))
        S = identity.roll(1, 0)
        commutator = torch.kron(S, identity) - torch.kron(identity, S.mT.contiguous())  # of T flattened: S T - T S
        dimensions.append(n * n - int(torch.linalg.matrix_rank(commutator)))
        sizes.append(float(n) ** power)
    f, impulse = draw.integers(-9, 10, 24), torch.eye(24).long()[0]
    x, at, widths = torch.arange(-600, 601).double() / 200, float(draw.uniform(1)), 2.0 ** -torch.arange(3, 7).double()
    bell = gaussian(x, at, 0.5)
    errors = [(convolve(bell, peak(x, width))[600:1801] / 200 - bell).abs().max() for width in widths]
    return all_of(
        close(torch.cat(applied), torch.cat(convolved), ulps=1000),
        close(torch.cat(moved), torch.cat(shifted), ulps=1000),
        exactly(torch.tensor(dimensions).double(), torch.tensor(sizes).double()),
        exactly(_linear_recursion(f), convolve(f, _linear_recursion(impulse))[:24]),
        slope_is(widths, errors, 2.0, within=0.1),
    )


def _polynomial_value(f, bases):
    """The polynomial with these coefficients, at powers of 1000 so large that no two coefficients meet."""
    return sum(
        int(c) * math.prod(b**t for b, t in zip(bases, place.tolist(), strict=True))
        for c, place in _entries_with_indices(f)
    )


def _entries_with_indices(f):
    return zip(f.flatten(), torch.cartesian_prod(*map(torch.arange, f.shape)).reshape(-1, f.ndim), strict=True)


def _sliding_product(f, h):
    return correlate(h, f)


@claim("conv.discrete")
@lie("the kernel is not turned around", operation=_sliding_product)
@lie("the window is one place later", first=1, regime="a window moves by whole places")
def convolution_multiplies_polynomials(draw, operation=convolve, first=0):
    """Coefficients of products of polynomials, read from products of large numbers; and the window of each output."""
    products, numbers, windows, outputs = [], [], [], []
    for n, m in ((1, 1), (1, 5), (6, 1), (4, 3), (7, 7)):
        f, h = draw.integers(0, 10, n), draw.integers(0, 10, m)
        products.append(_polynomial_value(operation(f, h), [1000]))
        numbers.append(_polynomial_value(f, [1000]) * _polynomial_value(h, [1000]))
    f, h = draw.integers(1, 10, 12), torch.tensor([1, 2, 4])
    for u in range(3, 10):
        window = f[u - 2 + first : u + 1 + first]
        windows.append(window @ h.flip(0))
        outputs.append(operation(f, h)[u])
    return all_of(exactly(products, numbers), exactly(torch.stack(outputs), torch.stack(windows)))


def _one_axis_unturned(f, h):
    return convolve(f, h.flip(-1))


@claim("conv.multidim")
@lie("one axis is not turned around", operation=_one_axis_unturned)
def convolution_in_many_dimensions(draw, operation=convolve):
    """Polynomials in two and three variables; and a kernel of rank one, one axis at a time."""
    bases = [1000**64, 1000**8, 1000]  # at most 8 places on each axis
    products, numbers = [], []
    for small, large in (((2, 3), (3, 2)), ((1, 4), (4, 1)), ((2, 2, 3), (3, 2, 2))):
        f, h = draw.integers(0, 10, *small), draw.integers(0, 10, *large)
        used = bases[-f.ndim :]
        products.append(_polynomial_value(operation(f, h), used))
        numbers.append(_polynomial_value(f, used) * _polynomial_value(h, used))
    X, a, b = _integer_signal(draw, 6, 5), torch.tensor([1, 2, 4]), torch.tensor([1, -3])
    return all_of(
        exactly(products, numbers),
        exactly(operation(X, a[:, None] * b), convolve(convolve(X, a[:, None]), b[None])),
    )


def _turned_kernel(h):
    return h.flip(0)


def _as_it_is(h):
    return h


def _equal_to_mirror(kernels):
    return (kernels == kernels.flip(1)).all(1)


def _equal_to_mirror_but_for_the_sign(kernels):
    return (kernels.abs() == kernels.abs().flip(1)).all(1)


@claim("conv.cross_correlation")
@lie("the kernel is not turned around", mirrored=_as_it_is)
@lie("exchanged arguments change nothing", exchanged=_as_it_is)
@lie("with antisymmetric kernels it is convolution too", symmetric=_equal_to_mirror_but_for_the_sign)
def cross_correlation_slides_a_kernel(
    draw, mirrored=_turned_kernel, exchanged=_turned_kernel, symmetric=_equal_to_mirror, operation=correlate
):
    """Inner products, the mirrored kernel's convolution, exchanged arguments, torch's layer; all 81 small kernels."""
    h, f, g = torch.tensor([1, 2, 4]), draw.integers(1, 10, 9), torch.tensor([1, 3])
    slid = operation(h, f)  # from u = -2 on
    inner = torch.stack([h @ f[u : u + 3] for u in range(7)])
    layer = torch.nn.functional.conv1d(f.double()[None, None], h.double()[None, None])[0, 0]
    kernels = torch.cartesian_prod(*[torch.arange(-1, 2)] * 4)  # all of four entries, zeros and unsymmetric ones too
    same = [torch.equal(operation(each, f), convolve(each, f)) for each in kernels]
    return all_of(
        exactly(slid[2:-2], inner),
        exactly(slid, convolve(mirrored(h), f)),
        exactly(operation(f, h), exchanged(slid)),
        close(slid[2:-2], layer),
        exactly(same, symmetric(kernels).tolist(), detail="the kernels with which it is convolution"),
        always([not torch.equal(operation(h, f), operation(f, h))]),
        always([not torch.equal(operation(operation(h, g), f), operation(h, operation(g, f)))]),
    )


@claim("conv.symmetric_kernel")
@lie("antisymmetric kernels do as well", sign=-1.0)
def symmetric_kernels_need_no_turning(draw, sign=1.0):
    """Kernels of one, two and three dimensions, each made symmetric."""
    slid, convolved = [], []
    for space, kernel in (((9,), (5,)), ((6, 7), (3, 3)), ((6, 7), (5, 1)), ((4, 4, 5), (3, 1, 3))):
        f, h = draw.normal(*space), draw.normal(*kernel)
        h = h + sign * h.flip(tuple(range(h.ndim)))
        slid.append(correlate(h, f).flatten())
        convolved.append(convolve(h, f).flatten())
    return close(torch.cat(slid), torch.cat(convolved), ulps=1000)
