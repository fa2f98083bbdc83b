"""Does a strategy of continual learning keep to its own memory? A conformance suite for anyone's strategy."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import nn

from lemmata.testing.findings import Nonconforming, Report, asked, found
from lemmata.testing.strategy_checks import CHECKS, Subject, small_network

__all__ = ["StrategyError", "StrategyReport", "check_strategy"]


class StrategyReport(Report):
    """The findings about one strategy, in the order of the checks."""


class StrategyError(Nonconforming):
    """A strategy that failed a check of the suite; `report` holds all findings."""


def check_strategy(
    strategy: Callable[[Any], Any],
    *,
    model: Callable[[int, int], nn.Module] = small_network,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> StrategyReport:
    r"""Run every check of the suite on a strategy: `strategy` makes one of a model, as a class does.

    $$ (\theta_t, m_t) = \operatorname{train}(\theta_{t-1}, m_{t-1}, \mathcal D_t): \text{ nothing else is known of }
       \mathcal D_1, \dots, \mathcal D_{t-1} $$

    The strategy learns three small tasks in float64, by `model(inputs, outputs)`. The checks:

    - interface: it has the hooks of `lemmata.continual.Strategy`, and its model is the one that it was given
    - plain_state: after each task `state()` is of dicts, lists, tensors, numbers, strings and None
    - untouched: no example that it is given is written into
    - as_found: `after_task` leaves modes, hooks and which parameters learn as they were
    - finite: losses and gradients are finite in all three scenarios, on a batch of one example too
    - first_task: while there is no earlier task, it is plain training
    - resume: a new strategy of a new model that takes over `state()` goes on to the same bits
    - old_data: it does so when the examples of earlier tasks are gone: all that it knows of them is in its state

    With `on_fail="report"` failures are reported, not raised.

    >>> from lemmata.continual import Rehearsal
    >>> check_strategy(Rehearsal).passed
    True
    >>> class Hoarding(Rehearsal):
    ...     def state(self): return {"buffers": []}
    >>> check_strategy(Hoarding, on_fail="report").named("failed")
    ['resume']
    """
    asked(CHECKS, skip, on_fail)
    for name, part in (("strategy", strategy), ("model", model)):
        if not callable(part):
            raise TypeError(f"{name} must be what makes one, got {type(part).__name__}")
    subject = Subject(strategy, model)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        report = StrategyReport(subject.name, found(CHECKS, subject, skip, "strategy"))
    if on_fail == "raise" and not report.passed:
        raise StrategyError(report)
    return report
