"""N-grams: probabilities that sum to one, counts of a plain dictionary, and what they reach on the plays."""

import math
from collections import Counter

import pytest
import torch

from lemmata.data import load
from lemmata.recurrent import NGram
from lemmata.recurrent.recipes import BASELINES

TEXT = torch.randint(4, (200,), generator=torch.Generator().manual_seed(0))


def by_dictionary(text, order, tokens, context, token):
    """The same formula, one token at a time."""
    probability = 1 / tokens
    for length in range(order):
        h = tuple(context[len(context) - length :]) if length else ()
        if len(h) < length:
            break
        follows = Counter(text[i + length] for i in range(len(text) - length) if tuple(text[i : i + length]) == h)
        if follows:
            seen, different = sum(follows.values()), len(follows)
            probability = (follows[token] + different * probability) / (seen + different)
    return probability


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_those_of_a_plain_dictionary_and_sum_to_one(order):
    model, text = NGram(order, 4).fit(TEXT), TEXT.tolist()
    for context in ([], [2], [3, 1], [0, 1, 2, 3, 0], [3, 3, 3, 3]):
        found = model.probabilities(torch.tensor(context, dtype=torch.int64))
        expected = [by_dictionary(text, order, 4, context, token) for token in range(4)]
        assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12)
        assert found.sum().item() == pytest.approx(1, abs=1e-12)


def test_the_nll_of_a_text_is_that_of_its_tokens_one_by_one():
    model, text = NGram(3, 4).fit(TEXT), torch.tensor([1, 0, 0, 3, 2, 2])
    one_by_one = [-math.log(float(model.probabilities(text[:k])[text[k]])) for k in range(6)]
    assert model.nll(text).tolist() == pytest.approx(one_by_one)
    assert model.bits(text) == pytest.approx(sum(one_by_one) / 6 / math.log(2))


def test_a_symbol_that_never_came_is_unlikely_and_not_impossible():
    model = NGram(2, 5).fit(TEXT)  # which has four tokens only
    assert 0 < model.probabilities(torch.tensor([0]))[4] < 0.01
    assert math.isfinite(model.bits(torch.tensor([4, 4, 4])))


@pytest.mark.measures("recurrent.recipes", "unigram", "trigram", "5-gram")
@pytest.mark.parametrize(("name", "order"), [("unigram", 1), ("trigram", 3), ("5-gram", 5)])
def test_the_baselines_of_the_recipes_are_what_n_grams_reach(name, order):
    data = load("shakespeare")
    found = NGram(order, len(data.classes)).fit(data.train.x).bits(data.validation.x)
    assert BASELINES[name] == pytest.approx(found, abs=6e-4)


def test_bad_input_names_the_fix():
    with pytest.raises(ValueError, match="order must be >= 1, got 0"):
        NGram(0, 4)
    with pytest.raises(ValueError, match="order must be < 32 for 4 tokens, got 32"):
        NGram(32, 4)
    with pytest.raises(ValueError, match="counted nothing yet: call fit"):
        NGram(2, 4).nll(TEXT)
    with pytest.raises(ValueError, match="tokens must be at least 3 for this order, got 2"):
        NGram(3, 4).fit(TEXT[:2])
    with pytest.raises(ValueError, match="tokens must hold tokens from 0 to 2, got 0 to 3"):
        NGram(2, 3).fit(TEXT)


@pytest.mark.usefixtures("unchecked")
def test_tokens_are_whole_numbers_in_one_row():
    with pytest.raises(TypeError, match=r"tokens must hold tokens as integers, got torch\.float32"):
        NGram(2, 4).fit(TEXT.float())
    with pytest.raises(ValueError, match=r"one axis, not empty, got shape \(2, 100\)"):
        NGram(2, 4).fit(TEXT.reshape(2, 100))
    with pytest.raises(ValueError, match=r"one axis, not empty, got shape \(0,\)"):
        NGram(1, 4).fit(TEXT[:0])
