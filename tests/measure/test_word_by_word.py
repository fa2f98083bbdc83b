"""The learnt dictionary: what it finds, what it copies, the law it climbs, and bad input."""

import random
from collections import defaultdict
from fractions import Fraction

import pytest

from lemmata.measure import WordByWord

PAIRS = [
    ("the house".split(), "das haus".split()),
    ("the book".split(), "das buch".split()),
    ("a book".split(), "ein buch".split()),
]


def test_the_textbook_example_is_solved():
    words = WordByWord(rounds=20).fit(PAIRS)
    assert words.translate("a house the book".split()) == "ein haus das buch".split()


def table_by_the_book(pairs, rounds):
    """The table t(target | source) of IBM model 1 after some rounds, word by word in exact fractions; None is empty."""
    table = defaultdict(lambda: Fraction(1))
    for _ in range(rounds):
        counts = defaultdict(Fraction)
        for source, target in pairs:
            for word in target:
                whole = sum(table[other, word] for other in [None, *source])
                for other in [None, *source]:
                    counts[other, word] += table[other, word] / whole
        totals = defaultdict(Fraction)
        for (other, _), count in counts.items():
            totals[other] += count
        table = {(other, word): count / totals[other] for (other, word), count in counts.items()}
    return table


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_every_round_is_that_of_the_book(rounds):
    """On corpora in which a word stands twice in a sentence, sentences differ in length, and some are repeated."""
    rng = random.Random(rounds)
    compared = 0
    for _ in range(40):
        pairs = [
            (rng.choices("abcd", k=rng.randint(1, 4)), rng.choices("uvwx", k=rng.randint(1, 5)))
            for _ in range(rng.randint(2, 6))
        ]
        table = table_by_the_book(pairs, rounds)
        found = WordByWord(rounds).fit(pairs).dictionary_
        assert found.keys() == {word for source, _ in pairs for word in source}
        for word, translation in found.items():
            chances = sorted((chance, target) for (other, target), chance in table.items() if other == word)
            if len(chances) == 1 or chances[-1][0] - chances[-2][0] > Fraction(1, 10**9):  # else rounding may decide
                assert translation == chances[-1][1]
                compared += 1
    assert compared > 80


def test_of_equal_chances_the_word_met_first_is_taken():
    assert WordByWord(rounds=1).fit([(["a"], ["y", "x"])]).dictionary_ == {"a": "y"}


def test_strangers_are_copied():
    assert WordByWord().fit(PAIRS).translate(["Nineveh", "book"]) == ["Nineveh", "buch"]


def test_the_same_pairs_give_the_same_dictionary():
    assert WordByWord().fit(PAIRS).dictionary_ == WordByWord().fit(reversed(PAIRS)).dictionary_


def test_a_pair_without_target_words_teaches_nothing():
    assert "x" not in WordByWord().fit([*PAIRS, (["x"], [])]).dictionary_


def test_bad_input_names_the_fix():
    with pytest.raises(ValueError, match="rounds must be >= 1, got 0"):
        WordByWord(rounds=0)
    with pytest.raises(ValueError, match="pairs must hold at least one pair of sentences"):
        WordByWord().fit([])
