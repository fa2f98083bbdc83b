"""Linear regression: scikit-learn's numbers, hard data, dtypes, the messages of descents, and refusals."""

import math
import warnings

import numpy as np
import pytest
import torch

from lemmata.feedforward import LinearRegression

DIRECT = ("cholesky", "qr", "svd")


def problem(points=60, features=5, offset=3.0, outputs=None, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.double)

    x = normal(points, features) * torch.linspace(0.5, 4, features, dtype=torch.double) + offset
    y = x @ normal(features, *([outputs] if outputs else [])) + 0.3 * normal(points, *([outputs] if outputs else []))
    return x, y + 7


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.3, 1e6])
@pytest.mark.parametrize("outputs", [None, 3])
def test_it_is_scikit_learns(solver, bias, ridge, outputs):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = problem(outputs=outputs)
    alpha = len(x) * ridge
    peer = linear.Ridge(alpha=alpha, fit_intercept=bias) if ridge else linear.LinearRegression(fit_intercept=bias)
    peer.fit(x.numpy(), y.numpy())
    ours = LinearRegression(ridge, bias, solver).fit(x, y)
    np.testing.assert_allclose(ours.weight_.numpy(), peer.coef_.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.bias_.numpy(), peer.intercept_ * np.ones(y.shape[1:]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.predict(x).numpy(), peer.predict(x.numpy()), rtol=1e-8)
    assert ours.residual_norm_ == pytest.approx((ours.predict(x) - y).norm().item(), rel=1e-12)
    assert ours.solver_ == solver


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize(("points", "features", "bias"), [(5, 5, False), (1, 1, False), (6, 5, True), (2, 1, True)])
def test_as_many_unknowns_as_examples_are_solved_exactly(solver, points, features, bias):
    x, y = problem(points, features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learnt = LinearRegression(bias=bias, solver=solver).fit(x, y)
    torch.testing.assert_close(learnt.predict(x), y, rtol=1e-9, atol=1e-9)
    assert learnt.rank_ == features


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
def test_the_unit_of_the_data_does_not_matter(solver, scale):
    x, y = problem()
    usual = LinearRegression(0.1, solver=solver).fit(x, y)
    inputs = LinearRegression(0.1 * scale * scale if scale < 1e100 else 0.0, solver=solver)
    plain = LinearRegression(0.0, solver=solver).fit(x, y) if scale > 1e100 or scale < 1e-100 else usual
    if scale < 1e-100:
        inputs = LinearRegression(0.0, solver=solver)
    torch.testing.assert_close(inputs.fit(x * scale, y).weight_ * scale, plain.weight_, rtol=1e-9, atol=0)
    assert inputs.condition_ == pytest.approx(plain.condition_, rel=1e-9)
    outputs = LinearRegression(0.1, solver=solver).fit(x, y * scale)
    torch.testing.assert_close(outputs.weight_ / scale, usual.weight_, rtol=1e-9, atol=0)
    assert outputs.residual_norm_ / scale == pytest.approx(usual.residual_norm_, rel=1e-9)


def test_gradient_descent_in_any_unit():
    x, y = problem()
    usual = LinearRegression(solver="gd", lr=0.01, bias=False, tolerance=0.99).fit(x, y)
    tiny = LinearRegression(solver="gd", lr=0.01 * 1e280, bias=False, tolerance=0.99).fit(x * 1e-140, y)
    torch.testing.assert_close(tiny.weight_ * 1e-140, usual.weight_, rtol=1e-12, atol=0)


def test_nearly_dependent_columns_go_to_qr_which_keeps_the_digits():
    x, _ = problem(200, 4)
    x[:, 3] = x[:, 2] + 1e-7 * x[:, 3]
    y = x @ torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.double)
    learnt = LinearRegression().fit(x, y)
    assert learnt.solver_ == "qr"
    assert learnt.rank_ == 4
    assert learnt.condition_ == pytest.approx(np.linalg.cond((x - x.mean(0)).numpy()), rel=1e-6)
    # The relative error of QR is about the condition times eps: 1e8 * 2e-16, and a factor for the sizes.
    torch.testing.assert_close(learnt.weight_, torch.tensor([1.0, 2, 3, 4]).double(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", DIRECT)
def test_far_from_the_origin_the_spread_still_counts(solver):
    x, y = problem()
    near, far = (LinearRegression(solver=solver).fit(x + shift, y) for shift in (0.0, 1e6))
    torch.testing.assert_close(far.weight_, near.weight_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [None, 2])
def test_rows_that_lie_elsewhere_do_not_mislead_the_normal_equations(bias, outputs):
    """The means that are taken off come from every third of 3,500 rows: here these lie thirty spreads away."""
    x, y = problem(3500, outputs=outputs)
    x[::3] += 100
    plain, exact = (LinearRegression(0.1, bias, solver).fit(x, y) for solver in ("cholesky", "qr"))
    assert plain.solver_ == "cholesky"
    # Both lose the square of the condition, a few hundred, of sixteen digits, or less.
    torch.testing.assert_close(plain.weight_, exact.weight_, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(plain.bias_, exact.bias_, rtol=1e-9, atol=1e-8)
    assert plain.condition_ == pytest.approx(exact.condition_, rel=1e-8)


@pytest.mark.parametrize("offset", [0.0, 30.0, 1000.0, 1e5])
def test_normal_equations_of_single_precision_keep_more_digits_than_the_data(offset):
    x, y = problem(3500, offset=offset)
    x, y = x.float(), y.float()
    plain, exact = (LinearRegression(0.1, solver=solver).fit(x, y) for solver in ("cholesky", "qr"))
    assert plain.solver_ == "cholesky"
    assert plain.condition_ == pytest.approx(exact.condition_, rel=1e-9)
    # The same double, or its neighbour, is rounded to single precision.
    torch.testing.assert_close(plain.weight_, exact.weight_, rtol=1.2e-7, atol=0)


@pytest.mark.parametrize("solver", DIRECT)
@pytest.mark.parametrize(("points", "features"), [(30, 6), (4, 9), (1, 3)])
def test_dependent_columns_get_the_shortest_weights_and_a_warning(solver, points, features):
    x, y = problem(points, features)
    x[:, 1] = x[:, 0]
    with pytest.warns(UserWarning, match=r"x has rank \d and \d features.*use ridge > 0"):
        learnt = LinearRegression(solver=solver).fit(x, y)
    centred, aim = x - x.mean(0), y - y.mean()
    expected = np.linalg.lstsq(centred.numpy(), aim.numpy(), rcond=None)
    np.testing.assert_allclose(learnt.weight_.numpy(), expected[0], rtol=1e-9, atol=1e-12)
    assert learnt.rank_ == expected[2] == min(points - 1, features - 1)
    assert math.isinf(learnt.condition_)
    assert learnt.solver_ == "svd"


@pytest.mark.parametrize("solver", DIRECT)
def test_with_a_ridge_dependent_columns_share_without_a_warning(solver):
    x, y = problem()
    x[:, 1] = x[:, 0]
    learnt = LinearRegression(0.1, solver=solver).fit(x, y)
    assert learnt.weight_[0].item() == pytest.approx(learnt.weight_[1].item(), rel=1e-9)
    values = torch.linalg.svdvals(x - x.mean(0))
    expected = math.sqrt((float(values[0]) ** 2 + 6) / 6)  # 60 points with a ridge of 0.1
    assert learnt.condition_ == pytest.approx(expected, rel=1e-9)
    assert learnt.rank_ == 4


@pytest.mark.parametrize("solver", DIRECT)
def test_constant_columns_say_nothing(solver):
    x, y = torch.ones(5, 2).double(), torch.arange(5.0).double()
    with pytest.warns(UserWarning, match="rank 0 and 2 features"):
        learnt = LinearRegression(solver=solver).fit(x, y)
    assert learnt.weight_.tolist() == [0, 0]
    assert learnt.bias_.item() == 2
    assert LinearRegression(0.5, solver=solver).fit(x, y).condition_ == 1


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_descents_reach_the_closed_form(ridge):
    x, y = problem()
    best = LinearRegression(ridge).fit(x, y)
    gd = LinearRegression(ridge, solver="gd").fit(x, y)
    torch.testing.assert_close(gd.weight_, best.weight_, rtol=1e-7, atol=1e-9)
    assert 1 < gd.epochs_ < 10_000
    assert (gd.solver_, gd.rank_, best.epochs_) == ("gd", 5, 0)
    sgd = LinearRegression(ridge, solver="sgd", max_epochs=400).fit(x, y)
    assert sgd.epochs_ == 400
    # Iterates average their noise away: a hundredth of the weights is far above what is left.
    torch.testing.assert_close(sgd.weight_, best.weight_, rtol=0.01, atol=0.01)


def test_a_descent_goes_on_from_where_it_is_told():
    x, y = problem(outputs=2)
    first = LinearRegression(solver="gd", lr=0.01, tolerance=0.999).fit(x, y)
    assert first.epochs_ == 1
    both = LinearRegression(solver="gd", lr=0.01, tolerance=0.999).fit(x, y, weight=first.weight_)
    with pytest.warns(UserWarning, match="gd stopped after 2 epochs"):
        at_once = LinearRegression(solver="gd", lr=0.01, max_epochs=2).fit(x, y)
    torch.testing.assert_close(both.weight_, at_once.weight_, rtol=1e-12, atol=0)


def test_a_step_that_is_too_long_is_noticed_and_the_longest_is_told():
    x, y = problem()
    centred = x - x.mean(0)
    most = 2 / float(torch.linalg.eigvalsh(centred.T @ centred / len(x))[-1] + 0.5)
    with pytest.raises(ArithmeticError, match=rf"gd diverges .*: use less than 2 / .* = {most:.4g}"):
        LinearRegression(0.5, solver="gd", lr=1.01 * most).fit(x, y)
    LinearRegression(0.5, solver="gd", lr=0.99 * most).fit(x, y)
    with pytest.raises(ArithmeticError, match=r"sgd diverges with lr = 10: use at most 1 / max \|x\|\^2 = 0\.0"):
        LinearRegression(solver="sgd", lr=10.0).fit(x, y)


def test_sgd_says_that_it_diverges_before_numbers_overflow():
    x, y = problem()
    centred = x - x.mean(0)
    longest = 1 / float(centred.square().sum(1).max())
    for start in (None, LinearRegression().fit(x, y).weight_):
        with pytest.raises(ArithmeticError, match=rf"sgd diverges .* use at most 1 / max \|x\|\^2 = {longest:.4g}"):
            LinearRegression(solver="sgd", lr=20 * longest, max_epochs=2).fit(x, y, weight=start)
        LinearRegression(solver="sgd", lr=longest, max_epochs=2).fit(x, y, weight=start)


@pytest.mark.parametrize("points", [1, 2, 3, 30])
def test_sgd_on_data_without_a_pattern_does_not_diverge(points):
    generator = torch.Generator().manual_seed(points)
    for _ in range(20):
        x, y = torch.randn(points, 2, generator=generator), torch.randn(points, generator=generator)
        most = 1 / float((x - x.mean(0)).square().sum(1).max() or 1.0)
        for lr in (None, most):
            LinearRegression(solver="sgd", lr=lr, max_epochs=3).fit(x, y)


def test_the_same_seed_takes_the_same_examples():
    x, y = problem()
    first, same, other = (LinearRegression(solver="sgd", seed=seed, max_epochs=3).fit(x, y) for seed in (1, 1, 2))
    assert torch.equal(first.weight_, same.weight_)
    assert not torch.equal(first.weight_, other.weight_)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("solver", [*DIRECT, "gd", "sgd"])
def test_results_have_the_dtype_of_the_data_and_the_digits_of_a_double(dtype, solver):
    x, y = (side.to(dtype) for side in problem(outputs=3))
    learnt = LinearRegression(0.1, solver=solver).fit(x, y)
    exact = LinearRegression(0.1, solver=solver).fit(x.double(), y.double())
    assert learnt.weight_.dtype == learnt.bias_.dtype == learnt.predict(x).dtype == dtype
    assert torch.equal(learnt.weight_, exact.weight_.to(dtype))


def test_what_was_learnt_can_be_kept_and_taken_over():
    x, y = problem()
    learnt, other = LinearRegression().fit(x, y), LinearRegression()
    assert other.state_dict() == {}
    other.load_state_dict({})
    other.load_state_dict(learnt.state_dict())
    assert torch.equal(other.predict(x), learnt.predict(x))
    assert repr(other) == "LinearRegression(ridge=0.0, bias=True, solver='cholesky')"


def test_data_that_ask_for_gradients_are_only_data():
    x, y = problem()
    assert not LinearRegression().fit(x.requires_grad_(), y).weight_.requires_grad


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ridge": -0.1}, "ridge must be >= 0"),
        ({"ridge": float("nan")}, "ridge must be finite"),
        ({"bias": 1}, "bias must be True or False, got 1"),
        ({"solver": "lu"}, "solver must be one of cholesky, qr, svd, gd, sgd"),
        ({"lr": 0.0}, "lr must be > 0, got 0"),
        ({"max_epochs": 0}, "max_epochs must be >= 1, got 0"),
        ({"tolerance": -1.0}, "tolerance must be > 0"),
    ],
)
def test_bad_choices_are_refused(words, said):
    with pytest.raises((ValueError, TypeError), match=said):
        LinearRegression(**words)


@pytest.mark.usefixtures("unchecked")
def test_bad_data_are_refused():
    x, y = problem()
    with pytest.raises(
        ValueError, match=r"y must hold a value, or a row of them, for each of 60 points, got shape \(59,\)"
    ):
        LinearRegression().fit(x, y[1:])
    with pytest.raises(ValueError, match="x must be finite, found 1 NaN value"):
        LinearRegression().fit(
            x.index_fill(0, torch.tensor([3]), 1.0).put_(torch.tensor([0]), torch.tensor([math.nan]).double()), y
        )
    with pytest.raises(TypeError, match="y must be floating point"):
        LinearRegression().fit(x, y.long())
    with pytest.raises(ValueError, match="weight must be a"):
        LinearRegression(solver="gd").fit(x, y, weight=torch.zeros(4))
    with pytest.raises(ValueError, match="x must have 5 features on its last axis"):
        LinearRegression().fit(x, y).predict(x[:, :4])
    with pytest.raises(RuntimeError, match="not fitted: call fit"):
        LinearRegression().predict(x)
    wrong = torch.zeros(2, x.shape[1])
    shapes = rf"weight must be a \({x.shape[1]},\) tensor to fit x and y, got shape \(2, {x.shape[1]}\)"
    with pytest.raises(ValueError, match=shapes):
        LinearRegression(solver="gd").fit(x, y, weight=wrong)
    with pytest.raises(TypeError, match="weight must be a tensor, got list"):
        LinearRegression(solver="gd").fit(x, y, weight=[0.0])
    with pytest.raises(TypeError, match="seed must be an integer, got str"):
        LinearRegression(solver="sgd", seed="a")


def test_descent_knows_dependent_columns_constant_features_and_a_start_at_the_optimum():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    twice = torch.cat([x, x[:, :1]], dim=1)
    y = x @ torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    found = LinearRegression(solver="gd").fit(twice, y)
    assert found.weight_.tolist() == pytest.approx([0.5, 2.0, 3.0, 0.5], abs=1e-6)
    for solver in ("gd", "sgd"):
        flat = LinearRegression(solver=solver).fit(torch.ones(5, 2, dtype=torch.float64), torch.arange(5.0).double())
        assert flat.weight_.tolist() == [0.0, 0.0]
        assert flat.bias_.item() == pytest.approx(2.0)
    for seed in range(40):
        torch.manual_seed(seed)
        x, y = torch.randn(30, 4, dtype=torch.float64), torch.randn(30, dtype=torch.float64)
        best = LinearRegression().fit(x, y)
        again = LinearRegression(solver="gd").fit(x, y, weight=best.weight_)
        assert again.weight_.tolist() == pytest.approx(best.weight_.tolist(), abs=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("solver", [*DIRECT, "gd"])
def test_weighted_examples_are_scikit_learns_and_whole_weights_are_copies(solver, bias, outputs):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = problem(outputs=outputs)
    weights = torch.arange(60, dtype=torch.double) % 4
    peer = linear.Ridge(alpha=0.1 * float(weights.sum()), fit_intercept=bias, solver="svd")
    peer.fit(x.numpy(), y.numpy(), sample_weight=weights.numpy())
    ours = LinearRegression(0.1, bias, solver).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(ours.weight_.numpy(), peer.coef_.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.bias_.numpy(), peer.intercept_, rtol=1e-8, atol=1e-8)
    assert ours.score(x, y, weights) == pytest.approx(peer.score(x.numpy(), y.numpy(), weights.numpy()), rel=1e-10)
    assert ours.score(x, y) == pytest.approx(peer.score(x.numpy(), y.numpy()), rel=1e-10)
    copies = torch.repeat_interleave(torch.arange(60), weights.long())
    again = LinearRegression(0.1, bias, solver).fit(x[copies], y[copies])
    torch.testing.assert_close(ours.weight_, again.weight_, rtol=1e-8, atol=1e-8)
    for scale in (1e-200, 1e300):
        same = LinearRegression(0.1, bias, solver).fit(x, y, sample_weight=scale * weights)
        torch.testing.assert_close(same.weight_, ours.weight_, rtol=1e-8, atol=1e-8)


def test_weighted_examples_lead_sgd_as_well():
    x, y = problem()
    weights = torch.linspace(0, 2, 60, dtype=torch.double)
    best = LinearRegression(0.1).fit(x, y, sample_weight=weights).weight_
    found = LinearRegression(0.1, solver="sgd", max_epochs=400).fit(x, y, sample_weight=weights).weight_
    torch.testing.assert_close(found, best, rtol=0.02, atol=0.02)


def test_the_score_of_a_constant_is_all_or_nothing():
    x, y = problem()
    flat = torch.full_like(y, 3.0)
    model = LinearRegression(bias=False).fit(x, y)
    assert model.score(x, flat) == 0.0
    model.load_state_dict({"weight": torch.zeros(5).double(), "bias": torch.tensor(3.0).double()})
    assert model.score(x, flat) == 1.0
    assert LinearRegression().fit(x, y * 1e300).score(x, y * 1e300) == pytest.approx(
        LinearRegression().fit(x, y).score(x, y)
    )


@pytest.mark.usefixtures("unchecked")
def test_bad_weights_states_and_dtypes_are_refused():
    x, y = problem()
    for wrong, said in (
        (torch.ones(59), "sample_weight must have 60 entries, got 59"),
        (-torch.ones(60), "sample_weight must be >= 0, and not 0 everywhere, got -1 to -1"),
        (torch.zeros(60), "sample_weight must be >= 0, and not 0 everywhere, got 0 to 0"),
        (torch.full((60,), math.nan), "sample_weight must be finite"),
    ):
        with pytest.raises(ValueError, match=said):
            LinearRegression().fit(x, y, sample_weight=wrong)
    with pytest.raises(ValueError, match="state must hold weight and bias, got w"):
        LinearRegression().load_state_dict({"w": x})
    with pytest.raises(ArithmeticError, match=r"which torch\.float16 does not hold: use x\.double\(\)"):
        LinearRegression().fit((1e-4 * x).half(), (100 * y).half())
    with pytest.raises(ValueError, match=r"y must have the shape of the answers, \(60,\), got \(60, 1\)"):
        LinearRegression().fit(x, y).score(x, y[:, None])
