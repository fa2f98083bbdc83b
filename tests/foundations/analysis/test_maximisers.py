"""Sets of maximisers: rows, ties, bad input."""

import pytest
import torch

from lemmata.foundations.analysis.maximisers import argmax_set


def test_maximisers_are_found_in_each_row():
    values = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    assert argmax_set(values).tolist() == [[True, True], [False, True]]
    assert argmax_set(torch.tensor([-5.0])).tolist() == [True]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: argmax_set(torch.tensor(1.0)), ValueError, "values must be .* got one number"),
        (lambda: argmax_set(torch.tensor([1.0, float("nan")])), ValueError, "values must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
