"""The cost of generating: bad input, edges, and counting on what is not counted."""

import pytest
import torch

from lemmata.recurrent import CausalAttention, dependency_depth, multiplications


def test_no_place_depends_on_a_later_one():
    torch.manual_seed(0)
    layer, x = CausalAttention(4), torch.randn(2, 6, 4)
    changed = x.clone()
    changed[:, 4:] = 9.0
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])


def test_an_empty_sequence_stays_empty():
    assert CausalAttention(4)(torch.zeros(2, 0, 4)).shape == (2, 0, 4)


@pytest.mark.usefixtures("unchecked")
def test_bad_shapes_name_the_fix():
    layer = CausalAttention(4)
    with pytest.raises(ValueError, match=r"x must be \(batch, time, 4\), got shape \(2, 4\)"):
        layer(torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"x must be \(batch, 4\), got shape \(2, 5\)"):
        layer.step(torch.zeros(2, 5), layer.empty(2))
    with pytest.raises(ValueError, match="features must be >= 1, got 0"):
        CausalAttention(0)


def test_only_products_of_matrices_are_counted():
    x = torch.ones(3, 3)
    assert multiplications(lambda: x * x + x) == 0
    assert multiplications(lambda: torch.bmm(x[None], x[None])) == 27


def test_a_deep_graph_does_not_exhaust_the_stack():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    assert dependency_depth(y) == 5000


def test_what_needs_no_gradient_has_no_depth():
    with pytest.raises(ValueError, match="output must depend on something that requires a gradient"):
        dependency_depth(torch.ones(1))
