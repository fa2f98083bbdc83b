"""What the claims about separability do not say: bad input, dtypes, small and large data, undecidable data."""

import contextlib
import itertools
import math

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


def test_data_within_rounding_of_inseparable_are_refused_or_decided_with_proof():
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5 + 1e-12]], dtype=torch.float64)
    y = torch.tensor([1, 1, -1])
    with contextlib.suppress(ArithmeticError):
        assert separate(x, y).verify(x, y)


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


def test_on_whole_numbers_a_slight_error_is_mended():
    """A quarter is the only fraction near by that is not unwieldy."""
    slight = Separation(False, multipliers=QUARTER + 1e-9 * NUDGE)
    assert slight.verify(X, XOR)
    assert not slight.verify(1e-6 * X.double(), XOR)


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


def test_an_activation_within_its_rounding_proves_nothing():
    # The activation 8e-10 is positive, but within the rounding of the terms of a million that make it.
    doubtful = Separation(True, torch.tensor([1e6 + 8e-10, 0.0], dtype=torch.float64), torch.tensor(-1e6))
    assert not doubtful.verify(X[2:3].double(), torch.tensor([1]))


def test_an_undecided_program_says_so(monkeypatch):
    monkeypatch.setattr(Separation, "verify", lambda *_: False)
    with pytest.raises(ArithmeticError, match="too close to the edge of separability to decide in double precision"):
        separate(X, XOR)


def test_a_failed_program_says_so(monkeypatch):
    class Failed:
        x, message = None, "out of time"

    monkeypatch.setattr("lemmata.connectionism.separability.linprog", lambda **_: Failed)
    with pytest.raises(ArithmeticError, match="linear program for separability failed: out of time"):
        separate(X, XOR)


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
