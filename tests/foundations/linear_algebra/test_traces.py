"""What the claims about traces do not say: bad input, dtypes, batches, gradients."""

import math

import pytest
import torch

from lemmata.foundations.linear_algebra.traces import trace, trace_of_product


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64, torch.complex128])
def test_every_dtype_of_numbers_is_kept(dtype):
    matrix = torch.tensor([[1, 2], [3, 4]], dtype=dtype)
    assert trace(matrix).dtype is dtype
    assert trace(matrix) == 5
    assert trace_of_product(matrix, matrix) == 29


def test_batches_broadcast():
    assert trace(torch.ones(4, 5, 3, 3)).shape == (4, 5)
    assert trace_of_product(torch.ones(4, 1, 2, 3), torch.ones(5, 3, 2)).shape == (4, 5)
    assert trace_of_product(torch.ones(6, 2, 2)).shape == (6,)


def test_parity_with_torch():
    batch = torch.randn(4, 5, 3, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(trace(batch), torch.stack([a.trace() for a in batch.flatten(0, 1)]).reshape(4, 5))


def test_the_large_product_is_never_formed():
    tall = torch.ones(300_000, 1)  # whose square would take 360 GB
    for factors in ((tall, tall.mT), (tall.mT, tall), (tall, torch.ones(1, 1), tall.mT)):
        assert trace_of_product(*factors) == 300_000


def test_gradients_agree_with_differences():
    a, b, c = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((2, 3), (3, 4), (4, 2)))
    assert torch.autograd.gradcheck(trace_of_product, (a, b, c))
    assert torch.autograd.gradcheck(trace, a @ b @ c)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: trace(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., n, n\) tensor, got shape \(2, 3\)"),
        (lambda: trace(torch.ones(3)), ValueError, r"matrix must be a \(..., rows, columns\) tensor"),
        (lambda: trace([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: trace(torch.full((2, 2), math.nan)), ValueError, "matrix must be finite, found 4 NaN or infinite"),
        (lambda: trace_of_product(), ValueError, "factors must hold at least one matrix, got none"),
        (
            lambda: trace_of_product(torch.ones(2, 3), torch.ones(2, 3)),
            ValueError,
            r"factors\[0\] and factors\[1\] must fit",
        ),
        (
            lambda: trace_of_product(torch.ones(2, 3), torch.ones(3, 4)),
            ValueError,
            r"factors\[1\] and factors\[0\] must fit",
        ),
        (lambda: trace_of_product(torch.ones(2, 3), 4.0), TypeError, r"factors\[1\] must be a tensor, got float"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
