r"""Which part of its input a unit sees, in any model of convolutions, poolings, branches and shortcuts."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lemmata import validate
from lemmata.convolution.field_axis import Field, Reach
from lemmata.convolution.field_rules import follow, operation
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["ReceptiveField", "gradient_field", "receptive_field"]

NOT_COMPUTED = "model must give a tensor that is computed from its input, got none"


@dataclass(frozen=True)
class ReceptiveField:
    """What the units of one layer see of the model's input; numbers stand for each axis of space."""

    name: str
    """Of the layer, as in `model.named_modules()`."""
    shape: tuple[int, ...]
    """Of the layer's output, without the batch."""
    reaches: tuple[Reach, ...] = field(repr=False)
    inputs: tuple[int, ...] = field(repr=False)
    layers: tuple["ReceptiveField", ...] = field(default=(), repr=False)
    """All layers of the model in the order in which they ran."""

    @property
    def size(self) -> tuple[int, ...]:
        """Places from the first to the last that a unit sees, of the input and of the padding around it."""
        return tuple(reach.size for reach in self.reaches)

    @property
    def stride(self) -> tuple[float, ...]:
        """Places by which the field moves from one unit to the next; 0 where all units see the same."""
        return tuple(float(reach.stride) for reach in self.reaches)

    @property
    def start(self) -> tuple[int, ...]:
        """The first place that unit 0 sees; negative where it lies in the padding."""
        return tuple((reach.at(0) or (0, 0))[0] for reach in self.reaches)

    @property
    def center(self) -> tuple[float, ...]:
        """The middle of what unit 0 sees."""
        return tuple(sum(reach.at(0) or (0, 0)) / 2 for reach in self.reaches)

    def of(self, *unit: int) -> tuple[slice, ...]:
        """The part of the input that a unit sees, as slices: its field without the padding of the input.

        Where layers inside pad too, units at the border may see less of it.

        >>> receptive_field(nn.Conv2d(1, 1, 3, padding=1), (1, 8, 8)).of(0, 4)
        (slice(0, 2, None), slice(3, 6, None))
        """
        if len(unit) != len(self.reaches):
            raise ValueError(f"unit must be {len(self.reaches)} numbers, one for each axis of space, got {unit}")
        seen = [reach.at(validate.count("unit", u, least=0)) for reach, u in zip(self.reaches, unit, strict=True)]
        parts = [
            (max(0, pair[0]), min(n, pair[1] + 1)) if pair else (0, 0)
            for pair, n in zip(seen, self.inputs, strict=True)
        ]
        return tuple(slice(first, max(first, end)) for first, end in parts)

    def __str__(self) -> str:
        rows = [["layer", "output", "size", "stride", "start"]]
        for layer in (*self.layers, self):
            numbers = [
                " x ".join(f"{n:g}" for n in value) for value in (layer.shape, layer.size, layer.stride, layer.start)
            ]
            rows.append([layer.name, *numbers])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )


@system("receptive_field", title="Receptive fields of a model's layers", kind="function")
def receptive_field(model: nn.Module, shape: Sequence[int], channels: int | None = 0) -> ReceptiveField:
    r"""What a unit of the model's output sees of its input, and what the units of each layer do.

    $$ r_\ell = r_{\ell-1} + d_\ell (k_\ell - 1) \prod_{m<\ell} s_m, \qquad r_0 = 1 $$

    The model runs once without numbers, and every operation of torch says which units of its input each unit of its
    output reads. So shortcuts, branches, poolings, upsampling, slices and functions without a module are followed;
    where branches meet, a unit sees what any of them does. An operation that is not known is named in the message.

    Shapes:
        shape: (channels, *space) of one example; (*space, channels) with channels=-1, (*space) of tokens with None

    Claims: conv.receptive_field, conv.vgg.stacking
    Source: A. Araujo, W. Norris and J. Sim, Computing receptive fields of convolutional neural networks (2019).
    Differs: counted for any graph. The field is that of prediction: statistics of a batch are not looked through, those
        of an example (group, layer and instance normalisation) see it whole, and weights that are zero count. Axes of
        space that are made one, as by `flatten`, are seen whole too.

    >>> print(receptive_field(nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3), nn.MaxPool2d(2)), (3, 32, 32)))
    layer   output       size   stride  start
    0       8 x 16 x 16  7 x 7  2 x 2   -3 x -3
    1       8 x 8 x 8    9 x 9  4 x 4   -3 x -3
    output  8 x 8 x 8    9 x 9  4 x 4   -3 x -3
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type(model).__name__}: wrap functions in a module")
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"shape must be a row of numbers, that of one example, got {shape!r}")
    sizes = tuple(validate.count("shape", n if isinstance(n, float) else int(n)) for n in shape)
    if len(sizes) < 1 + (channels is not None):
        raise ValueError(f"shape must be ({'' if channels is None else 'channels, '}*space), got {sizes}")
    if channels not in (None, 0, -1):
        raise ValueError(f"channels must be 0, -1 or None, got {channels!r}: permute inside of the model")
    axes = range(1 + (channels == 0), len(sizes) + (channels != -1))  # of space, behind the batch
    state = {name: t.to("meta") for name, t in [*model.named_parameters(), *model.named_buffers()]}
    dtype = (
        torch.long if channels is None else next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    )
    x = torch.empty(1, *sizes, dtype=dtype, device="meta")
    seen = _Seen(tuple(x.shape[axis] for axis in axes))
    seen.fields[id(x)] = x, tuple((Reach(1, ((0, 0),)), axis) for axis in axes)
    with evaluating(model), seen.watching(model), _EasierToFollow(), seen:
        try:
            y = functional_call(model, state, (x,))
        except UnknownOperationError:
            raise
        except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:  # of torch, or of our own networks
            told = str(error).strip().splitlines()[0]
            hint = f": leave the batch out, shape={sizes[1:]}" if _runs_on(model, sizes[1:], channels) else ""
            wanted = f"model must run on one example of shape {sizes} without looking at numbers"
            raise ValueError(f"{wanted}, got: {told}{hint}") from error
    found = next((t for t in tree_leaves(y) if isinstance(t, Tensor) and seen.field(t) is not None), None)
    if found is None:
        raise ValueError(NOT_COMPUTED)
    last = seen.told("output", found)
    return ReceptiveField(last.name, last.shape, last.reaches, last.inputs, tuple(seen.layers))


def _runs_on(model: nn.Module, shape: tuple[int, ...], channels: int | None) -> bool:
    """Whether an example of this shape is one that the model takes."""
    try:
        receptive_field(model, shape, channels)
    except (TypeError, ValueError):
        return False
    return True


def gradient_field(
    model: nn.Module, x: Float[Tensor, "batch channels *space"], unit: Sequence[int]
) -> Float[Tensor, "*space"]:
    r"""How strongly a unit depends on each place: absolute gradients, summed over channels and examples.

    $$ g_j = \sum_{b,r} \Big| \frac{\partial}{\partial x_{b,r,j}} \sum_c y_{b,c,u} \Big| $$

    Zero outside of the receptive field. Inside, its mean over many inputs is the effective receptive field.

    Shapes:
        x: (batch, channels, *space); unit: its place in the output, one number for each axis of space
        returns: (*space)

    Claims: conv.receptive_field, conv.vgg.stacking
    Source: W. Luo et al., Understanding the effective receptive field in deep convolutional neural networks (2016).

    >>> gradient_field(nn.AvgPool1d(2), torch.rand(1, 1, 6), (1,))
    tensor([0.0000, 0.0000, 0.5000, 0.5000, 0.0000, 0.0000])
    """
    if validate.tensor("x", x).ndim < 3 or not x.is_floating_point():
        raise ValueError(f"x must be floating point (batch, channels, *space), got {x.dtype}, shape {tuple(x.shape)}")
    if not isinstance(unit, Sequence):
        raise TypeError(f"unit must be a row of numbers, one for each axis of space, got {unit!r}")
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        y = next((t for t in tree_leaves(model(leaf)) if isinstance(t, Tensor) and t.requires_grad), None)
        if y is None:
            raise ValueError(NOT_COMPUTED)
        if y.ndim != len(unit) + 2 or any(not 0 <= u < n for u, n in zip(unit, y.shape[2:], strict=False)):
            raise ValueError(f"unit must be a place of the output's {tuple(y.shape[2:])}, got {tuple(unit)}")
        gradient = torch.autograd.grad(y[(slice(None), slice(None), *unit)].sum(), leaf)[0]
    return gradient.abs().sum((0, 1))


class UnknownOperationError(ValueError):
    """An operation whose field nobody knows."""


class _Seen(TorchDispatchMode):
    """Keeps what every tensor sees that is made while it watches, and what the layers' outputs do."""

    def __init__(self, inputs: tuple[int, ...]) -> None:
        super().__init__()
        self.inputs = inputs
        self.fields: dict[int, tuple[Tensor, Field]] = {}  # tensors are kept, so that no other takes their number
        self.layers: list[ReceptiveField] = []
        self.running: list[str] = []

    def field(self, value: Any) -> Field | None:
        found = self.fields.get(id(value))
        return found and found[1]

    def told(self, name: str, tensor: Tensor) -> ReceptiveField:
        reaches = tuple(reach for reach, _ in self.field(tensor) or ())
        return ReceptiveField(name, tuple(tensor.shape[1:]), reaches, self.inputs)

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Note which layer runs, and what the outputs of those without layers inside see."""

        def enter(name: str) -> Any:
            return lambda module, args: self.running.append(name)

        def leave(name: str) -> Any:
            def note(module: nn.Module, args: Any, output: Any) -> None:
                self.running.pop()
                if isinstance(output, Tensor) and self.field(output) is not None and not list(module.children()):
                    self.layers.append(self.told(name, output))

            return note

        with ExitStack() as hooks:
            for name, module in model.named_modules():
                hooks.callback(module.register_forward_pre_hook(enter(name)).remove)
                hooks.callback(module.register_forward_hook(leave(name)).remove)
            yield

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        given = [t for t in tree_leaves((args, kwargs)) if self.field(t) is not None]
        results = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        if not given or not results:
            return out
        called = operation(func, args, kwargs, results, self.field)
        here = f" in layer {self.running[-1]!r}" if self.running and self.running[-1] else ""
        if func._schema.is_mutable and args[0]._is_view() and any(t is not args[0] for t in given):
            raise UnknownOperationError(
                f"receptive_field cannot follow {called.name}{here}, which writes into a part of a tensor"
            )
        for result in results:
            if result.shape != results[0].shape and not called.name.startswith("split"):
                continue  # statistics beside the result
            try:
                seen = follow(called, result, torch.Tag.pointwise in func.tags)
            except KeyError as error:
                raise UnknownOperationError(
                    f"receptive_field does not know the operation {called.name}{here}: ask for the layers before it"
                ) from error
            if seen is not None:
                self.fields[id(result)] = result, seen
        return out


class _EasierToFollow(TorchFunctionMode):
    """Functions of torch by other operations that see the same."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "pad" and "circular" in (*args, *kwargs.values()):
            # The other end of a signal is seen only near the border, so that it may as well be zeros.
            given = dict(zip(("input", "pad"), args, strict=False)) | kwargs
            return functional.pad(given["input"], given["pad"])
        if func is functional.linear and kwargs.get("input", *args[:1]).ndim in (4, 5):
            # Torch makes one axis of all but the last, and it would seem that every place saw all others.
            return _at_each_place(*args, **kwargs)
        return func(*args, **kwargs)


def _at_each_place(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The linear layer of (batch, *space, channels) as a convolution with kernels of one place."""
    convolution = functional.conv2d if input.ndim == 4 else functional.conv3d
    kernels = weight.reshape(*weight.shape, *[1] * (input.ndim - 2))
    return convolution(input.movedim(-1, 1), kernels, bias).movedim(1, -1)
