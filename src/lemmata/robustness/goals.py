r"""What an adversary climbs: functions of the logits that are large where the answer is wrong, or the one wanted."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

__all__ = ["cross_entropy_goal", "dlr_goal", "margin_goal"]

Goal = Callable[[Tensor, Tensor, "Tensor | None"], Tensor]


def cross_entropy_goal(
    logits: Float[Tensor, "batch classes"], y: Int[Tensor, "batch"], targets: Int[Tensor, "batch"] | None = None
) -> Float[Tensor, "batch"]:
    r"""The loss $\ell=-\log p_y$ of the true class, or $-\ell=\log p_t$ of the class that is wanted.

    >>> import torch
    >>> cross_entropy_goal(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    tensor([0.6931])
    """
    if targets is None:
        return functional.cross_entropy(logits, y, reduction="none")
    return -functional.cross_entropy(logits, targets, reduction="none")


def margin_goal(
    logits: Float[Tensor, "batch classes"], y: Int[Tensor, "batch"], targets: Int[Tensor, "batch"] | None = None
) -> Float[Tensor, "batch"]:
    r"""By how much the answer is wrong: $\max_{i\ne y}Z_i-Z_y$, or $Z_t-\max_{i\ne t}Z_i$; positive once it is.

    >>> margin_goal(torch.tensor([[-1.0, -3.0, -5.0]]), torch.tensor([0]))
    tensor([-2.])
    """
    if targets is None:
        return -_margin_of(logits, y)
    return _margin_of(logits, targets)


def _margin_of(logits: Float[Tensor, "batch classes"], classes: Int[Tensor, "batch"]) -> Float[Tensor, "batch"]:
    """The logit of a class above the largest of the others, which may all be negative."""
    place = classes[:, None]
    others = logits.scatter(1, place, float("-inf")).amax(1)
    return logits.gather(1, place)[:, 0] - others


def dlr_goal(
    logits: Float[Tensor, "batch classes"], y: Int[Tensor, "batch"], targets: Int[Tensor, "batch"] | None = None
) -> Float[Tensor, "batch"]:
    r"""The difference of logits ratio, which no scale and no shift of the logits changes.

    $$ -\frac{Z_y-\max_{i\ne y}Z_i}{Z_{(1)}-Z_{(3)}}, \qquad
       \text{targeted } -\frac{Z_y-Z_t}{Z_{(1)}-\tfrac12(Z_{(3)}+Z_{(4)})} $$

    with the logits sorted, $Z_{(1)}$ the largest. Of two classes the ratio is the sign of the margin, without a
    gradient: there the margin stands in its place, and of three the targeted form has $Z_{(3)}$ alone.

    Source: Croce and Hein 2020.

    >>> logits = torch.tensor([[3.0, 1.0, 0.0, -1.0]])
    >>> dlr_goal(logits, torch.tensor([0])), dlr_goal(1000 * logits, torch.tensor([0]))
    (tensor([-0.6667]), tensor([-0.6667]))
    """
    if logits.shape[1] == 2:
        return margin_goal(logits, y, targets)
    ordered = logits.sort(dim=1, descending=True).values  # (batch, classes)
    own = logits.gather(1, y[:, None])[:, 0]
    if targets is None:
        return margin_goal(logits, y) / (ordered[:, 0] - ordered[:, 2] + 1e-12)
    third = ordered[:, 2:4].mean(1)
    return (logits.gather(1, targets[:, None])[:, 0] - own) / (ordered[:, 0] - third + 1e-12)


def answered_wrongly(
    logits: Float[Tensor, "batch classes"], y: Int[Tensor, "batch"], targets: Int[Tensor, "batch"] | None = None
) -> Tensor:
    """Whether the goal is reached by more than rounding, so that the same example is answered so in any batch."""
    return margin_goal(logits.detach(), y, targets).double() > margin_rounding(logits)


def margin_rounding(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch"]:
    """What a margin may lose by sums in another order, in float64."""
    return 64 * torch.finfo(logits.dtype).eps * logits.detach().abs().amax(1).double()
