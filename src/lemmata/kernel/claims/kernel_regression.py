"""Kernel regression is the mean of a Gaussian process given noise-free values of it."""

import torch

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.judge import all_of, claim, close, lie, mean_is
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.kernel_regression import KernelRegression
from lemmata.kernel.stationary_kernels import RBFKernel


def linear(left, right):
    return left @ right.mT


def not_inverted(matrix):
    return matrix / torch.linalg.matrix_norm(matrix, 2)


@claim("gp.kernel_regression")
@lie("the variance grows by what the data explain", sign=1.0)
@lie("the covariances are weights themselves", inverse=not_inverted)
@lie("values are averaged, not interpolated", ridge=0.5)
def the_posterior_of_a_process(
    draw, sign=-1.0, inverse=torch.linalg.pinv, ridge=0.0, regression=KernelRegression, process=GaussianProcess
):
    """Against conditioning a Gaussian, squared errors on drawn functions, and a kernel whose matrix is singular."""
    far = lambda points: bool((torch.cdist(points, points) + 9 * torch.eye(7).double() > 0.5).all())  # noqa: E731
    x = draw.until(lambda: draw.uniform(7, 2, high=4.0), far)
    x, new, y = x[:5], x[5:], draw.normal(5)
    kernel = RBFKernel()
    joint = torch.exp(-torch.cdist(torch.cat([x, new]), torch.cat([x, new])).square() / 2)
    given = Gaussian(torch.zeros(7).double(), joint).condition(range(5), y)
    weights = joint[5:, :5] @ inverse(joint[:5, :5])
    variance = 1 + sign * (weights * joint[5:, :5]).sum(1)
    fitted = regression(kernel, ridge).fit(x, y)
    answers = process(RBFKernel(), noise=ridge).fit(x, y, optimize=False).predict(new)
    twice = draw.normal(3, 2).repeat(2, 1)
    slope = twice[0]
    singular = regression(linear, ridge).fit(twice, twice @ slope)

    def squared_error(functions):
        answer = regression(kernel, ridge).fit(x, functions[:, :5].mT.contiguous()).predict(new)
        return (answer[0] - functions[:, 5]).square()

    return all_of(
        close(fitted.predict(new), weights @ y, within=1e-9),
        close(given.mean, weights @ y, within=1e-9),
        close(answers.mean, weights @ y, within=1e-9),
        close(torch.stack([fitted.variance(new), answers.variance]), variance.expand(2, 2), within=1e-9),
        close(given.covariance.diagonal(), variance, within=1e-9),
        mean_is(
            squared_error,
            lambda n: process(RBFKernel(), noise=0.0).sample(torch.cat([x, new]), n, draw.generator),
            variance[0],
            effect=0.3 * float(given.covariance[0, 0]),
        ),
        close(torch.cat([fitted.predict(x) - y, fitted.variance(x)]), 0.0, within=1e-9),
        close(singular.predict(x), x @ slope, within=1e-9),
    )
