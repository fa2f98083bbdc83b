"""The shortest least squares fit against torch and scikit-learn, and the exact curve at its edges."""

import math

import pytest
import torch

from lemmata.generalization import double_descent_risk, min_norm_fit


def data(n, p, seed=0, batch=()):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch, n, p, generator=generator, dtype=torch.float64)
    return x, torch.randn(*batch, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("n", "p"), [(10, 4), (10, 10), (10, 25), (1, 1), (1, 6)])
def test_it_is_torchs_least_squares(n, p):
    x, y = data(n, p)
    theirs = torch.linalg.lstsq(x, y[:, None], driver="gelsd").solution[:, 0]
    assert min_norm_fit(x, y).tolist() == pytest.approx(theirs.tolist(), rel=1e-8)


@pytest.mark.parametrize(("n", "p"), [(10, 4), (10, 25)])
@pytest.mark.parametrize("ridge", [0.01, 3.0])
def test_with_a_ridge_it_is_scikit_learns(n, p, ridge):
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    x, y = data(n, p)
    theirs = linear_model.Ridge(n * ridge, fit_intercept=False).fit(x.numpy(), y.numpy()).coef_
    assert min_norm_fit(x, y, ridge).tolist() == pytest.approx(theirs.tolist(), rel=1e-9)


@pytest.mark.parametrize(("n", "p"), [(10, 4), (10, 25)])
def test_small_ridges_lead_to_the_shortest_fit(n, p):
    x, y = data(n, p)
    assert torch.allclose(min_norm_fit(x, y, 1e-10), min_norm_fit(x, y), atol=1e-7)


def test_beyond_the_threshold_it_interpolates_within_the_span_of_the_examples():
    x, y = data(8, 30)
    w = min_norm_fit(x, y)
    assert torch.allclose(x @ w, y)
    inside = torch.linalg.pinv(x) @ x @ w
    assert torch.allclose(inside, w)  # nothing at right angles to all examples


def test_batches_are_data_sets():
    x, y = data(6, 9, batch=(4, 2))
    for ridge in (0.0, 0.1):
        found = min_norm_fit(x, y, ridge)
        assert found.shape == (4, 2, 9)
        assert torch.allclose(found[2, 1], min_norm_fit(x[2, 1], y[2, 1], ridge))


def test_equal_columns_share_their_weight():
    x, y = data(12, 3)
    doubled = torch.cat([x, x], dim=1)
    assert torch.allclose(min_norm_fit(doubled, y), min_norm_fit(x, y).repeat(2) / 2)


def test_the_curve_at_its_edges():
    weight = torch.tensor([3.0, 4.0, 0.0, 0.0, 0.0, 0.0])
    assert double_descent_risk(weight, 0, 1, 0.5) == (25.5, 0.0)
    assert double_descent_risk(weight, 0, 4).risk == 25.0
    endless = [math.isinf(double_descent_risk(weight, p, 4, 0.1).risk) for p in range(7)]
    assert endless == [False] * 3 + [True] * 3 + [False]
    assert double_descent_risk(weight, 3, 4, 0.0) == (0.0, 25.0)  # nothing is left to learn wrongly
    assert double_descent_risk(weight, 5, 4, 0.0).risk == pytest.approx(25 * (1 - 4 / 5))
    assert double_descent_risk(weight, 6, 4, 0.0).risk == pytest.approx(25 * (1 - 4 / 6))
    assert double_descent_risk(weight, 6, 4, 1.0).risk == pytest.approx(25 / 3 + 1 + 4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: min_norm_fit(torch.zeros(3, 2), torch.zeros(2)), r"y must have the shape of x without its features"),
        (lambda: min_norm_fit(torch.zeros(3, 2), torch.zeros(3), -1.0), "ridge must be >= 0"),
        (lambda: min_norm_fit(torch.zeros(0, 2), torch.zeros(0)), "x must not be empty"),
        (lambda: double_descent_risk(torch.zeros(3), 4, 10), "p must be"),
        (lambda: double_descent_risk(torch.zeros(3), 2, 0), "n must be"),
        (lambda: double_descent_risk(torch.zeros(3), 2, 5, -0.1), "variance must be >= 0"),
    ],
)
def test_bad_input_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()
