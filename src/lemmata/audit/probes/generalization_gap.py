r"""How much better is a network on the examples it was trained on than on others, and did it learn or memorise?"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.predictions import predictions
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.figure import Bars, Figure

Z = 2.5  # standard errors: wrong in 6 of 1000 cases on one side, at the limit itself
LEARNT = 0.5  # skill on the training part from which a network has fitted it
KEPT = 0.2  # of that skill, which must be left on new examples: far below what any network keeps that learnt at all
LEAST = 30  # examples: with fewer no interval of an accuracy is narrower than a tenth
REPORTED = 0.1  # of skill, at two standard errors: smaller gaps are what good networks have
CLAIMS = ("probability.chebyshev", "probability.expectation")


class _Skill(NamedTuple):
    """What is gained over the best constant answer: 0 for nothing, 1 for a perfect one; score in the field's words."""

    value: float
    low: float
    high: float
    score: float


@probe("Generalisation gap", value=65, share=0.1, needs=("targets", "test"))
def generalization_gap(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Accuracy, or explained variance, on the training part and on the test part, with intervals."""
    test = subject.test
    assert test is not None  # said in needs
    if min(len(test), len(subject.train)) < LEAST:
        told = f"{len(subject.train)} training and {len(test)} test examples are too few to tell"
        yield skipped("generalisation gap", f"{told}: it needs {LEAST} of each")
        return
    if subject.task == "numbers":
        answers, asked = (values[0].numel() for values in (subject.outputs(subject.some(1)), subject.labels))  # type: ignore[index]
        if answers != asked:
            yield skipped("generalisation gap", f"it needs an output for each target, got {answers} for {asked}")
            return
        word = "explained variance"
        trained, tested = _regression_scores(subject, test, clock)
    else:
        word = "accuracy"
        trained, tested = _classification_scores(subject, test, clock)
    gap, apart = trained.score - tested.score, trained.value - tested.value
    reach = math.hypot(trained.value - trained.low, tested.high - tested.value)  # Z standard errors of the difference
    low, high = apart - reach * 2 / Z, apart + reach * 2 / Z  # two of them, for what is only a hint
    numbers = {
        "train": trained.score, "test": tested.score, "gap": gap, "train_skill": trained.value,
        "test_skill": tested.value, "test_skill_high": tested.high, "skill_gap_low": low, "skill_gap_high": high,
    }  # fmt: skip
    measured = f"{word} {trained.score:.1%} on training and {tested.score:.1%} on test examples"
    measured += f"; over the best constant answer it keeps {tested.value:.1%} of {trained.value:.1%}"
    predicted = (
        f"examples of one source give the same in the mean; by chance they differ by {2 * reach / Z:.1%} of skill"
    )
    figure = Figure(
        "Training and test", "", word,
        [Bars(["training", "test", "test, constant answer"], [trained.score, tested.score, _constant_score(tested)])],
    )  # fmt: skip
    more = {"measured": measured, "predicted": predicted, "claims": CLAIMS, "numbers": numbers, "figures": [figure]}
    if trained.low > LEARNT and tested.high < KEPT * trained.value:
        verdict = (
            f"memorised, not learnt: {word} {trained.score:.1%} on training examples, {tested.score:.1%} on others, "
        )
        verdict += f"no better than a constant answer with {_constant_score(tested):.1%}"
        advice = (
            "Look whether labels belong to their inputs, in both parts (shuffled? joined by position?), and whether "
        )
        advice += "both parts come from one source; then use a smaller network, or regularise."
        yield alarm("generalisation gap", verdict, advice=advice, weight=8.0, **more)
    elif low > REPORTED:
        verdict = f"overfitted: {word} {trained.score:.1%} on training and {tested.score:.1%} on test examples"
        advice = "More data, augmentation, weight decay, dropout or an earlier stop would bring the two together."
        yield hint("generalisation gap", verdict, advice=advice, weight=1 + 4 * min(max(low, 0), 1), **more)
    elif high < -REPORTED:
        verdict = f"better on test examples, {tested.score:.1%}, than on those it was trained on, {trained.score:.1%}"
        advice = (
            "The two parts differ: look how they were split, and whether the labels of the training part are noisy."
        )
        yield hint("generalisation gap", verdict, advice=advice, weight=1.5, **more)
    else:
        scores = f"{word} {trained.score:.1%} on training and {tested.score:.1%} on test examples"
        if low > 0 or high < 0:
            verdict = f"the gap is real, but below the {REPORTED:.0%} of skill from which it is reported: {scores}"
        else:
            verdict = f"no gap beyond chance: {scores}"
        yield fine("generalisation gap", verdict, **more)


def _classification_scores(subject: Subject, test: Sample, clock: Clock) -> tuple[_Skill, _Skill]:
    train, held = predictions(subject, subject.train, clock), predictions(subject, test, clock)
    usual = torch.bincount(train.labels).argmax()
    trained, tested = (
        _skill_interval(one.correct.double(), (one.labels == usual).double(), 1.0) for one in (train, held)
    )
    return trained, tested


def _regression_scores(subject: Subject, test: Sample, clock: Clock) -> tuple[_Skill, _Skill]:
    centre = subject.train.targets.double().mean(0)  # type: ignore[union-attr]
    found = []
    for sample in (subject.train, test):
        clock.need(len(sample) * subject.seconds, f"predicting {len(sample)} examples")
        targets = sample.targets.double()  # type: ignore[union-attr]
        outputs = subject.outputs(sample).double().reshape(targets.shape)
        squares = [(targets - answer).square().reshape(len(targets), -1).mean(1).cpu() for answer in (outputs, centre)]
        spread = squares[1].mean().item()
        if spread == 0:
            raise ValueError("targets must differ from each other: all are equal")
        found.append(_skill_interval(-squares[0] / spread, -squares[1] / spread, 0.0))
    return found[0], found[1]


def _skill_interval(own: Tensor, constant: Tensor, perfect: float) -> _Skill:
    """From the score of each example and that of the constant answer."""
    number, room = len(own), perfect - constant.mean().item()
    if room <= 0:
        raise ValueError("targets must differ from each other: all are equal")
    gain = own - constant
    value = gain.mean().item() / room
    # For these targets the constant's score is a number and only the own one varies; over targets both do, as a pair.
    # The smaller may be taken; and what was not seen among n examples may still be a share of 1/n.
    variance = max(min(own.var().item(), gain.var().item()), 1 / number)
    reach = Z * math.sqrt(variance / number) / room
    score = own.mean().item() if perfect else value
    return _Skill(value, value - reach, value + reach, score)


def _constant_score(skill: _Skill) -> float:
    """The score of the constant answer, which has no skill: score = constant + skill (1 - constant)."""
    if skill.value >= 1 or skill.score == skill.value:
        return 0.0
    return (skill.score - skill.value) / (1 - skill.value)
