"""Tags stand at the first piece of their word."""

import pytest
import torch
from torch.nn import functional

from lemmata.transformers.tagging import first_pieces, tag_targets


def test_targets_are_seen_by_cross_entropy_at_first_pieces_only():
    words = [None, 0, 1, 1, 1, 2, None, None]
    targets = tag_targets([2, 0, 1], words)
    assert targets.tolist() == [-100, 2, 0, -100, -100, 1, -100, -100]
    assert first_pieces(words) == [1, 2, 5]
    logits = torch.randn(8, 3)
    expected = functional.cross_entropy(logits[[1, 2, 5]], torch.tensor([2, 0, 1]))
    assert torch.allclose(functional.cross_entropy(logits, targets), expected)


def test_a_sentence_without_words():
    assert first_pieces([None, None]) == []
    assert first_pieces([]) == []
    assert tag_targets([], [None, None]).tolist() == [-100, -100]


def test_what_is_refused():
    with pytest.raises(ValueError, match="tags must be one for each of the 2 words, got 1"):
        tag_targets([1], [0, 0, 1])
    with pytest.raises(ValueError, match=r"words must number the words 0, 1, ... in their order"):
        first_pieces([1, 2])
    with pytest.raises(ValueError, match="in their order, each in one run"):
        first_pieces([0, None, 0])
    with pytest.raises(ValueError, match="tag must be >= 0, got -1"):
        tag_targets([-1], [0])
