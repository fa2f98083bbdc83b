"""Every check names the argument, the value and the fix, and hands good values through."""

import math

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from lemmata import validate


@pytest.mark.parametrize(
    ("check", "arguments", "error", "message"),
    [
        (validate.floating, ([1.0],), TypeError, r"x must be a tensor, got list: use torch\.as_tensor\(x\)"),
        (validate.tensor, ([1],), TypeError, r"x must be a tensor, got list: use torch\.as_tensor\(x\)"),
        (validate.last_axis, ([1.0], 1), TypeError, "x must be a tensor, got list"),
        (validate.inputs, (torch.ones(2, 3).long(), 3), TypeError, r"got torch\.int64: use x\.float\(\)"),
        (validate.inputs, (torch.ones(2, 3), 2), ValueError, r"x must have 2 inputs on its last axis, got shape"),
        (validate.examples, ([[1.0]], 1), TypeError, "x must be a tensor, got list"),
        (validate.examples, (torch.ones(2, 3).long(), 3), TypeError, r"got torch\.int64: use x\.float\(\)"),
        (validate.examples, (torch.ones(3), 3), ValueError, r"\(batch, \.\.\.\) with 3 values each, got shape \(3,\)"),
        (validate.examples, (torch.ones(2, 2, 2), 3), ValueError, r"with 3 values each, got shape \(2, 2, 2\)"),
        (validate.floating, (torch.zeros(0),), ValueError, r"x must not be empty, got shape \(0,\)"),
        (validate.floating, (torch.tensor([1, 2]),), TypeError, r"x must be floating point, got torch\.int64"),
        (validate.floating, (torch.tensor([math.nan, 1.0]),), ValueError, "found 1 NaN value: remove or impute it"),
        (validate.floating, (torch.full((2, 2), math.nan),), ValueError, "found 4 NaN values: remove or impute them"),
        (validate.floating, (torch.tensor([1.0, -math.inf]),), ValueError, "found 1 infinite value: clip or rescale"),
        (validate.matrix, (torch.zeros(3),), ValueError, r"x must be a \(points, features\) tensor, got shape \(3,\)"),
        (validate.matrix, (torch.zeros(2, 0),), ValueError, r"x must not be empty, got shape \(2, 0\)"),
        (validate.vector, (torch.zeros(2, 2),), ValueError, r"x must be a tensor with one axis, got shape \(2, 2\)"),
        (validate.vector, (torch.zeros(2), 3), ValueError, "x must have 3 entries, got 2"),
        (validate.vector, (torch.zeros(2), 1), ValueError, "x must have 1 entry, got 2"),
        (validate.last_axis, (torch.zeros(4, 3), 2), ValueError, r"x must have 2 features on its last axis, got shape"),
        (
            validate.last_axis,
            (torch.tensor(1.0), 1, "unit"),
            ValueError,
            r"1 unit on its last axis, got shape \(\)",
        ),
        (validate.fraction, (1.0,), ValueError, r"x must be in \[0, 1\), got 1\.0"),
        (validate.fraction, (-0.1,), ValueError, r"x must be in \[0, 1\), got -0\.1"),
        (validate.fraction, (0.6, 0.5), ValueError, r"x must be in \[0, 0\.5\], got 0\.6"),
        (validate.fraction, (math.nan,), ValueError, "x must be finite, got nan"),
        (validate.one_of, ("c", ["a", "b"]), ValueError, "x must be one of a, b, got 'c'"),
        (validate.labels, (torch.ones(3), torch.zeros(2, 1)), ValueError, r"one label for each of the 2 points, got"),
        (
            validate.labels,
            (torch.ones(1, 2), torch.zeros(1, 1)),
            ValueError,
            r"each of the 1 point, got shape \(1, 2\)",
        ),
        (validate.labels, (torch.tensor([0, 1]), torch.zeros(2, 1)), ValueError, r"labels \{0, 1\}: use 2 \* x - 1"),
        (validate.labels, (torch.tensor([2.0, 1.0]), torch.zeros(2, 1)), ValueError, r"got labels \{1, 2\}$"),
        (validate.labels, (torch.tensor([True]), torch.zeros(1, 1)), ValueError, r"got booleans: use 2 \* x\.long"),
        (validate.labels, (torch.tensor([math.nan]), torch.zeros(1, 1)), ValueError, "found 1 NaN value"),
        (validate.signs, (torch.arange(9),), ValueError, r"only -1 and \+1, got values \{0, 1, 2, 3, \.\.\.\}$"),
        (validate.signs, (torch.ones(0),), ValueError, "must not be empty"),
        (
            validate.bits,
            (torch.tensor([-1, 1]),),
            ValueError,
            r"only 0 and 1, got values \{-1, 1\}: use \(x \+ 1\) / 2",
        ),
        (validate.bits, (torch.tensor([0.5]),), ValueError, r"got values \{0\.5\}$"),
        (validate.finite_number, (math.inf,), ValueError, "x must be finite, got inf"),
        (validate.finite_number, ("1",), TypeError, "x must be a number, got str"),
        (validate.finite_number, (True,), TypeError, "x must be a number, got bool"),
        (validate.finite_number, (10**400,), ValueError, "x must be finite, got 1000"),
        (validate.number, (0, None, None, 0), ValueError, "x must be > 0, got 0"),
        (validate.number, (3, 0, 2), ValueError, "x must be >= 0 and <= 2, got 3"),
        (validate.number, (1.0, None, None, 0, 1), ValueError, r"x must be > 0 and < 1, got 1\.0"),
        (validate.tokens, (torch.zeros(2), 5), TypeError, r"as integers, got torch\.float32: use x\.long\(\)"),
        (validate.tokens, (torch.tensor([True]), 5), TypeError, "as integers, got torch.bool"),
        (validate.tokens, (torch.tensor([4, 5]), 5), ValueError, "x must hold tokens from 0 to 4, got 4 to 5"),
        (validate.tokens, (torch.tensor([-1, 0]), 5), ValueError, "x must hold tokens from 0 to 4, got -1 to 0"),
        (validate.positive, (0.0,), ValueError, r"x must be > 0, got 0\.0"),
        (validate.positive, (math.nan,), ValueError, "x must be finite, got nan"),
        (validate.count, (-1,), ValueError, "x must be >= 1, got -1"),
        (validate.count, (5, 0, 4), ValueError, "x must be <= 4, got 5"),
        (validate.count, (2.0,), TypeError, "x must be an integer, got float"),
        (validate.count, (True,), TypeError, "x must be an integer, got bool"),
        (validate.flag, (1,), TypeError, "x must be True or False, got 1"),
        (validate.module, (3,), TypeError, "x must be an nn.Module, got int"),
        (validate.module, (nn.ReLU(), nn.Linear), TypeError, "x must be a Linear, got ReLU"),
    ],
)
def test_a_bad_value_is_named_with_its_fix(unchecked, check, arguments, error, message):
    with pytest.raises(error, match=message):
        check("x", *arguments)


def test_good_values_come_back_unchanged():
    x = torch.tensor([[1.0, -1.0]])
    assert validate.matrix("x", x) is x
    assert validate.vector("x", x[0], length=2).equal(x[0])
    assert validate.signs("x", x) is x
    assert validate.bits("x", torch.tensor([True, False])).dtype is torch.bool
    assert [validate.positive("x", 2), validate.count("x", 0, least=0)] == [2, 0]
    assert validate.flag("x", False) is False
    assert isinstance(validate.module("x", nn.ReLU()), nn.ReLU)
    assert validate.last_axis("x", x, 2) is x
    assert [validate.fraction("x", 0), validate.fraction("x", 0.5, most=0.5)] == [0, 0.5]
    assert validate.one_of("x", "b", ("a", "b")) == "b"
    assert [validate.number("x", 2, least=2, most=2), validate.number("x", -0.5)] == [2, -0.5]
    for tokens in (torch.tensor([0, 4]), torch.zeros(0, dtype=torch.int32), torch.tensor([[3]], dtype=torch.uint8)):
        assert validate.tokens("x", tokens, 5) is tokens


def test_examples_become_vectors():
    assert validate.examples("x", torch.ones(5, 2, 3), 6).shape == (5, 6)
    assert validate.examples("x", torch.ones(0, 4).half(), 4).shape == (0, 4)


def test_leading_axes_only_fit_where_there_is_a_batch():
    like, value = torch.zeros(2), torch.ones(7, 2)
    assert validate.fits("x", value, (2,), like, "A", batched=True) is value
    assert validate.fits("x", value[0], (2,), like, "A").shape == (2,)
    with pytest.raises(ValueError, match=r"x must be a \(2,\) tensor to fit A, got shape \(7, 2\)"):
        validate.fits("x", value, (2,), like, "A")
    with pytest.raises(ValueError, match=r"x must be a \(\.\.\., 2, 2\) tensor to fit A, got shape \(2,\)"):
        validate.fits("x", value[0], (2, 2), like, "A", batched=True)
    with pytest.raises(TypeError, match=r"dtype of A, got torch\.float64: use x\.to\(torch\.float32\)"):
        validate.fits("x", value[0].double(), (2,), like, "A")


def test_large_finite_values_are_finite_even_if_their_sum_is_not():
    x = torch.full((4,), torch.finfo(torch.float32).max)
    assert not x.sum().isfinite()
    assert validate.floating("x", x) is x


def test_labels_take_the_dtype_of_the_points():
    assert validate.labels("y", torch.tensor([1, -1]), like=torch.zeros(2, 1).double()).dtype is torch.float64


def test_values_are_looked_at_where_there_are_any_and_nothing_waits():
    x = torch.arange(6).view(2, 3)
    assert validate.visible(x)
    assert not validate.visible(x[:0])
    assert not validate.visible(x.to("meta"))
    assert not torch.func.vmap(lambda row: torch.tensor(validate.visible(row)))(x).any()
    with FakeTensorMode() as mode:
        assert not validate.visible(mode.from_tensor(x))
    assert not validate.visible(mode.from_tensor(x))
    graph = make_fx(lambda x: validate.tokens("x", x, 5) + 1)(x)  # 5 is no token, but there is nothing to look at
    assert torch.equal(graph(x), x + 1)
