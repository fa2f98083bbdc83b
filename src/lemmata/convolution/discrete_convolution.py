r"""Discrete convolution and cross-correlation of signals in any number of dimensions."""

from jaxtyping import Num
from torch import Tensor

from lemmata import validate
from lemmata.convolution.convolution_layer import alike, conv_nd
from lemmata.marks import system

__all__ = ["convolve", "correlate"]


@system("convolve", title="Discrete convolution", kind="function")
def convolve(f: Num[Tensor, "*n"], h: Num[Tensor, "*m"], method: str = "auto") -> Num[Tensor, "*sizes"]:
    r"""The whole convolution of two signals that are zero where they are not given.

    $$ (f*h)[u] = \sum_t f[t]\, h[u-t] $$

    Shapes:
        f: (n_1, ..., n_d), h: (m_1, ..., m_d)    returns: (n_1 + m_1 - 1, ...), from u = 0 on

    Claims: conv.discrete, conv.multidim, conv.commutative, conv.associative, conv.shift_equivariant,
        conv.fourier_theorem, conv.characterisation, conv.symmetric_kernel, conv.definition, conv.integral_operator,
        conv.fourier.dirac
    Differs: `method` is that of `conv_nd`; integers give integers, without rounding
        where sums fit their dtype: use .long() for bytes.

    >>> convolve(torch.tensor([1, 2, 3]), torch.tensor([1, 10]))
    tensor([ 1, 12, 23, 30])
    """
    _check_signals(f=f, h=h)
    around = [size - 1 for size in h.shape]
    turned = h.flip(tuple(range(h.ndim)))
    return conv_nd(f[None, None], turned[None, None], padding=around, method=method)[0, 0]


@system("correlate", title="Discrete cross-correlation", kind="function")
def correlate(h: Num[Tensor, "*m"], f: Num[Tensor, "*n"], method: str = "auto") -> Num[Tensor, "*sizes"]:
    r"""The inner product of a kernel with each stretch of a signal, also where only a part of it is met.

    $$ (h\star f)[u] = \sum_t h[t]\, f[u+t] $$

    Shapes:
        h: (m_1, ..., m_d), f: (n_1, ..., n_d)    returns: (n_1 + m_1 - 1, ...), from u = -(m - 1) on

    Claims: conv.cross_correlation, conv.symmetric_kernel

    >>> correlate(torch.tensor([1, 10]), torch.tensor([1, 2, 3]))
    tensor([10, 21, 32,  3])
    """
    _check_signals(h=h, f=f)
    around = [size - 1 for size in h.shape]
    return conv_nd(f[None, None], h[None, None], padding=around, method=method)[0, 0]


def _check_signals(**signals: Tensor) -> None:
    """Two tensors with as many axes, alike, none of them empty."""
    for name, signal in signals.items():
        if validate.tensor(name, signal).ndim == 0 or signal.numel() == 0:
            raise ValueError(f"{name} must have an axis and not be empty, got shape {tuple(signal.shape)}")
    (one, first), (other, second) = signals.items()
    if first.ndim != second.ndim:
        raise ValueError(f"{one} and {other} must have as many axes, got {first.ndim} and {second.ndim}")
    alike(other, second, one, first)
