"""Evidence in one sentence: plain words, no digit that says nothing."""

import pytest
import torch

from lemmata.judge import all_of, at_least, at_most, close, exactly, probability_is, reaches, sentence


def heads(n):
    return torch.arange(n) % 2 == 0


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (exactly(9, 4), "measured 9, predicted 4"),
        (exactly(20000, 20000), "measured 20,000, as predicted"),
        (close(0.1 + 0.2, 0.3), "measured 0.3, as predicted"),
        (close([1.0, 2.0], [1.0, 2.5], within=0.1), "worst of 2 values: measured 2, predicted 2.5 ± 0.1"),
        (at_most([1.0, 2.0], 3.0), "2 instances, the worst keeps the bound: measured 2, predicted at most 3"),
        (at_least([1.0, 2.0], 1.0), "2 instances, the worst reaches the bound: measured 1, predicted at least 1"),
        (at_most([1.0, 4.0], 3.0), "1 of 2 instances break the bound: measured 4, predicted at most 3"),
        (reaches(0.9, 0.95), "measured 0.9, predicted at least 0.95"),
        (all_of(exactly(1, 1)), "measured 1, as predicted"),
        (all_of(exactly(1, 1), exactly(2, 2)), "measured 1, as predicted; all 2 checks hold"),
        (all_of(exactly(1, 1), exactly(2, 3)), "measured 2, predicted 3; 1 of 2 checks failed"),
        (exactly("a word", "another"), "measured a word, predicted another"),
    ],
)
def test_evidence_is_told_in_a_sentence_of_its_fields_or_its_json(evidence, told):
    assert sentence(vars(evidence)) == sentence(evidence.to_json()) == told


def test_chance_is_told_with_its_odds():
    told = sentence(probability_is(heads, 0.5, effect=0.1).to_json())
    assert told.startswith("2,112 trials, exact binomial: measured 0.5, predicted 0.5 ± ")
    assert told.endswith(" (chance misleads once in 1,000,000,000 times)")


def test_without_evidence_nothing_is_told():
    assert sentence(None) == ""
