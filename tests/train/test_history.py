"""What a run tells on its way: the history, callbacks that look and stop, and the bar on a terminal."""

import json
import re

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from lemmata.data.examples import Examples
from lemmata.train import Experiment, History, Options, TrainingState, Watcher, fit, progress
from lemmata.train.loop import run_experiment

X = torch.rand(40, 3, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 1.5).long()
CHOSEN = {"epochs": 3, "batch_size": 10, "lr": 0.05, "device": "cpu"}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2), nn.Linear(4, 2))


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


class Noted(Watcher):
    """All numbers of all steps, as they were told."""

    def __init__(self):
        self.losses = []

    def stepped(self, step, epoch, numbers):
        self.losses.append(numbers["loss"])


# --- History ---


def test_the_history_has_every_epoch_and_its_means():
    noted = Noted()
    run = fit(network(), (X, Y), validation=(X, Y), watchers=[noted], schedule="linear", **CHOSEN)
    history = run.history
    assert [row["step"] for row in history.steps] == list(range(1, 13))
    assert [row["epoch"] for row in history.steps] == [1] * 4 + [2] * 4 + [3] * 4
    assert (history["epoch"], history["step"], len(history)) == ([1, 2, 3], [4, 8, 12], 3)
    means = [sum(noted.losses[first : first + 4]) / 4 for first in (0, 4, 8)]
    assert history["loss"] == pytest.approx(means)
    assert history["lr"] == pytest.approx([0.05 * (1 - (4 * e + 1.5) / 12) for e in range(3)])
    assert history["validation_loss"][-1] == run.scores["loss"]
    assert json.loads(json.dumps(history.to_json())) == {"epochs": list(history), "steps": history.steps}
    with pytest.raises(KeyError, match="no column 'los' among epoch, step, loss, lr, validation_loss"):
        history["los"]


def test_the_history_prints_as_a_table_and_names_itself():
    run = fit(network(), (X, Y), test=(X, Y), evaluate=2, **CHOSEN)
    lines = str(run.history).splitlines()
    assert lines[0].split() == ["epoch", "step", "loss", "lr", "test_loss"]
    assert len({len(line) for line in lines}) == 1
    assert [len(line.split()) for line in lines[1:]] == [4, 5, 5]  # of the second and the last epoch
    assert repr(run.history) == "History(3 epochs of epoch, step, loss, lr, test_loss)"
    assert run.history["test_loss"][0] is None
    assert repr(History()) == "History(0 epochs of nothing yet)"


@pytest.mark.parametrize("cut", [2, 4, 7])
def test_a_resumed_run_has_the_whole_history(tmp_path, cut):
    class Cut(Watcher):
        def saved(self, step, path):
            if step == cut:
                raise KeyboardInterrupt

    words = {"validation": (X, Y), **CHOSEN}
    whole = fit(network(), (X, Y), **words)
    with pytest.raises(KeyboardInterrupt):
        fit(network(), (X, Y), out=tmp_path, save=1, watchers=[Cut()], **words)
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"event": "step", "step": 1\n[1]\n{"event": "step", "step": "a", "epoch": 0}\n')  # cut by a crash
    assert (
        fit(network(), (X, Y), out=tmp_path, resume=True, save=1, **words).history.to_json() == whole.history.to_json()
    )


def test_an_epoch_that_was_cut_short_counts_as_a_whole_once_it_is():
    assert fit(network(), (X, Y), steps=6, **CHOSEN).history["step"] == [4, 6]


def test_an_epoch_gone_on_with_is_one_row(tmp_path):
    fit(network(), (X, Y), steps=6, out=tmp_path, **CHOSEN)
    longer = fit(network(), (X, Y), out=tmp_path, resume=True, **CHOSEN)
    assert longer.history["loss"] == fit(network(), (X, Y), **CHOSEN).history["loss"]
    assert longer.history["step"] == [4, 8, 12]


# --- Callbacks ---


def test_callbacks_see_where_training_is():
    seen, ended = [], []

    def on_step(state):
        seen.append((state.step, state.epoch, state.loss, float(state.numbers["lr"])))

    def on_epoch(state):
        ended.append((state.step, state.epoch, state.epochs, state.steps, state.scores["loss"], len(state.history)))

    model = network()
    run = fit(model, (X, Y), validation=(X, Y), on_step=[on_step, lambda state: None], on_epoch=on_epoch, **CHOSEN)
    assert [(step, epoch) for step, epoch, _, _ in seen] == [(t + 1, t // 4 + 1) for t in range(12)]
    assert [loss for _, _, loss, _ in seen] == [row["loss"] for row in run.history.steps]
    assert [place[:4] for place in ended] == [(4, 1, 3, 12), (8, 2, 3, 12), (12, 3, 3, 12)]
    assert [place[4] for place in ended] == run.history["validation_loss"]
    assert [place[5] for place in ended] == [1, 2, 3]


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_callback_stops_by_returning_true_and_the_step_is_done(answer):
    run = fit(
        network(), (X, Y), validation=(X, Y), on_step=lambda state: answer if state.step == 6 else False, **CHOSEN
    )
    assert (run.stopped, run.steps, run.epochs) == ("callback", 6, 2)
    assert torch.equal(weights(run), weights(fit(network(), (X, Y), steps=6, **CHOSEN)))
    assert run.history["validation_loss"][-1] == run.scores["loss"]
    ended = fit(network(), (X, Y), on_epoch=lambda state: state.epoch == 2, **CHOSEN)
    assert (ended.stopped, ended.steps, ended.epochs) == ("callback", 8, 2)
    examples = Examples(x=X, y=Y)
    loss = lambda model, batch: nn.functional.cross_entropy(model(batch.x), batch.y)  # noqa: E731
    recipe = Experiment(network(), {}, examples, examples, Options(**CHOSEN), loss=loss, on_epoch=lambda state: True)
    assert run_experiment(recipe).epochs == 1


def test_a_run_that_a_callback_stopped_stays_stopped_until_nobody_asks(tmp_path):
    stop = {"on_step": lambda state: state.step == 5}
    fit(network(), (X, Y), out=tmp_path, **stop, **CHOSEN)
    assert fit(network(), (X, Y), out=tmp_path, resume=True, **stop, **CHOSEN).steps == 5
    assert json.loads((tmp_path / "result.json").read_text())["stopped"] == "callback"
    gone_on = fit(network(), (X, Y), out=tmp_path, resume=True, **CHOSEN)
    assert torch.equal(weights(gone_on), weights(fit(network(), (X, Y), **CHOSEN)))


def test_a_callback_is_part_of_the_training_and_its_error_is_its_own():
    def clip(state):
        with torch.no_grad():
            for parameter in state.model.parameters():
                parameter.clamp_(-0.125, 0.125)

    assert float(weights(fit(network(), (X, Y), on_step=clip, **CHOSEN)).abs().max()) <= 0.125

    def fail(state: TrainingState):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fit(network(), (X, Y), on_epoch=fail, **CHOSEN)


# --- The bar ---


class Terminal(Console):
    def __init__(self, **words):
        super().__init__(force_terminal=True, width=100, **words)


def test_nothing_is_written_where_there_is_no_terminal(capsys):
    fit(network(), (X, Y), **CHOSEN)
    fit(network(), (X, Y), progress=False, **CHOSEN)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_epoch_loss_and_scores(monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console", Terminal)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_DRAWINGS", 0.0)
    quiet = fit(network(), (X, Y), **CHOSEN)
    run = fit(network(), (X, Y), validation=(X, Y), progress=True, **CHOSEN)
    out, err = capsys.readouterr()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err)
    assert out == ""
    assert f"held-out loss {run.scores['loss']:.3g}" in shown
    assert "epoch 3/3" in shown
    assert torch.equal(weights(run), weights(quiet))


def test_the_bar_closes_with_the_error_that_ends_a_run(monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console", Terminal)
    with pytest.raises(ArithmeticError):
        fit(network(), (X, Y), progress=True, loss=lambda model, batch: model(batch.x).sum() * torch.nan, **CHOSEN)
    assert capsys.readouterr().err.endswith("\x1b[?25h")  # the cursor is back


def test_whether_a_bar_is_wanted(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert [progress.wanted(told) for told in (None, True, False)] == [True, True, False]
    monkeypatch.setattr("sys.stderr", None)  # as under pythonw
    assert not progress.wanted(None)
