"""What the claims about separability do not say: bad input, dtypes, small and large data, undecidable data."""

import contextlib
import math

import pytest
import torch

from lemmata.connectionism.separability import Separation, separate, signed_rows

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
