r"""The variational formula for the Kullback-Leibler divergence, with which PAC-Bayes bounds begin."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.information.discrete import kl_divergence
from lemmata.foundations.probability import parameters
from lemmata.marks import system

__all__ = ["change_of_measure_bound", "gibbs_distribution"]


@system("change_of_measure", title="Change of measure (Donsker-Varadhan)", kind="function")
def change_of_measure_bound(
    q: Float[Tensor, "*#batch outcomes"], p: Float[Tensor, "*#batch outcomes"], x: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "..."]:
    r"""A bound on the expectation of $X$ under $q$ by its exponential moment under another distribution $p$.

    $$ \mathbb E_q[X] \le D_{KL}(q\|p) + \log\mathbb E_p[e^X], \qquad \text{with equality iff } q \propto p\,e^X $$

    Infinite where $q$ is not absolutely continuous with respect to $p$.

    Shapes:
        q, p: (..., outcomes), distributions; x: (..., outcomes), a number for each outcome    returns: (...)

    Claims: information.donsker_varadhan

    >>> p, x = torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0])
    >>> change_of_measure_bound(torch.tensor([0.0, 1.0]), p, x)  # the expectation itself is 1
    tensor(1.3133)
    """
    divergence = kl_divergence(q, p)
    return divergence + _log_moment(p, x)


@system("gibbs_distribution", title="Gibbs distribution", kind="function")
def gibbs_distribution(
    p: Float[Tensor, "*#batch outcomes"], x: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "... outcomes"]:
    r"""The distribution $p$ tilted by $e^X$, the only one for which the change of measure is an equality.

    $$ q(i) = \frac{p(i)\,e^{x_i}}{\sum_j p(j)\,e^{x_j}} $$

    Shapes:
        p: (..., outcomes), a distribution; x: (..., outcomes)    returns: (..., outcomes)

    Claims: information.donsker_varadhan

    >>> gibbs_distribution(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor([0.2689, 0.7311])
    """
    log_moment = _log_moment(p, x)[..., None]
    return p * (_possible(p, x) - log_moment).exp()


def _log_moment(p: Tensor, x: Tensor) -> Tensor:
    r"""$\log\mathbb E_p[e^X]$, without overflow."""
    p = parameters.masses("p", p)
    if validate.floating("x", x).ndim == 0 or x.shape[-1] != p.shape[-1]:
        raise ValueError(f"x must hold one number for each of {p.shape[-1]} outcomes, got shape {tuple(x.shape)}")
    possible = _possible(p, x)
    most = possible.amax(-1, keepdim=True)  # keeps the exponential in range
    return (p * (possible - most).exp()).sum(-1).log() + most[..., 0]


def _possible(p: Tensor, x: Tensor) -> Tensor:
    """X without the outcomes that cannot occur, lest they overflow."""
    return torch.where(p > 0, x, -torch.inf)
