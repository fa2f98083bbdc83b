r"""The score of a density, and samples from a score alone."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.langevin import UnadjustedLangevin
from lemmata.marks import system

__all__ = ["langevin_samples", "score_of"]


@system("score", title="Score function", kind="function")
def score_of(log_density: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    r"""The score of a density: where, and how steeply, its logarithm rises.

    $$ s(x) = \nabla_x \log p(x), \qquad p = e^{-E}/Z \;\Rightarrow\; s = -\nabla_x E $$

    `log_density` gives one number for each example, up to a constant: minus an energy will do. The score can be
    differentiated again, with respect to points and to parameters.

    Shapes:
        log_density: (batch, ...) to (batch,)    returns: a function, (batch, ...) to (batch, ...)

    Claims: score.definition, langevin.ula
    Source: A. Hyvärinen, Estimation of non-normalized statistical models by score matching (2005).
    Differs: statisticians call the derivative with respect to the parameters by the same name.

    >>> score_of(lambda x: -x.square().sum(1) / 2)(torch.tensor([[1.0, -2.0]])).detach()
    tensor([[-1.,  2.]])
    """

    def score(x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            leaf = x if again and x.requires_grad else x.detach().requires_grad_()
            value = log_density(leaf)
            if value.shape != x.shape[:1]:
                raise ValueError(f"log_density must return one number an example, got shape {tuple(value.shape)}")
            (found,) = torch.autograd.grad(value.sum(), leaf, create_graph=again)
        return found

    return score


@system("langevin_samples", title="Samples from a score", kind="function")
def langevin_samples(
    score: Callable[[Tensor], Tensor],
    start: Float[Tensor, "batch ..."],
    step: float,
    steps: int,
    *,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch ..."]:
    r"""Points that follow a score with just as much noise as leaves its density alone, for so many steps.

    $$ x_{i+1} = x_i + \epsilon\, s(x_i) + \sqrt{2\epsilon}\, z_i, \qquad z_i \sim \mathcal N(0, I) $$

    The kernel `UnadjustedLangevin` for examples of any shape: images, too. Small steps, many of them; where the
    score is steeper than $2/\epsilon$ per unit of length, points leap farther out than they came from.

    Shapes:
        start: (batch, ...)    score: (batch, ...) to the same shape    returns: (batch, ...)

    Claims: langevin.ula
    Source: Y. Song and S. Ermon, Generative modeling by estimating gradients of the data distribution (2019).

    >>> drawn = langevin_samples(lambda x: -x, torch.zeros(1000, 1), step=0.1, steps=100)
    >>> bool((drawn.var() - 1 / (1 - 0.1 / 2)).abs() < 0.2)
    True
    """
    validate.count("steps", steps)
    if not validate.tensor("start", start).is_floating_point() or start.ndim < 2:
        raise ValueError(f"start must be floating-point numbers (batch, ...), got {start.dtype} {tuple(start.shape)}")
    kernel = UnadjustedLangevin(score=lambda rows: score(rows.view(start.shape)).flatten(1), step=step)
    state = kernel.init(start.flatten(1))
    generator = generator or torch.Generator(start.device).manual_seed(int(torch.randint(2**62, ())))
    for _ in range(steps):
        state, _ = kernel.step(state, generator)
    return state.position.view(start.shape)
