"""One example after the other: the steps by hand, other dtypes, and refusals."""

import pytest
import torch

from lemmata.feedforward import widrow_hoff


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.double)


def test_a_rate_for_each_step_and_a_shrinking_weight():
    x, y = normal(4, 2), normal(4, 3)
    order, rates = torch.tensor([3, 0, 0]), torch.tensor([0.1, 0.01, 0.0]).double()
    path = widrow_hoff(x, y, order, rates, ridge=0.5)
    assert path.shape == (4, 2, 3)
    w = torch.zeros(2, 3).double()
    for step, (i, rate) in enumerate(zip(order.tolist(), rates.tolist(), strict=True), 1):
        w = w + rate * (torch.outer(x[i], y[i] - x[i] @ w) - 0.5 * w)
        torch.testing.assert_close(path[step], w, rtol=1e-13, atol=1e-13)
    assert torch.equal(path[3], path[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_path_has_the_dtype_of_the_data_and_the_digits_of_a_double(dtype):
    x, y, order = normal(9, 3).to(dtype), normal(9).to(dtype), torch.arange(9)
    path = widrow_hoff(x, y, order, 0.1)
    assert path.dtype == dtype
    assert torch.equal(path, widrow_hoff(x.double(), y.double(), order, 0.1).to(dtype))
    assert widrow_hoff(x, y, order[:0], 0.1).shape == (1, 3)


@pytest.mark.usefixtures("unchecked")
def test_bad_orders_rates_and_starts_are_refused():
    x, y = normal(60, 5), normal(60)
    with pytest.raises(ValueError, match="order must hold row numbers from 0 to 59, got 60 to 60"):
        widrow_hoff(x, y, torch.tensor([60]), 0.1)
    with pytest.raises(TypeError, match=r"order must be a tensor, got list: use torch\.as_tensor\(order\)"):
        widrow_hoff(x, y, [0], 0.1)
    for order in (torch.ones(3), torch.ones(3, 1).long(), torch.ones(3).bool()):
        with pytest.raises(ValueError, match=r"order must be \(steps,\) of row numbers, got torch\..* of shape \(3"):
            widrow_hoff(x, y, order, 0.1)
    with pytest.raises(ValueError, match=r"lr must be a number, or one for each of 3 steps, got shape \(2,\)"):
        widrow_hoff(x, y, torch.arange(3), torch.ones(2))
    with pytest.raises(ValueError, match=r"weight must be a \(5,\) tensor to fit x and y, got shape \(2, 5\)"):
        widrow_hoff(x, y, torch.arange(3), 0.1, torch.zeros(2, 5))
