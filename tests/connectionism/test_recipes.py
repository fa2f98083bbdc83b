"""The recipes of the chapter: what they reach, that they go on where they stopped, and what they show."""

from dataclasses import asdict, replace

import pytest
import torch

import lemmata
from lemmata.connectionism import HopfieldNetwork
from lemmata.connectionism.recipes import (
    HopfieldConfig,
    PerceptronConfig,
    PrototypeLearner,
    SweepLearner,
    remember_prototypes,
    separate_classes,
)
from lemmata.data import Examples, load
from lemmata.figure import Heat, Image, Points
from lemmata.train import Options, fit, run_experiment

FAST = Options(epochs=10, batch_size=4096, evaluate=10, device="cpu")


def test_a_separable_set_is_learnt_until_nothing_is_left():
    run = run_experiment(separate_classes("separable", options=replace(FAST, epochs=1000)))
    data = load("separable").train
    assert run.stopped == "converged"
    assert run.system.mistakes(data.x, data.y) == 0
    assert run.scores["accuracy"] > 0.98


def test_digits_reach_what_a_perceptron_can():
    run = run_experiment(separate_classes("digits", options=FAST))
    assert run.stopped == "finished"
    assert run.scores["accuracy"] > 0.9


@pytest.mark.parametrize("batch", [32, 400])
def test_small_batches_make_the_same_sweeps_and_end_after_a_whole_clean_one(batch):
    experiment = separate_classes("separable")
    train, whole = experiment.train, separate_classes("separable").system
    learner = SweepLearner(experiment.system, len(train))
    for _ in range(1000):
        updates, ends = whole.sweep(train.x, train.y), []
        for first in range(0, len(train), batch):
            numbers = learner.step(train[first : first + batch], 0.0)
            updates -= numbers["mistakes"]
            ends.append(numbers["finished"])
        assert updates == 0
        assert not any(ends[:-1])
        if ends[-1]:
            break
    assert ends[-1]
    assert torch.equal(whole.weight, experiment.system.weight)


def test_the_picture_shows_both_sides_of_the_line_and_the_points():
    run = run_experiment(experiment := separate_classes("moons", options=FAST))
    heat, *points = experiment.picture(run.system).marks
    assert isinstance(heat, Heat)
    assert {value for row in heat.values for value in row} == {-1, 1}
    assert [mark.label for mark in points] == ["upper", "lower"]
    assert all(isinstance(mark, Points) for mark in points)


def test_the_picture_of_digits_tells_what_each_was_taken_for():
    run = run_experiment(experiment := separate_classes("digits", options=FAST))
    images = experiment.picture(run.system).marks
    predicted = experiment.predict(run.system, load("digits").test[:15])["class"].tolist()
    assert [image.label[0] for image in images] == [str(k) for k in predicted]


def test_each_class_is_remembered_as_its_majority():
    run = run_experiment(remember_prototypes(options=Options(epochs=1, batch_size=100, device="cpu")))
    train = load("digits").train
    for k, pattern in enumerate(run.system.patterns):
        dark = (train.x[train.y == k].flatten(1) > 0.5).double().mean(0)
        assert torch.equal(pattern, torch.where(dark > 0.5, 1.0, -1.0))
    assert run.system.is_stable(run.system.patterns).all()
    assert run.scores["recalled"] > 0.9
    assert run.scores["accuracy"] > 0.6


def test_hebbs_rule_confuses_what_the_pseudo_inverse_keeps_apart():
    hebb = run_experiment(
        remember_prototypes(config=HopfieldConfig(rule="hebb"), options=Options(epochs=1, device="cpu"))
    )
    assert hebb.scores["recalled"] < 0.1


def test_without_noise_every_memory_is_recalled():
    quiet = HopfieldConfig(noise=0.0)
    run = run_experiment(remember_prototypes(config=quiet, options=Options(epochs=1, batch_size=500, device="cpu")))
    assert run.scores["recalled"] == 1.0


def test_the_order_and_size_of_batches_do_not_matter_for_prototypes():
    train = load("digits").train
    one, other = HopfieldNetwork(64), HopfieldNetwork(64)
    PrototypeLearner(one, 10, HopfieldConfig()).step(train, 0.0)
    learner = PrototypeLearner(other, 10, HopfieldConfig())
    for first in range(0, len(train), 77):
        learner.step(train[first : first + 77], 0.0)
    assert torch.equal(one.couplings, other.couplings)


def test_a_recall_stands_below_what_was_given():
    run = run_experiment(experiment := remember_prototypes(options=Options(epochs=1, batch_size=500, device="cpu")))
    marks = experiment.picture(run.system).marks
    assert [mark.label for mark in marks[:5]] == ["given"] * 5
    assert [mark.label for mark in marks[5:10]] == ["0", "1", "2", "3", "4"]
    sampled = experiment.sample(run.system, 7, torch.Generator().manual_seed(0)).marks
    assert len(sampled) == 14
    assert all(isinstance(mark, Image) for mark in sampled)


def test_a_mirror_image_is_of_no_class():
    run = run_experiment(experiment := remember_prototypes(options=Options(epochs=1, batch_size=500, device="cpu")))
    negative = (1 - run.system.patterns.reshape(-1, 8, 8)) / 2
    assert experiment.predict(run.system, Examples(x=1 - negative))["class"].tolist() == list(range(10))
    assert experiment.predict(run.system, Examples(x=negative))["class"].tolist() == [-1] * 10


@pytest.mark.parametrize("make", [separate_classes, remember_prototypes])
def test_a_run_stopped_on_its_way_goes_on_to_the_same_end(tmp_path, make):
    options = Options(epochs=2, batch_size=300, device="cpu")
    whole = run_experiment(make("digits", options=options))
    for steps in (3, None):
        experiment = make("digits", options=replace(options, steps=steps))
        kind = type(experiment.system).__lemmata_system__["id"]
        record = {"built": kind, "arguments": experiment.arguments}
        run_experiment(experiment, out=tmp_path / "run", resume=steps is None, record=record)
    again = lemmata.load(tmp_path / "run").state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.system.state_dict().items())


def test_learners_of_the_chapter_work_in_fit():
    data = load("separable")
    system = separate_classes("separable").system
    run = fit(system, data.train, test=data.test, learner=SweepLearner(system, 1000), metric="accuracy", options=FAST)
    assert run.scores["accuracy"] > 0.9


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_name_the_fix():
    with pytest.raises(ValueError, match=r"noise must be in \[0, 0\.5\], got 0\.7"):
        HopfieldConfig(noise=0.7)
    with pytest.raises(ValueError, match="rule must be one of hebb, pseudo-inverse, got 'hopf'"):
        HopfieldConfig(rule="hopf")
    assert asdict(PerceptronConfig()) == {"bias": True}
