"""How a run is stopped and when it is saved: clocks, closed terminals, screens that are gone, and what is said."""

import errno
import json
import re
import signal

import numpy as np
import pytest
import torch

from lemmata.train import Watcher, checkpoint, folder, training
from lemmata.train.interrupt import HANGUP, asked_to_stop

pytestmark = pytest.mark.usefixtures("no_waiting")

# --- Saving by time ---


@pytest.fixture
def ticking(monkeypatch):
    """A clock that a step moves on by 25 seconds, and nothing else does."""
    now, real = [0.0], training.Training.advance

    def advance(self, *place):
        now[0] += 25.0
        return real(self, *place)

    monkeypatch.setattr(training, "clock", lambda: now[0])
    monkeypatch.setattr(training.Training, "advance", advance)


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ({}, [3, 4, 7, 8, 11, 12]),  # 75 seconds inside an epoch; 5 are enough at its end
        ({"save_seconds": 30}, [2, 4, 6, 8, 10, 12]),
        ({"save_seconds": 1e9}, [4, 8, 12]),
        ({"save_seconds": 0.001}, list(range(1, 13))),
        ({"save": 5}, [5, 10, 12]),
    ],
)
def test_saving_by_time_happens_inside_epochs_and_changes_nothing(noisy, tmp_path, ticking, unbroken, words, steps):
    saved = noisy.Saved()
    assert noisy.equal(noisy.end(noisy.train(tmp_path, [saved], **words)), unbroken)
    assert saved.steps == steps


def test_epochs_that_end_in_quick_succession_are_not_all_saved(noisy, tmp_path):
    saved = noisy.Saved()
    noisy.train(tmp_path, [saved])
    assert saved.steps == [noisy.STEPS]
    assert 0 < json.loads((tmp_path / "result.json").read_text())["seconds"] < 60


def test_a_resumed_run_counts_the_seconds_of_both_parts(noisy, tmp_path, ticking):
    with pytest.raises(SystemExit):
        noisy.train(tmp_path, [noisy.At("stepped", 5, noisy.interrupt())])
    assert noisy.train(tmp_path, resume=True).seconds == noisy.STEPS * 25


# --- Closed terminals ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_closed_terminal_in_the_first_epoch_leaves_a_checkpoint(noisy, tmp_path, unbroken, number, code):
    with pytest.raises(SystemExit) as stop:
        noisy.train(tmp_path, [noisy.At("stepped", 2, noisy.interrupt(number))])
    assert stop.value.code == code
    assert checkpoint.newest(tmp_path / "checkpoints").step == 2
    assert noisy.equal(noisy.end(noisy.train(tmp_path, resume=True)), unbroken)


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([signal.SIGHUP, signal.SIGHUP], signal.SIGHUP),  # one from the shell and one from the kernel
        ([signal.SIGHUP, signal.SIGTERM], signal.SIGTERM),
        ([signal.SIGTERM, signal.SIGHUP], signal.SIGTERM),
        ([signal.SIGINT, signal.SIGINT], None),
        ([signal.SIGTERM, signal.SIGINT], None),
        ([signal.SIGHUP, signal.SIGTERM, signal.SIGTERM], None),
    ],
)
def test_a_second_signal_ends_at_once_unless_it_is_a_hang_up(numbers, kept):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with asked_to_stop() as asked:
        for number in numbers[:-1]:
            signal.raise_signal(number)
        if kept is None:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(numbers[-1])
        else:
            signal.raise_signal(numbers[-1])
            assert asked.signal == kept
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_nohup_means_that_a_closed_terminal_is_nothing(noisy, tmp_path, unbroken):
    before = signal.signal(HANGUP, signal.SIG_IGN)
    try:
        assert noisy.equal(
            noisy.end(noisy.train(tmp_path, [noisy.At("stepped", 2, noisy.interrupt(HANGUP))])), unbroken
        )
    finally:
        signal.signal(HANGUP, before)


@pytest.mark.parametrize(("event", "step", "kept"), [("stepped", 3, 3), ("evaluated", 4, 4), ("saved", 6, 7)])
def test_a_screen_that_is_gone_costs_no_step(noisy, tmp_path, unbroken, event, step, kept):
    """A terminal that hangs up may refuse what is written to it before its signal comes."""

    def gone():
        raise OSError(errno.EIO, "Input/output error")

    others = noisy.Saved()
    with pytest.raises(OSError, match="Input/output error"):
        noisy.train(tmp_path, [noisy.At(event, step, gone), others], save=6)
    assert others.steps[-1] == kept  # the other watchers are told all the same
    assert checkpoint.newest(tmp_path / "checkpoints").step == kept
    assert noisy.equal(noisy.end(noisy.train(tmp_path, resume=True, save=6)), unbroken)


def test_a_terminal_that_takes_its_screen_with_it_is_a_closed_terminal(noisy, tmp_path):
    def both():
        signal.raise_signal(signal.SIGHUP)
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(SystemExit) as stop:
        noisy.train(tmp_path, [noisy.At("stepped", 2, both)])
    assert stop.value.code == 129
    assert checkpoint.newest(tmp_path / "checkpoints").step == 2


@pytest.mark.parametrize("event", ["started", "finished", "closed"])
def test_a_watcher_that_fails_before_or_after_is_heard(noisy, tmp_path, event):
    watcher = Watcher()
    setattr(watcher, event, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        noisy.train(tmp_path, [watcher])
    assert (tmp_path / "result.json").exists() == (tmp_path / "checkpoints").exists() == (event != "started")


# --- What is said ---


def test_where_there_is_nothing_to_resume_it_is_said(noisy, tmp_path, unbroken):
    with pytest.raises(KeyboardInterrupt):
        noisy.train(tmp_path, [noisy.At("stepped", 2, noisy.die)])
    said = f"there is nothing to resume in {tmp_path}/checkpoints: training starts at step 0"
    resumed = noisy.train(tmp_path, resume=True)
    assert resumed.messages == [said]
    assert noisy.equal(noisy.end(resumed), unbroken)


def test_a_first_save_that_was_cut_short_is_said(noisy, tmp_path):
    with pytest.raises(SystemExit):
        noisy.train(tmp_path, [noisy.At("stepped", 2, noisy.interrupt())])
    (tmp_path / "checkpoints" / "step-00000002.json").unlink()
    assert noisy.train(tmp_path, resume=True).messages == [
        f"there is nothing to resume in {tmp_path}/checkpoints (step-00000002.safetensors: step-00000002.json is "
        "missing): training starts at step 0"
    ]


def test_watchers_are_told_where_it_goes_on_and_what_there_is_to_say(noisy, tmp_path):
    told = []
    watcher = Watcher()
    watcher.started = told.append
    with pytest.raises(SystemExit):
        noisy.train(tmp_path, [watcher, noisy.At("stepped", 6, noisy.interrupt())])
    noisy.train(tmp_path, [watcher], resume=True)
    facts = [{name: facts[name] for name in ("step", "steps", "epoch", "epochs", "messages")} for facts in told]
    assert facts[0] == {"step": 0, "steps": 12, "epoch": 0, "epochs": 3, "messages": []}
    assert facts[1] == {"step": 6, "steps": 12, "epoch": 1, "epochs": 3, "messages": []}


@pytest.mark.parametrize(
    ("place", "name", "value", "said"),
    [
        (torch, "get_num_threads", lambda: 64, r"threads 64, was \d+"),
        (torch, "__version__", "9.9.0", r"torch 9\.9\.0, was [\w.+]+"),
        (folder, "__version__", "9.9.0", r"lemmata 9\.9\.0, was [\d.]+"),
        (torch.backends.cpu, "get_cpu_capability", lambda: "AVX1024", r"instructions AVX1024.*, was \w+.*"),
        (np, "__version__", "9.9.0", r"numpy 9\.9\.0, was [\d.]+"),
    ],
    ids="threads torch lemmata instructions numpy".split(),
)
def test_what_may_change_the_bits_is_said_in_one_line(noisy, tmp_path, monkeypatch, place, name, value, said):
    with pytest.raises(SystemExit):
        noisy.train(tmp_path, [noisy.At("stepped", 5, noisy.interrupt())])
    monkeypatch.setattr(place, name, value)
    (message,) = noisy.train(tmp_path, resume=True).messages
    other = "from here on the bits may differ from those of an unbroken run"
    assert re.fullmatch(rf"step 5 was saved under other conditions \({said}\): {other}", message)
    assert noisy.train(tmp_path, resume=True).messages == []  # step 12 was saved under these


def test_a_device_and_a_number_of_processes_are_among_the_conditions():
    mine, other = folder.versions(), folder.versions(torch.device("mps"), 2)
    assert folder.differing(mine, other) == "device mps, was cpu; processes 2, was 1"
    assert folder.differing({}, mine) == ""  # checkpoints of former versions did not note it
