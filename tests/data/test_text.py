"""The embedded texts: their counts and splits, numbers and back, windows, and what a vocabulary refuses."""

import re

import pytest
import torch

from lemmata.data import Vocabulary, shakespeare, verses, windows, words


@pytest.fixture(scope="module")
def bible():
    return verses()


def test_shakespeare_has_the_characters_and_words_it_should():
    data = shakespeare()
    vocabulary = data.extra["vocabulary"]
    text = vocabulary.decode(data.everything.x)
    assert (len(text), len(set(text)), len(vocabulary)) == (373_581, 70, 70)
    assert (len(text.split()), len(set(text.split()))) == (67_774, 13_719)
    assert (len(data.train), len(data.validation)) == (336_222, 37_359)
    assert set(data.validation.x.tolist()) <= set(data.train.x.tolist())
    assert torch.equal(vocabulary.encode(text), data.everything.x)
    assert "Macb" in vocabulary.decode(data.validation.x)
    assert not hasattr(data, "test")


def test_the_frequencies_of_characters_leave_4_62_bits():
    train, validation = (part.x for part in shakespeare().parts.values())
    frequency = torch.bincount(train, minlength=70).double() / len(train)
    assert -frequency[validation].log2().mean() == pytest.approx(4.62, abs=0.01)


def test_shakespeare_in_words_knows_its_training_part_and_no_more():
    data = shakespeare(unit="word")
    unknown = data.extra["vocabulary"].numbers["<unknown>"]
    assert not (data.train.x == unknown).any()
    assert 0 < (data.validation.x == unknown).double().mean() < 0.1
    assert data.extra["vocabulary"].decode(data.train.x[:5]) == "the tragedie of iulius caesar"


def test_shakespeare_in_windows_is_the_same_text_one_place_on():
    whole, cut = shakespeare(), shakespeare(window=100)
    assert torch.equal(cut.train.x.flatten(), whole.train.x[: cut.train.x.numel()])
    assert torch.equal(cut.train.y.flatten(), whole.train.x[1 : cut.train.y.numel() + 1])
    assert len(shakespeare(window=100, stride=50).validation) == (37_359 - 101) // 50 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "line"}, "unit must be character or word, got 'line'"),
        ({"window": 0}, "window must be >= 1, got 0"),
        ({"window": 400_000}, "window must be <= 336221, got 400000"),
        ({"window": 8, "stride": 0}, "stride must be >= 1, got 0"),
    ],
)
def test_bad_options_of_shakespeare_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        shakespeare(**options)


def test_windows_share_the_memory_of_their_text():
    tokens = torch.arange(1000)
    examples = windows(tokens, window=64, stride=1)
    assert examples.x.shape == (936, 64)
    assert torch.equal(examples.y, examples.x + 1)
    assert examples.x.untyped_storage().data_ptr() == tokens.untyped_storage().data_ptr()
    assert examples[torch.tensor([5, 3])].x[:, 0].tolist() == [5, 3]


def test_the_verses_are_5000_pairs_without_repetition(bible):
    pairs = [*bible.extra["train"], *bible.extra["test"]]
    assert (len(bible.extra["train"]), len(bible.extra["test"])) == (4500, 500)
    for side in zip(*pairs, strict=True):
        assert len(set(side)) == 5000
        assert all(3 <= len(sentence.split()) <= 17 for sentence in side)


def test_the_verses_have_the_words_they_should(bible):
    for side, (size, unknown) in enumerate([(5505, 0.045), (7143, 0.070)]):
        train, test = ([re.findall(r"\w+", pair[side].lower()) for pair in bible.extra[p]] for p in ("train", "test"))
        known = {word for sentence in train for word in sentence}
        assert len(known) == size
        assert known <= set(bible.extra["source" if side == 0 else "target"].tokens)
        strange = [word not in known for sentence in test for word in sentence]
        assert sum(strange) / len(strange) == pytest.approx(unknown, abs=5e-4)


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_row_of_tokens_is_its_sentence(bible, part):
    for side, (column, name) in enumerate([("x", "source"), ("y", "target")]):
        vocabulary, rows = bible.extra[name], bible.parts[part].columns[column]
        pad, start, end = (vocabulary.numbers[token] for token in ("<pad>", "<start>", "<end>"))
        assert pad == 0
        assert (rows[:, 0] == start).all()
        assert ((rows == end).sum(1) == 1).all()
        assert ((rows == pad).int().diff(dim=1) >= 0).all()  # nothing follows the padding
        for row, pair in list(zip(rows, bible.extra[part], strict=True))[:100]:
            known = [word if word in vocabulary.numbers else "<unknown>" for word in words(pair[side])]
            assert vocabulary.decode(row) == " ".join(known)


def test_rare_words_become_unknown():
    often = verses(min_freq=3)
    assert len(often.extra["source"]) < 3000
    unknown = often.extra["source"].numbers["<unknown>"]
    assert 0.03 < (often.train.x == unknown).sum() / (often.train.x > 3).sum() < 0.2
    with pytest.raises(ValueError, match="min_freq must be >= 1, got 0"):
        verses(min_freq=0)


def test_a_vocabulary_without_unknown_refuses_strangers():
    with pytest.raises(ValueError, match=r"^text must hold known tokens only, got 'x' at place 2$"):
        Vocabulary("abc").encode("abxc")
    with pytest.raises(ValueError, match=r"^numbers must be from 0 to 2, got 3$"):
        Vocabulary("abc").decode([0, 3])
    with pytest.raises(ValueError, match="one or more, no two alike"):
        Vocabulary("abca")
    with pytest.raises(ValueError, match="one or more, no two alike"):
        Vocabulary("")


def test_a_text_of_nothing_has_no_numbers():
    assert Vocabulary("abc").encode("").shape == (0,)
    assert Vocabulary("abc").encode("").dtype is torch.int64
    assert Vocabulary("abc").decode([]) == ""
    assert repr(Vocabulary("abc")) == "Vocabulary(3 characters)"
