r"""What first-order optimisers share: groups, state, closures, and the choice between one tensor and many at once."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.optim.options import group_options, learning_rate

__all__ = ["FirstOrder"]

Tensors = list[Tensor] | tuple[Tensor, ...]


class FirstOrder(Optimizer, ABC):
    r"""An optimiser whose step depends on each parameter, its gradient and a few tensors of its shape.

    $$ (\theta_{t+1}, s_{t+1}) = u(\theta_t, \nabla h(\theta_t), s_t) $$

    A subclass names the tensors $s$ (`slots`) and writes $u$ twice: `update` for one parameter, to be read, and
    `update_all` for lists of them, which launches one operation for all parameters together. With `foreach=None` the
    second is used on accelerators and inside `torch.compile`; with `fused=True` torch's own kernel, where it has one.
    State has the names that torch.optim gives it, so that the `state_dict` of either can be loaded by the other.
    """

    coupled_decay = True  # weight decay is added to the gradient
    counts = False  # the update needs the number of the step

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        common = {"weight_decay": 0.0, "maximize": False, "foreach": None, "fused": None}
        super().__init__(params, common | defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As torch's, and the options of the group are checked too."""
        self.check(group_options(self.defaults, param_group))
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was saved, by ours or by torch's optimiser of this kind."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            self.check(group)

    def check(self, group: dict[str, Any]) -> None:
        """Refuse options outside of their range; a subclass adds its own."""
        learning_rate("lr", group["lr"])
        for name in ("weight_decay", "momentum", "eps"):
            if name in group:
                validate.number(name, group[name], least=0)
        validate.flag("maximize", group["maximize"])
        for name in ("foreach", "fused"):
            if group[name] is not None:
                validate.flag(name, group[name])
        if group["fused"] and group["foreach"]:
            raise ValueError("fused and foreach exclude each other: leave one of them out")
        if group["fused"] and type(self).update_fused is FirstOrder.update_fused:
            raise ValueError(f"fused must be False or None for {type(self).__name__}: torch has no kernel for it")

    @abstractmethod
    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The names of the tensors that are kept for each parameter."""

    def start(self, group: dict[str, Any], name: str, parameter: Tensor) -> Tensor:
        """What a slot holds before the first step."""
        return torch.zeros_like(parameter, memory_format=torch.preserve_format)

    @abstractmethod
    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        """One parameter's step, in place. `t` is the number of the step from 1 where `counts` is set, else None."""

    @abstractmethod
    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        """The same for lists of parameters on one device and of one dtype."""

    def update_fused(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: Tensors, *state: Tensors) -> None:
        """The same by torch's kernel, which sees to weight decay and to `maximize` itself."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Move every parameter that has a gradient; returns what `closure`, which computes the gradients, returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lists: list[list[Tensor]] = [[] for _ in range(3 + len(self.slots(group)))]
            self._init_group(group, *lists)
            if lists[0]:
                self._step_group(group, *lists)
        return loss

    def _init_group(
        self, group: dict[str, Any], theta: list[Tensor], g: list[Tensor], steps: list[Tensor], *state: list[Tensor]
    ) -> None:
        """Fill the lists with what has a gradient. The name is torch's: the compiler runs it without tracing."""
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            if parameter.grad.layout is not torch.strided:
                kind = type(self).__name__
                raise ValueError(f"{kind} takes dense gradients, got a sparse one: use sparse=False in the embedding")
            own = self.state[parameter]
            if self.counts:
                if "step" not in own:
                    wide = parameter.dtype in (torch.float64, torch.complex128) and not group["fused"]
                    home = parameter.device if group["fused"] else "cpu"
                    own["step"] = torch.zeros((), dtype=torch.float64 if wide else torch.float32, device=home)
                steps.append(own["step"])
            theta.append(parameter)
            g.append(parameter.grad)
            for values, name in zip(state, self.slots(group), strict=True):
                if own.get(name) is None:  # torch.optim.SGD saves None where it has no momentum
                    own[name] = self.start(group, name, parameter)
                values.append(own[name])

    def _step_group(self, group: dict[str, Any], theta: Tensors, g: Tensors, steps: Tensors, *state: Tensors) -> None:
        if group["fused"]:
            if any(parameter.is_complex() for parameter in theta):
                raise ValueError("fused must be False or None for complex parameters: torch's kernels take real ones")
            for part in _alike_portions(theta, g, steps, *state):
                self.update_fused(group, *part)
            return
        compiling = torch.compiler.is_compiling()
        if steps:
            torch._foreach_add_(steps, 1)
        # A number is quicker than a tensor on the CPU, but would be compiled anew at every step.
        t = list(steps) if compiling else [step.item() for step in steps]
        if isinstance(group["lr"], Tensor) and group["lr"].device.type == "cpu" and not compiling:
            group = group | {"lr": group["lr"].item()}  # products of a float32 tensor would be rounded to float32
        if group["maximize"]:
            g = torch._foreach_neg(g)
        if group["weight_decay"] and self.coupled_decay:
            g = torch._foreach_add(g, theta, alpha=group["weight_decay"])
        theta, g, *slots = (list(map(_as_real, values)) for values in (theta, g, *state))
        many = group["foreach"]
        if many is None:
            many = compiling or all(parameter.device.type not in ("cpu", "meta") for parameter in theta)
        if many:
            for part in _alike_portions(theta, g, t, *slots):
                self.update_all(group, *part)
        else:
            for part in zip(theta, g, t or [None] * len(g), *slots, strict=True):
                self.update(group, *part)


def add(theta: Tensor, direction: Tensor, factor: float | Tensor) -> None:
    """theta += factor direction, in place; the factor may be a tensor (a tensor lr, a compiled step)."""
    if isinstance(factor, Tensor):
        theta.add_(direction * factor)
    else:
        theta.add_(direction, alpha=factor)


def add_all(theta: Tensors, directions: Tensors, factor: float | Tensor) -> None:
    """The same for lists."""
    if isinstance(factor, Tensor):
        torch._foreach_add_(theta, torch._foreach_mul(directions, factor))
    else:
        torch._foreach_add_(theta, directions, alpha=factor)


def add_quotient(theta: Tensor, above: Tensor, below: Tensor, factor: float | Tensor) -> None:
    """theta += factor above / below, in place; `below` is given up."""
    if isinstance(factor, Tensor):
        theta.addcdiv_(above, below.div_(factor))
    else:
        theta.addcdiv_(above, below, value=factor)


def add_quotient_all(theta: Tensors, above: Tensors, below: Tensors, factors: list[Any]) -> None:
    """The same for lists, with a factor for each parameter."""
    if any(isinstance(factor, Tensor) for factor in factors):
        torch._foreach_div_(below, factors)
        torch._foreach_addcdiv_(theta, above, below)
    else:
        torch._foreach_addcdiv_(theta, above, below, factors)


def _as_real(value: Tensor) -> Tensor:
    """A complex number is a pair of real ones; a view, so that steps reach the parameter itself."""
    return torch.view_as_real(value) if value.is_complex() else value


def _alike_portions(*lists: Sequence[Any]) -> Iterator[list[Any]]:
    """The same lists in portions of one device and one dtype; empty lists stay empty."""
    kinds: dict[Any, list[int]] = {}
    for index, value in enumerate(lists[0]):
        kinds.setdefault((value.device, value.dtype), []).append(index)
    for indices in kinds.values():
        yield [[values[index] for index in indices] if values else [] for values in lists]
