"""BLEU against what can be worked out by hand, and bad input."""

import math

import pytest

from lemmata.measure import corpus_bleu


def test_the_reference_itself_has_a_hundred():
    sentences = ["the cat sat on the mat".split(), "it was a dark night".split()]
    assert corpus_bleu(sentences, sentences) == pytest.approx(100)


def test_words_count_as_often_as_the_reference_has_them():
    # Papineni's own example: of seven "the", the reference has two.
    translation, reference = ["the"] * 7, "the cat is on the mat and".split()
    assert corpus_bleu([translation], [reference], longest=1) == pytest.approx(100 * 2 / 7)


def test_the_mean_is_geometric_over_the_whole_corpus():
    translations = [["a", "b", "c"], ["x", "y"]]
    references = [["a", "b", "d"], ["x", "z"]]
    # Words: 3 of 5 in common; pairs: 1 of 3.
    assert corpus_bleu(translations, references, longest=2) == pytest.approx(100 * math.sqrt(3 / 5 * 1 / 3))


def test_short_translations_pay():
    assert corpus_bleu([["a", "b"]], [["a", "b", "c", "d"]], longest=1) == pytest.approx(100 * math.exp(1 - 4 / 2))
    assert corpus_bleu([["a", "b", "x", "x"]], [["a", "b"]], longest=1) == pytest.approx(50)


def test_nothing_in_common_is_zero():
    assert corpus_bleu([["a"]], [["b"]]) == 0
    assert corpus_bleu([[]], [["b"]]) == 0


def test_bad_input_names_the_fix():
    with pytest.raises(ValueError, match="translations and references must be as many, got 1 and 2"):
        corpus_bleu([["a"]], [["a"], ["b"]])
    with pytest.raises(TypeError, match="references must hold lists of words, got a string: split it into words"):
        corpus_bleu([["a"]], ["a"])
    with pytest.raises(ValueError, match="longest must be >= 1, got 0"):
        corpus_bleu([["a"]], [["a"]], longest=0)
