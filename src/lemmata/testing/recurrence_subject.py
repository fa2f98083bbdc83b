"""The module under test in a conformance suite of recurrence: called in one way, whatever it takes."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lemmata import validate
from lemmata.testing.findings import Broken

__all__ = []  # for the suite alone

State = Any
BATCH, TIME = 3, 6


@dataclass
class Subject:
    """A module, an example of its input, and how to call the one with the other."""

    module: Callable[..., Any]
    name: str
    x: Tensor
    batch_first: bool
    takes_lengths: bool
    tolerance: float
    known: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, module: Any, x: Any, inputs: Any, batch_first: Any, tolerance: Any) -> "Subject":
        if not callable(module):
            raise TypeError(f"module must be callable, got {type(module).__name__}")
        x = _example_input(module, inputs) if x is None else _checked_example(x)
        if batch_first is None:
            batch_first = getattr(module, "batch_first", True)
        lengths = isinstance(module, nn.RNNBase) or "lengths" in _parameters_of(module)
        if tolerance is None:
            tolerance = math.sqrt(torch.finfo(x.dtype if x.is_floating_point() else torch.float32).eps)
        name = type(module).__name__ if isinstance(module, nn.Module) else getattr(module, "__name__", repr(module))
        return cls(module, name, x, batch_first, lengths, validate.positive("tolerance", tolerance))

    def run(self, x: Tensor, state: State = None, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """The module on a copy of the inputs, should it write into them."""
        return self.call(x.clone(), state, lengths)

    def call(self, x: Tensor, state: State = None, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """Outputs (batch, time, ...) and the state after the last step."""
        if lengths is not None and isinstance(self.module, nn.RNNBase):
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, state = self.module(packed, state)
            return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], state
        given = x if self.batch_first else x.transpose(0, 1)
        options = {} if lengths is None else {"lengths": lengths}
        result = self.module(given, *self._start_arguments(state), **options)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise Broken(f"the module must return the pair (outputs, state), got {type(result).__name__}")
        outputs, state = result
        if not isinstance(outputs, Tensor):
            raise Broken(f"the outputs must be a tensor, got {type(outputs).__name__}")
        return outputs if self.batch_first else outputs.transpose(0, 1), state

    def _start_arguments(self, state: State) -> tuple[State, ...]:
        required = [p for p in _parameters_of(self.module).values() if p.default is p.empty]
        return () if state is None and len(required) < 2 else (state,)

    def whole(self) -> tuple[Tensor, State]:
        """The whole example from the start, run once."""
        if "whole" not in self.known:
            self.known["whole"] = self.run(self.x)
        return self.known["whole"]

    def changed(self, time: int) -> Tensor:
        """The example with other rows at one step: those of the step before, of the sequence before."""
        x = self.x.clone()
        x[:, time] = self.x[:, time - 1].roll(1, 0)
        return x

    @property
    def rounding(self) -> float:
        """For what should not change at all, computed twice in the same way: a tolerance of a few last digits."""
        return min(self.tolerance, 64 * self.tolerance**2)

    def differ(self, one: Tensor, two: Tensor, tolerance: float | None = None) -> Tensor:
        """Where two tensors of equal shape differ, relative to the largest entry; a NaN differs."""
        size = max((float(part.detach().abs().max()) for part in (one, two) if part.numel()), default=0.0)
        return ~((one - two).abs() <= (tolerance or self.tolerance) * size)

    def demand_same(self, one: tuple[Tensor, State], two: tuple[Tensor, State], when: str) -> None:
        """Outputs and states of two runs must agree."""
        if one[0].shape != two[0].shape:
            raise Broken(f"{when}, the outputs have the shape {tuple(one[0].shape)} instead of {tuple(two[0].shape)}")
        wrong = self.differ(one[0], two[0]).flatten(2).any(-1)
        if wrong.any():
            sequence, time = wrong.nonzero()[wrong.nonzero()[:, 1].argmin()].tolist()
            raise Broken(f"{when}, the output at step {time} of sequence {sequence} is another one")
        mine, its = list(leaves(one[1])), list(leaves(two[1]))
        found, wanted = ([tuple(leaf.shape) for leaf in state] for state in (mine, its))
        if found != wanted:
            raise Broken(f"{when}, the state has the shapes {found} instead of {wanted}")
        if any(self.differ(a, b).any() for a, b in zip(mine, its, strict=True)):
            raise Broken(f"{when}, the state at the end is another one")

    def one(self, state: State, index: int) -> State:
        """The state of one sequence of the batch, found by what a batch of one has otherwise."""
        if "single" not in self.known:
            self.known["single"] = self.run(self.x[:1])[1]
        return paired(lambda leaf, single: _batch_member(leaf, single, index), state, self.known["single"])


def _parameters_of(module: Any) -> dict[str, inspect.Parameter]:
    try:
        found = inspect.signature(module.forward if isinstance(module, nn.Module) else module).parameters
    except ValueError:  # some built-in functions have none
        return {}
    return {name: p for name, p in found.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _example_input(module: Any, inputs: int | None) -> Tensor:
    for name in ("inputs", "input_size"):
        found = getattr(module, name, None)
        inputs = found if inputs is None and isinstance(found, int) else inputs
    if inputs is None:
        raise ValueError("inputs must be given (or an example x): the module has no attribute inputs or input_size")
    x = torch.randn(BATCH, TIME, validate.count("inputs", inputs), generator=torch.Generator().manual_seed(0))
    parameters = module.parameters() if isinstance(module, nn.Module) else ()
    return next((x.to(p) for p in parameters if p.is_floating_point()), x)


def _checked_example(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a tensor, got {type(x).__name__}")
    if x.ndim < 2 or x.shape[0] < 2 or x.shape[1] < 3:
        raise ValueError(f"x must have at least two sequences of at least three steps, got shape {tuple(x.shape)}")
    return x.detach()


def leaves(state: State) -> Iterator[Tensor]:
    """The tensors of a state."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, dict):
        yield from leaves(list(state.values()))
    elif isinstance(state, (tuple, list)):
        for part in state:
            yield from leaves(part)


def paired(function: Callable[[Tensor, Tensor], Tensor], state: State, like: State) -> State:
    """A function of the tensors of two states of the same make."""
    if isinstance(state, Tensor):
        return function(state, like)
    if isinstance(state, dict):
        return {key: paired(function, part, like[key]) for key, part in state.items()}
    if isinstance(state, (tuple, list)):
        parts = [paired(function, *pair) for pair in zip(state, like, strict=True)]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return state


def _batch_member(leaf: Tensor, single: Tensor, index: int) -> Tensor:
    if leaf.ndim != single.ndim:
        raise Broken(f"the state of a batch has {leaf.ndim} axes, that of a batch of one {single.ndim}")
    axes = [axis for axis in range(leaf.ndim) if leaf.shape[axis] != single.shape[axis]]
    return leaf.narrow(axes[0], index, 1) if axes else leaf
