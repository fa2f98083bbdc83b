r"""The optimiser and the schedule of a run: those the options name, or the user's own."""

import inspect
import math
import typing
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lemmata.catalog import marked, optimizers
from lemmata.train.options import OF_TORCH, Options

__all__ = ["lr_factor"]

UNCLIPPED = ("newton", "newton_cg")  # they differentiate the loss themselves, whatever becomes of the gradients


def lr_factor(step: float, steps: int, schedule: str, warmup: int = 0) -> float:
    r"""The fraction of the highest learning rate at a step: it rises through `warmup` steps, then falls until the last.

    >>> [lr_factor(step, 10, "linear", warmup=2) for step in (0, 1, 2, 6)]
    [0.5, 1.0, 1.0, 0.5]
    """
    if step < warmup:
        return min((step + 1) / warmup, 1.0)  # a share of the steps times their number may fall just short of `warmup`
    if schedule == "constant":
        return 1.0
    fallen = (step - warmup) / max(steps - warmup, 1)
    return 1 - fallen if schedule == "linear" else (1 + math.cos(math.pi * fallen)) / 2


class Rates:
    """An optimiser with what moves its learning rates: the options' schedule, or a scheduler of torch."""

    def __init__(
        self, model: nn.Module, options: Options, optimizer: Any = None, scheduler: Any = None, every: str = "epoch"
    ):
        if every not in ("epoch", "step"):
            raise ValueError(f"scheduler_every must be epoch or step, got {every!r}")
        if optimizer is None and isinstance(scheduler, LRScheduler):
            optimizer = scheduler.optimizer
        self.options, self.every = options, every
        self.own = optimizer is not None
        self.optimizer = _own_optimizer(model, optimizer) if self.own else _by_options(model, options)
        self.highest = [group["lr"] for group in self.optimizer.param_groups]
        self.scheduler = self._make_scheduler(scheduler)
        self.moves = self.scheduler is None and (not self.own or options.schedule != "constant" or options.warmup > 0)
        required = inspect.signature(self.optimizer.step).parameters.get("closure")
        self.needs_closure = required is not None and required.default is inspect.Parameter.empty  # such as LBFGS

    def _make_scheduler(self, given: Any) -> LRScheduler | None:
        if given is None:
            return None
        if isinstance(given, str):
            raise TypeError(f"scheduler must be an object or a function, got {given!r}: names are for schedule")
        if self.options.schedule != "constant" or self.options.warmup:
            raise ValueError("scheduler and schedule are two ways to move lr: leave schedule and warmup as they are")
        made = given if isinstance(given, LRScheduler) else _make_part("scheduler", given, self.optimizer)
        if not isinstance(made, LRScheduler):
            raise TypeError(f"scheduler must be one of torch.optim.lr_scheduler, got {type(made).__name__}")
        if isinstance(made, ReduceLROnPlateau) and self.every == "step":
            raise ValueError("ReduceLROnPlateau looks at the score of an epoch: leave scheduler_every as it is")
        if made.optimizer is not self.optimizer:
            raise ValueError("scheduler moves another optimizer than the one that is used: build it from that one")
        return made

    @property
    def lr(self) -> float:
        """The learning rate of the first group of parameters."""
        return float(self.optimizer.param_groups[0]["lr"])

    def set(self, step: float, steps: int) -> None:
        """What the options' schedule has at a step; a scheduler of torch moves by itself."""
        if self.moves:
            factor = lr_factor(step, steps, self.options.schedule, self.options.warmup)
            for group, highest in zip(self.optimizer.param_groups, self.highest, strict=True):
                group["lr"] = highest * factor

    def step_ended(self) -> None:
        if self.scheduler is not None and self.every == "step":
            self.scheduler.step()

    def epoch_ended(self, score: float | None) -> None:
        """`score` is what a plateau is looked for in; None where nothing was measured."""
        scheduler = self.scheduler
        if isinstance(scheduler, ReduceLROnPlateau):
            if score is not None:
                scheduler.step(score)
        elif scheduler is not None and self.every == "epoch":
            scheduler.step()

    def state(self) -> dict[str, Any]:
        own = (
            {"optimizer": _kind_of_part(self.optimizer), "scheduler": _kind_of_part(self.scheduler)}
            if self.own
            else None
        )
        moved = self.scheduler.state_dict() if self.scheduler is not None else None
        return {"optimizer": self.optimizer.state_dict(), "scheduler": moved, "kinds": own}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned. Of the options' optimiser, rates and the like follow from the options."""
        kinds = {"optimizer": _kind_of_part(self.optimizer), "scheduler": _kind_of_part(self.scheduler)}
        for name, was in (state["kinds"] or {}).items():
            if was != kinds.get(name):
                raise ValueError(f"its {name} was {was}, not {kinds.get(name)}")
        if self.own:
            self.optimizer.load_state_dict(state["optimizer"])
        else:
            moments = state["optimizer"]["state"]
            held = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
            all_in_one = (sum(parameter.numel() for parameter in held),)  # as LBFGS keeps its own
            for number, parameter in enumerate(held):
                for name, value in moments.get(number, {}).items():
                    if isinstance(value, Tensor) and value.ndim and value.shape not in (parameter.shape, all_in_one):
                        raise ValueError(f"{name} of parameter {number} has shape {tuple(value.shape)}")
            groups = self.optimizer.state_dict()["param_groups"]
            self.optimizer.load_state_dict({**state["optimizer"], "param_groups": groups})
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])


def _own_optimizer(model: nn.Module, given: Any) -> Optimizer:
    parameters = _learnt_parameters(model)
    made = given if isinstance(given, Optimizer) else _make_part("optimizer", given, parameters)
    if not isinstance(made, Optimizer):
        raise TypeError(f"optimizer must be one of torch.optim's kind, got {type(made).__name__}")
    held = {id(parameter) for group in made.param_groups for parameter in group["params"]}
    if not held & {id(parameter) for parameter in parameters}:
        raise ValueError("optimizer holds no parameter of the model: build it from model.parameters()")
    return made


def _make_part(name: str, factory: Any, of: Any) -> Any:
    if not callable(factory):
        raise TypeError(f"{name} must be an object of torch.optim or a function that makes one, got {factory!r}"[:200])
    return factory(of)


def _learnt_parameters(model: nn.Module) -> list[nn.Parameter]:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ValueError("model has no parameter to learn: give fit a learner of its own")
    return parameters


def _by_options(model: nn.Module, options: Options) -> Optimizer:
    """The optimiser that the options name, given those of them that it takes."""
    kind = _optimizer_class(options.optimizer)
    first, *others = inspect.signature(kind).parameters.values()
    parameters = _learnt_parameters(model)
    # One pass over memory for all parameters, where torch has it: it halves the time of a small network's step.
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in parameters)
    momentum = 0.9 if options.momentum is None and options.optimizer == "sgd" else options.momentum
    words: dict[str, Any] = {"lr": options.lr, "weight_decay": options.weight_decay, "fused": fused}
    words |= {"momentum": momentum} if momentum is not None else {}
    taken = {p.name for p in others}
    if any(p.kind is p.VAR_KEYWORD for p in others):  # handed on to another optimiser, which has these at least
        taken |= {"lr", "weight_decay"}
    for name, usual in {"weight_decay": 0.0, "momentum": None, "clip": None}.items():
        known = options.optimizer not in UNCLIPPED if name == "clip" else name in taken
        if getattr(options, name) and not known:  # momentum=0.0 is what those without one have
            raise ValueError(f"{name} is not known to {options.optimizer}: leave it out, or set it to {usual}")
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    missing = [p.name for p in others if p.kind in named and p.default is p.empty and p.name not in words]
    if missing:
        told = f"optimizer {options.optimizer!r} needs {', '.join(missing)} too"
        raise ValueError(f"{told}: make one of {kind.__name__}, and give that")
    whole = nn.Module in typing.get_args(typing.get_type_hints(kind.__init__).get(first.name))
    return kind(model if whole else parameters, **{name: value for name, value in words.items() if name in taken})


def _optimizer_class(name: str) -> Any:
    """The class of that name: ours, or torch's where the course has none."""
    if name in OF_TORCH:
        return getattr(torch.optim, OF_TORCH[name])
    return marked(optimizers()[name])


def _kind_of_part(part: Any) -> str | None:
    return None if part is None else type(part).__name__
