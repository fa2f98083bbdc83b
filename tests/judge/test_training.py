"""Training results: a score against its target."""

import math

import pytest
import torch

from lemmata.judge import reaches


@pytest.mark.parametrize(("score", "holds"), [(0.96, True), (0.95, True), (0.94, False)])
def test_an_accuracy_is_at_least_its_target(score, holds):
    evidence = reaches(score, 0.95)
    assert evidence.holds is holds
    assert (evidence.by, evidence.relation, evidence.predicted) == ("training", "≥", 0.95)


@pytest.mark.parametrize(("score", "holds"), [(0.1, True), (0.2, True), (0.3, False)])
def test_a_loss_is_at_most_its_target(score, holds):
    evidence = reaches(score, 0.2, at_most=True)
    assert evidence.holds is holds
    assert evidence.relation == "≤"


def test_a_diverged_loss_decides_nothing():
    assert reaches(math.nan, 0.2, at_most=True).undecided
    assert not reaches(math.nan, 0.2, at_most=True).holds
    assert not reaches(math.inf, 0.2, at_most=True).holds


def test_tensors_are_numbers():
    assert reaches(torch.tensor(0.5), torch.tensor(0.4)).measured == 0.5
