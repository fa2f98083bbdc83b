"""The loop: same options, same bits; interrupted or not; every stop is clean and tells why."""

import json
import os
import signal

import pytest
import torch
from torch import nn

from lemmata.data.examples import Examples
from lemmata.figure import Figure
from lemmata.train import Diverged, Options, Watcher, fit

X = torch.rand(300, 8, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 4).long()
TRAIN, TEST = (X[:200], Y[:200]), (X[200:], Y[200:])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))


def options(**words):
    return Options(**{"epochs": 3, "batch_size": 32, "device": "cpu", "lr": 0.01} | words)


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.system.parameters()])


class Told(Watcher):
    def __init__(self):
        self.events = []

    def stepped(self, step, epoch, numbers):
        self.events.append(("step", step, dict(numbers)))

    def evaluated(self, step, epoch, scores):
        self.events.append(("evaluation", step, dict(scores)))

    def saved(self, step, path):
        self.events.append(("saved", step))

    def pictured(self, step, epoch, figure):
        self.events.append(("picture", step))

    def finished(self, run):
        self.events.append(("finished", run.steps))


class StopAfter(Watcher):
    """Sends a signal to this very process once a step is saved."""

    def __init__(self, step, number):
        self.step, self.number = step, number

    def saved(self, step, path):
        if step == self.step:
            os.kill(os.getpid(), self.number)


def test_the_same_options_give_the_same_bits_and_another_seed_others():
    assert torch.equal(
        weights(fit(network(), TRAIN, options=options())), weights(fit(network(), TRAIN, options=options()))
    )
    other = fit(network(), TRAIN, options=options(seed=1))
    assert not torch.equal(weights(fit(network(), TRAIN, options=options())), weights(other))


def test_global_random_numbers_are_as_before():
    system = network()
    before = torch.get_rng_state()
    fit(system, TRAIN, options=options())
    assert torch.equal(torch.get_rng_state(), before)


def test_evaluating_and_picturing_do_not_change_what_is_learnt():
    plain = fit(network(), TRAIN, options=options())

    def picture(system):
        torch.rand(3)
        return Figure("noise")

    watched = fit(network(), TRAIN, test=TEST, picture=picture, options=options())
    assert torch.equal(weights(plain), weights(watched))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_after_its_step_and_resuming_gives_the_same_bits(tmp_path, number):
    words = {"ema_decay": 0.9, "clip": 1.0, "schedule": "cosine", "warmup": 3, "accumulate": 2}
    whole = fit(network(), TRAIN, test=TEST, options=options(**words), out=tmp_path / "whole")
    stop = [StopAfter(4, number)]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        fit(network(), TRAIN, test=TEST, options=options(save=4, **words), out=tmp_path / "cut", watchers=stop)
    torch.manual_seed(77)
    cut = fit(network(), TRAIN, test=TEST, options=options(save=4, **words), out=tmp_path / "cut", resume=True)
    assert torch.equal(weights(whole), weights(cut))
    assert cut.scores == whole.scores
    assert (tmp_path / "cut" / "log.jsonl").read_text() == (tmp_path / "whole" / "log.jsonl").read_text()


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    first = fit(network(), TRAIN, test=TEST, options=options(ema_decay=0.9), out=tmp_path)
    again = fit(network(), TRAIN, test=TEST, options=options(ema_decay=0.9), out=tmp_path, resume=True)
    assert again.scores == first.scores
    assert again.steps == first.steps


def test_a_longer_run_may_be_resumed_but_not_another_one(tmp_path):
    fit(network(), TRAIN, options=options(), out=tmp_path)
    longer = fit(network(), TRAIN, options=options(epochs=5), out=tmp_path, resume=True)
    assert torch.equal(weights(longer), weights(fit(network(), TRAIN, options=options(epochs=5))))
    with pytest.raises(ValueError, match=r"this run has lr=0.01, not 0.5: leave lr as it was, or start a new run"):
        fit(network(), TRAIN, options=options(lr=0.5), out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds a run already"):
        fit(network(), TRAIN, options=options(), out=tmp_path)


def test_a_loss_that_is_not_a_number_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    calls = []

    def loss(system, batch):
        calls.append(1)
        value = nn.functional.cross_entropy(system(batch.x), batch.y)
        return value * torch.nan if len(calls) == 9 else value

    with pytest.raises(
        Diverged, match=r"loss became nan at step 9 \(epoch 2\): lower lr .* or set clip; .*step 8 is kept"
    ):
        fit(network(), TRAIN, loss=loss, options=options(save=4), out=tmp_path)
    resumed = fit(network(), TRAIN, options=options(save=4), out=tmp_path, resume=True)
    assert torch.equal(weights(resumed), weights(fit(network(), TRAIN, options=options(save=4))))


def test_weights_that_are_not_numbers_are_never_saved(tmp_path):
    def explode(system, batch):
        value = nn.functional.cross_entropy(system(batch.x), batch.y)
        return value * 1e38 * 1e38 if value.requires_grad else value

    with pytest.raises(Diverged):
        fit(network(), TRAIN, loss=explode, options=options(save=1), out=tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_patience_stops_and_gives_back_the_best_weights(tmp_path):
    scores = iter([0.1, 0.9, 0.3, 0.2, 0.1])
    seen = []

    def metrics(system, batch):
        value = next(scores, 0.0) if len(batch) == 50 else 0.0
        seen.append((value, weights_of(system)))
        return {"accuracy": value}

    def weights_of(system):
        return torch.cat([p.detach().flatten() for p in system.parameters()])

    run = fit(
        network(), TRAIN, validation=(X[200:250], Y[200:250]), test=(X[250:280], Y[250:280]), metrics=metrics,
        metric="accuracy", largest=True, options=options(epochs=20, patience=2),
    )  # fmt: skip
    assert (run.stopped, run.epochs, run.best["accuracy"]) == ("patience", 4, 0.9)
    assert torch.equal(weights(run), seen[1][1])


def test_patience_is_refused_without_validation_examples():
    with pytest.raises(ValueError, match="patience needs validation examples"):
        fit(network(), TRAIN, test=TEST, options=options(patience=2))


def test_accumulating_gives_the_gradient_of_the_whole_batch():
    plain = nn.Linear(8, 2).double()
    parts = nn.Linear(8, 2).double()
    parts.load_state_dict(plain.state_dict())
    words = {"precision": "float64", "optimizer": "sgd", "momentum": 0.0}
    fit(plain, TRAIN, options=options(**words))
    fit(parts, TRAIN, options=options(accumulate=5, **words))
    assert torch.allclose(plain.weight, parts.weight, rtol=0, atol=1e-14)


def test_the_averaged_weights_are_evaluated_and_kept(tmp_path):
    told = Told()
    run = fit(network(), TRAIN, test=TEST, options=options(ema_decay=0.5), out=tmp_path, watchers=[told])
    last = [event for event in told.events if event[0] == "evaluation"][-1][2]
    assert run.scores == last
    raw = fit(network(), TRAIN, options=options())
    assert not torch.equal(weights(run), weights(raw))


def test_watchers_hear_of_everything_in_order(tmp_path):
    told = Told()
    picture = lambda system: Figure("nothing")  # noqa: E731
    fit(network(), TRAIN, test=TEST, picture=picture, options=options(epochs=1), out=tmp_path, watchers=[told])
    kinds = [event[0] for event in told.events]
    assert kinds == ["step"] * 7 + ["evaluation", "picture", "saved", "finished"]
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["step"] * 7 + ["epoch", "evaluation"]
    assert Figure.from_json(json.loads((tmp_path / "pictures" / "step-00000007.json").read_text())) == Figure("nothing")


def test_a_learner_of_ones_own_may_finish_by_itself():
    class Counting:
        seen = 0

        def step(self, batch, progress):
            self.seen += len(batch)
            return {"loss": 1 / self.seen, "finished": self.seen >= 100}

        def evaluate(self, examples):
            return {"loss": 0.0, "seen": float(self.seen)}

        def state(self):
            return {"seen": self.seen}

        def restore(self, state):
            self.seen = state["seen"]

    run = fit(None, TRAIN, test=TEST, learner=Counting(), options=options())
    assert (run.stopped, run.steps, run.scores["seen"]) == ("converged", 4, 128.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"data": (X[:0], Y[:0])}, "data must hold at least one example"),
        ({"data": (X * torch.nan, Y)}, "data.x must be finite, found 2400 values"),
        ({"data": (X, Y[:5])}, "columns of data must have one row an example, got x 300, y 5"),
        ({"system": nn.ReLU()}, "model has no parameter to learn"),
        ({"metric": "accuracy", "test": TEST}, "metric 'accuracy' is not among the scores: loss"),
    ],
)
def test_bad_input_is_named(words, message):
    words = {"system": network(), "data": TRAIN, "options": options()} | words
    with pytest.raises(ValueError, match=message):
        fit(words.pop("system"), words.pop("data"), **words)


def test_two_trainings_cannot_share_a_folder(tmp_path):
    class Intruder(Watcher):
        def saved(self, step, path):
            with pytest.raises(ValueError, match="another process is training in"):
                fit(network(), TRAIN, options=options(), out=tmp_path, resume=True)

    fit(network(), TRAIN, options=options(), out=tmp_path, watchers=[Intruder()])


def test_examples_may_come_under_any_names():
    def loss(system, batch):
        return (system(batch.question) - batch.answer).square().mean()

    run = fit(nn.Linear(8, 1), Examples(question=X, answer=X[:, :1]), loss=loss, options=options())
    assert run.steps == 30
