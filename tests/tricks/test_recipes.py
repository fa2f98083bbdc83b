"""The recipe of distillation: what a student learns, that its teacher stays apart, and what is kept of a run."""

from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.feedforward import MLP
from lemmata.train import Options, run_experiment
from lemmata.tricks.recipes import DistillConfig, distill_clothing

SMALL = DistillConfig(widths=(16,), labelled=50, teacher_width=64, teacher_epochs=6)
SHORT = Options(epochs=8, lr=3e-3, device="cpu", evaluate=8)


def reached(config: DistillConfig) -> float:
    return run_experiment(replace(distill_clothing(config=config, options=SHORT), picture=None)).scores["accuracy"]


def test_a_student_learns_more_from_a_teacher_than_from_its_labels():
    alone = reached(replace(SMALL, hard=1.0))
    assert reached(SMALL) > alone + 0.05
    assert alone > 0.2


def test_a_student_in_double_precision_has_a_teacher_in_it():
    config, options = replace(SMALL, teacher_epochs=1), replace(SHORT, epochs=1, precision="float64")
    run = run_experiment(replace(distill_clothing(config=config, options=options), picture=None))
    assert next(run.system.parameters()).dtype is torch.float64


def test_only_as_many_labels_are_seen_as_there_should_be():
    experiment = distill_clothing(config=replace(SMALL, hard=1.0, labelled=30), options=SHORT)
    assert int(experiment.train.known.sum()) == 30
    batch, system = experiment.train[~experiment.train.known][:20], experiment.system.train()
    assert experiment.loss is not None
    assert experiment.loss(system, batch).item() == 0  # none of these has a label


def test_a_run_goes_on_with_the_same_teacher_and_gives_the_same_bits(tmp_path):
    for folder, epochs in (("once", [2]), ("twice", [1, 2])):
        for number, last in enumerate(epochs):
            options = Options(epochs=last, lr=3e-3, device="cpu")
            experiment = distill_clothing(config=replace(SMALL, teacher_epochs=1), options=options)
            run_experiment(experiment, out=tmp_path / folder, resume=number > 0)
    first, second = (lemmata.load(tmp_path / folder) for folder in ("once", "twice"))
    assert isinstance(first, MLP)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"temperature": 0.0}, "temperature must be > 0, got 0.0"),
        ({"hard": 1.5}, "hard must be in"),
        ({"labelled": 0}, "labelled must be >= 1, got 0"),
        ({"teacher_width": 0}, "teacher_width must be >= 1, got 0"),
        ({"teacher_epochs": 0}, "teacher_epochs must be >= 1, got 0"),
    ],
)
def test_bad_choices_are_answered_in_words(bad, told: str):
    with pytest.raises(ValueError, match=told):
        DistillConfig(**bad)
