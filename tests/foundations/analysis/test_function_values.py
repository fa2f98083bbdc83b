"""Values and derivatives in batches: bad input, loops, dtypes."""

import pytest
import torch

from lemmata.foundations import is_convex, smoothness
from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_jacobians, batch_values


def squares(x):
    return x.square().sum()


def test_a_function_of_the_wrong_kind_is_named(unchecked):
    with pytest.raises(ValueError, match=r"f must return one number for one vector, got shape \(2,\)"):
        smoothness(lambda x: x, (torch.zeros(2), torch.ones(2)))
    with pytest.raises(TypeError, match="f must be a function of one vector, got int"):
        batch_values(3, torch.zeros(1, 1))
    with pytest.raises(ValueError, match=r"x must be a \(..., n\) tensor, got shape \(\)"):
        batch_values(squares, torch.tensor(1.0))
    with pytest.raises(ValueError, match="f must be finite with its derivatives in the region"):
        smoothness(lambda x: torch.log(x).sum(), (-1.0, 1.0))


def test_a_function_that_looks_at_its_values_is_measured_in_a_loop():
    def branching(x):
        return squares(x) if x[0] > 0 else -squares(x)

    assert batch_values(branching, torch.tensor([[2.0], [-2.0]])).tolist() == [4.0, -4.0]
    assert not is_convex(branching, (-1.0, 1.0), points=32).value


def test_derivatives_keep_batch_axes_and_dtype():
    x = torch.zeros(2, 3, 4, dtype=torch.float32)
    assert batch_values(squares, x).shape == (2, 3)
    assert batch_gradients(squares, x).shape == (2, 3, 4)
    assert batch_hessians(squares, x).shape == (2, 3, 4, 4)
    assert batch_jacobians(torch.sin, x).shape == (2, 3, 4, 4)
    assert batch_hessians(squares, x).dtype == torch.float32


def test_hessians_are_exactly_symmetric():
    generator = torch.Generator().manual_seed(0)
    mixing, x = torch.randn(6, 4, generator=generator).double(), torch.randn(3, 4, generator=generator).double()
    found = batch_hessians(lambda w: torch.exp(torch.sin(mixing @ w)).sum(), x)
    assert torch.equal(found, found.mT)


def test_the_jacobian_of_a_linear_map_is_its_matrix():
    matrix = torch.randn(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(batch_jacobians(lambda w: matrix @ w, torch.ones(9, dtype=torch.float64)), matrix)
