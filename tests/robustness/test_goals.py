"""What attacks climb: against the formulas entry by entry, at ties, and where all logits are negative."""

import pytest
import torch
from torch.nn import functional

from lemmata.robustness import cross_entropy_goal, dlr_goal, margin_goal
from lemmata.robustness.goals import answered_wrongly

GOALS = (cross_entropy_goal, margin_goal, dlr_goal)


def drawn(batch=40, classes=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, classes, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (batch,), generator=generator)
    return logits, y, (y + torch.randint(1, classes, (batch,), generator=generator)) % classes


@pytest.mark.parametrize("shift", [0.0, -100.0])
def test_margins_are_those_of_the_other_classes_whatever_their_sign(shift):
    logits, y, targets = drawn()
    rows = [[float(z) + shift for z in row] for row in logits]
    others = [max(z for k, z in enumerate(row) if k != int(own)) for row, own in zip(rows, y, strict=True)]
    expected = [other - row[int(own)] for other, row, own in zip(others, rows, y, strict=True)]
    assert margin_goal(logits + shift, y).tolist() == pytest.approx(expected)
    others = [max(z for k, z in enumerate(row) if k != int(t)) for row, t in zip(rows, targets, strict=True)]
    expected = [row[int(t)] - other for other, row, t in zip(others, rows, targets, strict=True)]
    assert margin_goal(logits + shift, y, targets).tolist() == pytest.approx(expected)


def test_the_ratio_is_the_printed_one():
    logits, y, targets = drawn()
    for row, own, target, plain, aimed in zip(
        logits.tolist(), y, targets, dlr_goal(logits, y), dlr_goal(logits, y, targets), strict=True
    ):
        first, second, third, fourth = sorted(row, reverse=True)[:4]
        best_other = second if row[int(own)] == first else first
        assert float(plain) == pytest.approx(-(row[int(own)] - best_other) / (first - third))
        expected = -(row[int(own)] - row[int(target)]) / (first - (third + fourth) / 2)
        assert float(aimed) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3, 4, 10])
def test_the_ratio_has_the_sign_of_success_and_no_scale(classes):
    logits, y, targets = drawn(classes=classes)
    assert torch.equal(dlr_goal(logits, y) > 0, logits.argmax(1) != y)
    if classes > 2:
        for aim in (None, targets):
            there, scaled = dlr_goal(logits, y, aim), dlr_goal(1e4 * logits + 7, y, aim)
            assert torch.allclose(there, scaled, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_goals_are_differentiated_rightly_and_one_by_one(goal, classes):
    logits, y, targets = drawn(batch=5, classes=classes)
    for aim in (None, targets):
        assert torch.autograd.gradcheck(lambda z, aim=aim: goal(z, y, aim), logits.clone().requires_grad_())
        alone = torch.cat(
            [goal(logits[i : i + 1], y[i : i + 1], None if aim is None else aim[i : i + 1]) for i in range(5)]
        )
        assert torch.allclose(alone, goal(logits, y, aim))


def test_the_loss_rises_away_from_y_and_towards_a_target():
    logits, y, targets = drawn()
    assert torch.equal(cross_entropy_goal(logits, y), functional.cross_entropy(logits, y, reduction="none"))
    likely = functional.log_softmax(logits, 1).gather(1, targets[:, None])[:, 0]
    assert torch.allclose(cross_entropy_goal(logits, y, targets), likely)


def test_a_tie_within_rounding_is_no_wrong_answer():
    logits, y = torch.tensor([[1e4, 1e4 + 1e-3], [1e4, 1e4 + 1.0], [0.0, 0.0], [-3.0, -2.0]]), torch.zeros(4).long()
    assert answered_wrongly(logits, y).tolist() == [False, True, False, True]
    assert answered_wrongly(logits, 1 - y).tolist() == [False] * 4
    assert answered_wrongly(logits, y, targets=1 - y).tolist() == [False, True, False, True]
