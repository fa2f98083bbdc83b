"""Robust accuracy: survivors alone go on, data as people have them, an exact interval, signs of sham robustness."""

import math

import pytest
import torch
from scipy.stats import binomtest
from tests.robustness.digit_classifier import Changed, classifier, digits

from lemmata.data import Examples, load
from lemmata.robustness import Threat, apgd, evaluate

QUICK = {"steps": 8, "queries": 25, "examine": False}


@pytest.mark.parametrize(("norm", "eps"), [(math.inf, 0.08), (2, 0.5), (1, 2.0)])
def test_every_example_that_fell_is_one_and_the_interval_is_that_of_clopper_and_pearson(norm, eps):
    (x, y), model = digits(), classifier()
    found = evaluate(model, (x, y), eps, norm, **QUICK)
    assert torch.equal(model(found.examples).argmax(1) == y, found.robust)
    assert bool(Threat(eps, norm).admits(x, found.examples).all())
    stood = int(found.robust.sum())
    assert 0 < stood == round(found.accuracy * len(x)) <= int((~apgd(model, x, y, eps, norm, steps=8).success).sum())
    exact = binomtest(stood, len(x)).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert [found.clean, *found.left.values()] == sorted([found.clean, *found.left.values()], reverse=True)
    assert list(found.left.values())[-1] == pytest.approx(found.accuracy)


def test_only_what_stands_is_asked_again():
    asked = []

    class Counting(Changed):
        def forward(self, x):
            asked.append(len(x))
            return super().forward(x)

    assert evaluate(Counting(), digits(), 0.5, **QUICK).accuracy == 0
    fallen = sum(asked)
    asked.clear()
    assert evaluate(Counting(), digits(), 0.001, **QUICK).accuracy > 0.9
    assert sum(asked) > 10 * fallen


def test_data_come_in_any_form_and_batches_change_little():
    (x, y), model = digits(12), classifier()
    forms = [(x, y), Examples(x=x, y=y), torch.utils.data.TensorDataset(x, y), [(x[:7], y[:7]), (x[7:], y[7:])]]
    found = [evaluate(model, form, 0.08, **QUICK) for form in forms]
    assert all(torch.equal(each.examples, found[0].examples) for each in found)
    assert abs(evaluate(model, (x, y), 0.08, batch_size=7, **QUICK).accuracy - found[0].accuracy) < 0.2
    assert evaluate(model, (x, y), 0, **QUICK).accuracy == found[0].clean


def test_signs_of_sham_robustness_come_with_the_figure():
    cold = evaluate(Changed(behind=lambda z: z / 1e-6), digits(), 0.1, steps=5, queries=10)
    assert any(flag.startswith("zero gradients") for flag in cold.flags)
    assert "flag: zero gradients" in str(cold)
    assert evaluate(classifier(), digits(), 0.1, steps=5, queries=10).flags == ()


def test_levels_a_surrogate_and_progress():
    heard, (x, y) = [], digits(16)
    x = (x * 255).round() / 255
    watch = lambda *words: heard.append(words)  # noqa: E731
    found = evaluate(
        classifier(), (x, y), 0.1, levels=256, surrogate=classifier(1), batch_size=15, watch=watch, **QUICK
    )
    names = ["APGD", "APGD towards classes", "transfer", "squares"]
    assert heard == [(name, first, 16) for first in (0, 15) for name in names]
    torch.testing.assert_close(found.examples * 255, (found.examples * 255).round(), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (torch.rand(4, 1, 8, 8), "data must have classes beside the images"),
        ({"left": torch.rand(4, 64), "right": torch.rand(4, 64), "y": torch.zeros(4).long()}, "must have one input"),
        ((torch.zeros(0, 64), torch.zeros(0).long()), "must hold at least one example"),
        ((torch.rand(4, 64) + 1, torch.zeros(4).long()), "x must lie in bounds"),
        ((torch.rand(4, 64), torch.full((4,), 17)), "y must hold classes from 0 to 9, got 17"),
    ],
)
def test_unusable_data_are_refused(data, said):
    with pytest.raises(ValueError, match=said):
        evaluate(classifier(), data, 0.1, **QUICK)


def test_a_whole_data_set_is_no_part_of_it():
    with pytest.raises(TypeError, match=r"give one, digits\.train or digits\.test"):
        evaluate(classifier(), load("digits"), 0.1)
