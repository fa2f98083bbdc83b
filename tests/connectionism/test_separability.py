"""What the claims about separability do not say: bad input, dtypes, small and large data, points next to each other."""

import itertools
import math
import random
from fractions import Fraction

import pytest
import torch

from lemmata.connectionism.separability import Separation, separate, signed_rows
from lemmata.judge import Draw

X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = torch.tensor([-1, 1, 1, -1])


def test_float32_data_are_answered_in_float64():
    found = separate(X, torch.tensor([-1, 1, 1, 1]))
    assert found.separable
    assert found.multipliers is None
    assert (found.weight.dtype, found.bias.dtype, found.bias.shape) == (torch.float64, torch.float64, ())
    assert found.verify(X, torch.tensor([-1, 1, 1, 1]))


def test_a_proof_of_inseparability_carries_no_plane():
    found = separate(X, XOR)
    assert (found.separable, found.weight, found.bias) == (False, None, None)
    assert found.multipliers.sum().item() == pytest.approx(1.0)


def test_the_answer_without_bias_is_a_plane_through_the_origin():
    y = torch.tensor([1, 1, 1])
    found = separate(X[1:], y, bias=False)
    assert found.verify(X[1:], y)
    assert found.bias.item() == 0
    assert not separate(X, torch.ones(4), bias=False).separable  # the origin is on every such plane


@pytest.mark.parametrize("label", [-1, 1])
def test_a_single_point_is_separable(label):
    assert separate(torch.tensor([[3.0]]), torch.tensor([label])).separable


def test_contradicting_labels_are_found_in_a_large_set():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 30, generator=generator, dtype=torch.float64)
    y = torch.sign(x[:, 0])
    assert separate(x, y).separable
    x, y = torch.cat([x, x[:1]]), torch.cat([y, -y[:1]])
    contradicted = separate(x, y)
    assert not contradicted.separable
    assert contradicted.verify(x, y)


def test_the_same_data_give_the_same_answer():
    first, second = (separate(X.double() * 0.3, XOR).multipliers for _ in range(2))
    assert first.equal(second)


def fractions_agree(found, x, y):
    """The answer checked in fractions, from the numbers as they are stored and nothing else."""
    points = [[Fraction(value) for value in row] + [Fraction(1)] * found.biased for row in x.tolist()]
    rows = [[int(label) * value for value in row] for label, row in zip(y.tolist(), points, strict=True)]
    if found.separable:
        plane = [*found.weight.tolist(), found.bias.item()] if found.biased else found.weight.tolist()
        plane = found.exact or [Fraction(value) for value in plane]
        return all(sum(map(Fraction.__mul__, plane, row)) > 0 for row in rows)
    shares = found.exact or [Fraction(value) for value in found.multipliers.tolist()]
    sums = [sum(map(Fraction.__mul__, shares, column)) for column in zip(*rows, strict=True)]
    # Rounded multipliers cancel up to rounding, and `verify` has to prove that exact ones lie next to them.
    sizes = [sum(map(Fraction.__mul__, shares, map(abs, column))) for column in zip(*rows, strict=True)]
    allowed = Fraction(1, 10**14) if found.exact is None else 0
    assert found.verify(x, y)
    return all(abs(one) <= allowed * size for one, size in zip(sums, sizes, strict=True))


def near(k):
    return [[10.0**k], [10.0**k + 1], [10.0**k + 2]], [[1.0], [1 + 10.0**-k], [1 + 2 * 10.0**-k]]


@pytest.mark.parametrize("k", range(10, 16))
def test_points_next_to_each_other_are_told_apart(k):
    for points in near(k):
        x = torch.tensor(points, dtype=torch.float64)
        for labels in itertools.product([-1, 1], repeat=3):
            y = torch.tensor(labels)
            found = separate(x, y)
            assert found.separable is (labels not in ((1, -1, 1), (-1, 1, -1)))
            assert found.verify(x, y)
            assert fractions_agree(found, x, y)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1e308])
@pytest.mark.parametrize("y", [[-1, 1, 1], [1, -1, 1], [1, 1, 1]])
def test_the_scale_of_the_points_changes_no_answer(scale, y):
    x, y = torch.tensor([[0.0, 0.0], [scale, 0.0], [scale, scale]], dtype=torch.float64), torch.tensor(y)
    mixed = torch.cat([x, torch.tensor([[min(1 / scale, 1e308), 0.0]], dtype=torch.float64)])
    for points, labels in ((x, y), (mixed, torch.cat([y, y[1:2]])), (mixed, torch.cat([y, -y[:1]]))):
        found = separate(points, labels)
        assert found.verify(points, labels)
        assert fractions_agree(found, points, labels)
    assert separate(x, y).separable


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_neighbours_of_every_floating_type_are_told_apart(dtype):
    step = torch.finfo(dtype).eps
    x = torch.tensor([[1.0], [1 + step], [1 + 2 * step]], dtype=dtype)
    assert separate(x, torch.tensor([-1, 1, 1])).separable
    assert not separate(x, torch.tensor([-1, 1, -1])).separable


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint64])
def test_whole_numbers_of_every_width_are_exact(dtype):
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([[least], [most - 2], [most - 1], [most]], dtype=dtype)
    for labels, separable in (([-1, -1, 1, 1], True), ([-1, 1, -1, -1], False), ([1, 1, 1, -1], True)):
        y = torch.tensor(labels)
        found = separate(x, y)
        assert found.separable is separable
        assert found.verify(x, y)
        assert fractions_agree(found, x, y)


def test_data_within_rounding_of_inseparable_are_decided():
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5 + 1e-16]], dtype=torch.float64)
    y = torch.tensor([1, 1, -1])
    assert separate(x, y).separable is (0.5 + 1e-16 != 0.5)
    x[2, 1] = 0.5 + 1e-12
    found = separate(x, y)
    assert found.separable
    assert fractions_agree(found, x, y)


def test_a_plane_that_float64_cannot_hold_is_a_fraction():
    # Neighbours among all fractions: none between them has fewer digits than the sum of both, which takes 54 bits.
    p, q = 2**53 - 1, 2**53 - 2
    x = torch.tensor([[p, -q], [-q, q - 1]], dtype=torch.int64)
    y = torch.tensor([1, 1])
    found = separate(x, y, bias=False)
    assert found.separable
    assert found.exact is not None
    assert found.verify(x, y)
    assert fractions_agree(found, x, y)
    assert found.signs(x).tolist() == [1, 1]
    assert not Separation(True, found.weight, found.bias, biased=False).verify(x, y)


@pytest.mark.parametrize("bias", [True, False])
def test_numbers_of_all_sizes_side_by_side(bias):
    """No scaling brings these into the range of one double: products and weights leave it above and below."""
    draw, separable = random.Random(0), 0
    sizes = [0.0, 5e-324, 1e-310, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1e307]
    for _ in range(60):
        points, features = draw.randint(1, 8), draw.randint(1, 4)
        x = [[draw.choice(sizes) * draw.choice([-1, 1]) for _ in range(features)] for _ in range(points)]
        x, y = torch.tensor(x, dtype=torch.float64), torch.tensor([draw.choice([-1, 1]) for _ in range(points)])
        found = separate(x, y, bias)
        assert found.verify(x, y)
        assert fractions_agree(found, x, y)
        separable += found.separable
    assert 15 < separable < 55


@pytest.mark.parametrize("bias", [True, False])
def test_whatever_is_drawn_the_answer_is_proved(bias):
    """Points on coarse and on fine grids, and combinations of points: many ties, and many that are ties nearly."""
    generator = torch.Generator().manual_seed(0)
    separable = 0
    for trial in range(120):
        points, features = 2 + trial % 7, 1 + trial % 4
        x = torch.randint(-3, 4, (points, features), generator=generator).double()
        x = x * [1.0, 0.1, 1e-9, 1.0][trial % 4] + [0.0, 0.3, 1.0, 1e15][trial % 4]
        x[-1] = x[:-1].mean(0) if trial % 3 == 0 else x[-1]
        y = torch.randint(0, 2, (points,), generator=generator) * 2 - 1
        found = separate(x, y, bias)
        assert found.verify(x, y)
        assert fractions_agree(found, x, y)
        separable += found.separable
    assert 25 < separable < 95


def test_points_and_features_of_very_different_sizes_are_decided_with_proof():
    draw = Draw("sizes")
    x, w = draw.normal(12, 3), torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    clear = torch.where(x @ w > 0, 1.0, -1.0).double()
    x[:6] = x[6:] * torch.tensor([1e3, 1e-3, 1.0, 1.0, 1e2, 1e-2])[:, None]  # on the same rays, so labels must agree
    clear[:6] = clear[6:]
    mixed = clear * torch.where(torch.arange(12) < 6, -1.0, 1.0)
    sizes, dead = torch.tensor([1e9, 1e-9, 1.0]).double(), torch.tensor([1.0, 1.0, 0.0]).double()
    far = 10.0 ** draw.uniform(12, 1, low=-9.0, high=9.0)
    cases = [(x, clear, True), (x, mixed, False), (x * sizes, clear, True), (x * sizes, mixed, False)]
    cases += [(x * far, clear, True), (x * far, mixed, False), (x * dead, mixed, False)]
    cases += [(torch.cat([x, 0 * x[:1]]), torch.cat([clear, clear[:1]]), False)]  # no unit without bias decides at 0
    for points, y, separable in cases:
        found = separate(points, y, bias=False)
        assert found.separable is separable
        assert found.verify(points, y)
        assert found.bias is None or found.bias == 0


def test_a_plane_is_a_proof_for_its_own_labels_alone():
    every = [torch.tensor(signs) for signs in itertools.product([-1, 1], repeat=4)]
    for own, found in [(signs, separate(X, signs)) for signs in every]:
        if found.separable:
            assert [other.tolist() for other in every if found.verify(X, other)] == [own.tolist()]


QUARTER = torch.full((4,), 0.25, dtype=torch.float64)
NUDGE = torch.tensor([1.0, 0.0, 0.0, -1.0], dtype=torch.float64)
ODD = torch.tensor([-1, 1, 1, 1])


@pytest.mark.parametrize("size", [1.0, 0.1, torch.tensor([1.0, 0.7], dtype=torch.float64)])
def test_multipliers_that_cancel_are_a_proof(size):
    assert Separation(False, multipliers=QUARTER).verify(size * X.double(), XOR)


def test_multipliers_that_nearly_cancel_are_no_proof():
    slight = Separation(False, multipliers=QUARTER + 1e-9 * NUDGE)
    assert not slight.verify(X, XOR)
    assert not slight.verify(1e-6 * X.double(), XOR)


def test_rounded_multipliers_are_a_proof_only_where_exact_ones_lie_next_to_them():
    third = torch.full((3,), 1 / 3, dtype=torch.float64)
    triangle, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], dtype=torch.float64), torch.ones(3)
    assert Separation(False, multipliers=third, biased=False).verify(triangle, y)
    # The third is the second turned by a rounding: the sum vanishes up to rounding, and yet a line separates.
    thin = torch.tensor([[1.0, 0.0], [-1.0, 1e-17]], dtype=torch.float64)
    half = torch.full((2,), 0.5, dtype=torch.float64)
    assert not Separation(False, multipliers=half, biased=False).verify(thin, y[:2])
    assert separate(thin, y[:2], bias=False).separable


def test_exact_multipliers_and_their_rounding_must_agree():
    exact = (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
    third = torch.full((3,), 1 / 3, dtype=torch.float64)
    triangle, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), torch.ones(3)
    assert Separation(False, multipliers=third, biased=False, exact=exact).verify(triangle, y)
    assert not Separation(False, multipliers=third + 1e-15, biased=False, exact=exact).verify(triangle, y)
    assert not Separation(False, multipliers=third, biased=True, exact=exact).verify(triangle, y)
    negative = (Fraction(-1), Fraction(1), Fraction(1))
    assert not Separation(False, multipliers=torch.tensor([-1.0, 1, 1]), biased=False, exact=negative).verify(
        torch.tensor([[2.0], [1.0], [1.0]]), y
    )


@pytest.mark.parametrize(
    ("answer", "y"),
    [
        (Separation(True, torch.tensor([1.0, 1.0]), torch.tensor(-1.0)), ODD),  # touches two points
        (Separation(False, multipliers=QUARTER + 1e-3 * NUDGE), XOR),
        (Separation(False, multipliers=2 * QUARTER), XOR),
        (Separation(False, multipliers=QUARTER), ODD),
        (Separation(False, multipliers=1e-9 * QUARTER), ODD),
        # Cancels the points, but with a wrong sign.
        (Separation(False, multipliers=torch.tensor([0.5, 0.5, 0.5, -0.5], dtype=torch.float64)), ODD),
        (Separation(False, multipliers=QUARTER, biased=False), ODD),
        (Separation(False, multipliers=torch.full((3,), 1 / 3)), XOR),
        (Separation(True, multipliers=QUARTER), XOR),
        (Separation(False), XOR),
        (Separation(True, torch.ones(2)), ODD),
        (Separation(True, bias=torch.tensor(1.0)), ODD),
        (Separation(True, torch.ones(3), torch.tensor(-0.5)), ODD),
        (Separation(False, torch.ones(2), torch.tensor(-0.5)), ODD),
    ],
)
def test_what_proves_nothing_is_not_accepted(answer, y):
    assert not answer.verify(X, y)


@pytest.mark.parametrize("multipliers", [QUARTER + 1e-3 * NUDGE, 2 * QUARTER])
def test_small_points_need_the_same_care(multipliers):
    assert not Separation(False, multipliers=multipliers).verify(1e-6 * X.double(), XOR)


def test_an_activation_within_its_rounding_is_computed_exactly():
    # The activations 8e-10 and -2.5e-10 lie within the rounding of the terms of a million that make them.
    weight = torch.tensor([1e6 + 8e-10, 0.0], dtype=torch.float64)
    assert Separation(True, weight, torch.tensor(-1e6)).verify(X[2:3].double(), torch.tensor([1]))
    hidden = torch.tensor([[1e16, 1.5, -1e16, -1.75]], dtype=torch.float64)
    ones = torch.ones(4, dtype=torch.float64)
    assert not Separation(True, ones, torch.tensor(0.0), biased=False).verify(hidden, torch.tensor([1]))
    assert Separation(True, ones, torch.tensor(0.0), biased=False).verify(hidden, torch.tensor([-1]))


def test_what_takes_too_long_in_fractions_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("lemmata.certified.gordan.MAX_WORDS", 10)
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5 + 1e-16], [0.5, 0.5 - 1e-16]], dtype=torch.float64)
    with pytest.raises(ArithmeticError, match=r"too close to the edge .* rows of 3 numbers are too many"):
        separate(x, torch.tensor([1, 1, -1, 1]))


def test_without_a_guess_the_exact_method_decides_alone(monkeypatch):
    class Failed:
        x, message = None, "out of time"

    monkeypatch.setattr("lemmata.certified.strict_inequalities.linprog", lambda **_: Failed)
    assert not separate(X, XOR).separable
    assert separate(X, XOR).verify(X, XOR)
    assert separate(X, ODD).verify(X, ODD)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: separate(X[0], XOR), ValueError, r"x must be a \(points, features\) tensor, got shape \(2,\)"),
        (lambda: separate(X, XOR[:3]), ValueError, "y must hold one label for each of the 4 points"),
        (lambda: separate(X, (XOR + 1) // 2), ValueError, r"got labels \{0, 1\}: use 2 \* y - 1"),
        (lambda: separate(X * math.nan, XOR), ValueError, "x must be finite, found 8 NaN values"),
        (lambda: separate(X[:0], XOR[:0]), ValueError, "x must not be empty"),
        (lambda: separate(X, XOR, bias=1), TypeError, "bias must be True or False, got 1"),
        (lambda: separate(X.tolist(), XOR), TypeError, "x must be a tensor, got list"),
        (lambda: signed_rows(X.long(), XOR), TypeError, r"x must be floating point, got torch\.int64"),
        (lambda: separate(X, XOR).verify(X, XOR[:2]), ValueError, "y must hold one label for each of the 4 points"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
