"""A run cut at any place and resumed is the unbroken one: weights, scores, log, patience and every generator."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from lemmata.train import Diverged, Options, checkpoint, fit, training

pytestmark = pytest.mark.usefixtures("no_waiting")

PLACES = [("stepped", step) for step in range(1, 12)] + [("evaluated", 4), ("evaluated", 8)]


@pytest.mark.parametrize(("event", "step"), PLACES)
def test_a_run_that_was_stopped_anywhere_goes_on_as_if_it_had_not(noisy, tmp_path, unbroken, event, step):
    with pytest.raises(SystemExit):
        noisy.train(tmp_path, [noisy.At(event, step, noisy.interrupt())])
    assert checkpoint.newest(tmp_path / "checkpoints").step == step  # in the middle of an epoch or not
    torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
    resumed = noisy.train(tmp_path, resume=True)
    assert noisy.equal(noisy.end(resumed), unbroken)
    assert resumed.messages == []


@pytest.mark.parametrize(("event", "step"), [("evaluated", 4), ("saved", 4), ("stepped", 5), ("evaluated", 12)])
@pytest.mark.parametrize("save", [1, 3])
def test_a_run_that_died_anywhere_goes_on_from_its_last_checkpoint(noisy, tmp_path, unbroken, save, event, step):
    if save == 3 and event == "saved":
        step = 6
    with pytest.raises(KeyboardInterrupt):
        noisy.train(tmp_path, [noisy.At(event, step, noisy.die)], save=save)
    assert noisy.equal(noisy.end(noisy.train(tmp_path, resume=True, save=save)), unbroken)


def test_a_run_that_is_stopped_at_every_step_is_the_unbroken_one_too(noisy, tmp_path, unbroken):
    for step in range(1, 12):
        with pytest.raises(SystemExit):
            noisy.train(tmp_path, [noisy.At("stepped", step, noisy.interrupt())], resume=step > 1)
    assert noisy.equal(noisy.end(noisy.train(tmp_path, resume=True)), unbroken)


LONG = {"repeat": 8, "batch_size": 4, "epochs": 1}  # 44 steps: every fourth is told


def test_sums_of_steps_that_were_not_told_yet_outlive_a_stop(noisy, tmp_path):
    whole = noisy.end(noisy.train(tmp_path / "whole", **LONG))
    for save in (2, 3, 5):
        words, out = {"save": save, **LONG}, tmp_path / str(save)
        with pytest.raises(KeyboardInterrupt):
            noisy.train(out, [noisy.At("saved", 2 * save, noisy.die)], **words)
        assert noisy.equal(noisy.end(noisy.train(out, resume=True, **words)), whole)


# --- Numbers that are looked at late, as on a GPU ---


@pytest.mark.parametrize("words", [{}, LONG], ids=["told at every step", "told at every fourth"])
def test_numbers_looked_at_late_are_the_same_and_none_is_lost_by_a_stop(noisy, tmp_path, monkeypatch, words):
    whole = noisy.end(noisy.train(tmp_path / "whole", **words))
    monkeypatch.setattr(training, "STEPS_LOOKED_AT", {"cpu": 50})
    assert noisy.equal(noisy.end(noisy.train(tmp_path / "late", **words)), whole)
    with pytest.raises(KeyboardInterrupt):
        noisy.train(tmp_path / "cut", [noisy.At("saved", 6, noisy.die)], save=3, **words)
    assert noisy.equal(noisy.end(noisy.train(tmp_path / "cut", resume=True, save=3, **words)), whole)


def test_a_number_that_is_not_finite_is_never_saved_however_late_it_is_looked_at(noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "STEPS_LOOKED_AT", {"cpu": 50})
    calls = []

    def loss(system, batch):
        calls.append(1)
        value = nn.functional.cross_entropy(system(batch.x), batch.y)
        return {"loss": value, "extra": value.detach() * (torch.nan if len(calls) == 22 else 1)}

    options = Options(epochs=1, batch_size=2, save=3, device="cpu")
    x = noisy.X.repeat(20, 1), noisy.TRAIN[1].repeat(20)  # 220 steps an epoch: every 22nd is told
    with pytest.raises(Diverged, match=r"extra became nan at step 22 .*step 21 is kept"):
        fit(noisy.network(), x, loss=loss, options=options, out=tmp_path)


class Counting:
    """Learns by counting; scores come from a list, one for each epoch of 4."""

    def __init__(self, scores=(), last=10**9):
        self.system, self.scores, self.last = nn.Linear(1, 1, bias=False), scores, last
        nn.init.zeros_(self.system.weight)

    def step(self, batch, progress):
        with torch.no_grad():
            self.system.weight += 1
        return {"loss": 1.0, "finished": self.system.weight.item() >= self.last}

    def evaluate(self, examples):
        epoch = round(self.system.weight.item()) // 4
        return {"score": float(self.scores[epoch - 1]) if 0 < epoch <= len(self.scores) else 0.0}

    def state(self):
        return {}

    def restore(self, state):
        pass


@pytest.mark.parametrize("late", [1, 50])
def test_a_learner_that_is_done_is_evaluated_and_saved_even_if_it_is_noticed_late(noisy, tmp_path, monkeypatch, late):
    monkeypatch.setattr(training, "STEPS_LOOKED_AT", {"cpu": late})
    x = torch.zeros(400, 1)  # told at every 40th of 400 steps
    options, learner, told = Options(epochs=2, batch_size=1, save=7, device="cpu"), Counting(last=10), []
    watcher = noisy.At("evaluated", 14 if late > 1 else 10, lambda: told.append("evaluated"))
    words = {"learner": learner, "test": {"x": x}, "metric": "score", "watchers": [watcher]}
    run = fit(learner.system, {"x": x}, options=options, out=tmp_path, **words)
    assert (run.stopped, run.steps, told) == ("converged", 14 if late > 1 else 10, ["evaluated"])
    assert checkpoint.newest(tmp_path / "checkpoints").step == run.steps


# --- Patience ---

SCORES = [0.1, 0.5, 0.3, 0.5, 0.2, 0.9, 0.8, 0.7, 0.6, 0.5]  # 0.5 again is not better


def patient(out, patience, watchers=(), resume=False, scores=SCORES, epochs=10):
    learner, options = Counting(scores), Options(epochs=epochs, batch_size=1, patience=patience, device="cpu")
    words = {"metric": "score", "largest": True, "out": out, "resume": resume, "watchers": watchers}
    x = {"x": torch.zeros(4, 1)}
    run = fit(learner.system, x, validation=x, test=x, learner=learner, options=options, **words)
    return run.stopped, run.steps, run.best, run.system.weight.item()


@pytest.mark.parametrize("step", range(1, 20))
def test_patience_counts_on_after_a_stop_and_gives_back_the_best_weights(noisy, tmp_path, step):
    whole = ("patience", 20, {"score": 0.5}, 8.0)
    assert patient(None, 3) == whole
    with pytest.raises(SystemExit):
        patient(tmp_path, 3, [noisy.At("stepped", step, noisy.interrupt())])
    assert patient(tmp_path, 3, resume=True) == whole
    assert patient(tmp_path, 3, resume=True) == whole  # and once it is at its end, there is nothing to go on with


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (3, 4, ("patience", 40, {"score": 0.9}, 24.0)),  # 0.5 at the end is the fourth that is not better
        (3, 8, ("finished", 40, {"score": 0.9}, 24.0)),
        (3, None, ("finished", 40, {"score": 0.9}, 40.0)),
        (2, 3, ("patience", 20, {"score": 0.5}, 8.0)),
    ],
)
def test_who_has_more_patience_later_goes_on(tmp_path, before, after, expected):
    assert patient(tmp_path, before)[0] == "patience"
    assert patient(tmp_path, after, resume=True) == expected == patient(None, after)


def test_who_gets_patience_later_keeps_weights_of_scores_seen_since(tmp_path):
    assert patient(tmp_path, None, epochs=2) == ("finished", 8, {"score": 0.5}, 8.0)
    scores = [0.1, 0.5, 0.3, 0.2, 0.2]
    assert patient(tmp_path, 2, resume=True, scores=scores) == ("patience", 20, {"score": 0.3}, 12.0)
