"""The cost of generating: bad input, edges, and counting on what is not counted."""

import pytest
import torch

from lemmata.recurrent import CausalAttention, dependency_depth, multiplications
from lemmata.recurrent.generation_cost import KeyValueCache


def test_step_by_step_with_a_cache_as_all_at_once_and_as_torchs_own_attention():
    layer, x = CausalAttention(5).double(), torch.randn(3, 9, 5).double()
    outputs, cache = [], layer.empty(3)
    for place in x.unbind(1):
        output, cache = layer.step(place, cache)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs, 1), layer(x))
    parts = (part(x) for part in (layer.query, layer.key, layer.value))
    torch.testing.assert_close(layer(x), torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True))


@pytest.mark.parametrize("before", [0, 1, 64])
def test_a_step_multiplies_for_three_projections_and_a_score_and_a_share_of_each_place(before):
    layer, x = CausalAttention(3), torch.randn(2, 3)
    cache = KeyValueCache(torch.randn(2, before, 3), torch.randn(2, before, 3))
    assert multiplications(lambda: layer.step(x, cache)) == 2 * (3 * 3**2 + 2 * 3 * (before + 1))


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


def test_the_longest_chain_counts():
    x = torch.ones(1, requires_grad=True)
    assert [dependency_depth(x.exp()), dependency_depth(x * (x + 1).exp())] == [1, 3]


def test_what_needs_no_gradient_has_no_depth():
    with pytest.raises(ValueError, match="output must depend on something that requires a gradient"):
        dependency_depth(torch.ones(1))
