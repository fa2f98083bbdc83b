r"""Pooling in any number of dimensions: the largest value, the smallest, or a mean of each window."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.convolution_layer import windows
from lemmata.convolution.padding import per_axis
from lemmata.convolution.sizes import output_size
from lemmata.marks import system

__all__ = ["Pool", "pool_nd"]

KINDS = ("max", "min", "average", "softmax")
METHODS = ("auto", "definition", "torch")


@system("pool_nd", title="Pooling in n dimensions", kind="function")
def pool_nd(
    x: Float[Tensor, "batch channels *space"],
    kernel_size: int | Sequence[int],
    kind: str = "max",
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    beta: float | Tensor = 1.0,
    method: str = "auto",
    ceil_mode: bool = False,
) -> Float[Tensor, "batch channels *new_space"]:
    r"""One number for each window of each channel: its `max`, `min`, `average`, or `softmax`, a weighted mean.

    $$ y_u = \max_{0\le t<r} x_{su+t}, \qquad -\max_t (-x_{su+t}), \qquad \tfrac1{r^n}\sum_t x_{su+t}, \qquad
       \sum_t p_t x_{su+t}, \quad p = \mathrm{softmax}(\beta x_{su+\cdot}) $$

    Softmax pooling goes from the smallest value ($\beta\to-\infty$) through the mean (0) to the largest ($\infty$).
    What is padded never wins and has no weight in a softmax; in an average it counts as zero, as in torch. The stride
    is the kernel's size unless it is given. `method` says how: `definition` looks at every window, `torch` calls its
    kernels (max, min, and average without dilation in up to three dimensions), `auto` calls them where there is one.
    With `ceil_mode` a last window that reaches beyond the padding counts too; torch's kernels alone know it.

    Shapes:
        x: (batch, channels, *space)    returns: (batch, channels, *space), each axis of `output_size`

    Claims: conv.pool.max, conv.pool.max_gradient, conv.pool.avg, conv.pool.softmax
    Source: Y.-L. Boureau, J. Ponce and Y. LeCun, A theoretical analysis of feature pooling in visual recognition
        (2010); A. Stergiou, R. Poppe and G. Kalliatakis, Refining activation downsampling with SoftPool (2021).

    >>> pool_nd(torch.tensor([[[1.0, 3.0, 2.0, 8.0]]]), 2)
    tensor([[[3., 8.]]])
    >>> pool_nd(torch.tensor([[[1.0, 3.0, 2.0, 8.0]]]), 2, kind="softmax", beta=0.0)
    tensor([[[2., 5.]]])
    """
    axes = _check_pooling(x, kind, method, beta)
    kernel, gaps = per_axis("kernel_size", kernel_size, axes), per_axis("dilation", dilation, axes)
    steps = kernel if stride is None else per_axis("stride", stride, axes)
    around = per_axis("padding", padding, axes, least=0)
    for size, k, s, p, d in zip(x.shape[2:], kernel, steps, around, gaps, strict=True):
        _windows_fit(size, k, s, p, d)
    known = kind != "softmax" and axes <= 3 and (kind != "average" or set(gaps) == {1})
    if kind == "average" and axes == 3:  # where torch refuses windows larger than what is not padded
        known = known and all(k <= n for k, n in zip(kernel, x.shape[2:], strict=True))
    if method == "torch" and not known:
        told = f"{kind}, {axes} axes, dilation {tuple(gaps)}"
        raise ValueError(f"method 'torch' knows max, min and undilated average on up to 3 axes, got {told}")
    if validate.flag("ceil_mode", ceil_mode) and (method == "definition" or not known):
        raise ValueError(f"ceil_mode is known to torch's kernels alone, not to {kind} by {method}: pad x, or leave it")
    if known and method != "definition":
        return _by_torch(x, kind, kernel, steps, around, gaps, ceil_mode)
    return _by_definition(x, kind, kernel, steps, around, gaps, beta)  # (batch, channels, *sizes)


class Pool(nn.Module):
    r"""`pool_nd` as a layer; the softmax's $\beta$ may be learned.

    Shapes:
        x: (batch, channels, *space)    returns: (batch, channels, *space)

    >>> Pool(2, kind="softmax", learn_beta=True)(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        kind: str = "softmax",
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        beta: float = 1.0,
        learn_beta: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", stride),
            ("padding", padding),
            ("dilation", dilation),
        ):
            if value is not None:  # how many axes there are, the input tells
                per_axis(name, value, len(value) if isinstance(value, Sequence) else 1, least=int(name != "padding"))
        self.kernel_size, self.kind, self.stride = kernel_size, validate.one_of("kind", kind, KINDS), stride
        self.padding, self.dilation = padding, dilation
        if validate.flag("learn_beta", learn_beta) and kind != "softmax":
            raise ValueError(f"learn_beta needs kind 'softmax', got {kind!r}")
        start = float(validate.finite_number("beta", beta))
        self.beta = nn.Parameter(torch.tensor(start, device=device, dtype=dtype)) if learn_beta else start

    def forward(self, x: Float[Tensor, "batch channels *space"]) -> Float[Tensor, "batch channels *new_space"]:
        return pool_nd(x, self.kernel_size, self.kind, self.stride, self.padding, self.dilation, self.beta)

    def extra_repr(self) -> str:
        shown = f", beta={float(self.beta):g}" if self.kind == "softmax" else ""
        return f"{self.kernel_size}, kind={self.kind!r}, stride={self.stride}{shown}"


def _check_pooling(x: Tensor, kind: str, method: str, beta: float | Tensor) -> int:
    """How many axes of space there are, once what is given makes sense."""
    validate.one_of("kind", kind, KINDS)
    validate.one_of("method", method, METHODS)
    if validate.tensor("x", x).ndim < 3 or 0 in x.shape:
        raise ValueError(f"x must be (batch, channels, *space) and not empty, got shape {tuple(x.shape)}")
    if not x.is_floating_point():
        raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
    if not isinstance(beta, Tensor):
        validate.finite_number("beta", beta)
    elif beta.ndim:
        raise ValueError(f"beta must be one number for all windows, got shape {tuple(beta.shape)}")
    return x.ndim - 2


def _windows_fit(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    """Every window meets at least one place that is not padded."""
    output_size(size, kernel, stride, padding, dilation)  # says what is wrong where no window fits
    if 2 * padding > kernel:
        raise ValueError(f"padding must be at most half of kernel_size, {kernel}, got {padding}")
    if padding and size < dilation:
        raise ValueError(f"dilation must be at most {size}, the size of the padded axis, got {dilation}")


def _by_definition(
    x: Tensor, kind: str, kernel: list[int], steps: list[int], around: list[int], gaps: list[int], beta: float | Tensor
) -> Tensor:
    """Every window as a row of values."""
    axes, sides = len(kernel), [places for p in reversed(around) for places in (p, p)]
    outside = {"max": -torch.inf, "min": torch.inf}.get(kind, 0.0)
    met = windows(functional.pad(x, sides, value=outside), kernel, steps, gaps).flatten(-axes)  # (..., *sizes, taps)
    if kind == "max":
        return met.max(-1).values  # its gradient goes to one place, also where several are largest
    if kind == "min":
        return met.min(-1).values
    if kind == "average":
        return met.mean(-1)
    logits = beta * met
    if any(around):
        inside = functional.pad(torch.ones_like(x[:1, :1]), sides)  # (1, 1, *padded space)
        logits = logits.masked_fill(windows(inside, kernel, steps, gaps).flatten(-axes) == 0, -torch.inf)
    return (logits.softmax(-1) * met).sum(-1)


def _by_torch(
    x: Tensor, kind: str, kernel: list[int], steps: list[int], around: list[int], gaps: list[int], ceil_mode: bool
) -> Tensor:
    axes = len(kernel)
    if kind == "average":
        average = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[axes - 1]
        return average(x, tuple(kernel), tuple(steps), tuple(around), ceil_mode)
    largest = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[axes - 1]
    sign = 1 if kind == "max" else -1
    return sign * largest(sign * x, tuple(kernel), tuple(steps), tuple(around), tuple(gaps), ceil_mode)
