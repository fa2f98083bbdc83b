r"""Gaussian processes: a distribution over functions, conditioned on data exactly."""

import math
import warnings
from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.limits import memory_limit
from lemmata.kernel.covariance_functions import CovarianceFunction, Positive
from lemmata.kernel.gp_likelihood import gaussian_log_likelihood, maximised
from lemmata.kernel.gp_solver import conjugate_gradients, factored, pivoted_cholesky
from lemmata.kernel.kernel_regression import check_gram_memory, gram_bytes
from lemmata.kernel.named_kernels import covariance_function
from lemmata.marks import system

__all__ = ["GaussianPrediction", "GaussianProcess"]

BLOCK = 1024  # new points that are looked at together
FIT_COPIES, SOLVE_COPIES = 8, 3  # Gram matrices that are held at once
RANK = 100  # of the preconditioner
CG_STEPS = 1000  # what takes more is refused: a factorisation would have been quicker


class GaussianPrediction(NamedTuple):
    """The mean and the variance at each point, and the covariance of all points if it was asked for."""

    mean: Float[Tensor, "new *outputs"]
    variance: Float[Tensor, "new"]
    covariance: Float[Tensor, "new new"] | None


class _State(NamedTuple):
    """What was solved, and copies of everything that it was solved for."""

    key: tuple[Tensor, ...]
    weight: Tensor  # (points, outputs)
    factor: Tensor | None
    low_rank: Tensor | None
    jitter: float
    certificate: float


@system("gp", title="Gaussian process", kind="estimator")
class GaussianProcess:
    r"""A random function of which every finite set of values is jointly normal, given noisy values of it.

    $$ f \sim \mathcal{GP}(m, k), \quad y_i = f(x_i) + \varepsilon_i, \quad \varepsilon_i \sim \mathcal N(0, \sigma^2),
       \qquad \mathbb E[f(x) \mid y] = m + k(x)^\top(K + \sigma^2 I)^{-1}(y - m), \qquad
       \operatorname{Var}[f(x) \mid y] = k(x, x) - k(x)^\top(K + \sigma^2 I)^{-1}k(x) $$

    `fit` moves the parameters of the kernel and the `noise` (a variance; 0 stays 0) to the largest marginal likelihood
    by L-BFGS, from where they are and from `restarts` other places; with optimize=False it keeps them. The kernel is
    one of `CovarianceFunction`, or its name, such as "rbf + linear"; with `features` it has a length scale for each.
    Parameters and data may be changed at any time: nothing that was computed for others is used again.

    Everything is solved in float64 by Cholesky's factorisation; `jitter_` says what was added to the diagonal, which is
    0 unless rounding asks for more. Where the Gram matrix does not fit into `max_memory` bytes (default: half of what
    is free), or with solver="cg", the system is solved by preconditioned conjugate gradients, tile by tile, with
    parameters as they are; `certificate_` then bounds the error of every mean, in units of the standard deviation that
    the process has there before it has seen data, and variances are upper bounds. What does not reach `tolerance` is
    refused.

    Shapes:
        x: (points, features), y: (points,) or (points, outputs), which share the kernel
        predict: mean (new,) or (new, outputs), variance (new,), covariance (new, new)

    Learnt: `x_`, `y_`, the parameters; `log_likelihood_`, `evaluations_`, `converged_` of the fit.

    Claims: gp.kernel_regression, gp.def, gp.rbf_prior, gp.pros_cons
    Source: Rasmussen and Williams 2006, algorithm 2.1; Wang et al. 2019 (conjugate gradients).
    Differs: predictions are those of the function; `noise=True` adds the noise. scikit-learn's `alpha` is `noise` with
        optimize=False, and its WhiteKernel a noise that is learnt.

    >>> process = GaussianProcess("rbf", noise=1e-6).fit(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]), False)
    >>> mean, variance, _ = process.predict(torch.tensor([[0.0], [1.0], [9.0]]))
    >>> mean.round(decimals=4) + 0.0, variance.round(decimals=4)
    (tensor([0., 1., 0.]), tensor([0., 0., 1.]))
    """

    noise = Positive()
    log_likelihood_: float
    evaluations_: int
    converged_: bool

    def __init__(
        self,
        kernel: CovarianceFunction | str = "rbf",
        noise: float = 0.01,
        mean: float = 0.0,
        features: int | None = None,
        solver: str = "auto",
        tolerance: float = 1e-4,
        max_memory: int | None = None,
    ) -> None:
        if not isinstance(kernel, CovarianceFunction | str):
            raise TypeError(f"kernel must be a CovarianceFunction or a name, got {type(kernel).__name__}")
        made = covariance_function(kernel, features) if isinstance(kernel, str) else kernel
        self.kernel = made.double()
        level = torch.tensor(validate.number("noise", noise, least=0), dtype=torch.float64)
        self.log_noise = nn.Parameter(level.log(), requires_grad=noise > 0)
        self.mean = validate.finite_number("mean", mean)
        self.solver = validate.one_of("solver", solver, ("auto", "cholesky", "cg"))
        self.tolerance = validate.positive("tolerance", tolerance)
        self.max_memory = max_memory
        self.x_: Tensor | None = None
        self.y_: Tensor | None = None
        self._solved: _State | None = None

    def __repr__(self) -> str:
        return f"GaussianProcess({self.kernel}, noise={float(self.noise.detach()):.4g}, mean={self.mean:g})"

    # --- Learning ---

    def fit(
        self,
        x: Float[Tensor, "points features"],
        y: Float[Tensor, "points *outputs"],
        optimize: bool = True,
        restarts: int = 0,
        max_steps: int = 200,
        seed: int = 0,
    ) -> "GaussianProcess":
        """Keep the data, and move the parameters to the largest likelihood unless optimize=False."""
        x, y = self._checked_data(x, y)
        validate.flag("optimize", optimize)
        validate.count("restarts", restarts, least=0)
        validate.count("max_steps", max_steps)
        learnt = [p for p in (*self.kernel.parameters(), self.log_noise) if p.requires_grad]
        if optimize and learnt:
            self._check_fit(x)
            self._move_to(x)
            wide, residual = x.double(), self._target_residual(y)
            found = maximised(
                lambda: gaussian_log_likelihood(self.kernel(wide), self.noise, residual),
                learnt, len(x), max_steps, restarts, validate.count("seed", seed, least=0),
            )  # fmt: skip
            self.log_likelihood_, self.evaluations_, self.converged_ = found
            if not found.converged:
                told = f"the fit of {len(learnt)} parameters did not come to rest after {found.evaluations} evaluations"
                warnings.warn(f"{told}: raise max_steps, or rescale x", stacklevel=2)
        self.x_, self.y_, self._solved = x.clone(), y.clone(), None
        return self

    def log_likelihood(
        self, x: Float[Tensor, "points features"] | None = None, y: Float[Tensor, "points *outputs"] | None = None
    ) -> Float[Tensor, ""]:
        """The marginal log-likelihood of these data, or of those of `fit`, with gradients of the parameters."""
        if (x is None) != (y is None):
            raise ValueError("x and y must be given together: give both, or none for the data of fit")
        x, y = self._checked_data(*(self._fitted_data() if x is None or y is None else (x, y)))
        check_gram_memory(len(x), self.max_memory, SOLVE_COPIES, x.device)
        self._move_to(x)
        return gaussian_log_likelihood(self.kernel(x.double()), self.noise, self._target_residual(y))

    # --- Answers ---

    def predict(
        self, x: Float[Tensor, "new features"], covariance: bool = False, noise: bool = False
    ) -> GaussianPrediction:
        """Mean and variance of the function at new points, given the data if there are any; with `noise`, of y there.

        With `covariance`, that of all pairs of points too. No variance is below 0, and none above that without data.
        Where x asks for them, mean and variance have gradients; those of conjugate gradients have none.
        """
        x = self._checked_new(x)
        level = self.noise.detach() if noise else torch.zeros((), dtype=torch.float64)
        if covariance:
            mean, joint = self._mean_and_covariance(x)
            joint.diagonal().copy_(joint.diagonal().clamp(min=0.0) + level.to(joint.device))
            return GaussianPrediction(mean.to(x.dtype), joint.diagonal().to(x.dtype), joint.to(x.dtype))
        with torch.set_grad_enabled(x.requires_grad):
            means, variances = zip(*(self._mean_and_variance(block.double()) for block in x.split(BLOCK)), strict=True)
        variance = torch.cat(variances) + level.to(x.device)
        return GaussianPrediction(torch.cat(means).to(x.dtype), variance.to(x.dtype), None)

    def nll(self, x: Float[Tensor, "new features"], y: Float[Tensor, "new *outputs"]) -> float:
        """The mean negative log-likelihood of new observations, each by itself."""
        x, y = self._checked_data(x, y)
        mean, variance, _ = self.predict(x.double(), noise=True)
        spread = variance.reshape(-1, *[1] * (y.ndim - 1)).clamp(min=torch.finfo(torch.float64).tiny)
        return float((0.5 * (y.double() - mean).square() / spread + 0.5 * (2 * math.pi * spread).log()).mean())

    def sample(
        self, x: Float[Tensor, "new features"], count: int = 1, generator: torch.Generator | None = None
    ) -> Float[Tensor, "count new *outputs"]:
        """Functions drawn from the process at these points, given the data if there are any."""
        x = self._checked_new(x)
        validate.count("count", count)
        mean, joint = self._mean_and_covariance(x)  # (new, *outputs), (new, new)
        # A posterior covariance is what is left of the prior: it is as uncertain as that.
        factor = factored(joint, size=float(self.kernel.diagonal(x.double()).detach().max())).cholesky
        drawn = torch.randn(count, *mean.shape, generator=generator, dtype=torch.float64, device=x.device)
        away = torch.einsum("ij,cj...->ci...", factor, drawn)
        return (mean + away).to(x.dtype)

    @property
    def jitter_(self) -> float:
        """What was added to the diagonal beside the noise for the factorisation to exist."""
        return self._current_state().jitter

    @property
    def certificate_(self) -> float:
        """A bound on the error of each mean, over the standard deviation there without data; 0 with a factor."""
        return self._current_state().certificate

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters, and the data that predictions come from."""
        found = {f"kernel.{name}": value for name, value in self.kernel.state_dict().items()}
        found["log_noise"] = self.log_noise.detach().clone()
        return found if self.x_ is None or self.y_ is None else found | {"x": self.x_, "y": self.y_}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        self.kernel.load_state_dict({name[7:]: value for name, value in state.items() if name.startswith("kernel.")})
        with torch.no_grad():
            self.log_noise.copy_(state["log_noise"])
        self.x_, self.y_ = (state[name].clone() if name in state else None for name in ("x", "y"))
        self._solved = None

    # --- The algebra ---

    def _mean_and_variance(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (new, *outputs) and variance (new,) of the function."""
        prior = self.kernel.diagonal(x)
        if self.x_ is None:
            return torch.full_like(prior, self.mean), prior
        state = self._current_state()
        if state.factor is None:
            x, prior = x.detach(), prior.detach()
        cross = self.kernel(x, self.x_.double())  # (new, points)
        mean = self.mean + (cross @ state.weight).reshape(len(x), *self._fitted_data()[1].shape[1:])
        if state.factor is None:
            mean, columns = mean.detach(), cross.detach().mT.contiguous()
            solved = self._iterated_solution(columns, prior.clamp(min=0.0).sqrt(), state.low_rank)
            # Of any s, 2 k's - s'As is at most k'A^-1 k: a variance is never too small for having stopped early.
            explained = (solved * (2 * columns - self._gram_product(solved))).sum(0)
        else:
            explained = torch.linalg.solve_triangular(state.factor, cross.mT, upper=False).square().sum(0)
        return mean, (prior - explained).clamp(min=0.0)

    def _mean_and_covariance(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (new, *outputs) and covariance (new, new) of the function, in float64."""
        check_gram_memory(len(x), self.max_memory, SOLVE_COPIES, x.device)
        wide = x.double()
        joint = self.kernel(wide).detach()
        if self.x_ is None:
            return torch.full((len(x),), self.mean, dtype=torch.float64, device=x.device), joint
        state = self._current_state()
        cross = self.kernel(wide, self.x_.double()).detach()
        mean = self.mean + (cross @ state.weight).reshape(len(x), *self._fitted_data()[1].shape[1:])
        if state.factor is None:
            raise ValueError(
                "covariance is not to be had from conjugate gradients: give more max_memory, or fewer points"
            )
        half = torch.linalg.solve_triangular(state.factor, cross.mT, upper=False)  # (points, new)
        return mean, joint - half.mT @ half

    def _current_state(self) -> _State:
        """What the data and the parameters as they are now ask for; computed again if any of them has changed."""
        x, y = self._fitted_data()
        self._move_to(x)
        key = (x, y, torch.tensor(self.mean), *(p.detach() for p in (*self.kernel.parameters(), self.log_noise)))
        if self._solved is not None and _same_tensors(self._solved.key, key):
            return self._solved
        residual = self._target_residual(y).reshape(len(y), -1)
        kept = tuple(part.clone() for part in key)
        if self._by_factor(x):
            gram, noise = self.kernel(x.double()).detach(), float(self.noise.detach())
            factor, jitter = factored(gram, noise)
            weight = torch.cholesky_solve(residual, factor)
            self._solved = _State(kept, weight, factor, None, jitter, 0.0)
        else:
            self._solved = self._certified_state(kept, x.double(), residual)
        return self._solved

    def _certified_state(self, key: tuple[Tensor, ...], x: Tensor, residual: Tensor) -> _State:
        noise = float(self.noise.detach())
        if noise <= 0:
            raise ValueError("noise must be > 0 for conjugate gradients, got 0: it is what their certificate rests on")
        diagonal = self.kernel.diagonal(x).detach()
        low_rank = pivoted_cholesky(diagonal, lambda i: self.kernel(x, x[i : i + 1]).detach()[:, 0], RANK)
        # |k' A^-1 r| <= |A^-1/2 k| |A^-1/2 r| <= sqrt(k(x, x)) |r| / sigma
        aim = self.tolerance * noise**0.5 * residual.square().mean(0).sqrt() / float(diagonal.max()) ** 0.5
        solved = conjugate_gradients(
            self._gram_product, residual, low_rank, noise, float(diagonal.max()), aim, min(CG_STEPS, 2 * len(x))
        )
        return _State(key, solved.solution, None, low_rank, 0.0, float(solved.residual.max()) / noise**0.5)

    def _iterated_solution(self, right: Tensor, sizes: Tensor, low_rank: Tensor | None) -> Tensor:
        noise, size = float(self.noise.detach()), float(sizes.max()) ** 2
        assert low_rank is not None
        aim = self.tolerance * noise**0.5 * sizes
        return conjugate_gradients(
            self._gram_product, right, low_rank, noise, size, aim, min(CG_STEPS, 2 * len(right))
        ).solution

    def _gram_product(self, columns: Tensor) -> Tensor:
        """(K + noise) times columns, a tile of rows at a time; nothing of K is kept."""
        x = self._fitted_data()[0].double()
        rows = max(1, memory_limit(self.max_memory) // (8 * SOLVE_COPIES * len(x)))
        with torch.no_grad():
            found = torch.cat([self.kernel(tile, x) @ columns for tile in x.split(min(rows, BLOCK))])
            return found + self.noise * columns

    # --- What is asked, and of what ---

    def _by_factor(self, x: Tensor) -> bool:
        return self.solver == "cholesky" or (self.solver == "auto" and self._fits_memory(x, SOLVE_COPIES))

    def _fits_memory(self, x: Tensor, copies: int) -> bool:
        needed, limit = gram_bytes(len(x), self.max_memory, copies, x.device)
        return needed <= limit

    def _check_fit(self, x: Tensor) -> None:
        if self.solver != "cg" and self._fits_memory(x, FIT_COPIES):
            return
        if self.solver == "cholesky":
            check_gram_memory(len(x), self.max_memory, FIT_COPIES, x.device)
        most = "fit the parameters on a part of x, then call fit(x, y, optimize=False)"
        raise ValueError(f"optimize must be False where conjugate gradients solve for {len(x):,} points: {most}")

    def _fitted_data(self) -> tuple[Tensor, Tensor]:
        if self.x_ is None or self.y_ is None:
            raise RuntimeError("this GaussianProcess has no data: call fit(x, y) first")
        return self.x_, self.y_

    def _checked_data(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x, y = validate.matrix("x", x).detach(), validate.floating("y", y).detach()
        if y.ndim not in (1, 2) or len(y) != len(x):
            shapes = f"x {tuple(x.shape)} and y {tuple(y.shape)}"
            raise ValueError(f"y must be (points,) or (points, outputs) with one row for each point, got {shapes}")
        return x, y.to(x.device)

    def _checked_new(self, x: Tensor) -> Tensor:
        x = validate.matrix("x", x)
        if self.x_ is not None:
            validate.last_axis("x", x, self.x_.shape[1])
            x = x.to(self.x_.device)
        self._move_to(x)
        return x

    def _move_to(self, x: Tensor) -> None:
        if self.log_noise.device != x.device:
            self.kernel.to(x.device)
            self.log_noise.data = self.log_noise.data.to(x.device)

    def _target_residual(self, y: Tensor) -> Tensor:
        return y.double() - self.mean


def _same_tensors(kept: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> bool:
    return len(kept) == len(now) and all(
        a.shape == b.shape and a.device == b.device and torch.equal(a, b) for a, b in zip(kept, now, strict=True)
    )
