"""Pairs of sentences: their layout, what is cut of long ones, which are drawn, generators, bad input."""

import pytest
import torch

from lemmata.transformers import draw_pairs, join_pairs
from lemmata.transformers.sentence_pairs import cut_pair

DOCUMENTS = [[[10], [11], [12]], [[20], [21]], [], [[30]]]
FOLLOWING = {10: 11, 11: 12, 20: 21}


def drawn(documents=DOCUMENTS, count=3000, seed=0, **settings):
    return draw_pairs(documents, count, 1, 2, generator=torch.Generator().manual_seed(seed), **settings)


def test_the_layout_is_that_of_bert():
    pairs = join_pairs([([5, 6], [7]), ([8], [9, 9, 9]), ([4], [])], cls_token=1, sep_token=2, pad_token=0)
    assert pairs.x.tolist() == [[1, 5, 6, 2, 7, 2, 0], [1, 8, 2, 9, 9, 9, 2], [1, 4, 2, 0, 0, 0, 0]]
    assert pairs.segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1], [0] * 7]
    assert pairs.mask.sum(1).tolist() == [6, 7, 3]
    assert torch.equal(pairs.mask, pairs.x != 0)
    assert pairs.follows is None


@pytest.mark.parametrize("lengths", [(9, 2), (2, 9), (6, 6), (7, 6), (3, 3), (1, 20), (20, 1), (5, 0), (30, 0)])
@pytest.mark.parametrize("max_length", [8, 9, 13])
def test_the_longer_sentence_is_cut_one_token_after_another(lengths, max_length):
    first, second = list(range(lengths[0])), list(range(lengths[1]))
    found = cut_pair(first, second, max_length)
    room = max_length - (3 if second else 2)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    assert found == (first, second)


def test_a_pair_is_never_longer_than_allowed():
    pairs = join_pairs([(list(range(5, 40)), list(range(5, 60)))], 1, 2, max_length=12)
    assert pairs.x.shape == (1, 12)
    assert pairs.x[0].tolist() == [1, 5, 6, 7, 8, 9, 2, 5, 6, 7, 8, 2]


def test_neighbours_follow_and_strangers_come_from_other_documents():
    pairs = drawn()
    for a, b, follows in zip(pairs.x[:, 1].tolist(), pairs.x[:, 3].tolist(), pairs.follows.tolist(), strict=True):
        assert a in FOLLOWING
        assert FOLLOWING[a] == b if follows else a // 10 != b // 10


def test_all_first_sentences_and_all_strangers_are_equally_likely():
    pairs = drawn(count=30_000)
    firsts = torch.bincount(pairs.x[:, 1])[[10, 11, 20]]
    assert (firsts - 10_000).abs().max() < 6 * (30_000 * 2 / 9) ** 0.5
    strangers = torch.bincount(pairs.x[(pairs.x[:, 1] == 10) & ~pairs.follows, 3], minlength=31)[[20, 21, 30]]
    total = strangers.sum()
    assert (strangers - total / 3).abs().max() < 6 * (total * 2 / 9) ** 0.5


def test_in_a_single_document_a_stranger_is_neither_the_sentence_nor_the_next():
    pairs = drawn([[[10], [11], [12], [13]]], fraction=0.0)
    seen = {(a, b) for a, b in pairs.x[:, [1, 3]].tolist()}
    assert seen == {(a, b) for a in (10, 11, 12) for b in range(10, 14) if b not in (a, a + 1)}


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, False), (1.0, True)])
def test_all_or_none_may_follow(fraction, expected):
    assert (drawn(fraction=fraction).follows == expected).all()


def test_the_generator_decides():
    assert torch.equal(drawn().x, drawn().x)
    assert not torch.equal(drawn().x, drawn(seed=1).x)


@pytest.mark.parametrize(
    ("documents", "settings", "message"),
    [
        ([], {}, "documents must hold one with two sentences"),
        ([[[1]], [[2]]], {}, "documents must hold one with two sentences"),
        ([[[1], [2]]], {}, "at least 3 sentences"),
        (DOCUMENTS, {"fraction": 2.0}, "fraction"),
        (DOCUMENTS, {"max_length": 4}, "max_length"),
    ],
)
def test_bad_corpora_are_answered_in_a_sentence(documents, settings, message):
    with pytest.raises(ValueError, match=message):
        drawn(documents, count=3, **settings)


def test_no_pairs_are_refused():
    with pytest.raises(ValueError, match="count"):
        drawn(count=0)
    with pytest.raises(ValueError, match="at least one pair"):
        join_pairs([], 1, 2)
