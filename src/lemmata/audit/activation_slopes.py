r"""Which units of a network let gradients through: the slopes of every activation, over the data."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lemmata.audit.subject import Subject
from lemmata.audit.watching import by_batch, layer_names, plain_attention, units_first

__all__ = []  # for probes

FLAT = 0.01  # of the steepest slope: tanh beyond 3, the sigmoid beyond 6, ReLU below zero
STEP = 2.0**-10  # relative, of the difference that gives the slope: its rounding in float32 is 1e-4, far below FLAT
NOT_TAGGED = ("hardswish", "hardswish_")  # pointwise, though torch does not say so


class ActivationLayer:
    """One activation behind one layer: which units had a slope for any example, how many pairs of unit and example had
    none, and how many examples went through no unit. `both` says that it is flat on both sides, like tanh; `gate`, that
    something is multiplied by it; `last`, that no layer follows.
    """

    def __init__(self, name: str, activation: str, units: int, both: bool):
        self.name, self.activation, self.both = name, activation, both
        self.alive = torch.zeros(units, dtype=torch.bool)
        self.pairs = self.flat = self.examples = self.cut = 0
        self.gate, self.place = False, 0

    @property
    def units(self) -> int:
        """Number of units: channels of pictures, features of anything else."""
        return len(self.alive)

    @property
    def dead(self) -> int:
        """Units without a slope for any example."""
        return self.units - int(self.alive.sum())

    @property
    def flat_fraction(self) -> float:
        """Pairs of unit and example without a slope."""
        return self.flat / max(self.pairs, 1)

    def add(self, steep: Tensor, units: int | None, examples: int) -> None:
        """Count a batch of slopes that are not flat."""
        self.alive |= units_first(steep, units, examples).any(1).cpu()
        self.pairs += steep.numel()
        self.flat += steep.numel() - int(steep.sum())
        rows = by_batch(steep, examples)
        if rows is not None:
            self.examples += examples
            self.cut += examples - int(rows.any(1).sum())


class ActivationSlopes(TorchDispatchMode):
    """While it is active, every activation that a network computes is counted, module or function alike.

    An activation is any pointwise function of one tensor whose slope is bounded and nearly zero on one side at least.
    It belongs to the layer whose parameters were used last before it; calls with the same ones are joined, as the steps
    of a recurrent network are.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import the compiler, for seconds, to keep it out of here

    def __init__(self, subject: Subject):
        super().__init__()
        self.parameters = {
            values.data_ptr(): (name, len(values) if values.ndim else 1)
            for name, values in layer_names(subject.model).values()
        }
        self.layers: dict[tuple[str, str, int], ActivationLayer] = {}
        self.kinds: dict[Any, tuple[float, bool]] = {}
        self.products, self.examples = 0, 0
        self.last: tuple[str, int] | None = None
        self.held: dict[int, tuple[Tensor, ActivationLayer]] = {}

    def count(self, subject: Subject, inputs: Iterable[Tensor], examples: int) -> None:
        """Count the slopes of one batch."""
        self.products, self.examples, self.last = 0, examples, None
        with torch.no_grad(), plain_attention(), self:
            subject.network(*inputs)
        self.held.clear()

    def found(self) -> list[tuple[ActivationLayer, bool]]:
        """The layers in the order in which they were met, each with whether it is the last thing of the network."""
        return [(layer, layer.place == self.products) for layer in self.layers.values()]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
        self._notice_parameters(func, tensors)
        given = (
            args[0].detach() if len(tensors) == 1 and tensors[0] is args[0] and self._may_be(func, args[0]) else None
        )
        if given is not None and func._schema.is_mutable:
            given = given.clone()  # before it is overwritten
        output = func(*args, **kwargs)
        if given is not None and isinstance(output, Tensor) and output.shape == given.shape:
            self._see_activation(func, given, args[1:], kwargs, output)
        return output

    def _notice_parameters(self, func: Any, tensors: list[Tensor]) -> None:
        """Which parameters were used last, and what is multiplied by an activation."""
        for one in tensors:
            if (own := self.parameters.get(one.data_ptr())) is not None:
                self.last = own
                if not func.is_view:
                    self.products += 1
            elif func._schema.name == "aten::mul" and (held := self.held.get(one.data_ptr())) is not None:
                held[1].gate = True

    def _may_be(self, func: Any, given: Tensor) -> bool:
        pointwise = torch.Tag.pointwise in func.tags or func._schema.name.partition("::")[2] in NOT_TAGGED
        rows = (given.ndim > 1 and self.examples in given.shape) or (given.ndim > 1 and len(given) % self.examples == 0)
        return pointwise and rows and given.is_floating_point() and given.numel() > 0 and self.last is not None

    def _see_activation(self, func: Any, given: Tensor, rest: Any, kwargs: Any, output: Tensor) -> None:
        key = func, str(rest), str(kwargs)
        if key not in self.kinds:
            self.kinds[key] = _slope_kind(func, rest, kwargs, given.device)
        steepest, both = self.kinds[key]
        if not steepest or self.last is None:
            return
        name, units = self.last
        steep = _slope_sizes(func, given, rest, kwargs) > FLAT * steepest
        number = len(units_first(steep, units, self.examples))
        activation = func._schema.name.partition("::")[2].rstrip("_")
        layer = self.layers.setdefault((name, activation, number), ActivationLayer(name, activation, number, both))
        layer.add(steep, units, self.examples)
        layer.place = self.products
        if both:  # what could be a gate
            self.held[output.data_ptr()] = output, layer


def _slope_sizes(func: Any, x: Tensor, rest: Any, kwargs: Any) -> Tensor:
    """Sizes of slopes, by differences from the left: at the kink of ReLU this is zero, as torch has it. Of two steps
    the steeper slope counts: one goes with the input, so that no tiny one falls behind a kink at zero; the other does
    not, as rounding drowns tiny steps where the values themselves are not tiny.
    """
    x = x.float() if x.dtype.itemsize < 4 else x
    here, own = func(x.clone(), *rest, **kwargs), STEP * x.abs()
    step = own.clamp_min(STEP)
    fixed = (here - func(x - step, *rest, **kwargs)) / step
    scaled = (here - func(x - own, *rest, **kwargs)) / own  # 0/0 at zero
    return torch.maximum(fixed.abs(), scaled.abs().nan_to_num(0.0))


def _slope_kind(func: Any, rest: Any, kwargs: Any, device: torch.device) -> tuple[float, bool]:
    """The steepest slope, and whether both sides are flat; no slope for what is no activation."""
    places = torch.linspace(-32, 32, 1025, device=device)
    try:
        slopes = _slope_sizes(func, places, rest, kwargs)
    except (RuntimeError, TypeError):
        return 0.0, False
    steepest, within = float(slopes.max()), float(slopes[256:769].max())
    if not math.isfinite(float(slopes.sum())) or not 0 < steepest <= 1.01 * within:
        return 0.0, False
    left, right = (bool((side < FLAT * steepest / 10).all()) for side in (slopes[:256], slopes[769:]))
    if not left and not right:
        return 0.0, False
    ends = func(places[[0, -1]], *rest, **kwargs)
    rectifies = float(ends[0]) == 0 and float(ends[1]) > 1  # ReLU6 is a ReLU with a roof
    return steepest, left and right and not rectifies


def chunks(subject: Subject, size: int) -> Iterator[tuple[tuple[Tensor, ...], int]]:
    """Batches of one size of the training part in random order, as data may be sorted by class."""
    number = len(subject.train)
    size = min(size, number)
    order = torch.randperm(number, generator=torch.Generator().manual_seed(0)).to(subject.train.x.device)
    for first in range(0, number - size + 1, size):
        yield subject.train[order[first : first + size]].tensors, size
