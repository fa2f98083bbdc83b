"""Does a module follow its inputs when they are permuted, translated or rotated? A suite for anyone's module."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.testing.equivariance_checks import FIRST, LAWS
from lemmata.testing.equivariance_subject import GROUPS, Subject
from lemmata.testing.findings import Nonconforming, Report, asked, found

__all__ = ["EquivarianceError", "EquivarianceReport", "check_equivariance"]


class EquivarianceReport(Report):
    """The findings about one module, in the order of the checks."""


class EquivarianceError(Nonconforming):
    """A module that does not keep the law it was asked for; `report` holds all findings."""


def check_equivariance(
    module: Callable[..., Any],
    group: Literal["permutation", "translation", "rotation"],
    x: Tensor | None = None,
    *,
    output: Literal["equivariant", "invariant"] = "equivariant",
    graph: Any = None,
    inputs: int | None = None,
    tolerance: float | None = None,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> EquivarianceReport:
    r"""Run every check of the suite on a module and a group that acts on its inputs.

    $$ f(gX) = g f(X) \quad \text{(equivariant)}, \qquad f(gX) = f(X) \quad \text{(invariant)} $$

    The elements of a set, the points of a cloud or the nodes of a graph are the rows of the inputs. A permutation moves
    rows, of equivariant outputs too; a translation adds a vector to each row, a rotation (no reflection) turns each
    row, and of equivariant outputs the last axis. The call is `module(x)`, or `module(x, graph)` with a graph, which is
    relabelled with its nodes: a `Graph`, edges (2, edges) as PyTorch Geometric has them, or an adjacency matrix.

    - interface: the call works, and equivariant outputs have a shape that can be moved
    - finite: outputs are finite
    - untouched: inputs are not written into
    - determinism: the same call gives the same result, in evaluation mode
    - dependence: outputs depend on the inputs, since a constant keeps every law
    - swaps, cycles, orders: permutations of two neighbours, of three, which unlike swaps are not their own inverse, and
      any
    - sizes: fewer elements, down to one (skipped where refused)
    - axes, translations: along each axis, and any
    - quarter_turns, rotations: in the plane of each pair of axes, and any
    - gradient: gradients at moved inputs are moved ones

    Shapes:
        x: (..., elements, features), an example of the input; without it, normal numbers with `inputs` features (by
            default what the module says in `inputs`, `dimensions`, `in_features` or `in_channels`)

    `tolerance` is relative (by default half of the dtype's digits). With `on_fail="report"` failures are reported, not
    raised.

    >>> attention = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> print(check_equivariance(attention, "permutation", inputs=8))
    TransformerEncoderLayer: 0 of 10 checks failed
    interface    passed
    finite       passed
    untouched    passed
    determinism  passed
    dependence   passed
    swaps        passed
    cycles       passed
    orders       passed
    sizes        passed
    gradient     passed
    >>> check_equivariance(lambda x: torch.cdist(x, x), "rotation", inputs=3, output="invariant").passed
    True
    >>> check_equivariance(torch.nn.Linear(3, 3), "translation", on_fail="report").named("failed")
    ['axes', 'translations']
    """
    checks = FIRST | LAWS[validate.one_of("group", group, GROUPS)]
    asked(checks, skip, on_fail)
    subject = Subject.of(module, group, x, graph, inputs, output, tolerance)
    modes = [(part, part.training) for part in module.modules()] if isinstance(module, nn.Module) else []
    try:
        for part, _ in modes:
            part.training = False
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            report = EquivarianceReport(subject.name, found(checks, subject, skip, "module"))
    finally:
        for part, training in modes:
            part.training = training
    if on_fail == "raise" and not report.passed:
        raise EquivarianceError(report)
    return report
