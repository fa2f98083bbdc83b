r"""Earth mover's distance: exactly, on the line and by linear programming, with its plan and its potential."""

from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float
from scipy import optimize, sparse
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.sample_distances import distances, sample_pair, steps_between

__all__ = ["Transport", "optimal_transport", "w1_distance", "w1_on_line"]


class Transport(NamedTuple):
    """The least work, how much goes from each point to each other, and the best critic's values at both."""

    distance: float
    plan: Float[Tensor, "points others"]
    critic_x: Float[Tensor, " points"]
    critic_y: Float[Tensor, " others"]


@system("w1_on_line", title="W1 on the line", kind="function")
def w1_on_line(x: Float[Tensor, "*batch points"], y: Float[Tensor, "*batch others"]) -> Float[Tensor, "*batch"]:
    r"""The area between the two distribution functions; with as many points on both sides, the sorted ones are pairs.

    $$ W_1(p, q) = \int |F_p(t) - F_q(t)|\,dt = \int_0^1 |F_p^{-1}(u) - F_q^{-1}(u)|\,du $$

    Shapes:
        x: (..., points), y: (..., others)    returns: (...)

    Claims: wasserstein.w1_dual, wasserstein.continuity

    >>> w1_on_line(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    gaps, heights = steps_between(x, y)
    return (gaps * heights.abs()).sum(-1)


@system("w1_distance", title="Earth mover's distance", kind="function")
def w1_distance(x: Float[Tensor, "points features"], y: Float[Tensor, "others features"]) -> Float[Tensor, ""]:
    r"""The least mean way on which one sample becomes the other, exactly; differentiable.

    $$ W_1 = \min_\pi \sum_{ij}\pi_{ij}\|x_i-y_j\|, \qquad \sum_j\pi_{ij} = \tfrac1n,\; \sum_i\pi_{ij} = \tfrac1m $$

    The gradient is that at the best plan. Equal numbers of points are a matter of assignment, in cubic time: seconds
    for two thousand points. As an estimate for distributions it is too large, by some $n^{-1/d}$ in $d$ dimensions.

    Shapes:
        x: (points, features), y: (others, features)    returns: ()

    Claims: wasserstein.w1_dual, wasserstein.waae

    >>> w1_distance(torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor(2.)
    """
    x, y = sample_pair(x, y)
    ways = distances(x, y)  # (points, others)
    if len(x) != len(y):
        plan = optimal_transport(x, y).plan
        return (plan * ways).sum()
    rows, columns = optimize.linear_sum_assignment(ways.detach().cpu().double().numpy())
    return ways[torch.as_tensor(rows, device=x.device), torch.as_tensor(columns, device=x.device)].mean()


@system("optimal_transport", title="Optimal transport plan and critic", kind="function")
def optimal_transport(
    x: Float[Tensor, "points features"],
    y: Float[Tensor, "others features"],
    p: Float[Tensor, " points"] | None = None,
    q: Float[Tensor, " others"] | None = None,
) -> Transport:
    r"""The best plan between two weighted sets of points, and the critic that proves it the best.

    $$ W_1 = \min_{\pi\in\Pi(p,q)}\sum_{ij}\pi_{ij}\|x_i-y_j\|
           = \max_{\|\eta\|_L\le1}\sum_i p_i\,\eta(x_i) - \sum_j q_j\,\eta(y_j) $$

    Both are solved by one linear program; the critic's values are made those of one function that is 1-Lipschitz
    everywhere, $\eta(z) = \min_j \|z - y_j\| + \eta(y_j)$. Weights default to equal ones. Some ten thousand pairs take
    a second.

    Shapes:
        x: (points, features), y: (others, features), p: (points,), q: (others,)

    Claims: wasserstein.w1_dual

    >>> found = optimal_transport(torch.tensor([[0.0]]), torch.tensor([[1.0], [3.0]]), q=torch.tensor([0.75, 0.25]))
    >>> round(found.distance, 6), found.plan.tolist()
    (1.5, [[0.75, 0.25]])
    """
    x, y = sample_pair(x, y)
    p, q = (_check_weights(name, each, like) for name, each, like in (("p", p, x), ("q", q, y)))
    ways = distances(x.detach(), y.detach()).cpu().double()  # (points, others)
    n, m = ways.shape
    rows = sparse.kron(sparse.eye(n), numpy.ones((1, m)))
    columns = sparse.kron(numpy.ones((1, n)), sparse.eye(m))
    totals = numpy.concatenate([p.cpu().numpy(), q.cpu().numpy()])
    unit = float(ways.max()) or 1.0  # the program's tolerances are absolute
    costs = (ways / unit).flatten().numpy()
    solved = optimize.linprog(costs, A_eq=sparse.vstack([rows, columns]).tocsr(), b_eq=totals)
    if not solved.success:
        raise RuntimeError(f"the linear program was not solved: {solved.message}")
    plan = torch.from_numpy(solved.x).view(n, m)
    to_y = -unit * torch.from_numpy(numpy.array(solved.eqlin.marginals[n:]))  # of a critic that is largest at x
    to_x = (ways + to_y).amin(1)
    to_y = (distances(y.detach(), y.detach()).cpu().double() + to_y).amin(1)
    return Transport(float((plan * ways).sum()), *(each.to(x) for each in (plan, to_x, to_y)))


def _check_weights(name: str, value: Tensor | None, like: Tensor) -> Tensor:
    """Probabilities of the points, in float64, whose sum is 1 to the last bit or so: the program is strict."""
    if value is None:
        return torch.full((len(like),), 1 / len(like), dtype=torch.float64)
    value = validate.vector(name, value, len(like)).double()
    if bool((value < 0).any()) or abs(float(value.sum()) - 1) > 1e-5:
        raise ValueError(f"{name} must be probabilities that sum to 1, got a sum of {float(value.sum()):.6g}")
    return value / value.sum()
