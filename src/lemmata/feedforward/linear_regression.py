r"""Linear and ridge regression: the closed form by whichever way suits the data, and two ways that descend to it."""

import warnings
from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.feedforward.least_mean_squares import targets, widrow_hoff
from lemmata.feedforward.normal_equations import (
    BLOCK,
    column_means,
    normal_equations,
    reduced_rows,
    solved_triangle,
    within_range,
)
from lemmata.marks import system

__all__ = ["LinearRegression"]

SOLVERS = ("cholesky", "qr", "svd", "gd", "sgd")
# The normal equations square the condition number: up to here they keep half of a double's digits.
WELL_CONDITIONED = 1e4
EPS = torch.finfo(torch.double).eps


class _Problem(NamedTuple):
    """Data as they came, divided by a power of two where they are huge or tiny, and what turns them into a problem."""

    x: Tensor  # (points, features)
    y: Tensor  # (points, outputs)
    x_mean: Tensor
    y_mean: Tensor
    ridge: float
    lr: float | None
    start: Tensor  # (features, outputs)

    def centred(self) -> tuple[Tensor, Tensor]:
        return self.x.double() - self.x_mean, self.y.double() - self.y_mean


@system("regression", title="Linear and ridge regression", kind="estimator")
class LinearRegression:
    r"""The affine function with the least mean squared error, and with `ridge` > 0 a penalty on its weights.

    $$ \min_{w,\,b}\ \frac1{2s}\|Xw + b - y\|^2 + \frac\lambda2\|w\|^2, \qquad
       w = (X_c^\top X_c + s\lambda I)^{-1} X_c^\top y_c, \qquad b = \bar y - \bar x^\top w $$

    with $\lambda$ = `ridge` and centred data $X_c, y_c$; without `bias` the data stay as they are. There are five ways
    to the minimiser: `cholesky` solves the normal equations, and hands over to `qr` where their condition would cost
    more than half of the digits; `qr` factorises the data; `svd` splits them by singular values; `gd` descends along
    the gradient; `sgd` takes one example at a time (`widrow_hoff`) and averages the second half of its iterates.

    Where the columns are dependent and nothing is penalised, many weights are equally good: a warning says so, and the
    shortest are taken, $w = X_c^+ y_c$. A step length with which `gd` or `sgd` diverges is an ArithmeticError.

    Shapes:
        x: (points, features), y: (points,) or (points, outputs)
        weight_: (features,) or (features, outputs)    bias_: scalar or (outputs,)

    Learnt: `weight_`, `bias_`; `rank_` of the centred data, `condition_` (ratio of the extreme singular values of what
    was solved, infinite where the weights are not unique), `residual_norm_` $= \|Xw + b - y\|$, `solver_` (the way that
    was taken in the end), and `epochs_` of a descent. `score` is the part of the variance that is explained.

    Claims: regression.model, regression.ridge, regression.ols, regression.pseudoinverse, regression.linear_model,
        regression.gradient, regression.gaussian_noise, risk.validation
    Source: Gauss 1809; Hoerl and Kennard 1970; Björck 1996, Numerical Methods for Least Squares Problems.
    Differs: scikit-learn's Ridge penalises a sum of squares: its `alpha` is $s\lambda$. Everything is solved in
        float64 on the device of x (`sgd`: on the CPU) and returned in the dtype of x.

    >>> x, y = torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([1.0, 3.0, 5.0, 7.0])
    >>> line = LinearRegression().fit(x, y)
    >>> line.weight_, line.bias_, line.rank_
    (tensor([2.]), tensor(1.), 1)
    >>> LinearRegression(ridge=1.25).fit(x, y).weight_
    tensor([1.])
    """

    weight_: Tensor
    bias_: Tensor
    rank_: int
    condition_: float
    residual_norm_: float
    solver_: str
    epochs_: int

    def __init__(
        self,
        ridge: float = 0.0,
        bias: bool = True,
        solver: str = "cholesky",
        lr: float | None = None,
        max_epochs: int | None = None,
        tolerance: float = 1e-10,
        seed: int = 0,
    ) -> None:
        self.ridge = validate.number("ridge", ridge, least=0.0)
        self.bias = validate.flag("bias", bias)
        self.solver = validate.one_of("solver", solver, SOLVERS)
        self.lr = None if lr is None else validate.positive("lr", lr)
        usual = {"gd": 10_000, "sgd": 100}.get(solver, 1)
        self.max_epochs = usual if max_epochs is None else validate.count("max_epochs", max_epochs)
        self.tolerance = validate.positive("tolerance", tolerance)
        self.seed = validate.count("seed", seed, least=0)

    def __repr__(self) -> str:
        return f"LinearRegression(ridge={self.ridge}, bias={self.bias}, solver={self.solver!r})"

    def fit(
        self,
        x: Float[Tensor, "points features"],
        y: Float[Tensor, "points *outputs"],
        weight: Float[Tensor, "features *outputs"] | None = None,
        sample_weight: Float[Tensor, "points"] | None = None,
    ) -> "LinearRegression":
        """Find the weights; `weight` is where a descent starts (default 0).

        An example counts as often as `sample_weight` says: 2 is the same as two copies of it.
        """
        x = validate.matrix("x", x).detach()
        y = targets(x, y)
        inputs, x_unit = within_range(x)
        values, y_unit = within_range(y.reshape(len(y), -1))  # (points, outputs)
        centre, means = self.bias, None
        if sample_weight is not None:
            inputs, values, means = _weighted_data(inputs, values, counts(sample_weight, x), self.bias)
            centre = False  # they are centred already
        equations = normal_equations(inputs, values, centre) if self.solver == "cholesky" else None
        x_mean, y_mean = (side.new_zeros(()).double() for side in (inputs, values))
        if centre:
            x_mean, y_mean = equations[2:] if equations else (column_means(inputs), column_means(values))
        start = inputs.new_zeros(x.shape[1], values.shape[1], dtype=torch.double)
        if weight is not None:
            weight = validate.tensor("weight", weight).to(x)
            fitting = validate.fits("weight", weight, (x.shape[1], *y.shape[1:]), like=x, whose="x and y")
            start = start + (fitting.detach() * (x_unit / y_unit)).reshape(start.shape)
        lr = None if self.lr is None else self.lr * x_unit * x_unit
        problem = _Problem(inputs, values, x_mean, y_mean, self.ridge / x_unit / x_unit, lr, start)
        found = self._solve_equations(problem, equations)  # (features, outputs)
        x_mean, y_mean = means or (x_mean, y_mean)
        bias = (y_mean - x_mean @ found) if self.bias else found.new_zeros(found.shape[1])
        self.weight_ = in_dtype((found * (y_unit / x_unit)).reshape(x.shape[1], *y.shape[1:]), x.dtype)
        self.bias_ = in_dtype((bias * y_unit).reshape(y.shape[1:]), x.dtype)
        answer = affine(x, self.weight_, self.bias_)  # (points,) or (points, outputs)
        self.residual_norm_ = float((answer / y_unit - y / y_unit).double().norm()) * y_unit
        return self

    def predict(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points *outputs"]:
        r"""$Xw + b$."""
        if not hasattr(self, "weight_"):
            raise RuntimeError("this LinearRegression is not fitted: call fit(x, y) first")
        x = validate.last_axis("x", validate.matrix("x", x), len(self.weight_))
        return affine(x, self.weight_, self.bias_)  # (points,) or (points, outputs)

    def score(
        self,
        x: Float[Tensor, "points features"],
        y: Float[Tensor, "points *outputs"],
        sample_weight: Float[Tensor, "points"] | None = None,
    ) -> float:
        r"""The part of the variance that is explained, $R^2 = 1 - \|y - \hat y\|^2 / \|y - \bar y\|^2$.

        Of several outputs it is the mean. Where y is constant it is 1 if every answer is right, and else 0.
        """
        answers = self.predict(x).double()
        y = targets(x, y).double()
        if y.shape != answers.shape:
            raise ValueError(f"y must have the shape of the answers, {tuple(answers.shape)}, got {tuple(y.shape)}")
        y, answers = (part.reshape(len(y), -1) for part in (y, answers))  # (points, outputs)
        often = torch.ones_like(y[:, :1]) if sample_weight is None else counts(sample_weight, x)[:, None]
        unit = within_range(y)[1]
        y, error = y / unit, answers / unit - y / unit
        spread = (often * (y - (often * y).mean(0)).square()).sum(0)
        missed = (often * error.square()).sum(0)
        explained = torch.where(spread > 0, 1 - missed / spread, (missed == 0).double())
        return float(explained.mean())

    def state_dict(self) -> dict[str, Tensor]:
        """What was learnt."""
        return {"weight": self.weight_, "bias": self.bias_} if hasattr(self, "weight_") else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        if state:
            self.weight_, self.bias_ = weight_and_bias(state)

    def _solve_equations(
        self, problem: _Problem, equations: tuple[Tensor, ...] | None
    ) -> Float[Tensor, "features outputs"]:
        (points, features), ridge = problem.x.shape, len(problem.x) * problem.ridge
        self.solver_, self.epochs_ = self.solver, 0
        if equations is not None:
            gram, moment = equations[:2]  # (features, features), (features, outputs)
            squares = torch.linalg.eigvalsh(gram).flip(0)
            if squares[-1] * WELL_CONDITIONED**2 > squares[0]:
                self._note_rank(squares.sqrt(), (points, features), ridge)
                gram.diagonal().add_(ridge)
                return torch.cholesky_solve(moment, torch.linalg.cholesky(gram))
            self.solver_ = "qr"
        x, y = problem.centred()
        small, aim = reduced_rows(x, y)  # (at most features, features), (as many, outputs)
        left, values, right = torch.linalg.svd(small, full_matrices=False)
        self._note_rank(values, (points, features), ridge)
        if self.solver_ == "gd":
            # The triangle has the gradients of the data, whatever their number.
            root = points**0.5
            return self._descend_full_gradient(small / root, aim / root, values / root, problem)
        if self.solver_ == "sgd":
            return self._descend_one_by_one(x, y, problem)
        if self.solver_ == "qr" and self.rank_ == features:
            return solved_triangle(small, aim, ridge)
        self.solver_ = "svd"
        if not ridge and self.rank_ < features:
            told = f"x has rank {self.rank_} and {features} features, so that the weights are not unique"
            warnings.warn(f"{told}: the shortest are taken; leave columns out, or use ridge > 0", stacklevel=3)
        kept = torch.arange(len(values), device=x.device) < self.rank_
        gains = torch.where(kept, values / torch.where(kept, values.square() + ridge, 1.0), 0.0)
        return right.mT @ (gains[:, None] * (left.mT @ aim))

    def _note_rank(self, values: Tensor, shape: tuple[int, int], ridge: float) -> None:
        """Rank and condition from the singular values, the largest first."""
        large = float(values[0])
        # What rounding leaves of a dependent column is below this.
        self.rank_ = int((values > large * max(shape) * EPS).sum())
        least = float(values[-1]) ** 2 * (self.rank_ == shape[1]) + ridge
        self.condition_ = ((large**2 + ridge) / least) ** 0.5 if least > 0 else float("inf")

    def _descend_full_gradient(self, x: Tensor, y: Tensor, values: Tensor, problem: _Problem) -> Tensor:
        r"""$w \leftarrow w - \eta\,(X^\top(Xw - y)/s + \lambda w)$ until the gradient is `tolerance` of the first."""
        # Directions without data keep their start, and have no say in the step.
        low, high = (float(value) ** 2 + problem.ridge for value in (values[max(self.rank_, 1) - 1], values[0]))
        lr, w = problem.lr or (2 / (low + high) if high else 1.0), problem.start
        first = norm = torch.inf
        rounding = EPS * len(x) * (high * float(w.norm()) + float(values[0]) * float(y.norm()))
        for epoch in range(self.max_epochs + 1):
            gradient = x.mT @ (x @ w - y) + problem.ridge * w
            norm = float(gradient.norm())
            first = first if epoch else norm
            # Below 2 / high every component of the gradient shrinks: growth beyond rounding proves a larger step.
            if not norm <= first * (1 + 1e-6) + rounding:
                most = f"2 / {high:.4g} = {2 / high:.4g}, as the largest eigenvalue of the Hessian is {high:.4g}"
                raise ArithmeticError(f"gd diverges with lr = {lr:.4g}: use less than {most}")
            if norm <= self.tolerance * first + rounding and (epoch or not norm):
                break
            if epoch < self.max_epochs:
                w, self.epochs_ = w - lr * gradient, epoch + 1
        if norm > self.tolerance * first + rounding:
            told = f"gd stopped after {self.max_epochs} epochs with {norm / first:.1e} of its first gradient"
            warnings.warn(f"{told}: raise max_epochs, or use solver='qr'", stacklevel=4)
        return w

    def _descend_one_by_one(self, x: Tensor, y: Tensor, problem: _Problem) -> Tensor:
        """One example after another, drawn uniformly; the mean of the iterates in the second half of the epochs."""
        most = float(x.square().sum(1).max()) + problem.ridge
        lr = problem.lr or (0.5 / most if most else 1.0)
        generator = torch.Generator().manual_seed(self.seed)
        w, x, y = problem.start.cpu(), x.cpu(), y.cpu()
        total, kept = torch.zeros_like(w), 0
        for epoch in range(self.max_epochs):
            order = torch.randint(len(x), (len(x),), generator=generator)
            for some in order.split(BLOCK):
                path = widrow_hoff(x, y, some, lr, w, problem.ridge)[1:]  # (steps, features, outputs)
                w = path[-1]
                if epoch >= self.max_epochs // 2:
                    total, kept = total + path.sum(0), kept + len(path)
            if not torch.isfinite(w).all():
                break
        self.epochs_, mean = self.max_epochs, total / max(kept, 1)

        def loss(w: Tensor) -> float:
            return float((x @ w - y).square().sum()) / len(x) + problem.ridge * float(w.square().sum())

        # A step of 1 / max |x|^2 fits the last example at most exactly, which about doubles the loss of all.
        if not loss(w) < torch.inf or not loss(mean) <= 4 * max(loss(problem.start.cpu()), loss(torch.zeros_like(w))):
            raise ArithmeticError(f"sgd diverges with lr = {lr:.4g}: use at most 1 / max |x|^2 = {1 / most:.4g}")
        return mean.to(problem.x.device)


# --- What all ways share ---


def counts(sample_weight: Tensor, x: Tensor) -> Float[Tensor, "points"]:
    """How often each example counts, divided by the mean of that: in the mean once."""
    often = validate.vector("sample_weight", sample_weight, len(x)).detach().to(x.device).double()
    largest = often.max()
    if bool((often < 0).any()) or not largest > 0:
        raise ValueError(f"sample_weight must be >= 0, and not 0 everywhere, got {float(often.min()):g} to {largest:g}")
    often = often / largest
    return often / often.mean()


def in_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """What was learnt in float64, in the dtype of the data."""
    stored = values.to(dtype)
    if not stored.isfinite().all():
        told = f"the weights are as large as {float(values.abs().max()):.3g}, which {dtype} does not hold"
        raise ArithmeticError(f"{told}: use x.double(), or scale y down")
    return stored


def weight_and_bias(state: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Copies of what an estimator learnt."""
    if set(state) != {"weight", "bias"}:
        raise ValueError(f"state must hold weight and bias, got {', '.join(map(str, state))}")
    return state["weight"].clone(), state["bias"].clone()


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """In the dtype of x; half precision is multiplied in float32, for which every processor has an instruction."""
    wide = x if x.dtype is torch.double else x.float()
    return (wide @ weight.to(wide) + bias.to(wide)).to(x.dtype)


def _weighted_data(x: Tensor, y: Tensor, often: Tensor, bias: bool) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Centred data whose rows are as long as the root of how often they count, and the means."""
    means = tuple((often @ side.double()) / len(often) * bias for side in (x, y))
    x, y = (often.sqrt()[:, None] * (side.double() - mean) for side, mean in zip((x, y), means, strict=True))
    return x, y, (means[0], means[1])
