"""Gaussian processes: what they are, what an RBF kernel believes, and what certainty costs."""

import math

import torch

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.judge import all_of, at_most, claim, close, law_is, lie, mean_is, probability_is
from lemmata.judge.evidence import ALPHA
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.inner_product_kernels import LinearKernel
from lemmata.kernel.stationary_kernels import RBFKernel


def normal_cdf(spread, mean=0.0):
    return lambda values: torch.special.ndtr((values - mean) / spread)


class SignedCopies(GaussianProcess):
    """Each value is normal and every pair has the covariance asked for, but the second is the first or its negative."""

    def sample(self, x, count=1, generator=None):
        prior = self.predict(x, covariance=True)
        assert prior.covariance is not None
        equal = (1 + float(prior.covariance[0, 1] / prior.covariance[0, 0])) / 2
        first = prior.covariance[0, 0].sqrt() * torch.randn(count, generator=generator, dtype=x.dtype)
        signs = 2.0 * (torch.rand(count, generator=generator) < equal).to(x.dtype) - 1
        return prior.mean + torch.stack([first, first * signs], 1)


@claim("gp.def")
@lie("every value is normal, but not every combination", process=SignedCopies)
@lie("the covariance is the mean of products", centred=0.0)
def every_combination_is_normal(draw, centred=1.0, process=GaussianProcess):
    """Combinations of two values drawn at two points, and the mean of their product."""
    x, mean = torch.tensor([[0.0], [1.0]], dtype=torch.float64), 1.5
    x = x * draw.uniform(1, low=0.8, high=1.2)
    drawn = process(RBFKernel(), mean=mean)
    apart = float(x[1])
    covariance = torch.tensor([[1.0, math.exp(-(apart**2) / 2)], [math.exp(-(apart**2) / 2), 1.0]]).double()
    weights = draw.uniform(2, low=0.8, high=1.2)
    return all_of(
        law_is(
            lambda n: drawn.sample(x, n, draw.generator) @ weights,
            normal_cdf((weights @ covariance @ weights).sqrt(), mean * weights.sum()),
            effect=0.02,
            alpha=ALPHA / 2,
        ),
        mean_is(
            lambda values: values.prod(1),
            lambda n: drawn.sample(x, n, draw.generator),
            covariance[0, 1] + centred * mean**2,
            effect=0.2,
            alpha=ALPHA / 2,
        ),
    )


def points_by_points(x):
    return x @ x.mT


def features_by_features(x):
    return x.mT @ x


def own_weights(count, inputs, generator):
    return torch.randn(count, 2, inputs, generator=generator, dtype=torch.float64)


def shared_weights(count, inputs, generator):
    return torch.randn(count, 1, inputs, generator=generator, dtype=torch.float64).expand(-1, 2, -1)


@claim("gp.linear_layer")
@lie("the covariance is a product over the points, features by features", printed="000/1", gram=features_by_features)
@lie("not divided by the number of inputs", power=0.0)
@lie("units of a layer share their weights", weights=shared_weights)
def a_linear_unit_is_a_process(draw, gram=points_by_points, power=-1.0, weights=own_weights, kernel=LinearKernel):
    """The kernel against the image of the weights' Gaussian, and units of drawn layers by themselves and in pairs."""
    n = d = 5  # as many points as features: both products have one shape
    variance = 2.0
    x = draw.until(lambda: draw.normal(n, d), lambda x: bool((x @ x.mT - x.mT @ x).abs().max() > 2))
    prior = Gaussian(torch.zeros(d).double(), variance / d * torch.eye(d).double())
    expected = variance * d**power * gram(x)
    along = draw.unit(n)

    def layers(count):
        return math.sqrt(variance / d) * weights(count, d, draw.generator) @ x.mT  # (count, units, points)

    spread = (along @ expected @ along).clamp(min=1e-12).sqrt()
    size = float(x[0].square().sum() * variance / d)
    return all_of(
        close(prior.affine(x).covariance, expected, ulps=1024),
        close(kernel(variance)(x), expected, ulps=1024),
        law_is(lambda count: layers(count)[:, 0] @ along, normal_cdf(spread), effect=0.03, alpha=ALPHA / 2),
        mean_is(lambda y: y[:, 0, 0] * y[:, 1, 0], layers, 0.0, effect=0.2 * size, alpha=ALPHA / 2),
    )


@claim("gp.rbf_prior")
@lie("the correlation falls with the distance itself", exponent=1.0)
@lie("crossings are proportional to gamma", rate=1.0)
@lie("increments have half their variance", factor=1.0)
def nearby_values_agree(draw, exponent=2.0, rate=0.5, factor=2.0, process=GaussianProcess):
    """Increments of drawn functions at two distances, their crossings of zero, and the lines of the linear kernel."""
    gamma = float(draw.uniform(1, low=2.0, high=3.0))
    drawn = process(RBFKernel((2 * gamma) ** -0.5), noise=0.0)
    apart = torch.tensor([0.0, 0.5, 1.5], dtype=torch.float64) * gamma**-0.5
    expected = factor * (1 - torch.exp(-((gamma**0.5 * apart[1:]) ** exponent)))
    grid = torch.arange(120, dtype=torch.float64)[:, None] * 0.05 * gamma**-0.5
    rough = 2**0.5 / math.pi * gamma**rate
    length = float(grid[-1])
    line = process(LinearKernel(2.0))
    points = torch.tensor([[-1.0, 2.0], [0.0, 1.0], [1.0, 0.0]]).double()

    def functions(count, x, of):
        return of.sample(x, count, draw.generator)

    lines = functions(20, points, line)
    return all_of(
        *(
            mean_is(
                lambda f, k=k: (f[:, 0] - f[:, k]).square(),
                lambda n: functions(n, apart[:, None], drawn),
                expected[k - 1],
                effect=0.12 * float(2 * (1 - torch.exp(-gamma * apart[k] ** 2))),
                alpha=ALPHA / 4,
            )
            for k in (1, 2)
        ),
        at_most(expected, factor * gamma * apart[1:] ** 2),
        mean_is(
            lambda f: (f[:, 1:].sign() != f[:, :-1].sign()).double().sum(1) / length,
            lambda n: functions(n, grid, drawn),
            rough,
            effect=0.06 * gamma**0.5,
            chunk=8192,
            alpha=ALPHA / 4,
        ),
        close(lines[:, 0] + lines[:, 2], 2 * lines[:, 1], within=1e-5),
        mean_is(
            lambda f: (f[:, 0] - f[:, 2]).square(),
            lambda n: functions(n, points, line),
            4 * factor,
            effect=1.5,
            alpha=ALPHA / 4,
        ),
    )


def counted_cholesky(matrix):
    """The factor by the textbook's loops, and how many products, quotients, differences and roots it took."""
    n = len(matrix)
    factor, count = torch.zeros_like(matrix), 0
    for j in range(n):
        rest = matrix[j:, j] - factor[j:, :j] @ factor[j, :j]
        count += 2 * j * (n - j)  # a product and a difference for each entry before this one
        factor[j:, j] = rest / rest[0].sqrt()
        count += n - j  # a root, and a quotient for every entry below it
    return factor, count


@claim("gp.pros_cons")
@lie("the cost is linear in the number of points", exponent=1.0)
@lie("one standard deviation to each side holds 95 %", reach=1.0)
@lie("the data are taken to be without noise", believed=1e-4)
def certainty_and_its_price(draw, exponent=3.0, reach=1.96, believed=0.05, process=GaussianProcess):
    """Bands on functions that were drawn from the prior, by a process that learnt no parameter; operations counted."""
    x, new, noise = 0.25 * torch.arange(12).double()[:, None] + draw.uniform(12, 1, high=0.2), draw.uniform(1, 1), 0.05
    prior = process(RBFKernel(), noise=noise)
    sizes = [32, 64, 128, 256]
    counts = torch.tensor([counted_cholesky(torch.eye(n).double())[1] for n in sizes], dtype=torch.float64)
    some = prior.kernel(x).detach() + noise * torch.eye(12).double()

    def covered(count):
        functions = process(RBFKernel(), noise=noise).sample(torch.cat([x, new]), count, draw.generator)
        y = functions[:, :12] + noise**0.5 * torch.randn(count, 12, generator=draw.generator, dtype=torch.float64)
        # one output for each function
        band = process(RBFKernel(), noise=believed).fit(x, y.mT.contiguous(), optimize=False)
        mean, variance, _ = band.predict(new)
        return (functions[:, 12] - mean[0]).abs() <= reach * variance.sqrt()

    informed = process(RBFKernel(), noise=noise).fit(x, draw.normal(12), optimize=False).predict(new).variance
    return all_of(
        probability_is(covered, math.erf(1.96 / 2**0.5), effect=0.02),
        at_most(informed, 0.2),
        at_most((counts / (torch.tensor(sizes).double() ** exponent / 3) - 1).abs(), 0.05),
        close(counted_cholesky(some)[0], torch.linalg.cholesky(some), ulps=4096),
    )
