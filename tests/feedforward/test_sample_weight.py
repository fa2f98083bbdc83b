"""Weighted examples of a logistic regression: scikit-learn's numbers, copies, descents, and what counts for nothing."""

import warnings

import numpy as np
import pytest
import torch

from lemmata.feedforward import LogisticRegression


def problem(classes=2, points=300, features=5):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(points, features, generator=generator, dtype=torch.double) + 2
    noise = -torch.empty(points, classes, dtype=torch.double).exponential_(generator=generator).log()
    slopes = torch.linspace(-0.5, 0.5, features * classes, dtype=torch.double).reshape(features, classes)
    return x, (x @ slopes + noise).argmax(1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gd"])
def test_weighted_examples_are_scikit_learns_and_whole_weights_are_copies(solver, classes):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = problem(classes)
    weights = torch.arange(300, dtype=torch.double) % 4
    c = 1 / (0.1 * float(weights.sum()))
    peer = linear.LogisticRegression(C=c, tol=1e-12, max_iter=10_000, solver="newton-cg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rounding ends its line search
        peer.fit(x.numpy(), y.numpy(), sample_weight=weights.numpy())
    ours = LogisticRegression(0.1, solver=solver).fit(x, y, sample_weight=weights)
    within = 1e-8 if solver == "newton" else 1e-5
    coefficients = peer.coef_[0] if classes == 2 else peer.coef_.T
    np.testing.assert_allclose(ours.weight_.numpy(), coefficients, rtol=within, atol=within)
    for often in (None, weights):
        wanted = peer.score(x.numpy(), y.numpy(), None if often is None else often.numpy())
        assert ours.score(x, y, often) == pytest.approx(wanted, rel=1e-12)
    copies = torch.repeat_interleave(torch.arange(300), weights.long())
    again = LogisticRegression(0.1, solver=solver).fit(x[copies], y[copies])
    torch.testing.assert_close(ours.weight_, again.weight_, rtol=10 * within, atol=10 * within)
    assert ours.loss_ == pytest.approx(again.loss_, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_weighted_examples_of_many_start_from_a_part_of_them(classes):
    x, y = problem(classes, points=20_000, features=2)
    weights = torch.linspace(0, 3, len(x), dtype=torch.double)
    copies = torch.cat([torch.arange(20_000)] * 2)
    ours = LogisticRegression(1e-3).fit(x, y, sample_weight=weights)
    again = LogisticRegression(1e-3).fit(x[copies], y[copies], sample_weight=torch.cat([0.5 * weights, 2 * weights]))
    assert ours.status_ == again.status_ == "converged"
    torch.testing.assert_close(ours.weight_, again.weight_, rtol=1e-6, atol=1e-7)


def test_weighted_examples_lead_sgd_as_well():
    x, y = problem()
    weights = torch.linspace(0, 2, 300, dtype=torch.double)
    best = LogisticRegression(0.1).fit(x, y, sample_weight=weights)
    found = LogisticRegression(0.1, solver="sgd").fit(x, y, sample_weight=weights)
    assert best.loss_ < found.loss_ + 0.1 * float(found.weight_.square().sum()) < best.loss_ + 0.1


def test_examples_that_do_not_count_prove_nothing():
    x = torch.linspace(-1, 1, 40, dtype=torch.double)[:, None]
    y = (x[:, 0] > 0).long()
    y[0] = 1  # which no line would separate
    weights = torch.ones(40)
    weights[0] = 0.0
    with pytest.warns(UserWarning, match="the classes are separated by the weights"):
        assert LogisticRegression().fit(x, y, sample_weight=weights).status_ == "separable"


@pytest.mark.usefixtures("unchecked")
def test_there_is_a_weight_for_each_example():
    x, y = problem()
    for weights, said in ((torch.ones(299), "must have 300 entries, got 299"), (-torch.ones(300), "must be >= 0")):
        with pytest.raises(ValueError, match=f"sample_weight {said}"):
            LogisticRegression().fit(x, y, sample_weight=weights)
