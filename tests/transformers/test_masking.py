"""Masked tokens: what is chosen and what becomes of it, the random tokens' law, generators, dtypes, bad input."""

import pytest
import torch

from lemmata.transformers import mask_tokens

MASK = 3


def drawn(seed=0, rows=2000, time=50, **settings):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(4, 100, (rows, time), generator=generator)
    return x, *mask_tokens(x, 100, MASK, generator=generator, **settings)


def test_the_targets_are_the_true_tokens_where_they_were_chosen():
    x, read, targets = drawn()
    chosen = targets != -100
    assert torch.equal(targets[chosen], x[chosen])
    assert torch.equal(read[~chosen], x[~chosen])


def test_unless_told_the_shares_are_those_of_bert():
    x, read, targets = drawn()
    chosen = targets != -100
    hidden, kept = (read == MASK)[chosen], (read == x)[chosen]
    for found, wanted, of in (
        (chosen, 0.15, x.numel()),
        (hidden, 0.8 + 0.1 / 100, 15_000),
        (kept, 0.1 + 0.1 / 100, 15_000),  # by chance a random token is the true one, or the mask
    ):
        assert abs(found.double().mean() - wanted) < 6 * (wanted * (1 - wanted) / of) ** 0.5


@pytest.mark.parametrize("replaced", [0.25, 0.0])
def test_of_evenly_spaced_draws_the_shares_are_exact(replaced, monkeypatch):
    eighths = torch.arange(8) / 8
    draws = iter([eighths[:, None].expand(8, 8), eighths.expand(8, 8)])  # what is chosen, and what becomes of it
    monkeypatch.setattr(torch, "rand", lambda *shape, **words: next(draws))
    x = torch.full((8, 8), 5)
    read, targets = mask_tokens(
        x, 10_000, MASK, fraction=0.5, hidden=0.5, replaced=replaced, generator=torch.Generator().manual_seed(0)
    )
    assert (targets == 5).sum() == 4 * 8
    assert (read == MASK).sum() == 4 * 4
    assert (read == 5).sum() == 4 * 8 + 4 * (4 - 8 * replaced)  # not chosen, or chosen and left
    assert (read[:4, :4] == MASK).all()


def test_random_tokens_are_any():
    x, read, targets = drawn(hidden=0.0, replaced=1.0, fraction=1.0)
    assert (targets == x).all()
    counts = torch.bincount(read.flatten(), minlength=100)
    # 100,000 tokens, 1,000 of each expected with a standard deviation of 31.5: six of them, for 100 counts.
    assert (counts - 1000).abs().max() < 190


def test_the_choices_at_two_places_are_independent():
    _, _, targets = drawn(rows=20_000, time=2, fraction=0.5)
    both = (targets != -100).all(1).double().mean()
    assert abs(both - 0.25) < 6 * (0.25 * 0.75 / 20_000) ** 0.5


@pytest.mark.parametrize("special", [[4], [4, 5, 99], []])
def test_special_tokens_are_never_chosen(special):
    x, read, targets = drawn(special=special, fraction=1.0)
    left = torch.isin(x, torch.tensor(special, dtype=torch.long))
    assert torch.equal(targets == -100, left)
    assert torch.equal(read[left], x[left])


def test_nothing_and_everything_can_be_chosen():
    x, read, targets = drawn(fraction=0.0)
    assert torch.equal(read, x)
    assert (targets == -100).all()
    x, read, targets = drawn(fraction=1.0, hidden=1.0, replaced=0.0)
    assert (read == MASK).all()
    assert torch.equal(targets, x)


def test_shares_that_add_up_to_one_leave_none_as_it_was():
    x, read, targets = drawn(fraction=1.0, hidden=0.9, replaced=0.1)
    kept = (read == x).double().mean()
    assert kept < 0.1 / 96 + 6 * (0.1 / 96 / x.numel()) ** 0.5  # by chance a random token is the true one
    assert (targets == x).all()


def test_the_generator_decides_and_the_input_is_left_alone():
    x, read, targets = drawn(seed=1)
    again = drawn(seed=1)
    other = drawn(seed=2)
    assert all(torch.equal(a, b) for a, b in zip((x, read, targets), again, strict=True))
    assert not torch.equal(targets == -100, other[2] == -100)
    assert not (x == MASK).any()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_the_dtype_and_any_shape_are_kept(dtype):
    for shape in [(7,), (2, 3, 5), (0,), (1, 1)]:
        x = torch.full(shape, 5, dtype=dtype)
        read, targets = mask_tokens(x, 100, MASK)
        assert read.dtype == targets.dtype == dtype
        assert read.shape == targets.shape == shape


def test_tokens_in_bytes_have_targets_below_zero(unchecked):
    x = torch.tensor([[1, 7, 8]], dtype=torch.uint8)
    assert mask_tokens(x, 10, MASK, special=[1], fraction=1.0).targets.tolist() == [[-100, 7, 8]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fraction": 1.5}, "fraction"),
        ({"fraction": -0.1}, "fraction"),
        ({"hidden": float("nan")}, "hidden"),
        ({"hidden": 0.8, "replaced": 0.3}, "hidden and replaced must add up to at most 1, got 0.8 and 0.3"),
        ({"mask_token": 100}, "mask_token"),
        ({"mask_token": -1}, "mask_token"),
        ({"vocab_size": 50}, "x must hold tokens from 0 to 49"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        mask_tokens(**{"x": torch.tensor([[4, 77]]), "vocab_size": 100, "mask_token": MASK} | settings)


@pytest.mark.usefixtures("unchecked")
def test_tokens_are_whole_numbers():
    with pytest.raises(TypeError, match="integers"):
        mask_tokens(torch.zeros(2, 3), 100, MASK)
