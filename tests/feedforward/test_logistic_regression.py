"""Logistic regression: scikit-learn's numbers, separable and hard data, dtypes, descents, and refusals."""

import warnings

import numpy as np
import pytest
import torch

from lemmata.feedforward import LogisticRegression, binary_cross_entropy, cross_entropy


def problem(classes=2, points=300, features=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(points, features, generator=generator).double() * torch.linspace(0.3, 3, features).double() + 2
    logits = x @ torch.randn(features, classes, generator=generator).double() * 0.3
    noise = -torch.empty_like(logits).exponential_(generator=generator).log()  # Gumbel: the largest follows softmax
    return x, (logits + noise).argmax(1)


def separable(points=40, classes=2):
    x = torch.linspace(-1, 1, points).double()[:, None] * torch.tensor([[1.0, 0.5]]).double()
    return x, (torch.arange(points) * classes // points).long()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("ridge", [0.0, 1e-4, 0.1, 100.0])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_scikit_learns(classes, ridge, bias):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = problem(classes)
    c = 1 / (len(x) * ridge) if ridge else np.inf
    peer = linear.LogisticRegression(C=c, tol=1e-13, max_iter=10_000, solver="newton-cg", fit_intercept=bias)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rounding ends its line search
        peer.fit(x.numpy(), y.numpy())
    ours = LogisticRegression(ridge, bias).fit(x, y)
    coefficients = peer.coef_[0] if classes == 2 else peer.coef_.T
    np.testing.assert_allclose(ours.weight_.numpy(), coefficients, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.probability(x).numpy(), peer.predict_proba(x.numpy()), rtol=1e-8, atol=1e-10)
    assert (ours.predict(x).numpy() == peer.predict(x.numpy())).all()
    assert (ours.status_, ours.separation_) == ("converged", None)
    z = ours.decision_function(x)
    assert ours.loss_ == pytest.approx(float(binary_cross_entropy(z, y) if classes == 2 else cross_entropy(z, y)))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_descents_end_where_newton_does(classes, ridge):
    x, y = problem(classes)
    newton = LogisticRegression(ridge).fit(x, y)
    for solver, within in (("lbfgs", 1e-5), ("gd", 1e-3)):
        found = LogisticRegression(ridge, solver=solver, tolerance=1e-8 if solver == "lbfgs" else 1e-6).fit(x, y)
        assert found.status_ == "converged"
        assert newton.epochs_ < found.epochs_ < found.max_epochs
        torch.testing.assert_close(found.weight_, newton.weight_, rtol=within, atol=within)
    sgd = LogisticRegression(ridge, solver="sgd").fit(x, y)
    assert sgd.epochs_ == 100
    assert sgd.loss_ < newton.loss_ + 0.02  # of about 0.3, or 0.9 for four classes


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gd"])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_have_no_minimiser_and_the_weights_prove_it(solver, classes):
    x, y = separable(classes=classes)
    with pytest.warns(UserWarning, match=r"would grow without end: there is no minimiser; use ridge > 0"):
        learnt = LogisticRegression(solver=solver).fit(x, y)
    assert learnt.status_ == "separable"
    assert (learnt.predict(x) == y).all()
    if classes == 2:
        assert learnt.separation_.verify(x, 2 * y - 1)
    assert LogisticRegression(1e-3, solver=solver).fit(x, y).status_ == "converged"


def test_what_a_descent_has_not_yet_separated_is_told_by_linear_programming():
    x, y = separable()
    x = x + torch.tensor([[0.0, 3.0]]).double()
    with pytest.warns(UserWarning, match="there is no minimiser"):
        learnt = LogisticRegression(bias=False, solver="gd", max_epochs=1, lr=1e-6).fit(x * 1.0, y)
    assert learnt.separation_.separable
    assert learnt.separation_.verify(x, 2 * y - 1)


def test_one_class_only_is_separable_from_nothing():
    x, _ = separable()
    with pytest.warns(UserWarning, match="no minimiser"):
        learnt = LogisticRegression().fit(x, torch.ones(len(x)).long())
    assert (learnt.predict(x) == 1).all()


def test_classes_that_touch_are_not_separable_and_do_not_converge():
    x = torch.tensor([[-1.0], [0.0], [0.0], [1.0]]).double()  # weakly separated: the loss falls for ever
    with pytest.warns(UserWarning, match="newton stopped after 20 epochs before it converged: raise max_epochs"):
        learnt = LogisticRegression(max_epochs=20).fit(x, torch.tensor([0, 0, 1, 1]))
    assert learnt.status_ == "epoch limit"
    assert not learnt.separation_.separable


@pytest.mark.parametrize("classes", [2, 3])
def test_dependent_columns_get_the_shortest_weights(classes):
    x, y = problem(classes)
    once, twice = (LogisticRegression().fit(data, y) for data in (x, torch.cat([x, x[:, :1]], 1)))
    torch.testing.assert_close(
        twice.probability(torch.cat([x, x[:, :1]], 1)), once.probability(x), rtol=1e-6, atol=1e-8
    )
    torch.testing.assert_close(twice.weight_[5], twice.weight_[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-200, 1e-5, 1e5, 1e200])
def test_the_unit_of_the_data_does_not_matter(scale):
    x, y = problem()
    usual, other = LogisticRegression().fit(x, y), LogisticRegression().fit(x * scale, y)
    torch.testing.assert_close(other.weight_ * scale, usual.weight_, rtol=1e-7, atol=0)
    torch.testing.assert_close(other.bias_, usual.bias_, rtol=1e-7, atol=0)


def test_from_far_away_newton_halves_its_steps_and_arrives():
    x, y = problem()
    x[0], y[0] = 3000.0, 1 - y[0]  # an outlier with the wrong label, at which a whole first step would raise the loss
    learnt = LogisticRegression().fit(x, y)
    gradient = x.T @ (learnt.probability(x)[:, 1] - y) / len(x)
    assert learnt.status_ == "converged"
    assert gradient.abs().max() < 1e-8 * x.abs().max()


def test_a_step_that_is_too_long_is_noticed():
    x, y = problem()
    with pytest.raises(ArithmeticError, match=r"gd diverges with lr = 50.0: leave it out, or use a smaller one"):
        LogisticRegression(solver="gd", lr=50.0).fit(x, y)
    with pytest.raises(ArithmeticError, match=r"sgd diverges with lr = 50.0: leave it out, or use a smaller one"):
        LogisticRegression(solver="sgd", lr=50.0, max_epochs=4).fit(x, y)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gd", "sgd"])
@pytest.mark.parametrize("classes", [2, 3])
def test_inputs_that_are_all_zero_say_nothing(solver, classes):
    x, y = torch.zeros(9, 2, dtype=torch.float64), torch.arange(9) % classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learnt = LogisticRegression(bias=False, solver=solver, max_epochs=3).fit(x, y)
    assert not learnt.weight_.any()
    assert learnt.loss_ == pytest.approx(np.log(classes))
    assert learnt.status_ == ("epoch limit" if solver == "sgd" else "converged")


def test_sgd_on_labels_without_a_pattern_does_not_diverge():
    generator = torch.Generator().manual_seed(0)
    for points in (2, 5, 64):
        for _ in range(5):
            x = torch.randn(points, 3, generator=generator)
            y = torch.randint(2, (points,), generator=generator)
            LogisticRegression(ridge=1e-3, solver="sgd", max_epochs=4).fit(x, y)


@pytest.mark.parametrize("scale", [1e-10, 1e-7, 1e8, 1e10])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_the_unit_of_an_input_does_not_mislead_lbfgs(scale, ridge):
    x, y = problem()
    unit = torch.tensor([1.0, scale, 1.0, 1.0, 1.0], dtype=torch.double)
    newton, found = (LogisticRegression(ridge, solver=s).fit(x * unit, y) for s in ("newton", "lbfgs"))
    assert found.status_ == "converged"
    torch.testing.assert_close(found.weight_ * unit, newton.weight_ * unit, rtol=1e-4, atol=1e-5)


def test_one_class_with_a_ridge_is_told_what_is_missing():
    x, y = problem()
    with pytest.warns(UserWarning, match="a class has no example and its bias falls without end: use bias=False"):
        LogisticRegression(0.1, max_epochs=5).fit(x, torch.zeros_like(y))
    with pytest.warns(UserWarning, match=r"gd stopped after 2 epochs before it converged: raise max_epochs$"):
        LogisticRegression(0.1, solver="gd", max_epochs=2).fit(x, y)


def test_the_same_seed_takes_the_same_examples():
    x, y = problem()
    first, same, other = (LogisticRegression(solver="sgd", seed=seed, max_epochs=2).fit(x, y) for seed in (1, 1, 2))
    assert torch.equal(first.weight_, same.weight_)
    assert not torch.equal(first.weight_, other.weight_)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [2, 3])
def test_results_have_the_dtype_of_the_data(dtype, classes):
    x, y = problem(classes)
    x = x.to(dtype)
    learnt, exact = LogisticRegression().fit(x, y), LogisticRegression().fit(x.double(), y)
    assert learnt.weight_.dtype == learnt.bias_.dtype == learnt.probability(x).dtype == dtype
    assert torch.equal(learnt.weight_, exact.weight_.to(dtype))
    assert learnt.probability(x[:1]).shape == (1, classes)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_was_learnt_can_be_kept_and_taken_over(classes):
    x, y = problem(classes)
    learnt, other = LogisticRegression(0.1).fit(x, y), LogisticRegression(0.1)
    assert other.state_dict() == {}
    other.load_state_dict({})
    other.load_state_dict(learnt.state_dict())
    assert torch.equal(other.probability(x), learnt.probability(x))
    assert other.classes_ == classes
    assert repr(other) == "LogisticRegression(ridge=0.1, bias=True, solver='newton')"


def test_a_class_that_does_not_occur_gets_little_probability():
    x, y = problem(3)
    learnt = LogisticRegression(0.01).fit(x, y, classes=4)
    assert learnt.weight_.shape == (5, 4)
    assert learnt.probability(x)[:, 3].max() < 0.05


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ridge": -0.1}, "ridge must be >= 0"),
        ({"bias": 1}, "bias must be True or False, got 1"),
        ({"solver": "irls"}, "solver must be one of newton, lbfgs, gd, sgd"),
        ({"lr": 0.0}, "lr must be > 0, got 0"),
        ({"max_epochs": 0}, "max_epochs must be >= 1, got 0"),
        ({"tolerance": 0.0}, "tolerance must be > 0"),
    ],
)
def test_bad_choices_are_refused(words, said):
    with pytest.raises((ValueError, TypeError), match=said):
        LogisticRegression(**words)


@pytest.mark.usefixtures("unchecked")
def test_bad_data_are_refused():
    x, y = problem()
    with pytest.raises(ValueError, match=r"y must hold an integer for each of the 300 points, got torch.float64"):
        LogisticRegression().fit(x, y.double())
    for wrong in (y.double(), y.bool()):
        with pytest.raises(ValueError, match=r"got torch\..* of shape \(300,\): use y\.long\(\)"):
            LogisticRegression().fit(x, wrong)
    with pytest.raises(TypeError, match=r"y must be a tensor, got list: use torch\.as_tensor\(y\)"):
        LogisticRegression().fit(x, y.tolist())
    with pytest.raises(TypeError, match="x must be a tensor, got ndarray"):
        LogisticRegression().fit(x.numpy(), y)
    with pytest.raises(TypeError, match="seed must be an integer, got float"):
        LogisticRegression(seed=1.5)
    with pytest.raises(ValueError, match=r"got torch.int64 of shape \(299,\)"):
        LogisticRegression().fit(x, y[1:])
    with pytest.raises(ValueError, match=r"without large gaps, got 10000000 among 300 points: use torch\.unique"):
        LogisticRegression().fit(x, y * 10**7)
    with pytest.raises(ValueError, match="state must hold weight and bias, got weight"):
        LogisticRegression().load_state_dict({"weight": x})
    with pytest.raises(ArithmeticError, match=r"which torch\.float16 does not hold"):
        LogisticRegression(1e-13).fit((1e-6 * x).half(), y)
    with pytest.raises(ValueError, match=r"y must hold classes from 0 to 1, got -1 to 1: use \(y \+ 1\) // 2"):
        LogisticRegression().fit(x, 2 * y - 1)
    with pytest.raises(ValueError, match="y must hold classes from 0 to 1, got 0 to 2"):
        LogisticRegression().fit(x, y * 2, classes=2)
    with pytest.raises(RuntimeError, match="not fitted: call fit"):
        LogisticRegression().predict(x)
    with pytest.raises(ValueError, match="x must have 5 features on its last axis"):
        LogisticRegression().fit(x, y).predict(x[:, :4])


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_class_that_hardly_occurs_and_labels_in_a_cycle_mislead_no_start(ridge):
    """A start from a part of the examples that lacks a class, or holds only one, would end far from the minimum."""
    generator = torch.Generator().manual_seed(0)
    rare = torch.randint(3, (3000,), generator=generator)
    rare[:4] = 3
    cyclic = torch.arange(3700) % 6
    for y in (rare, cyclic):
        x = torch.randn(len(y), 2, generator=generator, dtype=torch.float64)
        x[:, 0] += 0.5 * y
        newton = LogisticRegression(ridge=ridge).fit(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which says how far L-BFGS got
            other = LogisticRegression(ridge=ridge, solver="lbfgs", max_epochs=2000).fit(x, y)
        assert newton.status_ == "converged"
        assert newton.loss_ == pytest.approx(other.loss_, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e-7, 1e8])
def test_features_of_very_different_sizes_are_all_used(scale):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    y = (x.sum(1) + torch.randn(50, generator=generator) > 0).long()
    plain = LogisticRegression().fit(x, y)
    scaled = LogisticRegression().fit(x * torch.tensor([1.0, 1.0, scale], dtype=torch.float64), y)
    assert scaled.status_ == "converged"
    assert scaled.loss_ == pytest.approx(plain.loss_, rel=1e-8)
    assert (scaled.weight_[2] * scale).item() == pytest.approx(plain.weight_[2].item(), rel=1e-4)


def test_classes_that_only_touch_and_classes_without_examples_do_not_converge():
    x, y = torch.tensor([[-1.0], [0.0], [0.0], [1.0]], dtype=torch.float64), torch.tensor([0, 0, 1, 1])
    for solver in ("newton", "lbfgs"):
        with pytest.warns(UserWarning, match=r"with longer weights the loss falls further|before it converged"):
            assert LogisticRegression(solver=solver).fit(x, y).status_ == "epoch limit"
    x = torch.randn(60, 2, dtype=torch.float64)
    with pytest.warns(UserWarning, match=r"a class has no example|before it converged"):
        assert LogisticRegression().fit(x, torch.arange(60) % 2, classes=3).status_ == "epoch limit"


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("order", ["drawn", "by class", "by input"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_start_from_a_part_of_many_examples_changes_no_result(classes, ridge, order, bias, monkeypatch):
    x, y = problem(classes, 6000)
    if order != "drawn":
        by = y if order == "by class" else x[:, 0]
        x, y = x[by.argsort()], y[by.argsort()]
    quick = LogisticRegression(ridge, bias, tolerance=1e-10).fit(x, y)
    monkeypatch.setattr(LogisticRegression, "_sample_part", lambda self, problem: None)
    plain = LogisticRegression(ridge, bias, tolerance=1e-10).fit(x, y)
    assert quick.status_ == plain.status_ == "converged"
    torch.testing.assert_close(quick.weight_, plain.weight_, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(quick.bias_, plain.bias_, rtol=1e-8, atol=1e-9)
    assert quick.loss_ == pytest.approx(plain.loss_, rel=1e-12)
    assert 1 < quick.epochs_ < 30


def test_a_part_is_random_and_large_enough_and_its_curvature_is_kept_while_it_serves(monkeypatch):
    from lemmata.feedforward import logistic_regression

    x, y = problem(2, 6000)
    asked = []

    def noted(problem, theta, curved=True):
        asked.append((len(problem.x), curved))
        return logistic_loss.expansion(problem, theta, curved)

    from lemmata.feedforward import logistic_loss

    monkeypatch.setattr(logistic_regression, "expansion", noted)
    first = LogisticRegression(0.01, seed=1).fit(x, y)
    assert set(asked) == {(300, True), (6000, False)}  # 50 for each of six weights
    assert first.epochs_ == asked.count((6000, False)) - 1
    asked.clear()
    LogisticRegression(0.01).fit(x[:1199], y[:1199])
    assert set(asked) == {(1199, True)}
    asked.clear()
    LogisticRegression(0.01).fit(x[:1200], y[:1200])
    assert (300, True) in asked


def test_where_the_part_misleads_the_curvature_of_all_is_computed(monkeypatch):
    x, y = problem(2, 6000)
    plain = LogisticRegression(0.01).fit(x, y)
    stretch = torch.tensor([1.0, 1.0, 1.0, 1.0, 50.0]).double()  # directions of which the part says nothing true
    monkeypatch.setattr(
        LogisticRegression,
        "_sample_part",
        lambda self, whole: None if len(whole.x) < 6000 else whole._replace(x=whole.x[:300] * stretch, y=whole.y[:300]),
    )
    misled = LogisticRegression(0.01).fit(x, y)
    assert misled.status_ == "converged"
    torch.testing.assert_close(misled.weight_, plain.weight_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("points", [300, 6000])
@pytest.mark.parametrize("offset", [1e3, 1e7])
def test_far_from_the_origin_the_spread_still_counts(points, offset):
    x, y = problem(2, points)
    near, far = LogisticRegression(0.01).fit(x, y), LogisticRegression(0.01).fit(x + offset, y)
    assert far.status_ == "converged"
    # Adding the offset rounds the data to 2^-53 of it.
    torch.testing.assert_close(far.weight_, near.weight_, rtol=1e-6, atol=1e-7)


def test_columns_that_hardly_vary_are_told_from_those_that_do_not():
    x, y = problem(2, 6000)
    rare = torch.zeros(6000, 1).double()
    rare[3:3000:100] = 1.0  # not among the rows that the centre is taken of
    constant = torch.full((6000, 1), 0.1).double()
    plain = LogisticRegression(0.01).fit(torch.cat([x, rare], 1), y)
    learnt = LogisticRegression(0.01).fit(torch.cat([x, rare, constant], 1), y)
    assert plain.status_ == learnt.status_ == "converged"
    torch.testing.assert_close(learnt.weight_[:6], plain.weight_, rtol=1e-6, atol=1e-8)
    assert abs(learnt.weight_[6]) < 1e-8


@pytest.mark.parametrize("classes", [2, 3])
def test_many_examples_in_single_precision_are_fitted_in_double(classes):
    x, y = problem(classes, 6000)
    x = x.float()
    learnt, exact = LogisticRegression(0.01).fit(x, y), LogisticRegression(0.01).fit(x.double(), y)
    torch.testing.assert_close(learnt.weight_, exact.weight_.float(), rtol=1e-6, atol=1e-7)
