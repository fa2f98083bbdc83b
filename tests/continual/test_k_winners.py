"""k winners: exactly k of them, the first of equal ones, the gradient, precisions, and bad input."""

import pytest
import torch

from lemmata.continual import WinnerTakeAll, winner_take_all


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 7)])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_k_largest_stay_as_they_are(dtype, shape, k):
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = winner_take_all(a, k)
    best = a.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    kept = torch.zeros(shape, dtype=torch.bool).scatter(-1, best, True)
    assert torch.equal(found, torch.where(kept, a, torch.zeros_like(a)))


def test_of_equal_values_the_first_win_and_there_are_never_more():
    assert winner_take_all(torch.ones(5), 2).tolist() == [1, 1, 0, 0, 0]
    assert winner_take_all(torch.tensor([2.0, 1.0, 3.0, 1.0, 1.0]), 4).tolist() == [2, 1, 3, 1, 0]
    assert winner_take_all(-torch.ones(3), 1).tolist() == [-1, 0, 0]


def test_the_gradient_passes_through_the_winners_alone():
    a = torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.float64, requires_grad=True)
    winner_take_all(a, 2).sum().backward()
    assert a.grad.tolist() == [1, 0, 1, 0]
    assert torch.autograd.gradcheck(lambda x: winner_take_all(x, 2), a.detach().requires_grad_())


def test_the_layer_is_the_function():
    a = torch.randn(4, 6)
    layer = WinnerTakeAll(2)
    assert torch.equal(layer(a), winner_take_all(a, 2))
    assert repr(layer) == "WinnerTakeAll(k=2)"
    assert not list(layer.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: winner_take_all(torch.ones(3), 4), "k must be <= 3, got 4"),
        (lambda: winner_take_all(torch.ones(3), 0), "k must be >= 1, got 0"),
        (lambda: WinnerTakeAll(0), "k must be >= 1, got 0"),
        (lambda: winner_take_all(torch.tensor(1.0), 1), "a must have an axis of units|'a'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
