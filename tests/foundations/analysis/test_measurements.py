"""What a measurement says of itself."""

import pytest

from lemmata.foundations import Measured, is_convex, smoothness


def squares(x):
    return x.square().sum()


def test_answers_are_truth_values_and_constants_are_not():
    assert is_convex(squares, (-1.0, 1.0), points=32)
    with pytest.raises(TypeError, match="smoothness constant is a number"):
        bool(smoothness(squares, (-1.0, 1.0), points=32))
    assert str(Measured("convex set", True, False, "none left")) == (
        "convex set yes (an estimate, not a proof: none left)"
    )
