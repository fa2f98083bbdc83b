"""The maximum-margin classifier: parity with scikit-learn, hard cases, bad input, dtypes."""

import time

import numpy as np
import pytest
import torch

from lemmata.connectionism.max_margin import MaximumMarginClassifier


def separable(points, features, gap=0.1, seed=0, bias=True):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(points, features, generator=generator, dtype=torch.double)
    normal = torch.nn.functional.normalize(torch.randn(features, generator=generator, dtype=torch.double), dim=0)
    side = x @ normal + 0.1 * bias
    y = torch.where(side > 0, 1.0, -1.0).double()
    return x + gap * y[:, None] * normal, y


@pytest.mark.parametrize(("points", "features"), [(10, 2), (40, 2), (60, 5), (30, 40)])
def test_it_is_the_hard_margin_svm_of_scikit_learn(points, features):
    svm = pytest.importorskip("sklearn.svm")
    x, y = separable(points, features, seed=points)
    ours = MaximumMarginClassifier().fit(x, y)
    theirs = svm.SVC(kernel="linear", C=1e10, tol=1e-10).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(ours.weight_.numpy(), theirs.coef_[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.bias_.item(), theirs.intercept_[0], rtol=1e-5, atol=1e-6)
    assert set(ours.support_.tolist()) == set(theirs.support_.tolist())
    signed = torch.zeros(points, dtype=torch.double)
    signed[ours.support_] = ours.dual_coef_
    np.testing.assert_allclose(signed[theirs.support_].numpy(), theirs.dual_coef_[0], rtol=1e-4)
    assert (ours.predict(x) == torch.from_numpy(theirs.predict(x.numpy()))).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gap", [0.1, 1e-4, 1e-8])
def test_the_optimality_conditions_hold_to_rounding(bias, gap):
    x, y = separable(300, 6, gap, bias=bias)
    model = MaximumMarginClassifier(bias).fit(x, y)
    functional = y * model.decision_function(x)
    assert functional.min() > 1 - 1e-10
    assert (functional[model.support_] - 1).abs().max() < 1e-10
    assert (model.dual_coef_ * y[model.support_] > 0).all()
    assert torch.allclose(model.dual_coef_ @ x[model.support_], model.weight_, rtol=1e-9)
    assert abs(model.dual_coef_.sum()) < 1e-10 * model.dual_coef_.abs().sum() or not bias
    assert model.margin_ == pytest.approx(1 / model.weight_.norm().item(), rel=1e-12)


def test_five_hundred_points_in_fifty_dimensions_take_well_under_a_second():
    x, y = separable(500, 50)
    started = time.process_time()
    MaximumMarginClassifier().fit(x, y)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_one_point_per_class_gives_the_perpendicular_bisector_at_any_scale(scale):
    x = scale * torch.tensor([[0.0, 0.0], [6.0, 8.0]], dtype=torch.double)
    model = MaximumMarginClassifier().fit(x, torch.tensor([-1, 1]))
    assert model.margin_ == pytest.approx(5.0 * scale)
    assert model.decision_function(x).tolist() == pytest.approx([-1.0, 1.0])


def test_duplicates_and_collinear_points_change_nothing():
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [5.0, 0.0]])
    y = torch.tensor([-1, -1, 1, 1])
    once = MaximumMarginClassifier().fit(x, y)
    twice = MaximumMarginClassifier().fit(x.repeat(3, 1), y.repeat(3))
    assert torch.equal(once.weight_, torch.tensor([1.0, 0.0]))
    assert once.margin_ == twice.margin_ == 1.0
    assert torch.equal(once.weight_, twice.weight_)


@pytest.mark.parametrize("features", [2, 3, 5])
def test_a_grid_with_many_points_on_the_street_is_solved(features):
    x = torch.cartesian_prod(*[torch.arange(3.0)] * features)
    total = x.sum(dim=1)
    model = MaximumMarginClassifier().fit(x, torch.where(total > features - 0.5, 1, -1))
    assert model.margin_ == pytest.approx(0.5 / features**0.5, rel=1e-6)


def test_without_a_bias_one_class_is_enough():
    model = MaximumMarginClassifier(bias=False).fit(torch.eye(4), torch.ones(4))
    assert model.margin_ == pytest.approx(0.5)
    assert model.bias_ == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_result_has_the_dtype_of_the_points(dtype):
    model = MaximumMarginClassifier().fit(torch.tensor([[0.0], [2.0]], dtype=dtype), torch.tensor([-1, 1]))
    assert model.weight_.dtype == model.bias_.dtype == model.dual_coef_.dtype == dtype
    assert model.predict(torch.tensor([[5.0]], dtype=dtype)).tolist() == [1.0]


def test_the_boundary_itself_gets_no_label():
    model = MaximumMarginClassifier().fit(torch.tensor([[0.0], [2.0]]), torch.tensor([-1, 1]))
    assert model.predict(torch.tensor([[1.0], [0.0], [2.0]])).tolist() == [0.0, -1.0, 1.0]


def test_data_that_are_not_separable_are_an_error_that_names_the_points_in_conflict():
    square = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"not linearly separable: .* \[2, 3\] of class \+1 .* \[0, 1\] of class -1"):
        MaximumMarginClassifier().fit(square, torch.tensor([-1, -1, 1, 1]))
    with pytest.raises(ValueError, match=r"not linearly separable through the origin: .* \[0, 1\]"):
        MaximumMarginClassifier(bias=False).fit(torch.tensor([[1.0], [3.0]]), torch.tensor([1, -1]))


@pytest.mark.parametrize("seed", range(20))
def test_hulls_that_merely_touch_are_not_separable(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(8, 4, generator=generator, dtype=torch.double)
    share = torch.rand(8, generator=generator, dtype=torch.double)
    x = torch.cat([x, (share / share.sum() @ x)[None]])
    with pytest.raises(ValueError, match="not linearly separable"):
        MaximumMarginClassifier().fit(x, torch.tensor([1] * 8 + [-1]))


@pytest.mark.parametrize("size", [1e-120, 1e120])
def test_the_margin_through_the_origin_scales_with_the_points(size):
    turn = torch.tensor([[-1, 0], [0, 1], [1, 1]], dtype=torch.double)
    model = MaximumMarginClassifier(bias=False).fit(size * turn, torch.tensor([-1, 1, 1]))
    assert model.margin_ == pytest.approx(size * 0.5**0.5)
    assert model.bias_ == 0


def test_a_street_as_narrow_as_a_hair_is_found():
    x = torch.tensor([[0.0], [1.0], [1 + 1e-12]], dtype=torch.double)
    assert 0 < MaximumMarginClassifier().fit(x, torch.tensor([1, 1, -1])).margin_ < 1e-12


@pytest.mark.parametrize("far", [0.0, 1e8, 1e13, 1e15, -1e15])
def test_neighbours_far_out_have_a_street_between_them(far):
    x = torch.tensor([[far], [far + 1]], dtype=torch.double)
    model = MaximumMarginClassifier().fit(x, torch.tensor([-1, 1]))
    assert (model.weight_.item(), model.bias_.item(), model.margin_) == (2.0, -2 * far - 1, 0.5)
    assert model.predict(x).tolist() == [-1, 1]
    flat = torch.tensor([[far, 3.0], [far + 1, 5.0], [far + 2, 5.0]], dtype=torch.double)
    assert MaximumMarginClassifier().fit(flat, torch.tensor([-1, 1, 1])).margin_ == pytest.approx(5**0.5 / 2)


def test_a_street_in_which_no_plane_can_be_placed_is_refused_in_other_words():
    x, y = torch.tensor([[1e16], [1e16 + 2]], dtype=torch.double), torch.tensor([-1, 1])
    with pytest.raises(ArithmeticError, match=r"x is separable, but too near to tell .* subtract x\[0\] from all"):
        MaximumMarginClassifier().fit(x, y)
    assert MaximumMarginClassifier().fit(x - x[0], y).margin_ == 1
    with pytest.raises(ArithmeticError, match=r"x is separable, but too near to tell .* use x\.double\(\)"):
        MaximumMarginClassifier().fit(torch.tensor([[2.0**24], [2.0**24 + 2]]), y)
    with pytest.raises(ArithmeticError, match="too near to tell"):  # the weights would be 2e310
        MaximumMarginClassifier().fit(torch.tensor([[1e-310], [1.1e-310]], dtype=torch.double), y)
    with pytest.raises(ArithmeticError, match="too near to tell"):
        MaximumMarginClassifier(bias=False).fit(torch.tensor([[1.0, 0.0], [-1.0, 1e-17]]).double(), torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_equal_points_of_every_type_are_in_conflict_and_neighbours_never(dtype):
    x, y = torch.tensor([[1.0], [1 + torch.finfo(dtype).eps]], dtype=dtype), torch.tensor([-1, 1])
    with pytest.raises(ValueError, match="not linearly separable"):
        MaximumMarginClassifier().fit(x[:1].repeat(2, 1), y)
    with pytest.raises(ArithmeticError, match="too near to tell"):
        MaximumMarginClassifier().fit(x, y)
    assert MaximumMarginClassifier().fit(x - x[:1], y).predict(x - x[:1]).tolist() == [-1, 1]


def test_no_direction_through_the_origin_does_better():
    x, y = separable(20, 2, bias=False)
    turns = torch.arange(2000, dtype=torch.double) * 2 * torch.pi / 2000
    best = (y[:, None] * (x @ torch.stack([turns.cos(), turns.sin()]))).amin(dim=0).max()
    margin = MaximumMarginClassifier(bias=False).fit(x, y).margin_
    assert best <= margin <= best + x.norm(dim=1).max() * torch.pi / 2000


def test_the_same_point_with_both_labels_is_not_separable():
    with pytest.raises(ValueError, match=r"\[0\] of class \+1 meets the hull of \[1\] of class -1"):
        MaximumMarginClassifier().fit(torch.zeros(2, 3), torch.tensor([1, -1]))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(3), torch.ones(3), r"x must be a \(points, features\) tensor, got shape \(3,\)"),
        (torch.zeros(0, 2), torch.ones(0), "x must not be empty"),
        (torch.tensor([[0.0], [float("nan")]]), torch.tensor([1, -1]), "x must be finite, found 1 NaN value"),
        (torch.tensor([[0.0], [float("inf")]]), torch.tensor([1, -1]), "x must be finite, found 1 infinite value"),
        (torch.zeros(2, 1), torch.tensor([0, 1]), "y must hold only -1 and .1, got labels {0, 1}: use 2 . y - 1"),
        (torch.zeros(2, 1), torch.tensor([1]), "y must hold one label for each of the 2 points"),
        (torch.zeros(2, 1), torch.tensor([1, 1]), r"y must hold both -1 and \+1, got only \+1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_data_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        MaximumMarginClassifier().fit(x, y)


@pytest.mark.usefixtures("unchecked")
def test_use_before_fit_and_other_features_are_refused():
    model = MaximumMarginClassifier()
    with pytest.raises(RuntimeError, match=r"not fitted: call fit\(x, y\) first"):
        model.predict(torch.zeros(1, 2))
    model.fit(torch.tensor([[0.0], [2.0]]), torch.tensor([-1, 1]))
    with pytest.raises(ValueError, match="x must have 1 feature on its last axis"):
        model.decision_function(torch.zeros(1, 2))
    with pytest.raises(TypeError, match="bias must be True or False, got 1"):
        MaximumMarginClassifier(bias=1)  # type: ignore[arg-type]
    assert repr(model) == "MaximumMarginClassifier(bias=True)"


def test_the_same_data_give_the_same_bits_whatever_lies_in_memory():
    """torch's least squares by "gelsy" reads pivots that nobody has set."""
    x, y = separable(150, 12)
    found = set()
    for junk in range(8):
        scraps = [torch.full((n,), junk, dtype=torch.int32) for n in range(1, 40)]
        del scraps  # the next small tensors lie where these did
        model = MaximumMarginClassifier().fit(x, y)
        found.add((*model.weight_.tolist(), *model.dual_coef_.tolist()))
    assert len(found) == 1
