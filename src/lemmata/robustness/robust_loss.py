r"""The worst loss of a linear model within a ball, in closed form: no attack is needed, and none can do better."""

import math

from jaxtyping import Float, Shaped
from torch import Tensor
from torch.linalg import vector_norm
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["robust_logistic_loss", "worst_margin"]


@system("worst_margin", title="Worst margin of a linear model", kind="function")
def worst_margin(
    weight: Float[Tensor, "inputs"],
    bias: Float[Tensor, ""] | int | float,
    x: Float[Tensor, "batch inputs"],
    y: Shaped[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
) -> Float[Tensor, "batch"]:
    r"""The least margin $y(w^\top(x+\delta)+b)$ within the ball, for labels of -1 and +1.

    $$ \min_{\|\delta\|_p\le\epsilon}y(w^\top(x+\delta)+b) = y(w^\top x+b)-\epsilon\|w\|_q, \qquad
       \tfrac1p+\tfrac1q=1 $$

    It is positive exactly where no perturbation changes the answer. Any $p\ge1$ will do, infinity too.

    Shapes:
        weight: (inputs,), x: (batch, inputs), y: (batch,)    returns: (batch,)

    Claims: robust.linear_closed_form, robust.tradeoff
    Differs: no box is minded; inside one the loss can only be smaller.

    >>> import torch
    >>> worst_margin(torch.tensor([3.0, -4.0]), 0.0, torch.tensor([[1.0, 0.0]]), torch.tensor([1]), eps=0.1)
    tensor([2.3000])
    """
    validate.number("eps", eps, least=0)
    if norm != math.inf:
        validate.number("norm", norm, least=1)
    validate.last_axis("x", x, validate.floating("weight", weight).shape[-1])
    margin = validate.labels("y", y, x) * (x @ weight + bias)
    dual = 1.0 if norm == math.inf else math.inf if norm == 1 else norm / (norm - 1)
    return margin - eps * vector_norm(weight, ord=dual)


@system("robust_logistic_loss", title="Robust logistic loss of a linear model", kind="function")
def robust_logistic_loss(
    weight: Float[Tensor, "inputs"],
    bias: Float[Tensor, ""] | int | float,
    x: Float[Tensor, "batch inputs"],
    y: Shaped[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
) -> Float[Tensor, "batch"]:
    r"""The largest logistic loss within the ball: a loss that falls with the margin is largest at the worst one.

    $$ \max_{\|\delta\|_p\le\epsilon}\log\big(1+e^{-y(w^\top(x+\delta)+b)}\big)
       = \log\big(1+e^{-y(w^\top x+b)+\epsilon\|w\|_q}\big) $$

    Differentiable in weight and bias: its mean is adversarial training with an attack that never fails. For another
    loss $\ell$ that falls with the margin write `loss(worst_margin(...))`.

    Shapes:
        weight: (inputs,), x: (batch, inputs), y: (batch,) of -1 and +1    returns: (batch,)

    Claims: robust.linear_closed_form, robust.danskin, robust.mixed_batches, robust.tradeoff
    Source: Goodfellow et al. 2015, section 5.

    >>> import torch
    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([1])
    >>> robust_logistic_loss(torch.tensor([3.0, -4.0]), 0.0, x, y, eps=0.1)
    tensor([0.0955])
    """
    return functional.softplus(-worst_margin(weight, bias, x, y, eps, norm))
