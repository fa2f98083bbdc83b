"""Gaussian processes: agreement with scikit-learn and torch, variances, certificates, nothing stale, bad input."""

import math

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from lemmata.kernel.covariance_functions import ConstantKernel
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.gp_likelihood import gaussian_log_likelihood
from lemmata.kernel.gp_solver import EPS, factored, pivoted_cholesky
from lemmata.kernel.inner_product_kernels import LinearKernel
from lemmata.kernel.stationary_kernels import MaternKernel, PeriodicKernel, RBFKernel

PAIRS = {
    "rbf": (lambda: RBFKernel([0.7, 1.3]), lambda: kernels.RBF([0.7, 1.3])),
    "matern12": (lambda: MaternKernel(0.5, 0.8), lambda: kernels.Matern(0.8, nu=0.5)),
    "matern32": (lambda: MaternKernel(1.5, 0.8), lambda: kernels.Matern(0.8, nu=1.5)),
    "matern52": (lambda: MaternKernel(2.5, [0.8, 2.0], 3.0), lambda: 3.0 * kernels.Matern([0.8, 2.0], nu=2.5)),
    "linear": (lambda: LinearKernel(2.0, 0.25), lambda: kernels.DotProduct(0.5)),
    "sum and product": (
        lambda: 2.0 * RBFKernel(0.9) * MaternKernel(1.5, 1.1) + LinearKernel(2.0, 0.25),
        lambda: 2.0 * kernels.RBF(0.9) * kernels.Matern(1.1, nu=1.5) + kernels.DotProduct(0.5),
    ),
}


@pytest.fixture
def data():
    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(40, 2, generator=drawn, dtype=torch.float64)
    y = x[:, 0].sin() + 0.3 * x[:, 1] + 0.1 * torch.randn(40, generator=drawn, dtype=torch.float64)
    return x, y, torch.randn(9, 2, generator=drawn, dtype=torch.float64)


@pytest.mark.parametrize("name", PAIRS)
def test_scikit_learn_gives_the_same(data, name):
    (x, y, new), (ours, theirs) = data, PAIRS[name]
    process = GaussianProcess(ours(), noise=0.02).fit(x, y, optimize=False)
    known = GaussianProcessRegressor(theirs(), alpha=0.02, optimizer=None).fit(x.numpy(), y.numpy())
    mean, covariance = (torch.from_numpy(part) for part in known.predict(new.numpy(), return_cov=True))
    found = process.predict(new, covariance=True)
    assert torch.allclose(found.mean, mean, rtol=0, atol=1e-8)
    assert torch.allclose(found.covariance, covariance, rtol=0, atol=1e-8)
    assert torch.allclose(process.predict(new).variance, covariance.diagonal(), rtol=0, atol=1e-8)
    assert abs(process.log_likelihood().item() - known.log_marginal_likelihood_value_) < 1e-8
    assert process.jitter_ == 0
    assert process.certificate_ == 0


def gpytorch_kernel(name):
    """The kernel of PAIRS in GPyTorch, whose linear one has no bias of its own."""
    gpytorch = pytest.importorskip("gpytorch").kernels

    def scaled(kernel, outputscale):
        found = gpytorch.ScaleKernel(kernel).double()
        found.outputscale = outputscale
        return found

    def stretched(kernel, *length):
        kernel.double().lengthscale = torch.tensor(length, dtype=torch.float64)
        return kernel

    linear, bias = gpytorch.LinearKernel().double(), gpytorch.ConstantKernel().double()
    linear.variance, bias.constant = 1.0, torch.tensor(0.25, dtype=torch.float64)
    return {
        "rbf": stretched(gpytorch.RBFKernel(ard_num_dims=2), 0.7, 1.3),
        "matern12": stretched(gpytorch.MaternKernel(0.5), 0.8),
        "matern32": stretched(gpytorch.MaternKernel(1.5), 0.8),
        "matern52": scaled(stretched(gpytorch.MaternKernel(2.5, ard_num_dims=2), 0.8, 2.0), 3.0),
        "linear": linear + bias,
        "sum and product": scaled(stretched(gpytorch.RBFKernel(), 0.9), 2.0)
        * stretched(gpytorch.MaternKernel(1.5), 1.1)
        + linear
        + bias,
    }[name]


@pytest.mark.parametrize("name", PAIRS)
def test_gpytorch_gives_the_same(data, name):
    gpytorch = pytest.importorskip("gpytorch")
    x, y, new = data
    prior = gpytorch_kernel(name)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, noise):
            super().__init__(x, y, noise)
            self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), prior

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    level = gpytorch.likelihoods.GaussianLikelihood().double()
    level.noise = torch.tensor(0.02, dtype=torch.float64)
    model, score = Model(level), gpytorch.mlls.ExactMarginalLogLikelihood(level, Model(level))
    with gpytorch.settings.fast_computations(False, False, False), torch.no_grad():
        likelihood = 40 * score(model(x), y)  # theirs is a mean over points
        known = model.eval()(new)
        mean, covariance = known.mean, known.covariance_matrix
    process = GaussianProcess(PAIRS[name][0](), noise=0.02).fit(x, y, optimize=False)
    found = process.predict(new, covariance=True)
    assert torch.allclose(found.mean, mean, rtol=0, atol=1e-8)
    assert torch.allclose(found.covariance, covariance, rtol=0, atol=1e-8)
    assert abs(float(process.log_likelihood().detach() - likelihood)) < 1e-8
    assert [mean.sum().item(), covariance.trace().item(), float(likelihood)] == pytest.approx(RECORDED[name], abs=1e-8)


RECORDED = {  # GPyTorch 1.15.2, by the test above: the sum of the means, the trace of the covariance, the likelihood
    "rbf": [0.1214629406, 0.7748777767, -3.3550440243],
    "matern12": [0.0992126222, 4.0856845404, -32.4649704018],
    "matern32": [0.2264258712, 2.2337475192, -22.6890199126],
    "matern52": [0.2086545121, 2.4976711497, -17.9420290827],
    "linear": [0.9484713147, 0.0151339832, -111.1375231734],
    "sum and product": [0.5335643229, 4.7020544103, -33.7027312147],
}


@pytest.mark.parametrize("name", RECORDED)
def test_gpytorch_has_given_the_same(data, name):
    x, y, new = data
    process = GaussianProcess(PAIRS[name][0](), noise=0.02).fit(x, y, optimize=False)
    mean, variance, _ = process.predict(new)
    numbers = [mean.sum().item(), variance.sum().item(), process.log_likelihood().item()]
    assert numbers == pytest.approx(RECORDED[name], abs=1e-8)


@pytest.mark.parametrize("name", ["rbf", "matern52", "sum and product"])
def test_a_fit_is_at_least_as_likely_as_scikit_learns(data, name):
    (x, y, _), (ours, theirs) = data, PAIRS[name]
    process = GaussianProcess(ours(), noise=0.02).fit(x, y)
    both = kernels.ConstantKernel(1.0) * theirs() + kernels.WhiteKernel(0.02)
    known = GaussianProcessRegressor(both, alpha=0.0).fit(x.numpy(), y.numpy())
    assert process.converged_
    assert process.log_likelihood_ > known.log_marginal_likelihood_value_ - 1e-3
    assert abs(process.log_likelihood_ - process.log_likelihood(x, y).item()) < 1e-8


def test_the_likelihood_is_that_of_torchs_normal_distribution(data):
    x, y, _ = data
    process = GaussianProcess(MaternKernel(1.5, 0.8), noise=0.1, mean=0.3)
    covariance = process.kernel(x).detach() + 0.1 * torch.eye(40, dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(torch.full((40,), 0.3, dtype=torch.float64), covariance)
    assert abs(float(process.log_likelihood(x, y).detach() - normal.log_prob(y))) < 1e-10
    both = process.log_likelihood(x, torch.stack([y, 2 * y], 1))
    assert abs(float(both.detach() - normal.log_prob(y) - normal.log_prob(2 * y))) < 1e-9


def test_gradients_of_the_likelihood():
    x = torch.randn(6, 2, dtype=torch.float64)
    residual = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    noise = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    gram = RBFKernel(dtype=torch.float64)(x).detach().requires_grad_()

    def likelihood(gram, noise, residual):
        return gaussian_log_likelihood((gram + gram.mT) / 2, noise, residual)

    assert torch.autograd.gradcheck(likelihood, (gram, noise, residual))


def test_gradients_of_predictions(data):
    x, y, new = data
    process = GaussianProcess(MaternKernel(2.5), noise=0.05).fit(x, y, optimize=False)
    points = torch.cat([new[:2], x[:1]]).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: process.predict(p)[:2], (points,))
    assert not process.predict(new).mean.requires_grad


def test_nothing_stale_is_used(data):
    x, y, new = data
    process = GaussianProcess(RBFKernel(), noise=0.05).fit(x, y, optimize=False)

    def fresh():
        other = GaussianProcess(RBFKernel(), noise=0.05, mean=process.mean)
        other.load_state_dict(process.state_dict())
        return other.predict(new)

    seen = [process.predict(new).mean]
    changes = (
        lambda: process.y_.mul_(2.0),
        lambda: process.x_.data.add_(0.3),
        lambda: setattr(process.kernel, "length_scale", 2.0),
        lambda: process.kernel.log_variance.data.fill_(1.0),  # a change of which torch's version counter knows nothing
        lambda: setattr(process, "noise", 0.5),
        lambda: setattr(process, "mean", 1.0),
        lambda: process.fit(x[:20], y[:20], optimize=False),
    )
    for change in changes:
        change()
        found = process.predict(new)
        assert torch.equal(found.mean, fresh().mean)
        assert torch.equal(found.variance, fresh().variance)
        assert not any(torch.equal(found.mean, before) for before in seen)
        seen.append(found.mean)
    x.zero_()  # the caller's own tensor
    assert torch.equal(process.predict(new).mean, seen[-1])


@pytest.mark.parametrize("noise", [0.0, 1e-10])
def test_duplicates_and_near_twins_never_give_a_variance_below_zero(noise):
    x = torch.linspace(0, 1, 30, dtype=torch.float64)[:, None]
    x = torch.cat([x, x, x + 1e-9])
    y = x[:, 0].sin()
    process = GaussianProcess(RBFKernel(0.5), noise=noise).fit(x, y, optimize=False)
    mean, variance, covariance = process.predict(x, covariance=True)
    assert (variance >= 0).all()
    assert (process.predict(x).variance >= 0).all()
    assert torch.allclose(mean, y, atol=1e-5)
    assert process.jitter_ <= 4**3 * 90 * EPS
    assert (process.jitter_ > 0) == (noise == 0)
    assert torch.allclose(covariance, covariance.mT)


def test_jitter_is_the_least_of_its_steps():
    matrix = torch.ones(5, 5, dtype=torch.float64)
    assert factored(matrix, 0.1).jitter == 0
    assert factored(matrix).jitter == 4 * 5 * EPS
    assert factored(torch.eye(5, dtype=torch.float64)).jitter == 0
    with pytest.raises(ValueError, match=r"positive semidefinite, but fails with noise 0 .*points 1 and 2 are nearest"):
        factored(torch.tensor([[1.0, 0, 0], [0, 1, 1.5], [0, 1.5, 1]], dtype=torch.float64))


def test_samples_have_the_mean_and_covariance_of_the_predictions(data):
    x, y, new = data
    process = GaussianProcess(RBFKernel(), noise=0.05)
    for known in (process, process.fit(x, y, optimize=False)):
        found = known.sample(new, 20_000, torch.Generator().manual_seed(0))
        mean, variance, covariance = known.predict(new, covariance=True)
        assert (found.mean(0) - mean).abs().max() < 6 * (variance.max() / 20_000) ** 0.5
        assert (found.T.cov() - covariance).abs().max() < 6 * (2 / 20_000) ** 0.5
    both = process.fit(x, torch.stack([y, -y], 1), optimize=False)
    assert both.sample(new, 3).shape == (3, 9, 2)
    assert torch.allclose(both.predict(new).mean[:, 0], -both.predict(new).mean[:, 1])


def test_without_data_it_is_the_prior():
    prior = GaussianProcess(2.0 * RBFKernel(), mean=3.0).predict(torch.randn(4, 1))
    assert prior.mean.tolist() == [3.0] * 4
    assert torch.allclose(prior.variance, torch.full((4,), 2.0))
    assert prior.mean.dtype is torch.float32


def test_nll_is_that_of_new_observations(data):
    x, y, new = data
    process = GaussianProcess(RBFKernel(), noise=0.05).fit(x, y, optimize=False)
    mean, variance, _ = process.predict(new, noise=True)
    normal = torch.distributions.Normal(mean, variance.sqrt())
    target = torch.zeros(9, dtype=torch.float64)
    assert math.isclose(process.nll(new, target), -float(normal.log_prob(target).mean()), rel_tol=1e-12)
    assert torch.allclose(variance, process.predict(new).variance + 0.05)


# --- Without a factor ---


def test_conjugate_gradients_keep_their_certificate(data):
    x = torch.rand(200, 2, dtype=torch.float64) * 4
    y = torch.stack([x[:, 0].sin(), x[:, 1].cos()], 1) + 0.1 * torch.randn(200, 2, dtype=torch.float64)
    new = torch.cat([torch.rand(20, 2, dtype=torch.float64) * 4, x[:5]])
    exact, tiled = (
        GaussianProcess(MaternKernel(1.5, 0.7, 2.0), noise=0.01, solver=solver).fit(x, y, optimize=False)
        for solver in ("cholesky", "cg")
    )
    error = (exact.predict(new).mean - tiled.predict(new).mean).abs().max()
    assert 0 < error / 2**0.5 <= tiled.certificate_ < 1e-3
    over = tiled.predict(new).variance - exact.predict(new).variance
    assert over.min() > -1e-12  # never too small
    assert over.max() < 1e-6
    with pytest.raises(ValueError, match="covariance is not to be had"):
        tiled.predict(new, covariance=True)
    with pytest.raises(ValueError, match="optimize must be False"):
        tiled.fit(x, y)
    with pytest.raises(ValueError, match="noise must be > 0"):
        GaussianProcess(noise=0.0, solver="cg").fit(x, y, optimize=False).predict(new)


def test_more_than_fits_into_memory_is_solved_by_tiles_or_refused(data):
    x, y, new = data
    small = GaussianProcess(RBFKernel(), noise=0.1, max_memory=20_000).fit(x, y, optimize=False)
    exact = GaussianProcess(RBFKernel(), noise=0.1).fit(x, y, optimize=False)
    assert small.certificate_ > 0
    assert torch.allclose(small.predict(new).mean, exact.predict(new).mean, atol=1e-5)
    with pytest.raises(ValueError, match="optimize must be False where conjugate gradients solve for 40 points"):
        small.fit(x, y)
    with pytest.raises(ValueError, match=r"x is too large for its Gram matrix, .* use at most 17 points"):
        GaussianProcess(RBFKernel(), solver="cholesky", max_memory=20_000).fit(x, y)


def test_what_does_not_converge_is_refused():
    x = torch.rand(60, 1, dtype=torch.float64)
    process = GaussianProcess(RBFKernel(0.01), noise=1e-9, solver="cg", tolerance=1e-13)
    process.fit(x, torch.randn(60, dtype=torch.float64), optimize=False)
    with pytest.raises(ArithmeticError, match="conjugate gradients left"):
        process.predict(x)


def test_pivoted_cholesky_of_full_rank_is_the_matrix():
    x = torch.randn(12, 3, dtype=torch.float64)
    gram = RBFKernel(dtype=torch.float64)(x).detach()
    found = pivoted_cholesky(gram.diagonal(), lambda i: gram[i], 12)
    assert torch.allclose(found @ found.mT, gram, atol=1e-12)
    assert pivoted_cholesky(torch.ones(4, dtype=torch.float64), lambda i: torch.ones(4).double(), 3).shape == (4, 1)


# --- Input ---


def test_one_point_and_one_dtype():
    process = GaussianProcess().fit(torch.zeros(1, 1), torch.ones(1))
    assert process.predict(torch.zeros(1, 1)).mean.dtype is torch.float32
    assert process.predict(torch.zeros(1, 1)).variance >= 0


def test_what_is_fixed_stays(data):
    x, y, _ = data
    kernel = RBFKernel([1.0, 1.0], variance=2.0)
    kernel.log_variance.requires_grad_(False)
    process = GaussianProcess(kernel, noise=0.0)
    process.fit(x[:10], y[:10])
    assert math.isclose(kernel.variance.item(), 2.0)
    assert process.noise.item() == 0.0
    assert not torch.allclose(kernel.length_scale, torch.ones(2, dtype=torch.float64))


def test_restarts_do_not_do_worse(data):
    x, y, _ = data
    once = GaussianProcess(PeriodicKernel(3.0), noise=0.1).fit(x[:, :1], y)
    often = GaussianProcess(PeriodicKernel(3.0), noise=0.1).fit(x[:, :1], y, restarts=2)
    assert often.log_likelihood_ >= once.log_likelihood_
    assert often.evaluations_ > once.evaluations_


def test_a_fit_that_is_stopped_says_so(data):
    x, y, _ = data
    with pytest.warns(UserWarning, match="did not come to rest"):
        GaussianProcess(RBFKernel([5.0, 0.01]), noise=5.0).fit(x, y, max_steps=1)


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        (lambda x, y: GaussianProcess("rbs"), ValueError, "kernel must be one of rbf"),
        (lambda x, y: GaussianProcess(RBFKernel), TypeError, "kernel must be a CovarianceFunction or a name"),
        (lambda x, y: GaussianProcess(noise=-1.0), ValueError, "noise must be >= 0"),
        (lambda x, y: GaussianProcess(solver="lu"), ValueError, "solver must be one of"),
        (lambda x, y: GaussianProcess().fit(x, y * torch.nan), ValueError, "y must be finite, found 40 NaN values"),
        (lambda x, y: GaussianProcess().fit(x / 0, y), ValueError, "x must be finite"),
        (lambda x, y: GaussianProcess().fit(x, y[:5]), ValueError, "one row for each point"),
        (lambda x, y: GaussianProcess().fit(x[:0], y[:0]), ValueError, "x must not be empty"),
        (lambda x, y: GaussianProcess().fit(x.int(), y), TypeError, "x must be floating point"),
        (lambda x, y: GaussianProcess().log_likelihood(), RuntimeError, "has no data: call fit"),
        (lambda x, y: GaussianProcess().log_likelihood(x), ValueError, "x and y must be given together"),
        (lambda x, y: GaussianProcess().fit(x, y, False).predict(x[:, :1]), ValueError, "x must have 2 features"),
        (lambda x, y: GaussianProcess(features=3).fit(x, y), ValueError, "must have 3 features"),
        (lambda x, y: GaussianProcess(ConstantKernel()).fit(x, y, 1), TypeError, "optimize must be True or False"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input(data, bad, error, says):
    with pytest.raises(error, match=says):
        bad(*data[:2])
