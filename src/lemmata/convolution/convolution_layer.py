r"""A layer's convolution in any number of dimensions: the definition, its quicker forms, and its transpose."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Num
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.convolution_cost import block_lengths, expected_ratio, measured_choice
from lemmata.convolution.padding import MODES, amounts_of, pad_space, per_axis
from lemmata.convolution.sizes import output_size, transposed_output_size
from lemmata.marks import system

__all__ = ["conv_nd", "conv_transpose_nd"]

METHODS = ("auto", "measured", "definition", "im2col", "torch", "fft")
SPECTRAL = (torch.float32, torch.float64)  # dtypes of real signals whose spectra torch computes on every device
FAR = 30.0  # times as slow as the other way


@system("conv_nd", title="Convolutional layer in n dimensions", kind="function")
def conv_nd(
    x: Num[Tensor, "batch inputs *space"],
    weight: Num[Tensor, "outputs group_inputs *kernel"],
    bias: Num[Tensor, "outputs"] | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    method: str = "auto",
) -> Num[Tensor, "batch outputs *new_space"]:
    r"""Every output channel is a sum over input channels of cross-correlations with a kernel of their own.

    $$ y[c,u] = b_c + \sum_r \sum_t w[c,r,t]\, x[r, s u + d t] $$

    `method` says how: `definition` adds up the kernel's taps, `im2col` multiplies a matrix of windows, `torch` calls
    its kernels (up to three dimensions), `fft` multiplies spectra, and `auto` takes torch's kernels or
    spectra, whichever is expected to be quicker, the same on every machine. `measured` tries both at the first use of
    its sizes and keeps to the quicker: the last bits may then differ from run to run. Spectra err by
    roundings of the largest value of a block, and carry its infinities and NaN to all of it. Integers are exact
    where sums fit their dtype; they know `definition` and `im2col`.

    Shapes:
        x: (batch, inputs, *space); weight: (outputs, inputs / groups, *kernel); bias: (outputs,)
        returns: (batch, outputs, *space), each axis of `output_size`

    Claims: conv.layer, conv.channel_order, conv.stride, conv.dilation, conv.padding, conv.cross_correlation
    Source: im2col: K. Chellapilla, S. Puri and P. Simard, High performance convolutional neural networks for document
        processing (2006); spectra: M. Mathieu, M. Henaff and Y. LeCun, Fast training of convolutional networks through
        FFTs (2014).

    >>> conv_nd(torch.ones(1, 1, 5), torch.ones(1, 1, 3), stride=2)
    tensor([[[3., 3.]]])
    """
    axes = _check_tensors(x, weight, bias, groups)
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(f"x must have {weight.shape[1] * groups} channels to fit weight, got {x.shape[1]}")
    layout = _remember_plan(_window_layout, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    shape = (*x.shape[:2], *layout.padded)
    chosen = _choose_method(method, x, shape, weight, layout, groups, padding_mode)
    if chosen == "torch" and padding_mode == "zeros" and layout.even is not None:
        # Torch pads and adds the bias where it is: a copy with zeros around would take half as long as the kernel.
        return _TORCH[axes - 1](x, weight, bias, layout.steps, layout.even, layout.gaps, groups)
    padded = pad_space(x, layout.amounts, padding_mode)
    y = _HOW[chosen](padded, weight, layout.sizes, layout.steps, layout.gaps, groups)  # (batch, outputs, *sizes)
    return y if bias is None else y + bias.reshape(-1, *[1] * axes)


class _Layout(NamedTuple):
    """A window's steps and gaps on each axis of space, the padding, and the sizes that follow."""

    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    amounts: tuple[tuple[int, int], ...]  # padding before and after
    even: tuple[int, ...] | None  # the same where it is as much before as after
    padded: tuple[int, ...]
    sizes: tuple[int, ...]  # of the output


def _remember_plan(plan: Any, space: Sequence[int], kernel: Sequence[int], *settings: Any) -> Any:
    """What follows from sizes and settings, which takes as long to work out and to check as a small convolution.

    Only plain numbers and words are looked up: 1.0 and True are equal to 1, and are refused.
    """
    plain = all(type(value) in (int, str) for value in settings) and not torch.compiler.is_compiling()
    return (plan if plain else plan.__wrapped__)(space, kernel, *settings)


@functools.lru_cache(maxsize=1024)
def _window_layout(
    space: Sequence[int],
    kernel: Sequence[int],
    stride: int | Sequence[int],
    padding: int | str | Sequence[int],
    dilation: int | Sequence[int],
) -> _Layout:
    axes = len(space)
    steps, gaps = tuple(per_axis("stride", stride, axes)), tuple(per_axis("dilation", dilation, axes))
    amounts = tuple(amounts_of(padding, kernel, gaps, steps))
    even = tuple(before for before, _ in amounts) if all(before == after for before, after in amounts) else None
    padded = tuple(size + before + after for size, (before, after) in zip(space, amounts, strict=True))
    sizes = tuple(output_size(*one) for one in zip(padded, kernel, steps, [0] * axes, gaps, strict=True))
    return _Layout(steps, gaps, amounts, even, padded, sizes)


@system("conv_transpose_nd", title="Transposed convolution in n dimensions", kind="function")
def conv_transpose_nd(
    x: Num[Tensor, "batch inputs *space"],
    weight: Num[Tensor, "inputs group_outputs *kernel"],
    bias: Num[Tensor, "outputs"] | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    method: str = "auto",
) -> Num[Tensor, "batch outputs *new_space"]:
    r"""The transpose of `conv_nd` with the same weight: every input value adds a scaled kernel to the output.

    $$ y[c, s u + d t - p] \mathrel{+}= \sum_r w[r,c,t]\, x[r,u] $$

    Torch's kernels compute it where `method` is `torch`, and under `auto` unless spectra are expected to be quicker.
    Every other method computes it as a convolution: s - 1 zeros between the values of x, and the kernel turned around.

    Shapes:
        x: (batch, inputs, *space); weight: (inputs, outputs / groups, *kernel); bias: (outputs,)
        returns: (batch, outputs, *space), each axis of `transposed_output_size`

    Claims: conv.toeplitz_2d
    Source: M. Zeiler et al., Deconvolutional networks (2010); argument order of torch's conv_transpose functions.

    >>> conv_transpose_nd(torch.ones(1, 1, 2), torch.tensor([[[1.0, 2.0]]]), stride=2)
    tensor([[[1., 2., 1., 2.]]])
    """
    axes = _check_tensors(x, weight, bias, groups, transposed=True)
    if x.shape[1] != len(weight):
        raise ValueError(f"x must have {len(weight)} channels to fit weight, got {x.shape[1]}")
    settings = (stride, dilation, padding, output_padding)
    steps, gaps, less, more = _remember_plan(_transposed_layout, x.shape[2:], weight.shape[2:], *settings)
    chosen = _chosen_transposed(method, x, weight, steps, gaps, groups)
    if chosen == "torch":
        return _TRANSPOSED[axes - 1](x, weight, bias, steps, less, more, groups, gaps)
    turned = weight.flip(tuple(range(2, weight.ndim))).unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
    reach = [gap * (size - 1) for gap, size in zip(gaps, weight.shape[2:], strict=True)]
    full = conv_nd(
        _spread_zeros(x, steps), turned, padding=reach, dilation=gaps, groups=groups, method=chosen
    )  # as if nothing were padded
    y = pad_space(full, [(-p, o - p) for p, o in zip(less, more, strict=True)])
    return y if bias is None else y + bias.reshape(-1, *[1] * axes)


@functools.lru_cache(maxsize=1024)
def _transposed_layout(
    space: Sequence[int],
    kernel: Sequence[int],
    stride: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    output_padding: int | Sequence[int],
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Steps, gaps, and what padding takes away and adds on each axis of space."""
    axes = len(space)
    steps, gaps = per_axis("stride", stride, axes), per_axis("dilation", dilation, axes)
    less, more = per_axis("padding", padding, axes, 0), per_axis("output_padding", output_padding, axes, 0)
    for one in zip(space, kernel, steps, less, gaps, more, strict=True):
        transposed_output_size(*one)
    return steps, gaps, less, more


def _chosen_transposed(
    method: str, x: Tensor, weight: Tensor, steps: Sequence[int], gaps: Sequence[int], groups: int
) -> str:
    """Torch's kernels, or the method by which the convolution with zeros between the values of x is computed."""
    validate.one_of("method", method, METHODS)
    if method not in ("auto", "measured", "torch") or not x.is_floating_point() or len(steps) > 3:
        return method
    if method == "torch" or x.dtype not in SPECTRAL:
        return "torch"
    reach = [gap * (size - 1) for gap, size in zip(gaps, weight.shape[2:], strict=True)]
    sizes = [step * (size - 1) + 1 + r for step, size, r in zip(steps, x.shape[2:], reach, strict=True)]
    padded = (*x.shape[:2], *(size + r for size, r in zip(sizes, reach, strict=True)))
    turned = (weight.shape[1] * groups, x.shape[1] // groups, *weight.shape[2:])
    # Torch leaves out the zeros between, which are all but one in `prod(steps)` of what it would multiply.
    return "fft" if expected_ratio(padded, turned, sizes, x.dtype) > math.prod(steps) else "torch"


def _check_tensors(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, transposed: bool = False) -> int:
    """How many axes of space there are, once the tensors are known to fit together."""
    if validate.tensor("x", x).ndim != validate.tensor("weight", weight).ndim or x.ndim < 3:
        shapes = f"{tuple(x.shape)} and {tuple(weight.shape)}"
        raise ValueError(f"x (batch, inputs, *space) and weight must have as many axes, at least 3, got {shapes}")
    for name, value in ("x", x), ("weight", weight):
        if 0 in value.shape:
            raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)}")
    alike("weight", weight, "x", x)
    if bias is not None:
        alike("bias", validate.tensor("bias", bias), "x", x)
    if len(weight) % validate.count("groups", groups):
        raise ValueError(f"groups must divide the {len(weight)} channels of weight, got {groups}")
    outputs = weight.shape[1] * groups if transposed else len(weight)
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"bias must be a ({outputs},) tensor, got shape {tuple(bias.shape)}")
    return x.ndim - 2


def alike(name: str, value: Tensor, other: str, like: Tensor) -> None:
    """The dtype and the device of another tensor: torch would misread some of the numbers that are not there."""
    if value.dtype != like.dtype:
        raise TypeError(
            f"{name} must have the dtype of {other}, {like.dtype}, got {value.dtype}: use {name}.to({other})"
        )
    if value.device != like.device:
        where = f"{like.device}, got {value.device}"
        raise ValueError(f"{name} must be on the device of {other}, {where}: use {name}.to({other})")


def _choose_method(
    method: str,
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor,
    layout: _Layout,
    groups: int,
    padding_mode: str,
) -> str:
    validate.one_of("method", method, METHODS)
    validate.one_of("padding_mode", padding_mode, MODES)
    sizes = layout.sizes
    whole = not (x.is_floating_point() or x.is_complex())
    if method == "fft" and x.dtype not in SPECTRAL:
        raise TypeError(f"method 'fft' needs float32 or float64, got {x.dtype}: use x.float() and weight.float()")
    if method == "torch" and (whole or len(sizes) > 3):
        raise ValueError(f"method 'torch' needs floating point and at most 3 axes, got {x.dtype} and {len(sizes)}")
    if method not in ("auto", "measured"):
        return method
    if whole or x.is_complex():
        return "definition"
    direct = "torch" if len(sizes) <= 3 else "definition"
    if x.dtype not in SPECTRAL:
        return direct
    expected = expected_ratio(shape, weight.shape, sizes, x.dtype)
    # Nobody waits for a way that is expected to be far behind, and there are no times to take where nothing runs.
    if method == "auto" or not 1 / FAR < expected < FAR or x.is_meta or torch.compiler.is_compiling():
        return "fft" if expected > 1 else direct
    key = (*map(tuple, (shape, weight.shape)), layout.steps, layout.gaps, groups, x.dtype, x.device)
    key = (*key, torch.get_num_threads())
    padded = pad_space(x.detach(), layout.amounts, padding_mode)
    how = (padded, weight.detach(), sizes, layout.steps, layout.gaps, groups)
    return measured_choice(key, {name: functools.partial(_HOW[name], *how) for name in (direct, "fft")})


def _by_definition(
    x: Tensor, weight: Tensor, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> Tensor:
    """One tap of the kernel at a time: it meets the same places of every window."""
    x, kernels = x.unflatten(1, (groups, -1)), weight.unflatten(0, (groups, -1))
    y = x.new_zeros(len(x), groups, kernels.shape[1], *sizes)  # (batch, group, outputs of it, *sizes)
    for tap in itertools.product(*[range(size) for size in weight.shape[2:]]):
        met = tuple(
            slice(gap * t, gap * t + step * (size - 1) + 1, step)
            for t, gap, step, size in zip(tap, gaps, steps, sizes, strict=True)
        )
        y = y + torch.einsum("bgi...,goi->bgo...", x[(..., *met)], kernels[(..., *tap)])
    return y.flatten(1, 2)


def windows(x: Tensor, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int]) -> Tensor:
    """A view of x that has, for each place of the output, the values under the kernel: (..., *sizes, *kernel)."""
    first = x.ndim - len(kernel)
    for axis, (size, step, gap) in enumerate(zip(kernel, steps, gaps, strict=True), start=first):
        x = x.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
    return x


def _by_im2col(
    x: Tensor, weight: Tensor, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> Tensor:
    """Every window is a row, every kernel a column: one matrix product."""
    axes = len(sizes)
    seen = windows(x.unflatten(1, (groups, -1)), weight.shape[2:], steps, gaps)  # (batch, group, in, *sizes, *kernel)
    rows = seen.movedim(2, 2 + axes).flatten(2 + axes).flatten(2, 1 + axes)  # (batch, group, places, in * taps)
    columns = weight.unflatten(0, (groups, -1)).flatten(2)  # (group, outputs of it, in * taps)
    y = columns @ rows.mT  # (batch, group, outputs of it, places)
    return y.flatten(1, 2).unflatten(2, tuple(sizes))


def _by_torch(
    x: Tensor, weight: Tensor, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> Tensor:
    return _TORCH[len(sizes) - 1](x, weight, None, tuple(steps), 0, tuple(gaps), groups)


def _by_fft(
    x: Tensor, weight: Tensor, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int], groups: int
) -> Tensor:
    """Spectra of blocks that overlap are multiplied; a block's sum wraps around only where no whole window fits."""
    kernels = _spread_zeros(weight, gaps)
    blocks = block_lengths(x.shape, kernels.shape)
    whole = [length - reach + 1 for length, reach in zip(blocks, kernels.shape[2:], strict=True)]  # windows in a block
    axes = tuple(range(-len(blocks), 0))
    signal = torch.fft.rfftn(_cut_blocks(x, blocks, whole), blocks, axes)  # (batch, inputs, *counts, *frequencies)
    counts, frequencies = signal.shape[2 : 2 + len(blocks)], signal.shape[2 + len(blocks) :]
    signal = signal.flatten(2 + len(blocks)).flatten(2, -2).unflatten(1, (groups, -1))  # (batch, group, in, block, f)
    response = torch.fft.rfftn(kernels, blocks, axes).flatten(2).unflatten(0, (groups, -1))  # (group, outputs, in, f)
    if weight.shape[1] == 1:
        spectrum = signal * response.conj()  # (batch, group, outputs of it, block, f)
    else:  # a matrix product at each frequency
        rows = signal.permute(4, 1, 0, 3, 2).flatten(2, 3)  # (f, group, batch * block, in)
        spectrum = rows @ response.conj().permute(3, 0, 2, 1)  # (f, group, batch * block, outputs of it)
        spectrum = spectrum.unflatten(2, (len(x), -1)).permute(2, 1, 4, 3, 0)
    spectrum = spectrum.flatten(1, 2).unflatten(2, counts).unflatten(-1, frequencies)
    y = torch.fft.irfftn(spectrum, blocks, axes)  # (batch, outputs, *counts, *blocks)
    return _join_blocks(y, whole)[(..., *(slice(0, s * (n - 1) + 1, s) for s, n in zip(steps, sizes, strict=True)))]


def _cut_blocks(x: Tensor, lengths: Sequence[int], steps: Sequence[int]) -> Tensor:
    """Cut each axis of space into blocks that begin `steps` apart: (batch, inputs, *counts, *lengths or less)."""
    for axis, (length, step) in enumerate(zip(lengths, steps, strict=True), start=2):
        if x.shape[axis] <= length:  # one block, which the transform fills up
            x = x.movedim(axis, -1).unsqueeze(axis)
        else:
            after = -(x.shape[axis] - length) % step
            x = functional.pad(x, [0, 0] * (x.ndim - 1 - axis) + [0, after]).unfold(axis, length, step)
    return x


def _join_blocks(y: Tensor, steps: Sequence[int]) -> Tensor:
    """Put the first places of all blocks behind one another."""
    axes = len(steps)
    y = y[(..., *(slice(0, step) for step in steps))]
    y = y.permute(
        0, 1, *(axis for pair in zip(range(2, 2 + axes), range(2 + axes, y.ndim), strict=True) for axis in pair)
    )
    for axis in range(2, 2 + axes):
        y = y.flatten(axis, axis + 1)
    return y


def _spread_zeros(x: Tensor, steps: Sequence[int]) -> Tensor:
    """Put step - 1 zeros between neighbours on each axis of space."""
    if math.prod(steps) == 1:
        return x
    sizes = [step * (size - 1) + 1 for step, size in zip(steps, x.shape[2:], strict=True)]
    places = tuple(slice(None, None, step) for step in steps)
    spread = x.new_zeros(*x.shape[:2], *sizes)
    spread[(..., *places)] = x
    return spread


_TORCH = (functional.conv1d, functional.conv2d, functional.conv3d)
_TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)
_HOW = {"definition": _by_definition, "im2col": _by_im2col, "torch": _by_torch, "fft": _by_fft}
