"""Convolution of signals: its algebra, polynomials multiplied, spectra, and operators that commute with shifts."""

import math

import torch

from lemmata.convolution.convolution_cost import direct_operations, fft_operations
from lemmata.convolution.discrete_convolution import convolve, correlate
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie


def _whole(draw, *sizes):
    """A signal of whole numbers that is not its own mirror image, nor one of a single value."""
    return draw.integers(-9, 10, *sizes)


@claim("conv.commutative")
@lie("cross-correlation commutes too", operation=correlate)
def convolution_commutes(draw, operation=convolve):
    """Signals of all lengths from 1 to 7, in whole numbers; two of three dimensions."""
    pairs = [(_whole(draw, n), _whole(draw, m)) for n in range(1, 8) for m in range(1, 8)]
    pairs.append((_whole(draw, 3, 4, 2), _whole(draw, 2, 3, 3)))
    return always(torch.equal(operation(f, h), operation(h, f)) for f, h in pairs)


@claim("conv.associative")
@lie("cross-correlation is associative too", operation=correlate)
def convolution_is_associative(draw, operation=convolve):
    """Signals of all lengths from 1 to 5, in whole numbers; three of two dimensions."""
    lengths = [(a, b, c) for a in range(1, 6) for b in range(1, 6) for c in range(1, 6)]
    triples = [[_whole(draw, n) for n in sizes] for sizes in lengths]
    triples.append([_whole(draw, 3, 2), _whole(draw, 2, 4), _whole(draw, 3, 3)])
    return always(torch.equal(operation(operation(f, g), h), operation(f, operation(g, h))) for f, g, h in triples)


def _ahead(f, delta):
    return f.roll(-delta)  # f[t + delta]: what is rolled around is zero


def _back(f, delta):
    return f.roll(delta)


def _unmoved(f, delta):
    return f


@claim("conv.shift_equivariant")
@lie("the integrand is f(t - δ)", printed="003/1", inside=_back)
@lie("the result does not move: invariance", outside=_unmoved)
@lie("the result moves the other way", outside=_back)
def convolution_moves_with_its_signal(draw, inside=_ahead, outside=_ahead, operation=convolve):
    """Signals of 8 whole numbers among zeros, for all shifts from -5 to 5."""
    f, h = torch.zeros(20, dtype=torch.int64), _whole(draw, 4)
    f[6:14] = draw.integers(1, 10, 8)
    shifts = range(-5, 6)
    moved = [operation(inside(f, delta), h) for delta in shifts]
    return exactly(torch.stack(moved), torch.stack([outside(operation(f, h), delta) for delta in shifts]))


def _circular(f, h):
    """Convolution on a circle: what sticks out of the whole convolution comes back at the other end."""
    y = convolve(f, h)
    for axis, n in enumerate(f.shape):
        sticks_out = y.narrow(axis, n, y.shape[axis] - n)
        y = y.narrow(axis, 0, n).clone()
        y.narrow(axis, 0, sticks_out.shape[axis]).add_(sticks_out)
    return y


def _long_enough(n, m):
    return n + m - 1


def _unpadded(n, m):
    return max(n, m)


@claim("conv.fourier_theorem")
@lie("spectra are convolved", joined=_circular)
@lie("nothing is padded", length=_unpadded)
@lie("the discrete dual without 1/n", power=0.0)
def spectra_multiply(draw, joined=torch.mul, length=_long_enough, power=-1.0):
    """On circles and on a torus, even and odd; linear convolution of signals that are padded; and the dual."""
    ffts, products, duals, convolved = [], [], [], []
    for shape in ((2,), (7,), (16,), (6, 5)):
        f, h = draw.normal(*shape), draw.normal(*shape)
        F, H = torch.fft.fftn(f), torch.fft.fftn(h)
        ffts.append(torch.fft.fftn(_circular(f, h)).flatten())
        products.append(joined(F, H).flatten())
        duals.append(torch.fft.fftn(f * h).flatten())
        convolved.append(f.numel() ** power * _circular(F, H).flatten())
    f, h = draw.normal(20), draw.normal(9)
    long = length(20, 9)
    linear = torch.fft.irfft(torch.fft.rfft(f, long) * torch.fft.rfft(h, long), long)
    whole = convolve(f, h, method="definition")
    return all_of(
        close(torch.cat(ffts), torch.cat(products), ulps=1000),
        close(torch.cat(duals), torch.cat(convolved), ulps=1000),
        close(torch.nn.functional.pad(linear, (0, len(whole) - long)), whole, ulps=1000),
        close(convolve(f, h, method="fft"), whole, ulps=1000),
    )


def _n_log_n(n):
    return n * math.log2(n)


def _square(n):
    return n * n


@claim("conv.fft_cost")
@lie(
    "a kernel of 300 is short",
    short=300,
    regime="where spectra begin to pay depends on more than the kernel",
    loose="an even shorter kernel needs even fewer operations",
)
@lie("transforms cost n² operations", grows=_square)
def spectra_pay_for_long_kernels(draw, short=3, grows=_n_log_n):
    """Operations counted: short and long kernels, and how they grow with the signal and the kernel."""

    def ratio(n, k):  # of the operations by definition to those by spectra, for all n outputs
        return direct_operations((1, 1, n + k - 1), (1, 1, k), (n,)) / fft_operations((1, 1, n + k - 1), (1, 1, k))

    growth = torch.tensor([fft_operations((1, 1, 2**j), (1, 1, 3)) / grows(2**j) for j in range(8, 21)])
    direct = [direct_operations((1, 1, n + k - 1), (1, 1, k), (n,)) for n in (100, 1000) for k in (3, 300)]
    return all_of(
        at_most(ratio(1024, short), 1.0),
        at_most(1.0, ratio(4096, 4096)),
        at_most(growth.max() / growth.min(), 1.1),  # 3 · 5/2 and 4/log n for the product: 8.0 to 7.7
        exactly(direct, [2 * n * k for n in (100, 1000) for k in (3, 300)]),
    )


def _averaged(T, n):
    """The mean of T over all shifts: what commutes with them."""
    return torch.stack([T.roll((k, k), (0, 1)) for k in range(n)]).mean(0).__matmul__


def _only_linear(T, n):
    return T.__matmul__


def _only_equivariant(T, n):
    return lambda f: _circular(f, T[0]) ** 2


@claim("conv.characterisation")
@lie("any linear operator is a convolution", operator=_only_linear)
@lie("any shift-equivariant operator is a convolution", operator=_only_equivariant)
@lie("shift-equivariant operators have n² free numbers", power=2.0)
def what_commutes_with_shifts_is_a_convolution(draw, operator=_averaged, power=1.0):
    """Circles of 2 to 8 places: random operators averaged over shifts, and how many dimensions commute with shifts."""
    applied, convolved, moved, shifted, dimensions, sizes = ([] for _ in range(6))
    for n in range(2, 9):
        impulse, identity = torch.eye(n).double()[0], torch.eye(n).double()
        T, f = operator(draw.normal(n, n), n), draw.normal(n)
        h = T(impulse)
        applied.append(T(f))
        convolved.append(_circular(f, h))
        moved.append(_circular(f.roll(1), h))
        shifted.append(_circular(f, h).roll(1))
        S = identity.roll(1, 0)
        commutator = torch.kron(S, identity) - torch.kron(identity, S.mT.contiguous())  # of T flattened: S T - T S
        dimensions.append(n * n - int(torch.linalg.matrix_rank(commutator)))
        sizes.append(float(n) ** power)
    return all_of(
        close(torch.cat(applied), torch.cat(convolved), ulps=1000),
        close(torch.cat(moved), torch.cat(shifted), ulps=1000),
        exactly(torch.tensor(dimensions).double(), torch.tensor(sizes).double()),
    )


def _number(f, bases):
    """The polynomial with these coefficients, at powers of 1000 so large that no two coefficients meet."""
    return sum(int(c) * math.prod(b**t for b, t in zip(bases, place.tolist(), strict=True)) for c, place in _entries(f))


def _entries(f):
    return zip(f.flatten(), torch.cartesian_prod(*map(torch.arange, f.shape)).reshape(-1, f.ndim), strict=True)


def _sliding(f, h):
    return correlate(h, f)


@claim("conv.discrete")
@lie("the kernel is not turned around", operation=_sliding)
@lie("the window is one place later", first=1, regime="a window moves by whole places")
def convolution_multiplies_polynomials(draw, operation=convolve, first=0):
    """Coefficients of products of polynomials, read from products of large numbers; and the window of each output."""
    products, numbers, windows, outputs = [], [], [], []
    for n, m in ((1, 1), (1, 5), (6, 1), (4, 3), (7, 7)):
        f, h = draw.integers(0, 10, n), draw.integers(0, 10, m)
        products.append(_number(operation(f, h), [1000]))
        numbers.append(_number(f, [1000]) * _number(h, [1000]))
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
        products.append(_number(operation(f, h), used))
        numbers.append(_number(f, used) * _number(h, used))
    X, a, b = _whole(draw, 6, 5), torch.tensor([1, 2, 4]), torch.tensor([1, -3])
    return all_of(
        exactly(products, numbers),
        exactly(operation(X, a[:, None] * b), convolve(convolve(X, a[:, None]), b[None])),
    )


def _turned(h):
    return h.flip(0)


def _as_it_is(h):
    return h


@claim("conv.cross_correlation")
@lie("the kernel is not turned around", mirrored=_as_it_is)
@lie("exchanged arguments change nothing", exchanged=_as_it_is)
def cross_correlation_slides_a_kernel(draw, mirrored=_turned, exchanged=_turned, operation=correlate):
    """Inner products one by one, the mirrored kernel's convolution, exchanged arguments, and torch's layer."""
    h, f, g = torch.tensor([1, 2, 4]), draw.integers(1, 10, 9), torch.tensor([1, 3])
    slid = operation(h, f)  # from u = -2 on
    inner = torch.stack([h @ f[u : u + 3] for u in range(7)])
    layer = torch.nn.functional.conv1d(f.double()[None, None], h.double()[None, None])[0, 0]
    even = torch.tensor([1, 5, 1])
    return all_of(
        exactly(slid[2:-2], inner),
        exactly(slid, convolve(mirrored(h), f)),
        exactly(operation(f, h), exchanged(slid)),
        close(slid[2:-2], layer),
        exactly(operation(even, f), convolve(even, f)),
        always([not torch.equal(slid, convolve(h, f)), not torch.equal(operation(h, f), operation(f, h))]),
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
