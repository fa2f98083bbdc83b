"""Merging pairs: the counts that are kept are those counted anew, ties are broken the same way, extremes."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest

from lemmata.transformers import merged_pairs
from lemmata.transformers.pair_merging import with_merged


def by_counting_anew(words, by, min_freq):
    """The same pairs, with all counts taken from the words at every step."""
    while True:
        alone, both = Counter(), Counter()
        for word, times in words:
            for piece in word:
                alone[piece] += times
            for pair in itertools.pairwise(word):
                both[pair] += times
        ranked = []
        for (first, second), times in both.items():
            score = Fraction(times, alone[first] * alone[second]) if by == "likelihood" else times
            if times >= min_freq:
                ranked.append((-score, -times, (first, second)))
        if not ranked:
            return
        best = min(ranked)[2]
        yield best
        words = [(with_merged(word, best, "".join(best)), times) for word, times in words]


@pytest.mark.parametrize("by", ["likelihood", "count"])
@pytest.mark.parametrize("min_freq", [1, 4])
def test_the_pairs_are_those_of_counting_anew(by, min_freq):
    draw = random.Random(0)
    for letters in ("a", "ab", "abcd"):  # one letter: a run overlaps with itself
        drawn = {tuple(draw.choices(letters, k=draw.randint(1, 9))): draw.randint(1, 9) for _ in range(25)}
        expected = list(by_counting_anew([(list(word), times) for word, times in drawn.items()], by, min_freq))
        assert list(merged_pairs(drawn, by, min_freq)) == expected
        assert expected


def test_pairs_are_merged_from_left_to_right():
    assert with_merged(["a", "a", "a"], ("a", "a"), "aa") == ["aa", "a"]
    assert with_merged(["b", "a", "b", "a"], ("a", "b"), "ab") == ["b", "ab", "a"]
    assert with_merged([], ("a", "b"), "ab") == []


def test_nothing_to_merge():
    assert list(merged_pairs({})) == []
    assert list(merged_pairs({("a",): 5})) == []
    assert list(merged_pairs({("a", "b"): 5}, min_freq=6)) == []


def test_ties_go_to_the_frequent_then_to_the_alphabet():
    assert next(merged_pairs({("c", "d"): 1, ("a", "b"): 1})) == ("a", "b")
    # 2 / (2 * 2) and 4 / (4 * 2), where b stands alone as well
    words = {("x", "y"): 2, ("a", "b"): 1, ("a",): 1, ("b",): 1, ("p", "q"): 4, ("p",): 0, ("q",): 0}
    scores = {("x", "y"): Fraction(2, 4), ("a", "b"): Fraction(1, 4), ("p", "q"): Fraction(4, 16)}
    assert list(merged_pairs(words)) == sorted(scores, key=lambda pair: (-scores[pair], pair != ("p", "q")))


def test_bad_input_names_the_fix():
    with pytest.raises(ValueError, match="by must be one of likelihood, count, got 'luck'"):
        next(merged_pairs({("a", "b"): 1}, by="luck"))
    with pytest.raises(ValueError, match="min_freq must be >= 1, got 0"):
        next(merged_pairs({("a", "b"): 1}, min_freq=0))
