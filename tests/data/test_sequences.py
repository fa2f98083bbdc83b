"""Sequences that ask for memory: what is asked for follows from the right places, and nothing else tells it."""

import pytest
import torch
from scipy import stats

from lemmata.data import adding, echo, load


@pytest.mark.parametrize("length", [2, 3, 10, 101])
def test_the_sum_is_that_of_two_marked_numbers_one_in_each_half(length):
    x, y = adding(n=200, length=length).train
    values, marks = x.unbind(2)
    assert set(marks.unique().tolist()) <= {0.0, 1.0}
    assert (marks[:, : length // 2].sum(1) == 1).all()
    assert (marks[:, length // 2 :].sum(1) == 1).all()
    assert torch.allclose((values * marks).sum(1), y)


def test_values_and_places_are_uniform():
    values, marks = adding(length=10).train.x.unbind(2)
    assert stats.kstest(values.flatten().numpy(), "uniform").pvalue > 1e-9
    places = marks.sum(0)  # 4,000 marks on the five places of each half: a standard deviation is 25
    assert (places - 800).abs().max() < 180


def test_who_says_one_has_an_error_of_a_sixth():
    error = (adding(n=100_000, length=2).train.y - 1).square()
    spread = error.std() / len(error) ** 0.5
    assert (error.mean() - 1 / 6).abs() < 6 * spread


def test_a_mark_alone_says_nothing_about_the_sum():
    x, y = adding(n=20_000, length=10).train
    for place in range(10):
        assert abs(stats.pearsonr(x[:, place, 1].numpy(), y.numpy()).pvalue) > 1e-7


@pytest.mark.parametrize("lag", [1, 10, 1000])
def test_the_letter_comes_first_and_never_again(lag):
    data = echo(n=80, test=16, lag=lag, letters=4)
    for x, y in data.parts.values():
        assert x.shape[1] == lag + 1
        assert torch.equal(x[:, 0], y)
        assert ((x[:, 1:] >= 4) & (x[:, 1:] < 8)).all()
        assert (y.bincount() == len(y) // 4).all()
    assert data.classes == ("a", "b", "c", "d")


def test_sounds_are_uniform():
    counts = echo().train.x[:, 1:].flatten().bincount()
    assert (counts[:8] == 0).all()
    assert stats.chisquare(counts[8:].numpy()).pvalue > 1e-9


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("adding", {"length": 1}, "length must be >= 2, got 1"),
        ("echo", {"lag": 0}, "lag must be >= 1, got 0"),
        ("echo", {"letters": 1}, "letters must be >= 2, got 1"),
        ("echo", {"letters": 27}, "letters must be <= 26, got 27"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(name, options, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        load(name, **options)
    assert str(refusal.value) == message
