"""The learnt dictionary: what it finds, what it copies, the law it climbs, and bad input."""

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
