"""Does an optimiser do what loops, schedulers and checkpoints rely on? A conformance suite for anyone's optimiser."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from lemmata import validate
from lemmata.testing.findings import Nonconforming, Report, asked, found
from lemmata.testing.optimizer_checks import CHECKS, INVARIANCES
from lemmata.testing.optimizer_subject import Subject

__all__ = ["OptimizerError", "OptimizerReport", "check_optimizer"]


class OptimizerReport(Report):
    """The findings about one optimiser, in the order of the checks."""


class OptimizerError(Nonconforming):
    """An optimiser that failed a check of the suite; `report` holds all findings."""


def check_optimizer(
    make: Callable[..., Any],
    *,
    invariances: Sequence[str] = (),
    nan: Literal["propagate", "skip", "raise"] = "propagate",
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
    **options: Any,
) -> OptimizerReport:
    r"""Run every check of the suite on an optimiser: a class, or a function that makes one of parameters or groups.

    $$ (\theta_{t+1}, s_{t+1}) = u(\theta_t, \nabla h(\theta_t), s_t; \text{the options of the group}) $$

    `options` are given to it each time. One that can only be made for matrices, as Muon, is tried on matrices; one
    whose `step` needs a closure, as LBFGS, gets it. The checks:

    - interface: it is a torch.optim.Optimizer that holds the parameters it is given
    - descent: on a quadratic the loss falls
    - deterministic: made anew, it takes the same steps to the bit
    - closure: `step(closure)` computes with gradients, returns the loss, and goes where `step()` goes
    - in_place: parameters stay the same tensors, in the same memory
    - gradients_untouched: no step writes into a gradient
    - aliasing: state is neither a view of a gradient nor of a parameter
    - without_gradient: what has no gradient stays, the others move
    - order: the order of the parameters does not matter
    - groups: each group has its own options, also one that is added later
    - schedule: a change of `lr` between steps is heard
    - resume: loaded into a new optimiser, the state_dict gives the same steps to the bit
    - maximize, foreach, weight_decay: these options, where it has them, do what they do in torch.optim
    - dtypes: parameters and state stay in the parameters' dtype
    - strides, small_shapes: parameters that are not contiguous; scalars, one entry and none
    - complex, sparse: complex parameters and sparse gradients are stepped rightly, or refused
    - lr_refused: a negative `lr` is refused
    - nan: a NaN in a gradient shows in its entry and reaches no other parameter (`nan="propagate"`), no parameter moves
      ("skip"), or an error is raised ("raise")
    - invariances: those that are advertised: "scale" (of the loss), "rotation" (of coordinates), "separation" (of
      parameters from each other)

    A check that cannot be decided because an earlier one failed is skipped. With `on_fail="report"` failures are
    reported, not raised.

    >>> check_optimizer(torch.optim.Adam, invariances=["scale", "separation"]).passed
    True
    >>> print(check_optimizer(torch.optim.LBFGS, skip=[name for name in CHECKS if name not in ("descent", "foreach")]))
    LBFGS: 0 of 2 checks failed
    descent  passed
    foreach  skipped: the optimiser has no option foreach
    >>> check_optimizer(torch.optim.SGD, invariances=["scale"], on_fail="report").named("failed")
    ['invariances']
    """
    asked(CHECKS, skip, on_fail)
    if not callable(make):
        raise TypeError(f"make must be a class of optimisers or a function that makes one, got {type(make).__name__}")
    for name in invariances:
        validate.one_of("invariances", name, INVARIANCES)
    validate.one_of("nan", nan, ("propagate", "skip", "raise"))
    name = getattr(make, "__name__", repr(make))
    subject = Subject(make, name, options, nan, invariances=tuple(invariances))
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        report = OptimizerReport(name, found(CHECKS, subject, skip, "optimiser"))
    if on_fail == "raise" and not report.passed:
        raise OptimizerError(report)
    return report
