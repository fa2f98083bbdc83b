r"""How large the output of a convolution is, and how many parameters it has beside layers that share nothing."""

from typing import NamedTuple

from lemmata import validate
from lemmata.marks import system

__all__ = ["ParameterCounts", "output_size", "parameter_counts", "same_padding", "transposed_output_size"]


@system("output_size", title="Output size of a convolution or pooling layer", kind="function")
def output_size(size: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    r"""How often a window of k taps, d apart, fits on x places with p more on either side, s steps at a time.

    $$ \left\lfloor\frac{x+2p-d(k-1)-1}{s}\right\rfloor+1 $$

    Shapes:
        all of one axis; returns: the size of that axis in the output

    Claims: conv.output_size, conv.example_7x7x3, conv.padding
    Source: V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning (2016).

    >>> output_size(224, kernel_size=7, stride=2, padding=3)
    112
    """
    reach = _kernel_reach(kernel_size, dilation)
    _ = validate.count("size", size), validate.count("stride", stride), validate.count("padding", padding, least=0)
    room = size + 2 * padding - reach
    if room < 0:
        raise ValueError(
            f"size {size} with padding {padding} must hold the kernel's {reach} places: pad it or take a smaller kernel"
        )
    return room // stride + 1


def transposed_output_size(
    size: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, output_padding: int = 0
) -> int:
    r"""The size whose convolution has the given one: $(x-1)s-2p+d(k-1)+o+1$.

    >>> transposed_output_size(7, kernel_size=4, stride=2, padding=1)
    14
    """
    reach = _kernel_reach(kernel_size, dilation)
    _ = validate.count("size", size), validate.count("stride", stride), validate.count("padding", padding, least=0)
    # A larger one would name a size that has one more window.
    validate.count("output_padding", output_padding, least=0, most=max(stride, dilation) - 1)
    found = (size - 1) * stride - 2 * padding + reach + output_padding
    if found < 1:
        raise ValueError(f"padding must leave at least one place, got {padding}, which leaves {found}")
    return found


def same_padding(kernel_size: int, dilation: int = 1) -> tuple[int, int]:
    """Places before and after that keep the size at stride 1; of an odd number one more stands after, as in torch.

    >>> same_padding(3), same_padding(4), same_padding(3, dilation=2)
    ((1, 1), (1, 2), (2, 2))
    """
    total = _kernel_reach(kernel_size, dilation) - 1
    return total // 2, total - total // 2


class ParameterCounts(NamedTuple):
    """Parameters of three layers with the same input and output."""

    convolutional: int
    locally_connected: int
    fully_connected: int


@system("parameter_counts", title="Parameters with and without weight sharing", kind="function")
def parameter_counts(
    height: int, width: int, channels: int, kernel_size: tuple[int, int], kernels: int, bias: bool = True
) -> ParameterCounts:
    r"""Parameters of a valid convolution at stride 1, and of the layers with its output that share or restrict less.

    $$ K(pqc+1), \qquad OK(pqc+1), \qquad OK(mnc+1), \qquad O=(m-p+1)(n-q+1) $$

    Shapes:
        an input of (channels c, height m, width n), K kernels of (p, q)

    Claims: conv.params

    >>> parameter_counts(28, 28, 1, kernel_size=(5, 5), kernels=6)
    ParameterCounts(convolutional=156, locally_connected=89856, fully_connected=2712960)
    """
    if not isinstance(kernel_size, tuple | list) or len(kernel_size) != 2:
        raise ValueError(f"kernel_size must be two numbers, (height, width), got {kernel_size!r}")
    p, q = kernel_size
    units = output_size(height, p) * output_size(width, q) * validate.count("kernels", kernels)
    offset = int(validate.flag("bias", bias))
    window = p * q * validate.count("channels", channels) + offset
    return ParameterCounts(kernels * window, units * window, units * (height * width * channels + offset))


def _kernel_reach(kernel_size: int, dilation: int) -> int:
    """How many places a kernel spans from its first tap to its last."""
    return validate.count("dilation", dilation) * (validate.count("kernel_size", kernel_size) - 1) + 1
