"""Positions: the formula entry by entry, dtypes, caches' starts, gradients, bad input."""

import math

import pytest
import torch

from lemmata.transformers import LearnedPositions, SinusoidalPositions, sinusoidal_encoding


def test_every_entry_is_that_of_the_paper():
    found = sinusoidal_encoding(torch.arange(7), 10, dtype=torch.float64)
    by_hand = [
        [(math.cos if k % 2 else math.sin)(t / 10_000 ** (2 * (k // 2) / 10)) for k in range(10)] for t in range(7)
    ]
    assert torch.allclose(found, torch.tensor(by_hand, dtype=torch.float64), rtol=0, atol=1e-14)


def test_positions_of_any_shape_and_kind():
    assert sinusoidal_encoding(torch.tensor(2.5), 4).shape == (4,)
    assert sinusoidal_encoding(torch.zeros(2, 3), 4).shape == (2, 3, 4)
    assert sinusoidal_encoding(torch.arange(0), 4).shape == (0, 4)
    assert sinusoidal_encoding(torch.arange(3), 4, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert sinusoidal_encoding(torch.arange(3, device="meta"), 4).device.type == "meta"


def test_far_positions_are_as_exact_as_near_ones():
    far = torch.tensor([10**6])
    assert torch.allclose(
        sinusoidal_encoding(far, 2, dtype=torch.float32).double(),
        torch.tensor([[math.sin(10**6), math.cos(10**6)]], dtype=torch.float64),
        atol=1e-7,
    )


@pytest.mark.parametrize("make", [lambda: SinusoidalPositions(8, base=100.0), lambda: LearnedPositions(16, 8)])
def test_a_sequence_in_pieces_is_told_the_same_positions(make):
    positions, x = make(), torch.randn(2, 12, 8)
    whole, pieces = positions(x), torch.cat([positions(x[:, :5]), positions(x[:, 5:], start=5)], 1)
    assert torch.equal(whole, pieces)
    assert positions(x.bfloat16()).dtype == (torch.bfloat16 if not list(positions.parameters()) else torch.float32)
    assert positions(torch.randn(1, 1, 8)).shape == (1, 1, 8)


def test_only_learned_positions_learn():
    assert not list(SinusoidalPositions(8).parameters())
    learned = LearnedPositions(6, 4).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: torch.func.functional_call(learned, {"weight": w}, (x, 2)),
                                    (x, learned.weight.detach().requires_grad_()))  # fmt: skip
    learned(x, 2).sum().backward()
    assert learned.weight.grad[:, 0].tolist() == [0, 0, 2, 2, 2, 0]
    before = learned.weight.detach().clone()
    learned.reset_parameters()
    assert not torch.equal(before, learned.weight)


def test_positions_are_added_to_what_stands_there():
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    wanted = x + sinusoidal_encoding(torch.arange(3, 8), 8, 100.0, torch.float64)
    assert torch.equal(SinusoidalPositions(8, base=100.0)(x, start=3), wanted)
    learned = LearnedPositions(9, 8).double()
    assert torch.equal(learned(x, start=3), x + learned.weight[3:8])


def test_learned_positions_are_small_at_first():
    drawn = LearnedPositions(200, 100).weight.detach()
    # The deviation of n draws is off by 1 / sqrt(2 n) of itself: six times that, for 20,000 of them.
    assert abs(float(drawn.std()) / 0.02 - 1) < 0.03
    assert abs(float(drawn.mean())) < 6 * 0.02 / 20_000**0.5


def test_modules_say_what_they_are():
    assert "width=8, base=100" in repr(SinusoidalPositions(8, base=100.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sinusoidal_encoding(torch.arange(3), 5), ValueError, "width must be even, .* got 5"),
        (lambda: sinusoidal_encoding(torch.arange(3), 0), ValueError, "width must be >= 2, got 0"),
        (lambda: sinusoidal_encoding(torch.arange(3), 4, base=0.0), ValueError, "base must be > 0, got 0.0"),
        (lambda: SinusoidalPositions(7), ValueError, "width must be even"),
        (lambda: SinusoidalPositions(8, base=-1.0), ValueError, "base must be > 0"),
        (lambda: SinusoidalPositions(8)(torch.zeros(2, 3, 4)), ValueError, r"x must be \(batch, time, 8\), got"),
        (lambda: LearnedPositions(4, 8)(torch.zeros(1, 5, 8)), ValueError, "there are 4 learned positions, got 5"),
        (lambda: LearnedPositions(4, 8)(torch.zeros(1, 2, 8), start=3), ValueError, "4 learned positions, got 5"),
        (lambda: LearnedPositions(0, 8), ValueError, "max_length must be >= 1, got 0"),
    ],
)
def test_bad_input_is_named(call, error, message, unchecked):
    with pytest.raises(error, match=message):
        call()
