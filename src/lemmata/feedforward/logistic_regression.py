r"""Logistic regression for two classes or more: Newton's method, three descents, and a word where there is no end."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.connectionism.separability import Separation, separate
from lemmata.feedforward.linear_regression import BLOCK, affine, column_means, within_range
from lemmata.feedforward.softmax import binary_cross_entropy, cross_entropy
from lemmata.marks import system

__all__ = ["LogisticRegression"]

SOLVERS = ("newton", "lbfgs", "gd", "sgd")
EPOCHS = {"newton": 100, "lbfgs": 1000, "gd": 10_000, "sgd": 100}
# Beyond so many points the linear program that decides separability takes seconds.
MOST_POINTS = 10_000
BATCH = 32  # examples of a step of sgd
ENOUGH = 50  # examples for each weight, of which the minimiser is off by a seventh of the spread of the logits


class _Problem(NamedTuple):
    """Data as they came, divided by a power of two where they are huge or tiny, and what turns them into a problem."""

    x: Tensor  # (points, features)
    y: Tensor  # (points,)
    mean: Tensor  # (features,), or a zero
    bias: bool
    units: int  # 1 for two classes, else one for each
    ridge: float
    lr: float | None

    def rows(self, x: Tensor) -> Float[Tensor, "points inputs"]:
        """Centred examples, with a 1 for the bias."""
        rows = x.new_ones(len(x), x.shape[1] + self.bias, dtype=torch.double)
        torch.sub(x, self.mean, out=rows[:, : x.shape[1]])
        return rows

    def start(self) -> Float[Tensor, "inputs units"]:
        return self.x.new_zeros(self.x.shape[1] + self.bias, self.units, dtype=torch.double)

    def sizes(self) -> Float[Tensor, "inputs 1"]:
        """The size of each input, against which its gradient is small or not: 1 for the bias."""
        squares = self.x.new_zeros(self.x.shape[1] + self.bias, dtype=torch.double)
        for x in self.x.split(BLOCK):
            squares += self.rows(x).square().sum(0)
        sizes = (squares / len(self.x)).sqrt()
        return torch.where(sizes > 0, sizes, 1.0)[:, None]

    def penalty(self) -> Float[Tensor, "inputs 1"]:
        """What is added to the diagonal of the Hessian: nothing for the bias."""
        ridge = self.x.new_full((self.x.shape[1], 1), self.ridge, dtype=torch.double)
        return functional.pad(ridge, (0, 0, 0, 1)) if self.bias else ridge


@system("logistic", title="Logistic regression", kind="estimator")
class LogisticRegression:
    r"""Probabilities from an affine function: a sigmoid for two classes, softmax for more, fitted by cross-entropy.

    $$ \min_{w,\,b}\ \frac1s\sum_i -\log\sigma\big((2y_i - 1)(w^\top x_i + b)\big) + \frac\lambda2\|w\|^2, \qquad
       w \leftarrow w - \big(X^\top\mathrm{diag}(p(1-p))X + s\lambda I\big)^{-1}\big(X^\top(p-y) + s\lambda w\big) $$

    with $\lambda$ = `ridge`. The loss is convex and has no closed form; the second formula is a step of `newton`
    (iteratively reweighted least squares), which is the default. `lbfgs` and `gd` use the whole gradient, `sgd` that of
    a few examples, and averages its second half.

    Without a penalty, data that a hyperplane separates have no finite minimiser: the longer the weights, the smaller
    the loss. As soon as weights classify every example correctly, beyond rounding, `fit` stops there, warns, and keeps
    the proof in `separation_`.

    Shapes:
        x: (points, features), y: (points,) of 0 ... classes - 1
        weight_: (features,) for two classes, else (features, classes)    bias_: scalar or (classes,)

    Learnt: `weight_`, `bias_`, `classes_`, `loss_` (the mean cross-entropy), `epochs_`, `status_` ("converged",
    "separable" or "epoch limit"), and for two classes `separation_` (a `Separation`, where it was asked for one).

    Claims: logistic.model, logistic.gradient
    Source: Cox 1958; Newton's steps as least squares: Rubin 1983.
    Differs: scikit-learn penalises the sum of the losses: its `C` is $1/(s\lambda)$. Everything is solved in float64
        on the device of x and returned in the dtype of x.

    >>> x, y = torch.tensor([[-2.0], [-1.0], [0.0], [1.0], [2.0]]), torch.tensor([0, 0, 1, 0, 1])
    >>> model = LogisticRegression(ridge=0.1).fit(x, y)
    >>> model.status_, model.predict(x), model.probability(x)[:, 1]
    ('converged', tensor([0, 0, 0, 1, 1]), tensor([0.1104, 0.2134, 0.3723, 0.5646, 0.7393]))
    """

    weight_: Tensor
    bias_: Tensor
    classes_: int
    loss_: float
    epochs_: int
    status_: str
    separation_: Separation | None

    def __init__(
        self,
        ridge: float = 0.0,
        bias: bool = True,
        solver: str = "newton",
        lr: float | None = None,
        max_epochs: int | None = None,
        tolerance: float = 1e-8,
        seed: int = 0,
    ) -> None:
        self.ridge = validate.number("ridge", ridge, least=0.0)
        self.bias = validate.flag("bias", bias)
        self.solver = validate.one_of("solver", solver, SOLVERS)
        self.lr = None if lr is None else validate.positive("lr", lr)
        self.max_epochs = EPOCHS[solver] if max_epochs is None else validate.count("max_epochs", max_epochs)
        self.tolerance = validate.positive("tolerance", tolerance)
        self.seed = validate.count("seed", seed, least=0)

    def __repr__(self) -> str:
        return f"LogisticRegression(ridge={self.ridge}, bias={self.bias}, solver={self.solver!r})"

    def fit(
        self, x: Float[Tensor, "points features"], y: Int[Tensor, "points"], classes: int | None = None
    ) -> "LogisticRegression":
        """Find the weights; `classes` tells how many there are, if not all of them occur."""
        x = validate.matrix("x", x).detach()
        y, self.classes_ = _labels(x, y, classes)
        inputs, unit = within_range(x)
        mean = column_means(inputs) if self.bias else inputs.new_zeros(()).double()
        units = 1 if self.classes_ == 2 else self.classes_
        lr = None if self.lr is None else self.lr * unit * unit
        problem = _Problem(inputs, y, mean, self.bias, units, self.ridge / unit / unit, lr)
        self.epochs_, self.status_, self.separation_ = 0, "epoch limit", None
        solve = {"newton": self._newton, "lbfgs": self._lbfgs, "gd": self._gd, "sgd": self._sgd}[self.solver]
        theta = solve(problem)  # (inputs, units)
        weight = theta[: x.shape[1]]
        bias = theta[-1] - mean @ weight if self.bias else weight.new_zeros(units)
        shape = () if units == 1 else (units,)
        self.weight_, self.bias_ = (weight / unit).reshape(-1, *shape).to(x.dtype), bias.reshape(shape).to(x.dtype)
        z = self.decision_function(x)
        self.loss_ = float(binary_cross_entropy(z, y) if units == 1 else cross_entropy(z, y))
        self._say(x, y)
        return self

    def decision_function(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points *classes"]:
        """The logits: of class 1 for two classes, else of each."""
        if not hasattr(self, "weight_"):
            raise RuntimeError("this LogisticRegression is not fitted: call fit(x, y) first")
        x = validate.last_axis("x", validate.matrix("x", x), len(self.weight_))
        return affine(x, self.weight_, self.bias_)

    def probability(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points classes"]:
        """The probability of each class; each row adds up to one."""
        z = self.decision_function(x)
        return torch.stack([torch.sigmoid(-z), torch.sigmoid(z)], 1) if z.ndim == 1 else z.softmax(1)

    def predict(self, x: Float[Tensor, "points features"]) -> Int[Tensor, "points"]:
        """The likeliest class."""
        z = self.decision_function(x)
        return (z > 0).long() if z.ndim == 1 else z.argmax(1)

    def state_dict(self) -> dict[str, Tensor]:
        """What was learnt."""
        return {"weight": self.weight_, "bias": self.bias_} if hasattr(self, "weight_") else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        if state:
            self.weight_, self.bias_ = state["weight"].clone(), state["bias"].clone()
            self.classes_ = 2 if self.weight_.ndim == 1 else self.weight_.shape[1]

    def _newton(self, problem: _Problem) -> Float[Tensor, "inputs units"]:
        """Whole Newton steps, halved where the loss would not fall."""
        theta, enough = problem.start(), ENOUGH * problem.start().numel()
        if len(problem.x) >= 4 * enough:  # a part of so many examples already has nearly the same minimiser
            some = torch.randperm(len(problem.x), generator=torch.Generator().manual_seed(self.seed))[:enough]
            some = some.to(problem.y.device)
            counts = torch.bincount(problem.y[some], minlength=self.classes_)
            if int(counts.min()) >= len(theta):  # or a class that hardly occurs in it would drift far away
                theta = self._newton(problem._replace(x=problem.x[some], y=problem.y[some]))
                self.status_ = "epoch limit"
        loss, gradient, hessian, right = _expansion(problem, theta)
        for epoch in range(1, self.max_epochs + 1):
            self.epochs_ = epoch
            step = _solve(hessian, gradient.mT.reshape(-1), problem.units).reshape(theta.mT.shape).mT  # (inputs, units)
            slope, length = float((gradient * step).sum()), 1.0
            while True:
                tried = theta - length * step
                found = _expansion(problem, tried)
                # Near the minimum losses are equal up to their rounding, and the whole step is right.
                if found[0] <= loss * (1 + 1e-12) - 1e-4 * length * slope or length < 1e-10:
                    break
                length /= 2
            theta, (loss, gradient, hessian, right) = tried, found
            if right and not self.ridge:  # every example is on its side: longer weights are better without end
                break
            if length * float(step.abs().max()) <= self.tolerance * (1 + float(theta.abs().max())):
                # A singular Hessian hides directions from the step, not from the gradient.
                vanishes = float((gradient / problem.sizes()).abs().max()) <= max(self.tolerance, 1e-9)
                self.status_ = "converged" if vanishes else "epoch limit"
                break
        return theta

    def _lbfgs(self, problem: _Problem) -> Float[Tensor, "inputs units"]:
        """scipy's quasi-Newton method: no Hessian as large as features times classes."""
        start, first = problem.start(), _expansion(problem, problem.start(), curved=False)[1]

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            theta = torch.from_numpy(flat).to(start).reshape(start.shape)
            loss, gradient, _, _ = _expansion(problem, theta, curved=False)
            return loss, gradient.cpu().numpy().ravel()

        least = self.tolerance * float(first.abs().max())
        limits = {"maxiter": self.max_epochs, "maxfun": 10 * self.max_epochs, "gtol": least, "ftol": 0.0}
        flat = start.cpu().numpy().ravel()
        found: Any = minimize(value_and_gradient, flat, jac=True, method="L-BFGS-B", options=limits)
        self.epochs_ = int(found.nit)
        # The line search also ends where the loss can no longer be told from its neighbours.
        self.status_ = "converged" if abs(found.jac).max() <= max(least, 1e-9) else "epoch limit"
        return torch.from_numpy(found.x).to(start).reshape(start.shape)

    def _gd(self, problem: _Problem) -> Float[Tensor, "inputs units"]:
        """Steps against the gradient, until it is `tolerance` of the first."""
        theta, rows = problem.start(), problem.rows(problem.x)
        # p(1 - p) is at most 1/4, and no eigenvalue of diag(p) - pp' exceeds 1/2.
        bend = 0.25 if problem.units == 1 else 0.5
        most = bend * float(torch.linalg.matrix_norm(rows, 2)) ** 2 / len(rows) + problem.ridge
        lr, first, begin = problem.lr or (1 / most if most else 1.0), torch.inf, torch.inf
        for epoch in range(self.max_epochs + 1):
            loss, gradient, _, right = _expansion(problem, theta, curved=False)
            norm = float(gradient.norm())
            first, begin = (first, begin) if epoch else (norm, loss)
            if not loss <= begin * (1 + 1e-9):
                raise ArithmeticError(f"gd diverges with lr = {self.lr}: leave it out, or use a smaller one")
            if epoch and norm <= self.tolerance * first:
                self.status_ = "converged"
            if self.status_ == "converged" or (right and not self.ridge):
                break
            theta, self.epochs_ = theta - lr * gradient, min(epoch + 1, self.max_epochs)
        return theta

    def _sgd(self, problem: _Problem) -> Float[Tensor, "inputs units"]:
        """A few examples at a time, in a new order each epoch; the mean of the iterates of the second half."""
        generator = torch.Generator().manual_seed(self.seed)
        theta, total, kept = problem.start(), problem.start(), 0
        size = float(problem.rows(problem.x).square().sum(1).mean())
        most = (0.25 if problem.units == 1 else 0.5) * size + problem.ridge
        lr = problem.lr or (1 / most if most else 1.0)
        for epoch in range(1, self.max_epochs + 1):
            self.epochs_ = epoch
            for some in torch.randperm(len(problem.x), generator=generator).split(BATCH):
                batch = problem._replace(x=problem.x[some], y=problem.y[some])
                theta = theta - lr * _expansion(batch, theta, curved=False)[1]
                if 2 * epoch > self.max_epochs:
                    total, kept = total + theta, kept + 1
        # Steps of the default length stay near the least loss, and that is at most the loss of no weights.
        losses = [_expansion(problem, found, curved=False)[0] for found in (problem.start(), total / kept)]
        if not losses[1] <= 2 * losses[0]:
            raise ArithmeticError(f"sgd diverges with lr = {self.lr}: leave it out, or use a smaller one")
        return total / kept

    def _say(self, x: Tensor, y: Tensor) -> None:
        """Why there is no minimiser, or that it lies further on."""
        if not self.ridge and self._separated(x, y):
            self.status_ = "separable"
            told = "the classes are separated by the weights, which would grow without end: there is no minimiser"
            warnings.warn(f"{told}; use ridge > 0", stacklevel=3)
        elif self.status_ == "converged" and not self.ridge and self._unbounded(x, y):
            self.status_ = "epoch limit"
            told = "a class has no example, or the classes only touch: with longer weights the loss falls further"
            warnings.warn(f"{told}; use ridge > 0", stacklevel=3)
        elif self.status_ != "converged" and self.solver != "sgd":
            told = f"{self.solver} stopped after {self.epochs_} epochs before it converged"
            warnings.warn(f"{told}: raise max_epochs, or use ridge > 0", stacklevel=3)

    def _unbounded(self, x: Tensor, y: Tensor) -> bool:
        """Whether a class has no example, or no example is on the wrong side by more than a trifle."""
        if len(torch.unique(y)) < self.classes_:
            return True
        z = self.decision_function(x).double()
        if z.ndim == 1:
            margins = (2 * y - 1) * z
        else:
            right = functional.one_hot(y, z.shape[1]).bool()
            margins = z[right] - z.masked_fill(right, -torch.inf).amax(1)
        worst, best = float(margins.min()), float(margins.max())
        return best > 0 and worst >= -1e-6 * best

    def _separated(self, x: Tensor, y: Tensor) -> bool:
        """Whether the learnt weights separate the classes, or else others do: then no weights have the least loss."""
        weight, bias, signs = self.weight_.double(), self.bias_.double(), 2 * y - 1
        if self.classes_ > 2:
            return _separates(x, y, weight, bias)
        plane = Separation(True, weight, bias, biased=self.bias)
        if plane.verify(x, signs):
            self.separation_ = plane
        elif self.status_ != "converged" and self.solver != "sgd" and len(x) <= MOST_POINTS:
            self.separation_ = separate(x, signs, self.bias)
        return self.separation_ is not None and self.separation_.separable


# --- The loss and its derivatives ---


def _expansion(problem: _Problem, theta: Tensor, curved: bool = True) -> tuple[float, Tensor, Tensor, bool]:
    """Loss, gradient (inputs, units), Hessian (units * inputs, units * inputs), and whether every answer is right."""
    inputs, units = theta.shape
    gradient, penalty = torch.zeros_like(theta), problem.penalty()
    hessian, loss, right = theta.new_zeros((units * inputs,) * 2 if curved else (0, 0)), theta.new_zeros(()), True
    for x, y in zip(problem.x.split(BLOCK), problem.y.split(BLOCK), strict=True):
        rows = problem.rows(x)  # (block, inputs)
        z = rows @ theta  # (block, units)
        if units == 1:
            p, target = torch.sigmoid(z), y[:, None].to(z)
            loss += binary_cross_entropy(z, target, "sum")
            right = right and bool(((z > 0) == (target > 0)).all() & (z != 0).all())
        else:
            p, target = z.softmax(1), functional.one_hot(y, units).to(z)
            loss += cross_entropy(z, y, reduction="sum")
            best = z.masked_fill(target > 0, -torch.inf).amax(1)
            right = right and bool((z.gather(1, y[:, None])[:, 0] > best).all())
        gradient.addmm_(rows.mT, p - target)
        if curved:
            _add_curvature(hessian, rows, p)
    points = len(problem.x)
    loss = float(loss) / points + float((penalty * theta.square()).sum()) / 2
    hessian /= points
    if curved:
        hessian.diagonal().add_(penalty.expand(inputs, units).mT.reshape(-1))
    return loss, gradient / points + penalty * theta, hessian, right


def _add_curvature(hessian: Tensor, rows: Tensor, p: Tensor) -> None:
    r"""$\sum_i(\mathrm{diag}(p_i)-p_ip_i^\top)\otimes x_ix_i^\top$; for two classes $\sum_ip_i(1-p_i)x_ix_i^\top$."""
    inputs, units = rows.shape[1], p.shape[1]
    if units == 1:
        hessian.addmm_(rows.mT, rows * (p * (1 - p)))
        return
    weighted = (p[:, :, None] * rows[:, None]).flatten(1)  # (block, units * inputs)
    hessian.addmm_(weighted.mT, weighted, alpha=-1)
    for k in range(units):
        part = slice(k * inputs, (k + 1) * inputs)
        hessian[part, part].addmm_(rows.mT, weighted[:, part])


def _solve(hessian: Tensor, gradient: Tensor, units: int) -> Tensor:
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


def _separates(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether the logit of the right class exceeds all others by more than rounding can have done."""
    x = x.double()
    z, right = x @ weight + bias, functional.one_hot(y, len(bias)).bool()
    # A sum of n terms, in any order, is wrong by less than n eps sum|terms| (Higham, section 3.1).
    rounding = (x.shape[1] + 1) * torch.finfo(torch.double).eps * (x.abs() @ weight.abs() + bias.abs())
    low = (z - rounding).masked_fill(~right, torch.inf).amin(1)
    return bool((low > (z + rounding).masked_fill(right, -torch.inf).amax(1)).all())


def _labels(x: Tensor, y: Tensor, classes: int | None) -> tuple[Tensor, int]:
    if validate.tensor("y", y).shape != (len(x),) or y.is_floating_point() or y.dtype is torch.bool:
        told = f"got {y.dtype} of shape {tuple(y.shape)}" + (": use y.long()" if y.shape == (len(x),) else "")
        raise ValueError(f"y must hold a whole number for each of the {len(x)} points, {told}")
    low, high = int(y.min()), int(y.max())
    found = max(high + 1, 2) if classes is None else validate.count("classes", classes, least=2)
    if low < 0 or high >= found:
        raise ValueError(f"y must hold classes from 0 to {found - 1}, got {low} to {high}")
    return y.to(x.device).long(), found
