"""Padding: agreement with numpy in several dimensions, and bad input."""

import numpy as np
import pytest
import torch

from lemmata.convolution import pad_space
from lemmata.convolution.padding import amounts_of, per_axis

NUMPY = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY)
def test_padding_is_that_of_numpy(mode):
    x = torch.arange(2 * 4 * 5 * 3 * 3).reshape(2, 4, 5, 3, 3)
    amounts = [(1, 2), (0, 3), (2, 0), (1, 1)]
    expected = np.pad(x.numpy(), [(0, 0), *amounts], mode=NUMPY[mode])
    assert (pad_space(x, amounts, mode).numpy() == expected).all()


def test_the_largest_padding_and_one_more():
    x = torch.arange(3)
    assert pad_space(x, [(2, 2)], "reflect").tolist() == [2, 1, 0, 1, 2, 1, 0]
    assert pad_space(x, [(3, 3)], "circular").tolist() == [0, 1, 2] * 3
    with pytest.raises(ValueError, match="padding must be <= 2 in mode reflect on an axis of 3, got 3"):
        pad_space(x, [(0, 3)], "reflect")
    with pytest.raises(ValueError, match="padding must be <= 3 in mode circular on an axis of 3, got 4"):
        pad_space(x, [(4, 0)], "circular")


def test_padding_lets_gradients_through():
    x = torch.randn(1, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    for mode in NUMPY:
        assert torch.autograd.gradcheck(lambda x, mode=mode: pad_space(x, [(1, 2), (2, 1)], mode), x)


def test_words_for_padding(unchecked):
    assert amounts_of("valid", [3, 5], [1, 1], [2, 2]) == [(0, 0), (0, 0)]
    assert amounts_of("same", [3, 4], [2, 1], [1, 1]) == [(2, 2), (1, 2)]
    assert amounts_of([1, 2], [3, 3], [1, 1], [1, 1]) == [(1, 1), (2, 2)]
    with pytest.raises(ValueError, match="padding must be one of valid, same, got 'full'"):
        amounts_of("full", [3], [1], [1])
    with pytest.raises(ValueError, match=r"padding 'same' needs stride 1, got \(2,\)"):
        amounts_of("same", [3], [1], [2])
    with pytest.raises(ValueError, match="amounts must be at most one pair for each of the 1 axes of x, got 2"):
        pad_space(torch.zeros(3), [(1, 1), (1, 1)])
    with pytest.raises(TypeError, match=r"amounts must be a pair \(before, after\) for each axis, got 3"):
        pad_space(torch.zeros(4), 3)
    with pytest.raises(ValueError, match="padding_mode must be one of zeros"):
        pad_space(torch.zeros(3), [(1, 1)], "mirror")
    with pytest.raises(ValueError, match=r"stride must be a number or 2 of them, one for each axis, got \(1,\)"):
        per_axis("stride", [1], 2)
