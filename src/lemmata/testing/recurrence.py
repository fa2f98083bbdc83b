"""Does a module carry its state through time as a recurrent network must? A conformance suite for anyone's module."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lemmata.testing.findings import Nonconforming, Report, asked, found
from lemmata.testing.recurrence_checks import CHECKS
from lemmata.testing.recurrence_subject import Subject

__all__ = ["RecurrenceError", "RecurrenceReport", "check_recurrence"]


class RecurrenceReport(Report):
    """The findings about one module, in the order of the checks."""

    @property
    def module(self) -> str:
        """The module's name."""
        return self.subject


class RecurrenceError(Nonconforming):
    """A module that is not recurrent in the sense of the suite; `report` holds all findings."""


def check_recurrence(
    module: Callable[..., Any],
    x: Tensor | None = None,
    *,
    inputs: int | None = None,
    batch_first: bool | None = None,
    tolerance: float | None = None,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> RecurrenceReport:
    r"""Run every check of the suite on a module that maps (inputs, state) to (outputs, state).

    $$ (y_{1:T}, z_T) = f(x_{1:T}, z_0), \qquad y_t \text{ depends on } z_0, x_1, \dots, x_t \text{ alone} $$

    The module may be one of ours, torch.nn.RNN, LSTM or GRU, or anything called as `module(x, state)` that returns the
    outputs and the state after the last step; the state is a tensor or tuples, lists and dictionaries of tensors, and
    `module(x)` or `module(x, None)` starts afresh. The checks:

    - interface: the call works, and outputs have one row for each input
    - dtype: outputs have the inputs' dtype and device, and are finite
    - untouched: neither inputs nor state are written into
    - determinism: the same call gives the same result, in evaluation mode
    - batch: a sequence alone gives what it gives among others; so a batch of one works
    - causality: no output depends on a later input, by changing inputs and by gradients
    - hand_over: a sequence cut in two, with the state handed over, gives what the whole gives
    - streaming: so does one step at a time
    - empty: a sequence without steps gives no outputs and leaves the state as it was (skipped where refused)
    - gradient: the last output has a gradient at the first input
    - detached: so has an output of a second call to which the state was handed over
    - lengths: with `lengths` (packed sequences for torch's own), each sequence gives what it gives alone
    - padding: what pads a sequence has no influence on values or gradients, not even NaN or infinity
    - no_steps: a sequence of length 0 keeps its state

    A check that cannot be decided because an earlier one failed is skipped. Steps are counted from 0.

    Shapes:
        x: (batch, time, ...), at least (2, 3, ...): an example of the input, batch first in any case; without it,
            normal numbers with `inputs` features (by default the module's `inputs` or `input_size`)

    `batch_first` says what the module itself takes (by default its attribute of that name, else True); `tolerance` is
    relative (by default half of the dtype's digits). With `on_fail="report"` failures are reported, not raised.

    >>> print(check_recurrence(torch.nn.GRU(4, 8, batch_first=True), skip=["lengths", "padding", "no_steps"]))
    GRU: 0 of 11 checks failed
    interface    passed
    dtype        passed
    untouched    passed
    determinism  passed
    batch        passed
    causality    passed
    hand_over    passed
    streaming    passed
    empty        skipped: the module refuses it (RuntimeError: Expected sequence length to be larger than 0 in RNN)
    gradient     passed
    detached     passed
    >>> check_recurrence(torch.nn.GRU(4, 8, bidirectional=True), on_fail="report").named("failed")
    ['causality']
    """
    asked(CHECKS, skip, on_fail)
    subject = Subject.of(module, x, inputs, batch_first, tolerance)
    modes = [(part, part.training) for part in module.modules()] if isinstance(module, nn.Module) else []
    try:
        for part, _ in modes:
            # cuDNN gives gradients in training mode only, which without dropout is no other mode.
            part.training = isinstance(part, nn.RNNBase) and not part.dropout
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            report = RecurrenceReport(subject.name, found(CHECKS, subject, skip, "module"))
    finally:
        for part, training in modes:
            part.training = training
    if on_fail == "raise" and not report.passed:
        raise RecurrenceError(report)
    return report
