"""A Gaussian process fitted to scikit-learn's likelihood: the same kernel, the same start, L-BFGS on both sides.

Nearly all of the work is the factorisation of the Gram matrix and its inverse, at every evaluation. scikit-learn forms
the derivative of that matrix by each parameter and sums each against the inverse; we pull one weight back through the
kernel, with products of matrices. GPyTorch takes 100 steps of Adam with its exact path (Cholesky forced), as its
tutorials do. What counts is the likelihood that is reached, equal to a thousandth of a nat for each point.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.stationary_kernels import RBFKernel

FEATURES = 6
NOISE = 0.1


class Table(NamedTuple):
    """Examples and their values."""

    x: Tensor
    y: Tensor


@entry(
    "gp_fit",
    title="Fitting a Gaussian process against scikit-learn and GPyTorch",
    measures="length scales, variance and noise of largest likelihood, from the same start",
    cases={"500": "500 x 6, float64", "2000": "2,000 x 6, float64"},
    targets={"scikit-learn": 0.5, "GPyTorch, Cholesky": 0.5},
    devices="cpu",
)
def smooth_surface(case: str, device: str) -> Table:
    """A smooth function of three features of six, with noise."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(int(case), FEATURES, generator=generator, dtype=torch.float64) * 2
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    return Table(x, y - y.mean() + 0.3 * torch.randn(len(x), generator=generator, dtype=torch.float64))


@ours("lemmata")
def one_weight_for_all(data: Table) -> Callable[[], Any]:
    """Our fit."""

    def fit() -> float:
        process = GaussianProcess(RBFKernel(torch.ones(FEATURES)), noise=NOISE).fit(data.x, data.y)
        return process.log_likelihood_ / len(data.x)

    return fit


@peer("scikit-learn", needs="scikit-learn")
def a_matrix_for_each(data: Table) -> Callable[[], Any]:
    """scikit-learn's fit of the same kernel."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, y = data.x.numpy(), data.y.numpy()

    def fit() -> float:
        lengths: Any = torch.ones(FEATURES).numpy()
        kernel = ConstantKernel(1.0, (1e-10, 1e10)) * RBF(lengths, (1e-5, 1e10)) + WhiteKernel(NOISE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of length scales that end at a bound
            learnt: Any = GaussianProcessRegressor(kernel, alpha=0.0).fit(x, y)
        return learnt.log_marginal_likelihood_value_ / len(x)

    return fit


@peer("GPyTorch, Cholesky", needs="gpytorch")
def steps_of_adam(data: Table) -> Callable[[], Any]:
    """GPyTorch's exact model, 100 steps of Adam, with Cholesky's factorisation forced."""
    import gpytorch  # pyright: ignore[reportMissingImports]

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(data.x, data.y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=FEATURES))

        def forward(self, x: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def fit() -> float:
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Model(likelihood).double()
        model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = 1.0, 1.0
        likelihood.noise = NOISE
        _ = model.train(), likelihood.train()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        with gpytorch.settings.fast_computations(False, False, False):
            for _ in range(100):
                optimizer.zero_grad()
                loss = -objective(model(data.x), data.y)
                loss.backward()
                optimizer.step()
        return -float(loss.detach())

    return fit


@limit("one factorisation and one inverse for each of ten evaluations")
def factors_alone(data: Table) -> Callable[[], Any]:
    """No exact likelihood and gradient can do without."""
    with torch.no_grad():
        matrix = RBFKernel()(data.x) + NOISE * torch.eye(len(data.x), dtype=torch.float64)

    def factorise() -> None:
        for _ in range(10):
            torch.cholesky_inverse(torch.linalg.cholesky(matrix))

    return factorise


@agreement(within=1.5e-3)
def likelihood_of_a_point(result: Any) -> dict[str, float]:
    """Shifted so that the relative error of a thousandth is about a thousandth of a nat."""
    return {"nats above -1": float(result) + 1.0}
