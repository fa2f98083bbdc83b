r"""The loss of logistic regression with its derivatives, block by block, and the steps that Newton makes of them.

A gradient reads the data once and is done at the speed of memory; a Hessian multiplies them with themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata.feedforward.normal_equations import BLOCK, add_gram, mirror
from lemmata.feedforward.softmax import cross_entropy

__all__ = []  # for LogisticRegression

FAR = 2.0**10  # so many spreads from the origin a product before centring would lose digits that matter
NOTHING = 2.0**-44  # of the mean: a spread that is only what rounding leaves of a constant column


class LogisticProblem(NamedTuple):
    """Data, what turns them into a problem, and the size of each input, against which its gradient is small or not."""

    x: Tensor  # (points, features)
    y: Tensor  # (points,)
    mean: Tensor  # (features,): zeros if there is no bias
    bias: bool
    units: int  # 1 for two classes, else one for each
    ridge: float
    lr: float | None
    sizes: Tensor  # (inputs, 1), 1 for the bias
    often: Tensor | None = None  # (points,): how often each example counts, once in the mean

    def some(self, rows: Tensor) -> "LogisticProblem":
        """The same problem for some of the examples."""
        often = None if self.often is None else self.often[rows]
        return self._replace(x=self.x[rows], y=self.y[rows], often=often)

    def rows(self, x: Tensor) -> Float[Tensor, "points inputs"]:
        """Centred examples, with a 1 for the bias."""
        rows = x.new_ones(len(x), x.shape[1] + self.bias, dtype=torch.double)
        torch.sub(x, self.mean, out=rows[:, : x.shape[1]])
        return rows

    @property
    def bend(self) -> float:
        """The most that a loss curves in its logits: p(1 - p) is up to 1/4, eigenvalues of diag(p) - pp' up to 1/2."""
        return 0.25 if self.units == 1 else 0.5

    def start(self) -> Float[Tensor, "inputs units"]:
        return self.x.new_zeros(self.x.shape[1] + self.bias, self.units, dtype=torch.double)

    def penalty(self) -> Float[Tensor, "inputs 1"]:
        """What is added to the diagonal of the Hessian: nothing for the bias."""
        ridge = self.x.new_full((self.x.shape[1], 1), self.ridge, dtype=torch.double)
        return functional.pad(ridge, (0, 0, 0, 1)) if self.bias else ridge


def centred(x: Tensor, bias: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The data, their centre and how much of it must still be taken off, and the sizes of the inputs (inputs, 1).

    Which centre is a matter of rounding, so that the means of a few rows serve. Products are centred afterwards, which
    costs no pass over the data but a few digits; where these would be missed, a centred copy is made.
    """
    few = x[:: max(1, len(x) // BLOCK)].double()
    mean = off = few.mean(0) * bias
    squares = (few - mean).square().mean(0)
    if bool((squares <= (NOTHING * mean).square()).any()):  # perhaps it varies in the rows that were left out
        squares = sum((((block.double() - mean).square().sum(0)) for block in x.split(BLOCK)), off * 0) / len(x)
    varies = squares > (NOTHING * mean).square()
    if bool((varies & (squares < (mean / FAR).square())).any()):
        x, off = x.double() - mean, torch.zeros_like(mean)
    sizes = torch.where(varies, squares, 1.0).sqrt()
    return x, mean, off, functional.pad(sizes, (0, int(bias)), value=1.0)[:, None]


def expansion(
    problem: LogisticProblem, theta: Float[Tensor, "inputs units"], curved: bool = True
) -> tuple[float, Tensor, Tensor, bool]:
    """Loss, gradient (inputs, units), Hessian (units * inputs, units * inputs), and whether every answer is right."""
    (inputs, units), features, points = theta.shape, problem.x.shape[1], len(problem.x)
    curvature = (_CurvatureOfTwo if units == 1 else _CurvatureOfMany)(problem, theta) if curved else None
    weight = theta[:features].contiguous()
    offset = theta[features:].sum(0) - problem.mean @ weight  # (units,): as if the data were centred
    loss, worst = theta.new_zeros(()), theta.new_full((), torch.inf)
    products, totals = torch.zeros_like(weight), torch.zeros_like(offset)
    aims = problem.y if units > 1 else (2 * problem.y - 1).to(theta)[:, None]
    # A Hessian uses each block many times, and what is not double is converted: these stay in the cache.
    whole = problem.x.dtype is torch.double and not curved
    at_once = max(BLOCK, 64 * BLOCK // units) if whole else BLOCK
    parts = zip(
        problem.x.split(at_once), aims.split(at_once), _weight_blocks(problem.often, points, at_once), strict=True
    )
    for x, aim, often in parts:
        x = x.double()
        z = torch.addmm(offset, x, weight)  # (block, units)
        if units == 1:
            margins = z * aim
            losses = -functional.logsigmoid(margins)[:, 0]
            error = torch.sigmoid(-margins).mul_(-aim)  # p - y
        else:
            target = functional.one_hot(aim, units).to(z)
            margins = z.gather(1, aim[:, None])[:, 0] - z.masked_fill(target > 0, -torch.inf).amax(1)
            losses = cross_entropy(z, aim, reduction="none")
            error = z.softmax(1) - target
        if often is not None:
            losses, error = losses * often, error * often[:, None]
        loss = loss + losses.sum()
        worst = torch.minimum(worst, margins.min())
        products.addmm_(x.mT, error)
        totals += error.sum(0)
        if curvature is not None:
            curvature.add(x, z, often)
    gradient, penalty = torch.empty_like(theta), problem.penalty()
    gradient[:features] = products - problem.mean[:, None] * totals
    gradient[features:] = totals
    hessian = theta.new_zeros(0, 0)
    if curvature is not None:
        hessian = curvature.total() / points
        hessian.diagonal().add_(penalty.expand(inputs, units).mT.reshape(-1))
    mean_loss = float(loss) / points + float((penalty * theta.square()).sum()) / 2
    return mean_loss, gradient / points + penalty * theta, hessian, bool(worst > 0)


def _weight_blocks(often: Tensor | None, points: int, size: int) -> Sequence[Tensor | None]:
    return [None] * -(-points // size) if often is None else often.split(size)


class _CurvatureOfTwo:
    r"""$\sum_ip_i(1-p_i)\,x_ix_i^\top$ for two classes, of centred inputs with a 1 for the bias."""

    def __init__(self, problem: LogisticProblem, theta: Tensor) -> None:
        features = problem.x.shape[1]
        self.problem, self.gram = problem, theta.new_zeros(features, features)
        self.sums, self.weights = theta.new_zeros(features), theta.new_zeros(())

    def add(self, x: Tensor, z: Tensor, often: Tensor | None) -> None:
        p = torch.sigmoid(z)
        weights = p * (1 - p) if often is None else p * (1 - p) * often[:, None]  # (block, 1)
        add_gram(self.gram, x * weights.sqrt())
        self.sums.addmv_(x.mT, weights[:, 0])
        self.weights += weights.sum()

    def total(self) -> Tensor:
        mean = self.problem.mean
        mirror(self.gram)
        # With means m, sums u and weights w: X'DX - um' - mu' + w mm', a square of what is left of the sums off by wm.
        off = self.sums - self.weights * mean
        hessian = self.gram - torch.outer(self.sums, mean) - torch.outer(mean, off)
        if not self.problem.bias:
            return hessian
        edge = torch.cat([off, self.weights[None]])
        return torch.cat([torch.cat([hessian, off[None]]), edge[:, None]], 1)


class _CurvatureOfMany:
    r"""$\sum_i(\mathrm{diag}(p_i)-p_ip_i^\top)\otimes x_ix_i^\top$ for many classes."""

    def __init__(self, problem: LogisticProblem, theta: Tensor) -> None:
        self.problem, self.hessian = problem, theta.new_zeros((theta.numel(),) * 2)

    def add(self, x: Tensor, z: Tensor, often: Tensor | None) -> None:
        p, rows = z.softmax(1), self.problem.rows(x)
        rows = rows if often is None else rows * often.sqrt()[:, None]
        inputs, units = rows.shape[1], p.shape[1]
        weighted = (p[:, :, None] * rows[:, None]).flatten(1)  # (block, units * inputs)
        self.hessian.addmm_(weighted.mT, weighted, alpha=-1)
        for k in range(units):
            part = slice(k * inputs, (k + 1) * inputs)
            self.hessian[part, part].addmm_(rows.mT, weighted[:, part])

    def total(self) -> Tensor:
        return self.hessian


def newton_step(
    hessian: Tensor, gradient: Float[Tensor, "inputs units"], pairs: list[tuple[Tensor, Tensor]]
) -> Float[Tensor, "inputs units"]:
    r"""$H^{-1}g$; the Hessian is first corrected by pairs of a move and the change of the gradient that it made (BFGS).

    Source: the recursion of Nocedal 1980, with a Hessian where there usually is a multiple of the identity.
    """
    shares = []
    for move, change in reversed(pairs):
        shares.append((move * gradient).sum() / (move * change).sum())
        gradient = gradient - shares[-1] * change
    step = _newton_step(hessian, gradient.mT.reshape(-1), gradient.shape[1]).reshape(gradient.mT.shape).mT
    for (move, change), share in zip(pairs, reversed(shares), strict=True):
        step = step + (share - (change * step).sum() / (move * change).sum()) * move
    return step


def _newton_step(hessian: Tensor, gradient: Tensor, units: int) -> Tensor:
    """The Newton step; where the Hessian is singular, the shortest, in units of each input's own size."""
    inputs = len(hessian) // units
    curved = hessian.diagonal().reshape(units, inputs).mean(0)  # (inputs,)
    unit = torch.where(curved > 0, curved, 1.0).rsqrt().repeat(units)
    hessian, gradient = unit[:, None] * hessian * unit, unit * gradient
    if units > 1:  # the same added to all classes changes nothing: a curvature along it keeps the step off it
        eye = torch.eye(inputs, dtype=hessian.dtype, device=hessian.device)
        hessian = hessian + eye.repeat(units, units) / units
    factor, failed = torch.linalg.cholesky_ex(hessian)
    if not failed and float(factor.diagonal().min()) > 1e-7 * float(factor.diagonal().max()):
        return unit * torch.cholesky_solve(gradient[:, None], factor)[:, 0]
    return unit * (torch.linalg.pinv(hessian, hermitian=True, rtol=1e-13) @ gradient)
