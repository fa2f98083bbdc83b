r"""The backward passes of a convolutional layer, each of them a convolution too."""

from collections.abc import Sequence

from jaxtyping import Num
from torch import Tensor

from lemmata import validate
from lemmata.convolution.convolution_layer import alike, conv_nd, conv_transpose_nd
from lemmata.convolution.padding import amounts_of, pad_space, per_axis
from lemmata.convolution.sizes import output_size
from lemmata.marks import system

__all__ = ["conv_input_gradient", "conv_weight_gradient"]


@system("conv_input_gradient", title="Gradient of a convolution by its input", kind="function")
def conv_input_gradient(
    size: int | Sequence[int],
    weight: Num[Tensor, "outputs group_inputs *kernel"],
    delta: Num[Tensor, "batch outputs *new_space"],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    method: str = "auto",
) -> Num[Tensor, "batch inputs *space"]:
    r"""What a gradient $\delta=\partial R/\partial y$ behind `conv_nd` is before it: a transposed convolution.

    $$ \frac{\partial R}{\partial x[r, su+dt-p]} \mathrel{+}= \sum_c w[c,r,t]\, \delta[c,u] $$

    At stride 1 it is the true convolution $\delta * w$, with channels exchanged.

    Shapes:
        size: that of each axis of x; weight: (outputs, inputs / groups, *kernel); delta: (batch, outputs, *new_space)
        returns: (batch, inputs, *space)

    Claims: conv.backprop.as_convolution
    Source: Y. LeCun et al., Backpropagation applied to handwritten zip code recognition (1989); torch.nn.grad has the
        same for one, two and three dimensions.

    >>> conv_input_gradient(4, torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 1, 3))
    tensor([[[1., 3., 3., 2.]]])
    """
    kernel = _kernel_sizes("weight", weight)
    steps, gaps, around, sizes, space = _layer_sizes(size, kernel, stride, padding, dilation)
    _check_gradient_shape(delta, len(weight), sizes, "weight", weight)
    # Places at the end that no window reaches, which have no gradient.
    left = [
        (n + sum(sides) - gap * (k - 1) - 1) % step
        for n, sides, gap, k, step in zip(space, around, gaps, kernel, steps, strict=True)
    ]
    padded = conv_transpose_nd(delta, weight, stride=steps, groups=groups, dilation=gaps, method=method)
    return pad_space(padded, [(-before, more - after) for (before, after), more in zip(around, left, strict=True)])


@system("conv_weight_gradient", title="Gradient of a convolution by its kernels", kind="function")
def conv_weight_gradient(
    x: Num[Tensor, "batch inputs *space"],
    kernel_size: int | Sequence[int],
    delta: Num[Tensor, "batch outputs *new_space"],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    method: str = "auto",
) -> Num[Tensor, "outputs group_inputs *kernel"]:
    r"""The gradient of `conv_nd`'s kernels: its input cross-correlated with $\delta=\partial R/\partial y$.

    $$ \frac{\partial R}{\partial w[c,r,t]} = \sum_u \delta[c,u]\, x[r, su+dt-p] $$

    A sum over all places u that share the weight. Stride and dilation change their parts: here $\delta$ is the kernel,
    dilated by s and moved d places at a time.

    Shapes:
        x: (batch, inputs, *space); delta: (batch, outputs, *new_space)    returns: (outputs, inputs / groups, *kernel)

    Claims: conv.backprop.as_convolution, conv.backprop.shared_weight
    Source: Y. LeCun et al., Backpropagation applied to handwritten zip code recognition (1989); torch.nn.grad has the
        same for one, two and three dimensions.

    >>> conv_weight_gradient(torch.tensor([[[1.0, 2.0, 3.0]]]), 2, torch.ones(1, 1, 2))
    tensor([[[3., 5.]]])
    """
    if validate.tensor("x", x).ndim < 3:
        raise ValueError(f"x must be (batch, inputs, *space), got shape {tuple(x.shape)}")
    kernel = per_axis("kernel_size", kernel_size, x.ndim - 2)
    steps, gaps, around, sizes, _ = _layer_sizes(x.shape[2:], kernel, stride, padding, dilation)
    _check_gradient_shape(delta, None, sizes, "x", x)
    if len(delta) != len(x):
        raise ValueError(f"delta must have the {len(x)} examples of x, got {len(delta)}")
    for name, channels in ("x", x.shape[1]), ("delta", delta.shape[1]):
        if channels % validate.count("groups", groups):
            raise ValueError(f"groups must divide the {channels} channels of {name}, got {groups}")
    # The batch is what is summed over, so examples take the place of channels.
    rows = pad_space(x, around).unflatten(1, (groups, -1)).movedim(2, 0)  # (inputs of it, batch, group, *padded space)
    rows = rows.transpose(1, 2).flatten(1, 2)  # (inputs of it, group * batch, *padded space)
    found = conv_nd(rows, delta.transpose(0, 1), stride=gaps, dilation=steps, groups=groups, method=method)
    # A few windows too many fit where the stride leaves places over.
    return found[(..., *(slice(k) for k in kernel))].transpose(0, 1)


def _kernel_sizes(name: str, weight: Tensor) -> list[int]:
    if validate.tensor(name, weight).ndim < 3:
        raise ValueError(f"{name} must be (outputs, inputs / groups, *kernel), got shape {tuple(weight.shape)}")
    return list(weight.shape[2:])


def _layer_sizes(
    size: int | Sequence[int],
    kernel: Sequence[int],
    stride: int | Sequence[int],
    padding: int | str | Sequence[int],
    dilation: int | Sequence[int],
) -> tuple[list[int], list[int], list[tuple[int, int]], list[int], list[int]]:
    """Stride, dilation, padding, output size and input size of the layer, for each axis."""
    axes = len(kernel)
    steps, gaps = per_axis("stride", stride, axes), per_axis("dilation", dilation, axes)
    around, space = amounts_of(padding, kernel, gaps, steps), per_axis("size", size, axes)
    sizes = [
        output_size(n + sum(sides), k, step, 0, gap)
        for n, k, step, sides, gap in zip(space, kernel, steps, around, gaps, strict=True)
    ]
    return steps, gaps, around, sizes, space


def _check_gradient_shape(delta: Tensor, outputs: int | None, sizes: Sequence[int], name: str, like: Tensor) -> None:
    """The gradient has the shape of the layer's output, its dtype and its device."""
    fits = validate.tensor("delta", delta).ndim == len(sizes) + 2 and list(delta.shape[2:]) == list(sizes)
    if not fits or (outputs is not None and delta.shape[1] != outputs):
        wanted = ", ".join(map(str, ["batch", "outputs" if outputs is None else outputs, *sizes]))
        raise ValueError(f"delta must be ({wanted}), the shape of the layer's output, got shape {tuple(delta.shape)}")
    alike("delta", delta, name, like)
