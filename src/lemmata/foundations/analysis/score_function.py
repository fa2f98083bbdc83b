r"""The log-derivative trick: gradients of densities and of expectations through the score."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.tensor_chain import contract, jacobian_tensor
from lemmata.marks import system

__all__ = ["density_gradient", "expectation_gradient", "score_of"]

LogDensity = Callable[[Tensor], Tensor]


@system("score", title="Score: gradient of a log-density", kind="function")
def score_of(log_density: LogDensity, theta: Float[Tensor, "..."]) -> Float[Tensor, "points ..."]:
    r"""The gradient of the log-density with respect to the parameters, for each point.

    $$ \nabla_\theta \log p_\theta(x) $$

    Shapes:
        log_density: from theta to the log-densities (points,) of some fixed points, theta: any shape
        returns: (points, axes of theta ...)

    Claims: calculus.log_trick

    >>> score_of(lambda logits: logits.log_softmax(-1), torch.zeros(2))
    tensor([[ 0.5000, -0.5000],
            [-0.5000,  0.5000]])
    """
    score = jacobian_tensor(log_density, theta)
    if score.ndim != 1 + theta.ndim:
        shape = tuple(score.shape[: score.ndim - theta.ndim])
        raise ValueError(f"log_density must return one number for each point, got shape {shape}")
    return score


def density_gradient(log_density: LogDensity, theta: Float[Tensor, "..."]) -> Float[Tensor, "points ..."]:
    r"""The gradient of the density itself: the density times its score, wherever it is positive.

    $$ \nabla_\theta p_\theta(x) = p_\theta(x)\,\nabla_\theta \log p_\theta(x) $$

    Shapes:
        as for `score_of`

    Claims: calculus.log_trick

    >>> density_gradient(lambda logits: logits.log_softmax(-1), torch.zeros(2))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    score = score_of(log_density, theta)
    density = log_density(theta).exp()
    return density.reshape(-1, *[1] * theta.ndim) * score


@system("score_function_gradient", title="Gradient of an expectation by the score", kind="estimator")
def expectation_gradient(
    values: Float[Tensor, "points"],
    log_density: LogDensity,
    theta: Float[Tensor, "..."],
    sampled: bool = False,
) -> Float[Tensor, "..."]:
    r"""The gradient of an expectation with respect to the parameters of the law, for any function f (REINFORCE).

    $$ \nabla_\theta \mathbb E_{p_\theta}[f] = \mathbb E_{p_\theta}[f\,\nabla_\theta \log p_\theta] $$

    The points are either all that there are, each counted with its probability, or samples of $p_\theta$, which are
    averaged: then the answer is an unbiased estimate. f need not be differentiable.

    Shapes:
        values: $f(x)$ at the points, (points,); log_density, theta: as for `score_of`; sampled: points are samples
        returns: the shape of theta

    Claims: calculus.log_trick

    >>> expectation_gradient(torch.tensor([1.0, 0.0]), lambda logits: logits.log_softmax(-1), torch.zeros(2))
    tensor([ 0.2500, -0.2500])
    """
    validate.vector("values", values)
    validate.flag("sampled", sampled)
    terms = score_of(log_density, theta) if sampled else density_gradient(log_density, theta)
    if len(terms) != len(values):
        raise ValueError(f"values must hold one number for each of the {len(terms)} points, got {len(values)}")
    total = contract(values, terms, shared=1)
    return total / len(values) if sampled else total
