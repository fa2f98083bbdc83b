"""Kernel regression: the interpolant of least norm, singular kernels, where it starts from, and bad input."""

import pytest
import torch

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.kernel.kernel_regression import KernelRegression


def linear(left, right):
    return left @ right.mT


def rbf(left, right):
    return torch.exp(-torch.cdist(left, right).square() / 2)


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 3, generator=generator, dtype=torch.float64)
    return x, torch.randn(12, 2, generator=generator, dtype=torch.float64)


def test_interpolates_and_reports_the_norm(data):
    x, y = data
    fitted = KernelRegression(rbf).fit(x, y)
    assert torch.allclose(fitted.predict(x), y, atol=1e-10)
    inner = y.mT @ torch.linalg.solve(rbf(x, x), y)
    assert torch.allclose(fitted.norm_.square(), inner.diagonal(), rtol=1e-10)
    assert fitted.variance(x).abs().max() < 1e-12
    assert fitted.rank_ == 12
    assert fitted.residual_norm_.max() < 1e-10


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_linear_kernel_is_linear_regression_without_bias(data, ridge):
    x, _ = data
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    new = torch.randn(5, 3, dtype=torch.float64)
    line = LinearRegression(ridge=ridge / len(x), bias=False).fit(x, y)
    fitted = KernelRegression(linear, ridge).fit(x, y)
    assert torch.allclose(fitted.predict(new), line.predict(new), atol=1e-10)
    assert torch.allclose(fitted.norm_, line.weight_.norm(), atol=1e-10)
    assert fitted.rank_ == (3 if ridge == 0 else 12)


def test_gram_matrices_in_place_of_points(data):
    x, y = data
    new = torch.randn(4, 3, dtype=torch.float64)
    by_points = KernelRegression(rbf, 0.1).fit(x, y)
    by_matrices = KernelRegression("precomputed", 0.1).fit(rbf(x, x), y)
    assert torch.equal(by_points.predict(new), by_matrices.predict(rbf(new, x)))
    assert torch.equal(by_points.variance(new), by_matrices.variance(rbf(new, x), torch.ones(4, dtype=torch.float64)))
    with pytest.raises(ValueError, match="diagonal must hold"):
        by_matrices.variance(rbf(new, x))


def test_where_it_starts_from_stays_where_the_data_say_nothing(data):
    x, y = data
    far = x + 1e3

    def start(points):
        return points[:, :2].sin()

    fitted = KernelRegression(rbf).fit(x, y, start=start(x))
    assert torch.allclose(fitted.predict(x, start(x)), y, atol=1e-10)
    assert torch.equal(fitted.predict(far, start(far)), start(far))
    with pytest.raises(ValueError, match="predict needs them at the new points"):
        fitted.predict(far)
    with pytest.raises(ValueError, match="fit needs them"):
        KernelRegression(rbf).fit(x, y).predict(far, start(far))


def test_duplicates_take_the_mean_and_say_what_is_missed():
    x = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)
    y = torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    with pytest.warns(UserWarning, match="rank 2 for 3 points"):
        fitted = KernelRegression(rbf).fit(x, y)
    assert torch.allclose(fitted.predict(x), torch.tensor([2.0, 2.0, 0.0], dtype=torch.float64))
    assert torch.allclose(fitted.residual_norm_, torch.tensor(2.0, dtype=torch.float64).sqrt())


def test_float32_rank_is_that_of_float32():
    x = torch.randn(30, 2)
    assert KernelRegression(linear).fit(x, x[:, 0]).rank_ == 2
    assert KernelRegression(linear).fit(x, x[:, 0]).predict(x).dtype is torch.float32


def test_predictions_have_gradients_of_the_points(data):
    x, y = data
    fitted = KernelRegression(rbf, 0.1).fit(x, y)
    new = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fitted.predict, (new,))
    assert torch.autograd.gradcheck(fitted.variance, (new,))


def test_one_point_and_one_feature():
    fitted = KernelRegression(rbf).fit(torch.zeros(1, 1), torch.ones(1))
    assert fitted.predict(torch.zeros(1, 1)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        (lambda x, y: KernelRegression("linear"), TypeError, "kernel must be a function"),
        (lambda x, y: KernelRegression(rbf, -1.0), ValueError, "ridge must be >= 0"),
        (lambda x, y: KernelRegression(rbf).fit(x, y * torch.nan), ValueError, "y must be finite, found 24 NaN"),
        (lambda x, y: KernelRegression(rbf).fit(x, y[:5]), ValueError, "one row for each point"),
        (lambda x, y: KernelRegression(rbf).fit(x, y, max_memory=100), ValueError, "use at most 2 points"),
        (lambda x, y: KernelRegression(lambda a, b: a).fit(x, y), ValueError, r"must return a \(12, 12\) tensor"),
        (lambda x, y: KernelRegression(lambda a, b: -rbf(a, b)).fit(x, y), ValueError, "positive semidefinite"),
        (lambda x, y: KernelRegression(lambda a, b: a @ b.mT + a[:, :1]).fit(x, y), ValueError, "symmetric"),
        (lambda x, y: KernelRegression(rbf).fit(x, y, start=y[:, :1]), ValueError, "start must be"),
        (lambda x, y: KernelRegression(rbf).predict(x), RuntimeError, "not fitted"),
        (lambda x, y: KernelRegression(rbf).fit(x, y).predict(x[:, :2]), ValueError, "as the points of fit"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input(data, bad, error, says):
    with pytest.raises(error, match=says):
        bad(*data)
