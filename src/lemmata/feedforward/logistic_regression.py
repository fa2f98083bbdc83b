r"""Logistic regression for two classes or more: Newton's method, three descents, and a word where there is no end."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.connectionism.separability import Separation, separate
from lemmata.feedforward.linear_regression import affine, counts, in_dtype, weight_and_bias
from lemmata.feedforward.logistic_loss import LogisticProblem, centred, expansion, newton_step
from lemmata.feedforward.normal_equations import within_range
from lemmata.marks import system

__all__ = ["LogisticRegression"]

SOLVERS = ("newton", "lbfgs", "gd", "sgd")
EPOCHS = {"newton": 100, "lbfgs": 1000, "gd": 10_000, "sgd": 100}
# Beyond so many points the linear program that decides separability takes seconds.
MOST_POINTS = 10_000
BATCH = 32  # examples of a step of sgd
ENOUGH = 50  # examples for each weight, of which the minimiser is off by a seventh of the spread of the logits


@system("logistic", title="Logistic regression", kind="estimator")
class LogisticRegression:
    r"""Probabilities from an affine function: a sigmoid for two classes, softmax for more, fitted by cross-entropy.

    $$ \min_{w,\,b}\ \frac1s\sum_i -\log\sigma\big((2y_i - 1)(w^\top x_i + b)\big) + \frac\lambda2\|w\|^2, \qquad
       w \leftarrow w - \big(X^\top\mathrm{diag}(p(1-p))X + s\lambda I\big)^{-1}\big(X^\top(p-y) + s\lambda w\big) $$

    with $\lambda$ = `ridge`. The loss is convex and has no closed form; the second formula is a step of `newton`
    (iteratively reweighted least squares), which is the default; of many examples a part gives it start and Hessian,
    which gradients of all correct. `lbfgs` and `gd` use the whole gradient, `sgd` that of a few examples, and averages
    its second half.

    Without a penalty, data that a hyperplane separates have no finite minimiser: the longer the weights, the smaller
    the loss. As soon as weights classify every example correctly, beyond rounding, `fit` stops there, warns, and keeps
    the proof in `separation_`.

    Shapes:
        x: (points, features), y: (points,) of 0 ... classes - 1
        weight_: (features,) for two classes, else (features, classes)    bias_: scalar or (classes,)

    Learnt: `weight_`, `bias_`, `classes_`, `loss_` (the mean cross-entropy), `epochs_`, `status_` ("converged",
    "separable" or "epoch limit"), and for two classes `separation_` (a `Separation`, where it was asked for one).

    Claims: logistic.model, logistic.gradient
    Source: Cox 1958; Newton's steps as least squares: Rubin 1983; a part first: Byrd et al. 2011.
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
        self,
        x: Float[Tensor, "points features"],
        y: Int[Tensor, "points"],
        classes: int | None = None,
        sample_weight: Float[Tensor, "points"] | None = None,
    ) -> "LogisticRegression":
        """Find the weights; `classes` tells how many there are, if not all of them occur.

        An example counts as often as `sample_weight` says: 2 is the same as two copies of it.
        """
        x = validate.matrix("x", x).detach()
        y, self.classes_ = _class_numbers(x, y, classes)
        often = None if sample_weight is None else counts(sample_weight, x)
        if often is not None:
            used = often > 0
            x, y, often = x[used], y[used], often[used] * (int(used.sum()) / len(used))
        inputs, unit = within_range(x)
        inputs, mean, off, sizes = centred(inputs, self.bias)
        units = 1 if self.classes_ == 2 else self.classes_
        lr = None if self.lr is None else self.lr * unit * unit
        problem = LogisticProblem(inputs, y, off, self.bias, units, self.ridge / unit / unit, lr, sizes, often)
        self.epochs_, self.status_, self.separation_ = 0, "epoch limit", None
        solve = {
            "newton": self._newton_minimum,
            "lbfgs": self._lbfgs_minimum,
            "gd": self._gradient_descent_minimum,
            "sgd": self._sgd_minimum,
        }[self.solver]
        theta, loss = solve(problem)  # (inputs, units)
        weight = theta[: x.shape[1]]
        self.loss_ = loss - problem.ridge / 2 * float(weight.square().sum())
        bias = theta[-1] - mean @ weight if self.bias else weight.new_zeros(units)
        shape = () if units == 1 else (units,)
        self.weight_ = in_dtype((weight / unit).reshape(-1, *shape), x.dtype)
        self.bias_ = in_dtype(bias.reshape(shape), x.dtype)
        self._warn_minimum(x, y)
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

    def score(
        self,
        x: Float[Tensor, "points features"],
        y: Int[Tensor, "points"],
        sample_weight: Float[Tensor, "points"] | None = None,
    ) -> float:
        """The accuracy: the fraction of examples whose likeliest class is theirs."""
        right = (self.predict(x) == _class_numbers(x, y, self.classes_)[0]).double()
        return float((right if sample_weight is None else right * counts(sample_weight, x)).mean())

    def state_dict(self) -> dict[str, Tensor]:
        """What was learnt."""
        return {"weight": self.weight_, "bias": self.bias_} if hasattr(self, "weight_") else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        if state:
            self.weight_, self.bias_ = weight_and_bias(state)
            self.classes_ = 2 if self.weight_.ndim == 1 else self.weight_.shape[1]

    def _newton_minimum(self, problem: LogisticProblem) -> tuple[Tensor, float]:
        theta, _, loss = self._minimize_loss(problem, self.tolerance)
        return theta, loss

    def _minimize_loss(self, problem: LogisticProblem, tolerance: float) -> tuple[Tensor, Tensor, float]:
        """Whole Newton steps, halved where the loss would not fall: minimiser, the Hessian that led there, and loss.

        Of many examples a part gives the start and its Hessian. Gradients of all then correct both, as a Hessian of all
        would cost as much as several of them; it is computed where that correction is slow.
        """
        theta, hessian, pairs = problem.start(), None, list[tuple[Tensor, Tensor]]()
        part = self._sample_part(problem)
        if part is not None:
            # A step of a tenth leaves a hundredth, far less than what the part is off.
            theta, hessian, _ = self._minimize_loss(part, 0.1)
            self.status_ = "epoch limit"
        curved, last = hessian is None, torch.inf
        loss, gradient, found_hessian, _ = expansion(problem, theta, curved)
        hessian = found_hessian if hessian is None else hessian
        for epoch in range(1, self.max_epochs + 1):
            self.epochs_ = epoch
            step = newton_step(hessian, gradient, pairs)  # (inputs, units)
            slope, length = float((gradient * step).sum()), 1.0
            if not curved and slope > last / 4:  # the last step left more than half of the gradient
                curved, pairs, hessian = True, [], expansion(problem, theta)[2]
                step = newton_step(hessian, gradient, pairs)
                slope = float((gradient * step).sum())
            last = slope
            while True:
                tried = theta - length * step
                found = expansion(problem, tried, curved)
                # Near the minimum losses are equal up to their rounding, and the whole step is right.
                if found[0] <= loss * (1 + 1e-12) - 1e-4 * length * slope or length < 1e-10:
                    break
                length /= 2
            pair = tried - theta, found[1] - gradient
            theta, (loss, gradient, found_hessian, right) = tried, found
            hessian = found_hessian if curved else hessian
            pairs += [] if curved or not (pair[0] * pair[1]).sum() > 0 else [pair]
            if right and not self.ridge:  # every example is on its side: longer weights are better without end
                break
            if length * float(step.abs().max()) <= tolerance * (1 + float(theta.abs().max())):
                # A singular Hessian hides directions from the step, not from the gradient.
                vanishes = float((gradient / problem.sizes).abs().max()) <= max(tolerance, 1e-9)
                self.status_ = "converged" if vanishes else "epoch limit"
                break
        return theta, hessian, loss

    def _sample_part(self, problem: LogisticProblem) -> LogisticProblem | None:
        """So many examples that they have nearly the same minimiser, if these are but a small part of all."""
        points, enough = len(problem.x), ENOUGH * problem.start().numel()
        if points < 4 * enough:
            return None
        some = torch.randint(points, (enough,), generator=torch.Generator().manual_seed(self.seed)).to(problem.y.device)
        counts = torch.bincount(problem.y[some], minlength=self.classes_)
        if int(counts.min()) < len(problem.start()):  # a class that hardly occurs in it would drift far away
            return None
        return problem.some(some)

    def _lbfgs_minimum(self, problem: LogisticProblem) -> tuple[Tensor, float]:
        """scipy's quasi-Newton method: no Hessian as large as features times classes."""
        start, first = problem.start(), expansion(problem, problem.start(), curved=False)[1]
        # In units in which no curvature is above about 1, whatever the units of the inputs are.
        unit = (problem.bend * problem.sizes.square() + problem.penalty()).rsqrt()

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            theta = unit * torch.from_numpy(flat).to(start).reshape(start.shape)
            loss, gradient, _, _ = expansion(problem, theta, curved=False)
            return loss, (unit * gradient).cpu().numpy().ravel()

        least = self.tolerance * float((unit * first).abs().max())
        limits = {"maxiter": self.max_epochs, "maxfun": 10 * self.max_epochs, "gtol": least, "ftol": 0.0}
        flat = start.cpu().numpy().ravel()
        found: Any = minimize(value_and_gradient, flat, jac=True, method="L-BFGS-B", options=limits)
        self.epochs_ = int(found.nit)
        # The line search also ends where the loss can no longer be told from its neighbours: where the square of the
        # gradient, in these units, is about the rounding of the loss.
        rounding = 2 * (torch.finfo(torch.double).eps * max(1.0, float(found.fun))) ** 0.5
        self.status_ = "converged" if abs(found.jac).max() <= max(least, rounding) else "epoch limit"
        return unit * torch.from_numpy(found.x).to(start).reshape(start.shape), float(found.fun)

    def _gradient_descent_minimum(self, problem: LogisticProblem) -> tuple[Tensor, float]:
        """Steps against the gradient, until it is `tolerance` of the first."""
        theta, rows = problem.start(), problem.rows(problem.x)
        rows = rows if problem.often is None else rows * problem.often.sqrt()[:, None]
        most = problem.bend * float(torch.linalg.matrix_norm(rows, 2)) ** 2 / len(rows) + problem.ridge
        lr, first, begin = problem.lr or (1 / most if most else 1.0), torch.inf, torch.inf
        for epoch in range(self.max_epochs + 1):
            loss, gradient, _, right = expansion(problem, theta, curved=False)
            norm = float(gradient.norm())
            first, begin = (first, begin) if epoch else (norm, loss)
            if not loss <= begin * (1 + 1e-9):
                raise ArithmeticError(f"gd diverges with lr = {self.lr}: leave it out, or use a smaller one")
            if epoch and norm <= self.tolerance * first:
                self.status_ = "converged"
            if self.status_ == "converged" or (right and not self.ridge):
                break
            theta, self.epochs_ = theta - lr * gradient, min(epoch + 1, self.max_epochs)
        return theta, loss

    def _sgd_minimum(self, problem: LogisticProblem) -> tuple[Tensor, float]:
        """A few examples at a time, in a new order each epoch; the mean of the iterates of the second half."""
        generator = torch.Generator().manual_seed(self.seed)
        theta, total, kept = problem.start(), problem.start(), 0
        sizes = problem.rows(problem.x).square().sum(1)  # (points,)
        size = float((sizes if problem.often is None else sizes * problem.often).mean())
        most = problem.bend * size + problem.ridge
        lr = problem.lr or (1 / most if most else 1.0)
        for epoch in range(1, self.max_epochs + 1):
            self.epochs_ = epoch
            for some in torch.randperm(len(problem.x), generator=generator).split(BATCH):
                theta = theta - lr * expansion(problem.some(some), theta, curved=False)[1]
                if 2 * epoch > self.max_epochs:
                    total, kept = total + theta, kept + 1
        # Steps of the default length stay near the least loss, and that is at most the loss of no weights.
        losses = [expansion(problem, found, curved=False)[0] for found in (problem.start(), total / kept)]
        if not losses[1] <= 2 * losses[0]:
            raise ArithmeticError(f"sgd diverges with lr = {self.lr}: leave it out, or use a smaller one")
        return total / kept, losses[1]

    def _warn_minimum(self, x: Tensor, y: Tensor) -> None:
        """Why there is no minimiser, or that it lies further on."""
        if not self.ridge and self._is_separated(x, y):
            self.status_ = "separable"
            told = "the classes are separated by the weights, which would grow without end: there is no minimiser"
            warnings.warn(f"{told}; use ridge > 0", stacklevel=3)
        elif self.status_ == "converged" and not self.ridge and self._is_unbounded(x, y):
            self.status_ = "epoch limit"
            told = "a class has no example, or the classes only touch: with longer weights the loss falls further"
            warnings.warn(f"{told}; use ridge > 0", stacklevel=3)
        elif self.status_ != "converged" and self.solver != "sgd":
            told, fix = f"{self.solver} stopped after {self.epochs_} epochs before it converged", "raise max_epochs"
            if not self.ridge:
                fix = "raise max_epochs, or use ridge > 0"
            elif self.bias and len(torch.unique(y)) < self.classes_:
                told, fix = f"{told}, as a class has no example and its bias falls without end", "use bias=False"
            warnings.warn(f"{told}: {fix}", stacklevel=3)

    def _is_unbounded(self, x: Tensor, y: Tensor) -> bool:
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

    def _is_separated(self, x: Tensor, y: Tensor) -> bool:
        """Whether the learnt weights separate the classes, or else others do: then no weights have the least loss."""
        weight, bias, signs = self.weight_.double(), self.bias_.double(), 2 * y - 1
        if self.classes_ > 2:
            return _logits_separate(x, y, weight, bias)
        plane = Separation(True, weight, bias, biased=self.bias)
        if plane.verify(x, signs):
            self.separation_ = plane
        elif self.status_ != "converged" and self.solver != "sgd" and len(x) <= MOST_POINTS:
            self.separation_ = separate(x, signs, self.bias)
        return self.separation_ is not None and self.separation_.separable


def _logits_separate(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether the logit of the right class exceeds all others by more than rounding can have done."""
    x = x.double()
    z, right = x @ weight + bias, functional.one_hot(y, len(bias)).bool()
    # A sum of n terms, in any order, is wrong by less than n eps sum|terms| (Higham, section 3.1).
    rounding = (x.shape[1] + 1) * torch.finfo(torch.double).eps * (x.abs() @ weight.abs() + bias.abs())
    low = (z - rounding).masked_fill(~right, torch.inf).amin(1)
    return bool((low > (z + rounding).masked_fill(right, -torch.inf).amax(1)).all())


def _class_numbers(x: Tensor, y: Tensor, classes: int | None) -> tuple[Tensor, int]:
    if validate.tensor("y", y).shape != (len(x),) or y.is_floating_point() or y.dtype is torch.bool:
        told = f"got {y.dtype} of shape {tuple(y.shape)}" + (": use y.long()" if y.shape == (len(x),) else "")
        raise ValueError(f"y must hold an integer for each of the {len(x)} points, {told}")
    low, high = int(y.min()), int(y.max())
    found = max(high + 1, 2) if classes is None else validate.count("classes", classes, least=2)
    if low < 0 or high >= found:
        hint = ": use (y + 1) // 2" if (low, high) == (-1, 1) else ""
        raise ValueError(f"y must hold classes from 0 to {found - 1}, got {low} to {high}{hint}")
    if classes is None and high >= max(2, len(x)):
        told = f"got {high} among {len(x)} points: use torch.unique(y, return_inverse=True)[1], or say classes"
        raise ValueError(f"y must hold classes that are numbered without large gaps, {told}")
    return y.to(x.device).long(), found
