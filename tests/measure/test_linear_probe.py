"""Linear probes: scikit-learn's ridge regression, wide and narrow features, constants, scores, bad input."""

import pytest
import torch

from lemmata.measure.linear_probe import fit_linear_probe


def drawn(n, features, targets=3):
    generator = torch.Generator().manual_seed(features)
    x = torch.randn(n, features, generator=generator, dtype=torch.float64) * torch.arange(1, features + 1) + 5
    return x, x[:, :targets] ** 2 + torch.randn(n, targets, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("features", [4, 30, 90])
def test_it_is_scikit_learns_ridge_regression_of_standardised_features(features):
    linear_model, preprocessing = (pytest.importorskip(f"sklearn.{m}") for m in ("linear_model", "preprocessing"))
    x, t = drawn(30, features)
    scaler = preprocessing.StandardScaler().fit(x.numpy())
    theirs = linear_model.Ridge(0.01 * 30 * features).fit(scaler.transform(x.numpy()), t.numpy())
    new, _ = drawn(7, features)
    expected = torch.from_numpy(theirs.predict(scaler.transform(new.numpy())))
    probe = fit_linear_probe(x, t)
    torch.testing.assert_close(probe(new), expected, rtol=1e-9, atol=1e-9)
    assert probe.r_squared(x, t) == pytest.approx(
        1 - float((probe(x) - t).square().sum() / (t - t.mean(0)).square().sum()), rel=1e-9
    )


def test_constant_features_change_nothing():
    x, t = drawn(30, 5)
    probe = fit_linear_probe(torch.cat([x, torch.full((30, 1), 7.0)], 1), t, ridge=0.05)
    plain = fit_linear_probe(x, t, ridge=0.06)  # the penalty counts six features
    other = torch.cat([x, torch.full((30, 1), 1e6)], 1)  # the constant is another later on
    torch.testing.assert_close(probe(other), plain(x), rtol=1e-9, atol=1e-9)
    assert fit_linear_probe(torch.ones(4, 2), t[:4]).r_squared(torch.ones(4, 2), t[:4]) == pytest.approx(0.0)


def test_classes_are_told_where_a_line_tells_them():
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    y, ring = (x.sum(1) > 0).long(), (x.norm(dim=1) > 1.2).long()
    assert fit_linear_probe(x[:200], y[:200]).accuracy(x[200:], y[200:]) > 0.9
    assert fit_linear_probe(x[:200], ring[:200]).accuracy(x[200:], ring[200:]) < 0.7


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit_linear_probe(torch.ones(3), torch.ones(3)), r"features must be \(n, features\).*got \(3,\)"),
        (lambda: fit_linear_probe(torch.ones(3, 2).long(), torch.ones(3, 1)), "features must be"),
        (lambda: fit_linear_probe(torch.ones(3, 2), torch.ones(2, 1)), "targets must be one for each of 3 examples"),
        (lambda: fit_linear_probe(torch.ones(3, 2), torch.ones(3)), r"targets must be integers \(n,\) or numbers"),
        (lambda: fit_linear_probe(torch.ones(3, 2), torch.ones(3, 1), ridge=0.0), "ridge must be > 0, got 0.0"),
    ],
)
def test_bad_input_is_answered(make, message):
    with pytest.raises(ValueError, match=message):
        make()
