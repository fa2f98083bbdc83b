"""Label smoothing: targets of any shape, torch's loss, and matrices that are none."""

import re

import pytest
import torch
from torch.nn import functional

from lemmata.feedforward.softmax import cross_entropy
from lemmata.tricks import smooth_labels, uniform_confusion


@pytest.mark.parametrize("smoothing", [0, 0.1, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_uniform_case_is_torchs(smoothing: float, dtype: torch.dtype):
    y, logits = torch.randint(5, (20,)), torch.randn(20, 5, dtype=dtype)
    targets = smooth_labels(y, uniform_confusion(5, smoothing, dtype=dtype))
    assert targets.dtype is dtype
    wanted = functional.cross_entropy(logits.double(), y, label_smoothing=smoothing)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(cross_entropy(logits.double(), targets.double()), wanted, rtol=4 * eps, atol=8 * eps)


def test_a_column_for_each_label_whatever_their_shape():
    confusion = torch.tensor([[0.9, 0.3], [0.1, 0.7]])
    assert smooth_labels(torch.tensor([[0, 1]]), confusion).tolist() == confusion.mT[None].tolist()
    assert smooth_labels(torch.tensor(1, dtype=torch.uint8), confusion).tolist() == confusion[:, 1].tolist()
    assert smooth_labels(torch.zeros(0, dtype=torch.long), confusion).shape == (0, 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: uniform_confusion(0, 0.1), "classes must be >= 1, got 0"),
        (lambda: uniform_confusion(3, 1.1), "smoothing must be in [0, 1], got 1.1"),
        (
            lambda: smooth_labels(torch.tensor([0]), torch.tensor([[0.75, 0.25], [0.5, 0.5]])),
            "confusion must have columns that sum to 1, column 0 sums to 1.25: use confusion.mT",
        ),
        (lambda: smooth_labels(torch.tensor([0]), torch.full((2, 2), 0.6)), "column 0 sums to 1.2"),
        (
            lambda: smooth_labels(torch.tensor([0]), torch.tensor([[1.1, 0.0], [-0.1, 1.0]])),
            "confusion must not be negative, got -0.1",
        ),
        (lambda: smooth_labels(torch.tensor([2]), torch.eye(2)), "y must hold classes from 0 to 1, got 2 to 2"),
        (lambda: smooth_labels(torch.tensor([0]), torch.ones(2, 3)), "confusion must be a (..., n, n) tensor"),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()
