"""The checks of the conformance suite of equivariance, each a few lines: it returns, or says what is wrong."""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.testing.equivariance_subject import Subject, relabelled
from lemmata.testing.findings import Broken, Undecided, told

__all__ = []  # for the suite alone


def _check_interface(subject: Subject) -> None:
    found, x = subject.whole(), subject.x
    if subject.invariant:
        return
    if subject.group == "permutation":
        if found.ndim <= subject.axis or found.shape[: subject.axis + 1] != x.shape[:-1]:
            wanted = "(" + ", ".join(map(str, x.shape[:-1])) + ", ...)"
            raise Broken(
                f"equivariant outputs must have the shape {wanted}, a row for each element, got {_shape_text(found)}"
            )
    elif found.ndim < 1 or found.shape[-1] != x.shape[-1]:
        wanted = f"(..., {x.shape[-1]})"
        raise Broken(f"equivariant outputs must be points in the same space, {wanted}, got {_shape_text(found)}")


def _shape_text(values: Tensor) -> str:
    return f"shape {tuple(values.shape)}"


def _check_finite(subject: Subject) -> None:
    if not torch.isfinite(subject.whole()).all():
        raise Broken("the outputs must be finite for finite inputs, found NaN or infinity")


def _check_untouched(subject: Subject) -> None:
    x = subject.x.clone()
    subject.call(x, subject.graph)
    if not torch.equal(x, subject.x):
        raise Broken("the module writes into its inputs")


def _check_determinism(subject: Subject) -> None:
    if subject.differ(subject.run(subject.x), subject.whole()).any():
        raise Broken("called once more in evaluation mode, the outputs are others: the module must not be random")


def _check_dependence(subject: Subject) -> None:
    turned = subject.x.roll(1, -1) if not subject.x.is_floating_point() else 2 * subject.x.flip(-1) + 1
    twice = torch.cat([subject.x[..., :-1, :], subject.x[..., :1, :]], -2)  # the first element also in the last place
    if not any(subject.differ(subject.run(other), subject.whole()).any() for other in (turned, twice)):
        raise Broken("the outputs do not depend on the inputs: a constant keeps every law")


def _check_swaps(subject: Subject) -> None:
    for place in range(subject.x.shape[-2] - 1):
        order = list(range(subject.x.shape[-2]))
        order[place : place + 2] = place + 1, place
        subject.demand_law(subject.permuted(f"a swap of elements {place} and {place + 1}", order))


def _check_cycles(subject: Subject) -> None:
    """A swap is its own inverse and cannot tell a permutation from it; a cycle of three can."""
    for place in range(subject.x.shape[-2] - 2):
        order = list(range(subject.x.shape[-2]))
        order[place : place + 3] = place + 1, place + 2, place
        subject.demand_law(subject.permuted(f"a cycle of elements {place}, {place + 1} and {place + 2}", order))


def _check_sizes(subject: Subject) -> None:
    if subject.graph is not None:
        raise Undecided("the graph fixes the number of elements")
    for size in range(1, subject.x.shape[-2]):
        x = subject.x[..., :size, :]
        try:
            subject.run(x)
        except Broken:
            raise
        except Exception as error:
            raise Undecided(f"the module refuses {size} elements ({told(error)})") from None
        subject.demand_law(subject.permuted(f"the order of {size} elements reversed", range(size - 1, -1, -1)), x)


def _check_axes(subject: Subject) -> None:
    for axis, shift in enumerate(torch.eye(subject.x.shape[-1], dtype=torch.float64)):
        subject.demand_law(subject.translated(f"a translation by 1 along axis {axis}", shift))


def _quarter_turns(subject: Subject) -> None:
    dimensions = subject.x.shape[-1]
    for first in range(dimensions):
        for second in range(first + 1, dimensions):
            matrix = torch.eye(dimensions, dtype=torch.float64)
            matrix[[first, second]] = matrix[[second, first]]
            matrix[first] *= -1
            subject.demand_law(subject.rotated(f"a quarter turn of axes {first} and {second}", matrix))


def _check_drawn(subject: Subject) -> None:
    for motion in subject.drawn():
        subject.demand_law(motion)


def _check_gradient(subject: Subject) -> None:
    if not subject.x.is_floating_point():
        raise Undecided(f"inputs of dtype {subject.x.dtype} have no gradient")
    plain = subject.whole()
    weights = torch.arange(1, plain.numel() + 1, device=plain.device).cos().to(plain.dtype).view(plain.shape)
    motion = next(subject.drawn())
    moved = weights if subject.invariant else motion.turn(weights)
    found = _slope_at(subject, motion.act(subject.x), relabelled(subject.graph, motion.order), moved)
    if subject.differ(found, motion.turn(_slope_at(subject, subject.x, subject.graph, weights))).any():
        raise Broken(f"after {motion.words} the gradient at the inputs is not the moved one")


def _slope_at(subject: Subject, x: Tensor, graph: object, weights: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    total = (subject.call(x, graph) * weights).sum()
    slope = torch.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
    if slope is None:
        raise Undecided("the outputs have no gradient at the inputs")
    return slope


Checks = dict[str, tuple[Callable[[Subject], None], tuple[str, ...]]]
# Each check, and those without which it says nothing; first what is asked of all groups.
FIRST: Checks = {
    "interface": (_check_interface, ()),
    "finite": (_check_finite, ("interface",)),
    "untouched": (_check_untouched, ("interface",)),
    "determinism": (_check_determinism, ("interface", "finite", "untouched")),
    "dependence": (_check_dependence, ("determinism",)),
}
LAWS: dict[str, Checks] = {
    "permutation": {
        "swaps": (_check_swaps, ("determinism",)),
        "cycles": (_check_cycles, ("determinism",)),
        "orders": (_check_drawn, ("determinism",)),
        "sizes": (_check_sizes, ("swaps", "cycles", "orders")),
        "gradient": (_check_gradient, ("swaps", "cycles", "orders")),
    },
    "translation": {
        "axes": (_check_axes, ("determinism",)),
        "translations": (_check_drawn, ("determinism",)),
        "gradient": (_check_gradient, ("axes", "translations")),
    },
    "rotation": {
        "quarter_turns": (_quarter_turns, ("determinism",)),
        "rotations": (_check_drawn, ("determinism",)),
        "gradient": (_check_gradient, ("quarter_turns", "rotations")),
    },
}
