"""Is a module shaped like torch's own? A conformance suite for anyone's module."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from lemmata.testing import module_checks, module_refusals, module_transforms
from lemmata.testing.findings import Checks, Finding, Nonconforming, Report, asked, found
from lemmata.testing.module_example import example_of
from lemmata.testing.module_subject import Subject

__all__ = ["ModuleError", "ModuleReport", "check_module"]

WELL_BEHAVED = ("call", "untouched", "global_state", "deepcopy")  # without these, what is found later means little
CHECKS: Checks = {
    "call": (module_checks.call, ()),
    "untouched": (module_checks.untouched, ("call",)),
    "global_state": (module_checks.global_state, ("call",)),
    "deepcopy": (module_checks.deepcopy, ("call",)),
    "state_dict": (module_checks.state_dict, WELL_BEHAVED),
    "strides": (module_checks.strides, WELL_BEHAVED),
    "batch_of_one": (module_checks.batch_of_one, WELL_BEHAVED),
    "batch_of_none": (module_checks.batch_of_none, WELL_BEHAVED),
    "dtypes": (module_checks.dtypes, WELL_BEHAVED),
    "meta": (module_checks.meta, WELL_BEHAVED),
    "factory": (module_checks.factory, ("meta",)),
    "modes": (module_checks.modes, WELL_BEHAVED),
    "autocast": (module_checks.autocast, WELL_BEHAVED),
    "gradcheck": (module_transforms.gradcheck, ("dtypes",)),
    "used_parameters": (module_transforms.used_parameters, WELL_BEHAVED),
    "functional": (module_transforms.functional, ("modes",)),
    "vmap": (module_transforms.vmap, ("batch_of_one", "modes")),
    "compile": (module_transforms.compiled, WELL_BEHAVED),
    "export": (module_transforms.exported, WELL_BEHAVED),
    "export_lengths": (module_transforms.exported_with_lengths, ("export",)),
    "wrong_rank": (module_refusals.wrong_rank, WELL_BEHAVED),
    "wrong_width": (module_refusals.wrong_width, WELL_BEHAVED),
    "wrong_dtype": (module_refusals.wrong_dtype, WELL_BEHAVED),
    "wrong_type": (module_refusals.wrong_type, WELL_BEHAVED),
}


class ModuleReport(Report):
    """The findings about one module, in the order of the checks."""


class ModuleError(Nonconforming):
    """A module that failed a check of the suite; `report` holds all findings."""


def check_module(
    module: nn.Module | type[nn.Module],
    inputs: Any = None,
    *,
    build: Callable[..., nn.Module] | None = None,
    axes: Mapping[str, str] | None = None,
    differs: Sequence[str] | None = None,
    backend: str = "aot_eager",
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> ModuleReport:
    r"""Run every check of the suite on a module: does it do what compilers, optimisers and its users rely on?

    The module may be one of ours, of torch.nn or of anybody; `inputs` is a tensor or a tuple of the arguments of its
    `forward`, tensors or not. A class of ours, marked with an example, needs no inputs. The checks:

    - call: it gives tensors, twice the same in evaluation mode, and so in inference mode
    - untouched: no input is written into
    - strides: inputs that are not contiguous give the same
    - batch_of_one, batch_of_none: a row alone gives what it gives among others; no rows give no rows
    - dtypes: after `.to(dtype)`, outputs are float32, float64 and bfloat16 like parameters and inputs
    - factory: the constructor takes `device` and `dtype`, and they reach every parameter (where it has its own)
    - meta: it can be made, and called, under `torch.device("meta")`
    - state_dict, deepcopy: loaded into another one or copied, it gives the same, and shares nothing
    - modes: train() and eval() reach all parts, and in evaluation mode a call changes no buffer
    - autocast: under bfloat16 on the CPU outputs and gradients are finite and have their shapes
    - global_state: making and calling it leave torch's settings alone; in evaluation mode it draws no random numbers
    - gradcheck: in training mode and float64 the gradient is that of finite differences, at inputs and parameters
    - used_parameters: in training mode every parameter that requires a gradient gets one
    - functional: `functional_call` takes other parameters, and `torch.func.grad` of it is the gradient
    - vmap: outputs and gradients of each row, by `torch.func.vmap`, are those of the rows alone
    - compile: `torch.compile(fullgraph=True, backend=backend)` gives the same outputs and gradients in training mode
    - export: `torch.export` with a batch of any size gives the same for one row more
    - export_lengths: so it does with a time of any size, or other lengths (see `axes`), for one step more
    - wrong_rank, wrong_width, wrong_dtype, wrong_type: a wrong input is refused by a ValueError or TypeError that names
      the parameter of `forward` (integers may also be taken for the same floats; NaN flows through a module)

    `build` makes the module anew, for factory, meta and state_dict: a class or `functools.partial(Net, 3, 5)`; it gets
    `device` and `dtype`. `axes` names the axes of inputs, `{"x": "batch time features"}`, by default as an annotation
    of jaxtyping does (`Float[Tensor, "batch time features"]`), else the first is the batch and the others may be fixed.
    Axes named batch, time, positions, queries, keys, memories, points, elements, nodes, height and width may have any
    size; the others are the module's, and another size must be refused. `*batch` stands for any number of axes.

    What a module does not promise is said in its docstring, after `Differs:`, in the words "does not pass `vmap` and
    `export`"; `differs` says it instead. Such a check is still run, and it must fail. `skip` leaves checks out. With
    `on_fail="report"` failures are reported, not raised.

    >>> from functools import partial
    >>> linear = partial(torch.nn.Linear, 3, 5)
    >>> report = check_module(linear(), torch.randn(4, 3), build=linear, skip=["compile", "export"], on_fail="report")
    >>> report.named("failed")
    ['wrong_rank', 'wrong_width', 'wrong_dtype']
    >>> report.findings[-2].why  # doctest: +ELLIPSIS
    'input with int64 numbers gives RuntimeError: ...: check it, and name input in a ValueError'
    """
    asked(CHECKS, skip, on_fail)
    if isinstance(module, type):
        if inputs is not None:
            raise TypeError(f"module must be a module, got the class {module.__name__}: give one, or no inputs")
        build, inputs = example_of(module)
        module = build()
    subject = Subject.of(module, inputs, build, axes, backend)
    differs = disclaimed(type(module)) if differs is None else differs
    if unknown := sorted(set(differs) - set(CHECKS)):
        raise ValueError(f"differs must name checks among {', '.join(CHECKS)}, got {', '.join(unknown)}")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        findings = [_judge_finding(finding, differs) for finding in found(CHECKS, subject, skip, "module")]
    report = ModuleReport(subject.name, findings)
    if on_fail == "raise" and not report.passed:
        raise ModuleError(report)
    return report


def disclaimed(system: type) -> tuple[str, ...]:
    """The checks of which a docstring says under Differs: that the module does not pass them.

    >>> class Net(torch.nn.Module):
    ...     "Differs: the paper's loops are Python's.  Does not pass `vmap` and `export`: it looks at values."
    >>> disclaimed(Net)
    ('vmap', 'export')
    """
    text = " ".join((system.__doc__ or "").split())
    _, _, differs = text.partition("Differs:")
    found = re.findall(r"[Dd]oes not pass((?:,? (?:and )?`\w+`)+)", differs)
    return tuple(name for names in found for name in re.findall(r"`(\w+)`", names))


def _judge_finding(finding: Finding, differs: Sequence[str]) -> Finding:
    """A check that the module is said not to pass must fail."""
    if finding.check not in differs:
        return finding
    if finding.outcome == "failed":
        return Finding(finding.check, "skipped", f"as it says of itself: {finding.why}")
    return Finding(
        finding.check, "failed", f"it says that it does not pass, but it {finding.outcome}: delete the words"
    )
