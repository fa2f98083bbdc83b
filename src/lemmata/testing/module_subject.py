"""The module under test in the conformance suite of modules: made, moved and called in one way, whatever it takes."""

import contextlib
import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.testing.findings import Broken, Undecided
from lemmata.testing.recurrence_subject import leaves

__all__ = []  # for the suite alone

ROUNDING = 1e-5  # for what is computed twice in the same way, in float32; memory may be aligned otherwise

# The names of axes whose size is the caller's choice; any other axis of an annotation is a width of the module.
LENGTHS = ("time", "positions", "queries", "keys", "memories", "points", "elements")
FREE = ("batch", *LENGTHS, "nodes", "height", "width", "shape", "rest")


@dataclass
class Subject:
    """A module in evaluation mode, an example of its inputs by name, and how to make the module anew."""

    module: nn.Module
    name: str
    inputs: dict[str, Any]
    axes: dict[str, tuple[str, ...]]  # of each input whose axes are known
    build: Callable[..., nn.Module] | None = None
    backend: str = "aot_eager"
    known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, module: Any, inputs: Any, build: Any, axes: Any, backend: str) -> "Subject":
        validate.module("module", module)
        made: Callable[..., nn.Module] | None = build
        if build is not None and not callable(build):
            raise TypeError(f"build must be a class or function that makes the module, got {type(build).__name__}")
        given = inputs if isinstance(inputs, tuple | list) else (inputs,)
        parameters = inspect.signature(module.forward).parameters
        positional = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if len(given) > len(positional):
            raise ValueError(f"forward takes {len(positional)} inputs, got {len(given)}")
        named = dict(zip(positional, map(_own_copy, given), strict=False))
        if not any(isinstance(value, Tensor) for value in named.values()):
            raise TypeError("inputs must be a tensor, or a tuple of the arguments of forward with a tensor among them")
        declared = {name: _declared_axes(module, name) for name in named if isinstance(named[name], Tensor)}
        declared |= {name: tuple(text.split()) for name, text in dict(axes or {}).items()}
        if unknown := sorted(set(declared) - set(named)):
            raise ValueError(f"axes must name inputs among {', '.join(named)}, got {', '.join(unknown)}")
        known = {name: found for name, found in declared.items() if found}
        return cls(copy.deepcopy(module).eval(), type(module).__name__, named, known, made, backend)

    # The module, made and changed

    def built(self, **options: Any) -> tuple[nn.Module, set[str]]:
        """The module made anew in evaluation mode, and the names of what its constructor was given, as layers are."""
        if self.build is None:
            raise Undecided("give build=, a class or function that makes the module")
        build, given = self.build, []
        if isinstance(build, functools.partial):
            arguments, words = copy.deepcopy((build.args, build.keywords))
            given = [*arguments, *words.values()]
            build = functools.partial(build.func, *arguments, **words)
        module = build(**options).eval()
        layers = [part for part in given if isinstance(part, nn.Module)]
        foreign = {id(x) for part in layers for x in (*part.parameters(), *part.buffers())}
        values = [x for x in given if isinstance(x, Tensor)]
        own = (*module.named_parameters(), *module.named_buffers())
        return module, {
            name for name, x in own if id(x) in foreign or any(_equal_tensors(x, value) for value in values)
        }

    def copied(self, dtype: torch.dtype | None = None) -> nn.Module:
        """A copy of the module in evaluation mode."""
        twin = copy.deepcopy(self.module)
        return twin if dtype is None else twin.to(dtype)

    @functools.cached_property
    def parameters(self) -> dict[str, Tensor]:
        """The floating-point parameters."""
        return {name: p.detach() for name, p in self.module.named_parameters() if p.is_floating_point()}

    # Its inputs

    def tensors(self) -> dict[str, Tensor]:
        """The inputs that are tensors."""
        return {name: value for name, value in self.inputs.items() if isinstance(value, Tensor)}

    def floating(self) -> dict[str, Tensor]:
        """The inputs that are floating point."""
        return {name: value for name, value in self.tensors().items() if value.is_floating_point()}

    def batched(self) -> dict[str, Tensor]:
        """The inputs whose first axis is the batch; all of them must be as long."""
        found = {name: x for name, x in self.tensors().items() if x.ndim and self._is_batch(name)}
        if len({len(x) for x in found.values()}) != 1 or len(self.tensors()) != len(found):
            raise Undecided("the first axes of its inputs are not one batch")
        return found

    def _is_batch(self, name: str) -> bool:
        first = self.axes.get(name, ("batch",))[0]
        return first == "batch" or first.startswith(("*", "..."))

    def free_axes(self, name: str) -> dict[int, str]:
        """The axes of an input whose size is not the module's choice, by position."""
        axes = self.axes.get(name)
        x = self.inputs[name]
        if axes is None:
            return {0: "batch"}
        if not any(_is_variadic_axis(axis) for axis in axes):
            return {position: axis for position, axis in enumerate(axes) if axis in FREE}
        at = next(position for position, axis in enumerate(axes) if _is_variadic_axis(axis))
        free = {position: axis for position, axis in enumerate(axes[:at]) if axis in FREE}
        after = {x.ndim - len(axes) + p: axis for p, axis in enumerate(axes) if p > at and axis in FREE}
        several = {p: "batch" if p == 0 else f"axis_{p}" for p in range(at, x.ndim - len(axes) + at + 1)}
        return free | several | after

    def any_rank(self, name: str) -> bool:
        """Is the number of axes of an input not declared, or not fixed?"""
        return name not in self.axes or any(_is_variadic_axis(axis) for axis in self.axes[name])

    def with_dtype(self, dtype: torch.dtype) -> dict[str, Any]:
        """The inputs in another floating dtype."""
        return {name: moved(value, dtype) for name, value in self.inputs.items()}

    # Its outputs

    def run(self, module: nn.Module | None = None, changed: Mapping[str, Any] | None = None) -> list[Tensor]:
        """The output tensors for copies of the inputs, some of them changed."""
        given = {**self.inputs, **(changed or {})}
        values = (value.detach().clone() if isinstance(value, Tensor) else value for value in given.values())
        return outputs_of((self.module if module is None else module)(*values))

    def whole(self) -> list[Tensor]:
        """The outputs for the example, run once without gradients."""
        if "whole" not in self.known:
            with torch.no_grad():
                self.known["whole"] = self.run()
        return self.known["whole"]

    def single(self, index: int) -> list[Tensor]:
        """The outputs for one row of the batch alone."""
        if ("single", index) not in self.known:
            with torch.no_grad():
                rows = {name: x[index : index + 1] for name, x in self.batched().items()}
                self.known["single", index] = self.run(changed=rows)
        return self.known["single", index]

    def gradients(self, module: Any) -> tuple[list[Tensor], list[Tensor]]:
        """Outputs, and the gradients of a fixed linear function of them at all parameters, as when it is trained.

        Where it has none, at the floating inputs.
        """
        given = {name: _leaf_input(value, not self.parameters) for name, value in self.inputs.items()}
        outputs = outputs_of(module(*given.values()))
        loss = scalar(outputs)
        if not loss.requires_grad:
            raise Undecided("nothing that it gives has a gradient")
        at = [p for p in _real_parameters(module) if p.requires_grad]
        at += [x for x in given.values() if isinstance(x, Tensor) and x.requires_grad]
        found = torch.autograd.grad(loss, at, allow_unused=True)
        kept = [torch.zeros_like(x) if g is None else g for g, x in zip(found, at, strict=True)]
        return [output.detach() for output in outputs], kept


def _equal_tensors(one: Tensor, two: Tensor) -> bool:
    return one.shape == two.shape and one.device == two.device and bool((one == two).all())


def _real_parameters(module: Any) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.is_floating_point() or p.is_complex()]


def _leaf_input(value: Any, differentiable: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().clone().requires_grad_(differentiable and value.is_floating_point())


def _own_copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def moved(value: Any, place: Any) -> Any:
    """A tensor, or something else that has `to`, on another device or in another dtype."""
    if isinstance(value, Tensor):
        return value.to(place) if value.is_floating_point() or not isinstance(place, torch.dtype) else value
    return value.to(place) if hasattr(value, "to") else value


def _is_variadic_axis(axis: str) -> bool:
    return axis.startswith("*") or axis == "..."


def _declared_axes(module: nn.Module, name: str) -> tuple[str, ...]:
    """The axes in an annotation of jaxtyping, such as Float[Tensor, "batch time inputs"]."""
    annotation = inspect.signature(module.forward).parameters[name].annotation
    if isinstance(annotation, str):
        with contextlib.suppress(Exception):  # a name that is imported for type checkers alone
            annotation = typing.get_type_hints(module.forward)[name]
    for option in (annotation, *typing.get_args(annotation)):
        if isinstance(text := getattr(option, "dim_str", None), str):
            return tuple(re.sub(r"[#?]", "", text).split())
    return ()


def outputs_of(result: Any) -> list[Tensor]:
    """The tensors that a call gives."""
    parts = vars(result).values() if hasattr(result, "__dataclass_fields__") else [result]
    found = [leaf for part in parts for leaf in leaves(part)]
    if not found:
        raise Broken(f"a call must give tensors, got {type(result).__name__}")
    return found


def scalar(outputs: Sequence[Tensor]) -> Tensor:
    """A linear function of the outputs with other weights for each entry: 1, 1/2, 1/3, 1/4, 1/5, 1, ..."""
    real = [torch.view_as_real(x) if x.is_complex() else x for x in outputs]
    parts = [x.flatten() for x in real if x.is_floating_point()]
    if not parts:
        raise Undecided("nothing that it gives is floating point")
    weighted = [(x * (1 / (1 + torch.arange(x.numel(), device=x.device) % 5)).to(x.dtype)).sum() for x in parts]
    return torch.stack([x.to(weighted[0].dtype) for x in weighted]).sum()


def off(one: Tensor, two: Tensor) -> float:
    """How far two tensors are apart, relative to the largest entry; NaN in both at the same entry is no difference."""
    if one.shape != two.shape:
        return float("inf")
    if not one.numel():
        return 0.0
    wide = torch.complex128 if one.is_complex() else torch.float64
    one, two = one.detach().to(wide), two.detach().to(wide)
    apart = torch.where((one == two) | (one.isnan() & two.isnan()), 0.0, (one - two).abs())
    size = max(float(one.abs().nan_to_num().max()), float(two.abs().nan_to_num().max()), 1e-30)
    largest = float(apart.max())
    return float("inf") if largest != largest else largest / size


def demand_same(found: Sequence[Tensor], wanted: Sequence[Tensor], when: str, tolerance: float = 1e-4) -> None:
    """Two lists of tensors must agree in shapes and values."""
    shapes = [[tuple(x.shape) for x in part] for part in (found, wanted)]
    if shapes[0] != shapes[1]:
        raise Broken(f"{when} the shapes are {shapes[0]} instead of {shapes[1]}")
    worst = max((off(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    if not worst <= tolerance:
        raise Broken(f"{when} the result differs by {worst:.1e} of its largest entry")


def demand_same_gradients(found: Sequence[Tensor], wanted: Sequence[Tensor], when: str) -> None:
    """The gradients of one loss must agree, each up to rounding at the size of the largest of them.

    A gradient may be zero by a law (what a softmax adds to all its scores) and then holds rounding alone, which no
    two ways share.
    """
    largest = max((float(x.detach().abs().max()) for x in wanted if x.numel() and not x.is_complex()), default=0.0)
    floor = ROUNDING * largest
    kept = [
        (a, b)
        for a, b in zip(found, wanted, strict=True)
        if a.shape != b.shape or a.is_complex() or not a.numel() or not float(torch.stack([a, b]).abs().max()) <= floor
    ]
    demand_same([a for a, _ in kept], [b for _, b in kept], when)
