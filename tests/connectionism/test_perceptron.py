"""What the claims about the perceptron do not say: parity with scikit-learn, bad input, dtypes, warm starts."""

import math
from fractions import Fraction

import pytest
import torch

from lemmata.connectionism.perceptron import Perceptron, textbook_perceptron
from lemmata.judge import Draw

SQUARE = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
AND = torch.tensor([-1, -1, -1, 1])
XOR = torch.tensor([-1, 1, 1, -1])


def gaussian_data(points=3000, features=20, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(points, features, generator=generator, dtype=dtype)
    return x, torch.sign(x @ torch.randn(features, generator=generator, dtype=dtype) + 0.5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("epochs", [1, 7])
def test_weights_are_those_of_scikit_learn(bias, epochs):
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = gaussian_data()
    peer = linear_model.Perceptron(eta0=1.0, shuffle=False, tol=None, max_iter=epochs, fit_intercept=bias)
    peer.fit(x.numpy(), y.numpy())
    ours = Perceptron(bias=bias, max_epochs=epochs, certify=False).fit(x, y)
    assert ours.mistakes_ > 500 or epochs == 1
    torch.testing.assert_close(ours.weight_, torch.from_numpy(peer.coef_[0]))
    assert ours.bias_.item() == peer.intercept_[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_make_the_updates_of_the_textbook(dtype):
    x, y = gaussian_data(700, 5, dtype)
    ours = Perceptron(max_epochs=3, certify=False).fit(x, y)
    weight, bias, updates = textbook_perceptron(x, y, epochs=3)
    assert ours.updates_.tolist() == updates
    torch.testing.assert_close(ours.weight_, weight)
    assert ours.bias_ == bias


@pytest.mark.parametrize("bias", [True, False])
def test_runs_say_what_the_textbook_says(bias):
    """Integers, on which every sum is exact; labels that a plane explains, and labels that nothing does."""
    draw = Draw("runs")
    x = draw.integers(-9, 10, 400, 19).double()
    for y, epochs in (
        (torch.where(x @ draw.integers(-3, 4, 19).double() > 0, 1.0, -1.0).double(), 4),
        (draw.signs(400), 5),
    ):
        fast = Perceptron(bias=bias, max_epochs=epochs, certify=False, record=True).fit(x, y)
        weight, b, updates = textbook_perceptron(x, y, epochs=epochs, bias=bias)
        assert fast.updates_.tolist() == updates
        assert fast.mistakes_ == len(updates)
        assert fast.mistake_counts_.tolist() == [updates.count(i) for i in range(400)]
        assert torch.cat([fast.weight_, fast.bias_[None]]).equal(torch.cat([weight, b[None]]))
        assert fast.trajectory_[-1].equal(torch.cat([weight, b[None]]))
        assert fast.margin(x, y).item() == pytest.approx(
            ((y * (x @ weight + b)).min() / weight.norm()).item(), rel=1e-12
        )


def test_the_last_epoch_is_clean_if_and_only_if_the_data_are_separable():
    for y in (AND, XOR):
        fitted = Perceptron(certify=False).fit(SQUARE, y)
        before = Perceptron(max_epochs=fitted.epochs_ - 1, certify=False).fit(SQUARE, y)
        assert (before.mistakes_ == fitted.mistakes_) is (fitted.status_ == "separated")


def test_a_run_stopped_early_says_so_and_asks_the_linear_program():
    """Real numbers never repeat, so the status after too few epochs rests on the program alone."""
    draw = Draw("hurry")
    x, noise = draw.normal(60, 2), draw.signs(60)
    planted = torch.where(x[:, 0] > 0.1 * x[:, 1], 1.0, -1.0).double()
    scaled = x * torch.tensor([1e6, 1e-6], dtype=x.dtype)
    mixed, clear = (Perceptron(max_epochs=1).fit(scaled, y) for y in (noise, planted))
    unasked = Perceptron(max_epochs=2, certify=False).fit(x, noise)
    assert [(run.status_, run.epochs_) for run in (mixed, clear, unasked)] == [
        ("not separable", 1), ("epoch limit", 1), ("epoch limit", 2),
    ]  # fmt: skip
    assert not mixed.certificate_.separable
    assert mixed.certificate_.verify(scaled, noise)
    assert clear.certificate_.separable
    assert clear.certificate_.verify(scaled, planted)
    assert unasked.certificate_ is None
    assert not hasattr(unasked, "trajectory_")


def test_weights_that_repeat_are_a_proof():
    for y in (XOR, -XOR):
        fitted = Perceptron(certify=False).fit(SQUARE, y)
        assert fitted.status_ == "not separable"
        assert fitted.certificate_.verify(SQUARE, y)
        assert fitted.epochs_ < 8


@pytest.mark.parametrize(
    ("dtype", "learnt"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
)
def test_half_precision_is_learnt_in_float32(dtype, learnt):
    fitted = Perceptron(record=True).fit(SQUARE.to(dtype), AND)
    assert fitted.status_ == "separated"
    assert fitted.weight_.dtype is fitted.bias_.dtype is fitted.trajectory_.dtype is learnt
    assert fitted.predict(SQUARE.to(dtype)).tolist() == AND.tolist()
    assert fitted.margin(SQUARE.to(dtype), AND) > 0


def test_a_single_point_is_learnt_in_one_update():
    fitted = Perceptron().fit(torch.tensor([[2.0, 1.0]]), torch.tensor([-1]))
    assert (fitted.mistakes_, fitted.epochs_, fitted.status_) == (1, 2, "separated")
    assert fitted.certificate_ is None


def test_a_warm_start_at_a_solution_changes_nothing():
    first = Perceptron().fit(SQUARE, AND)
    again = Perceptron().fit(SQUARE, AND, weight=first.weight_, bias=first.bias_.item())
    assert (again.mistakes_, again.epochs_, again.status_) == (0, 1, "separated")
    assert again.mistake_counts_.tolist() == [0] * 4
    assert again.weight_.equal(first.weight_)


def test_fitting_twice_forgets_the_first_data_and_leaves_them_unchanged():
    x, start = SQUARE.clone(), torch.ones(2)
    model = Perceptron().fit(x, XOR, weight=start)
    model.fit(x, AND)
    assert model.certificate_ is None
    assert model.weight_.equal(Perceptron().fit(x, AND).weight_)
    assert x.equal(SQUARE)
    assert start.equal(torch.ones(2))


def test_columns_in_any_memory_order_give_the_same_weights():
    x, y = gaussian_data(200, 6)
    transposed = x.T.contiguous().T
    assert not transposed.is_contiguous()
    assert Perceptron(certify=False).fit(transposed, y).weight_.equal(Perceptron(certify=False).fit(x, y).weight_)


def test_points_with_a_history_of_gradients_are_taken_as_numbers():
    assert Perceptron().fit(SQUARE.clone().requires_grad_(), AND).status_ == "separated"


def test_an_undecidable_program_leaves_the_epoch_limit(monkeypatch):
    def undecided(*_):
        raise ArithmeticError("too close")

    monkeypatch.setattr("lemmata.connectionism.perceptron.separate", undecided)
    fitted = Perceptron(max_epochs=1).fit(*gaussian_data(50, 2))
    assert (fitted.status_, fitted.certificate_) == ("epoch limit", None)


def test_weights_that_repeat_by_rounding_alone_are_no_proof():
    # 1 + 2e-17 = 1 in float64: the weights repeat although the data are separable.
    x = torch.tensor([[1.0, 0.0], [1e-17, 1e-17]], dtype=torch.float64)
    fitted = Perceptron(bias=False, certify=False).fit(x, torch.tensor([1, -1]), weight=torch.tensor([1.0, 1.0]))
    assert fitted.status_ == "epoch limit"


@pytest.mark.parametrize(("dtype", "large"), [(torch.float64, 1e16), (torch.float32, 2.0**24)])
def test_an_epoch_that_is_clean_by_rounding_alone_is_not_called_separated(dtype, large):
    # The exact activation is -0.25; in the order of the sum it comes out as 0.25 or 0 or something else.
    x, y = torch.tensor([[large, 1.5, -large, -1.75]], dtype=dtype), torch.tensor([1])
    fitted = Perceptron(bias=False).fit(x, y, weight=torch.ones(4))
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x[0].tolist(), fitted.weight_.tolist(), strict=True))
    assert (fitted.status_ == "separated") is (exact > 0)
    if fitted.mistakes_ == 0:
        assert fitted.status_ == "clean up to rounding"
        assert fitted.certificate_.separable
        assert fitted.certificate_.verify(x, y)
        assert Perceptron(bias=False, certify=False).fit(x, y, weight=torch.ones(4)).certificate_ is None


def test_products_that_overflow_separate_nothing():
    # inf - inf is not a number, which is not <= 0: the epoch is clean, and nothing is proved by it.
    x = torch.tensor([[1e200, 1e200]], dtype=torch.float64)
    start = torch.tensor([1e200, -1e200], dtype=torch.float64)
    assert Perceptron(bias=False).fit(x, torch.tensor([1]), weight=start).status_ == "clean up to rounding"


@pytest.mark.parametrize("k", [10, 13, 15])
def test_neighbours_far_out_are_not_called_inseparable(k):
    x = torch.tensor([[10.0**k], [10.0**k + 1]], dtype=torch.float64)
    fitted = Perceptron(max_epochs=3).fit(x, torch.tensor([-1, 1]))
    assert fitted.status_ == "epoch limit"
    assert fitted.certificate_.separable
    middle = torch.cat([x, x[1:] + 1])
    assert Perceptron(max_epochs=3).fit(middle, torch.tensor([1, -1, 1])).status_ == "not separable"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_is_called_separated_is_so_exactly(dtype):
    """Numbers next to each other, in which products often round to the wrong side."""
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for trial in range(60):
        step = torch.finfo(dtype).eps
        x = 1 + step * torch.randint(0, 4, (4, 1 + trial % 2), generator=generator).to(dtype)
        y = torch.randint(0, 2, (4,), generator=generator) * 2 - 1
        fitted = Perceptron(max_epochs=20).fit(x.to(dtype), y)
        seen.add(fitted.status_)
        if fitted.status_ == "separated":
            plane = [Fraction(value) for value in [*fitted.weight_.tolist(), fitted.bias_.item()]]
            for row, label in zip(x.tolist(), y.tolist(), strict=True):
                assert label * sum(map(Fraction.__mul__, plane, map(Fraction, [*row, 1]))) > 0
        else:
            assert fitted.certificate_.verify(x, y)
    assert {"separated", "not separable"} <= seen


def test_the_unit_answers_like_the_perceptron():
    fitted = Perceptron().fit(SQUARE, AND)
    assert fitted.unit_(SQUARE).equal(fitted.predict(SQUARE))
    assert fitted.decision_function(SQUARE).sign().equal(fitted.predict(SQUARE))
    assert fitted.predict(SQUARE[3]).item() == 1


def test_repr_shows_the_options():
    assert repr(Perceptron(bias=False)) == "Perceptron(bias=False, max_epochs=1000, certify=True, record=False)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Perceptron(max_epochs=0), ValueError, "max_epochs must be >= 1, got 0"),
        (lambda: Perceptron(bias=1), TypeError, "bias must be True or False, got 1"),
        (lambda: Perceptron(record="yes"), TypeError, "record must be True or False, got 'yes'"),
        (lambda: Perceptron().fit(SQUARE[0], AND), ValueError, r"x must be a \(points, features\) tensor"),
        (lambda: Perceptron().fit(SQUARE[:0], AND[:0]), ValueError, "x must not be empty"),
        (lambda: Perceptron().fit(SQUARE * math.nan, AND), ValueError, "x must be finite, found 8 NaN values"),
        (lambda: Perceptron().fit(SQUARE, AND[:2]), ValueError, "y must hold one label for each of the 4 points"),
        (lambda: Perceptron().fit(SQUARE, AND > 0), ValueError, r"got booleans: use 2 \* y\.long\(\) - 1"),
        (lambda: Perceptron().fit(SQUARE, AND, weight=torch.ones(3)), ValueError, "weight must have 2 entries, got 3"),
        (lambda: Perceptron().fit(SQUARE, AND, bias=math.inf), ValueError, "bias must be finite, got inf"),
        (
            lambda: Perceptron(bias=False).fit(SQUARE, AND, bias=1.0),
            ValueError,
            r"bias must be 0 .* without bias, got 1",
        ),
        (lambda: Perceptron().predict(SQUARE), RuntimeError, r"not fitted: call fit\(x, y\) first"),
        (
            lambda: Perceptron().fit(SQUARE, AND).predict(SQUARE[:, :1]),
            ValueError,
            "x must have 2 features",
        ),
        (lambda: Perceptron().fit(SQUARE, AND).predict([1.0]), TypeError, "x must be a tensor, got list"),
        (lambda: Perceptron().fit(SQUARE, AND).margin(SQUARE, AND[:1]), ValueError, "one label for each of the 4"),
        (lambda: textbook_perceptron(SQUARE, AND, epochs=0), ValueError, "epochs must be >= 1, got 0"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
