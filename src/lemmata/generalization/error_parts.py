r"""The parts of the error of a learnt function, on finite problems, where each of them is a number and not a bound."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["ErrorParts", "decompose", "lipschitz_deviation"]


@dataclass(frozen=True, eq=False)
class ErrorParts:
    r"""Six risks, each a scalar or one for each sample, and the parts of the error that they make.

    $$ R(\hat f) - \inf_{\mathcal F} R \;=\; \underbrace{R(\hat f)-\hat R(\hat f)}_{\text{gap}} +
       \underbrace{\hat R(\hat f)-\inf_{\mathcal F_\delta}\hat R}_{\text{optimisation}} +
       \big(\inf_{\mathcal F_\delta}\hat R-\inf_{\mathcal F_\delta}R\big) +
       \underbrace{\inf_{\mathcal F_\delta}R-\inf_{\mathcal F}R}_{\text{approximation}}
       \;\le\; \text{optimisation} + \text{statistical} + \text{approximation} $$

    with the statistical error $2\sup_{\mathcal F_\delta}|R-\hat R|$.
    """

    risk: Tensor
    """of the learnt function"""
    empirical_risk: Tensor
    """of the learnt function on the sample"""
    least_empirical_risk: Tensor
    """among the members of the class"""
    least_risk_in_class: Tensor
    least_risk: Tensor
    """among all functions"""
    largest_gap: Tensor
    """of risk and empirical risk among the members of the class"""

    @property
    def gap(self) -> Tensor:
        """Generalisation gap: risk less empirical risk, with its sign."""
        return self.risk - self.empirical_risk

    @property
    def population(self) -> Tensor:
        return self.risk - self.least_risk

    @property
    def optimisation(self) -> Tensor:
        return self.empirical_risk - self.least_empirical_risk

    @property
    def statistical(self) -> Tensor:
        return 2 * self.largest_gap

    @property
    def approximation(self) -> Tensor:
        return self.least_risk_in_class - self.least_risk

    @property
    def bound(self) -> Tensor:
        """What the three parts allow the population error to be."""
        return self.optimisation + self.statistical + self.approximation


@system("decompose", title="Error decomposition of finite problems", kind="function")
def decompose(
    losses: Float[Tensor, "functions outcomes"],
    probability: Float[Tensor, " outcomes"],
    sample: Int[Tensor, "*batch n"],
    members: Int[Tensor, " members"],
    learnt: Int[Tensor, "*batch"] | int,
) -> ErrorParts:
    r"""What the learnt function loses to the best of all, and where: by optimisation, by the sample, by the class.

    $$ R(f) = \sum_z p(z)\,\ell_f(z), \qquad \hat R(f) = \frac1n\sum_{i=1}^n \ell_f(z_i) $$

    A problem is finite where its outcomes (pairs of input and label) are listed: `losses` has a row for each function
    and a column for each outcome. `members` are the rows of the class that was searched, `learnt` the row that was
    found.

    Shapes:
        losses: (functions, outcomes), probability: (outcomes,), sample: (..., n), members: (members,), learnt: (...)
        returns: tensors (...)

    Claims: error.population, error.decomposition, error.optimisation, error.approximation, slt.generalisation_gap

    >>> losses = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    >>> parts = decompose(losses, torch.tensor([0.7, 0.3], dtype=torch.float64), torch.tensor([1, 1, 0]),
    ...                   members=torch.tensor([1, 2]), learnt=1)
    >>> parts.population, parts.approximation
    (tensor(0.4000, dtype=torch.float64), tensor(0.2000, dtype=torch.float64))
    """
    losses = validate.matrix("losses", losses, "functions, outcomes")
    probability = validate.vector("probability", probability, losses.shape[1])
    if bool((probability < 0).any()) or abs(float(probability.sum()) - 1) > 1e-6:
        raise ValueError(
            f"probability must be >= 0 and sum to 1, got a sum of {float(probability.sum()):g}: divide by it"
        )
    members = _row_numbers("members", members, len(losses))
    if members.ndim != 1:
        raise ValueError(f"members must be (members,), got shape {tuple(members.shape)}: one row number for each")
    sample = _row_numbers("sample", sample, losses.shape[1])
    learnt = _row_numbers("learnt", torch.as_tensor(learnt), len(losses))
    risk = losses @ probability  # (functions,)
    empirical = losses.T[sample].mean(-2)  # (..., functions)
    of_learnt = empirical.gather(-1, learnt.expand(empirical.shape[:-1])[..., None])[..., 0]
    return ErrorParts(
        risk=risk[learnt].expand(of_learnt.shape),
        empirical_risk=of_learnt,
        least_empirical_risk=empirical[..., members].amin(-1),
        least_risk_in_class=risk[members].min(),
        least_risk=risk.min(),
        largest_gap=(risk - empirical)[..., members].abs().amax(-1),
    )


@system("lipschitz_deviation", title="Deviation of 1-Lipschitz functions", kind="function")
def lipschitz_deviation(x: Float[Tensor, "n features"], y: Float[Tensor, "n features"]) -> Float[Tensor, ""]:
    r"""The largest difference of the means of one 1-Lipschitz function on two samples: the cheapest transport.

    $$ \sup_{\|f\|_L\le1}\Big|\frac1n\sum_i f(x_i) - \frac1n\sum_i f(y_i)\Big| = W_1(P_n, Q_n) =
       \min_\pi \frac1n\sum_i \|x_i - y_{\pi(i)}\| $$

    By assignment, in a time that grows like $n^3$. Samples that are spread over many dimensions stay far apart: the
    deviation falls like $n^{-1/d}$.

    Shapes:
        x, y: (n, features)

    Claims: error.statistical_lipschitz
    Source: Kantorovich and Rubinstein 1958; Dudley 1969.

    >>> lipschitz_deviation(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.5], [0.0]]))
    tensor(0.2500)
    """
    x, y = validate.matrix("x", x, "n, features"), validate.matrix("y", y, "n, features")
    if x.shape != y.shape:
        raise ValueError(f"x and y must have one shape, got {tuple(x.shape)} and {tuple(y.shape)}: draw equally many")
    cost = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")  # (n, n)
    rows, columns = linear_sum_assignment(cost.detach().cpu().numpy())
    return cost[torch.as_tensor(rows), torch.as_tensor(columns)].mean()


def _row_numbers(name: str, value: Tensor, number: int) -> Tensor:
    """Row numbers, at least one."""
    if validate.tensor(name, value).is_floating_point() or value.dtype == torch.bool:
        raise TypeError(f"{name} must hold integers, got {value.dtype}: use {name}.long()")
    if value.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)}")
    if int(value.min()) < 0 or int(value.max()) >= number:
        raise ValueError(f"{name} must lie between 0 and {number - 1}, got {int(value.min())} to {int(value.max())}")
    return value.long()
