"""Losses, optimisers, schedulers and metrics of one's own: against loops by hand, resumed to the bit, and refused."""

import functools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD, AdamW, lr_scheduler

from lemmata.data import Examples
from lemmata.train import Watcher, fit

X = torch.rand(40, 3, generator=torch.Generator().manual_seed(1))
Y = X @ torch.tensor([1.0, -2.0, 0.5]) + 0.3
C = (Y.median() < Y).long()
CHOSEN = {"epochs": 4, "batch_size": 10, "device": "cpu"}


def line(outputs=1):
    torch.manual_seed(0)
    return nn.Linear(3, outputs)


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean()


# --- Losses ---


@pytest.mark.parametrize(
    "loss",
    [
        nn.MSELoss(),
        functional.mse_loss,
        functools.partial(functional.mse_loss, reduction="mean"),
        lambda output, target: (output - target).square().mean(),
        lambda model, batch: functional.mse_loss(model(batch.x), batch.y),
        lambda model, batch: {"loss": functional.mse_loss(model(batch["x"]), batch["y"]), "other": torch.ones(())},
    ],
)
def test_a_loss_may_compare_outputs_or_take_the_model_and_the_batch(loss):
    expected = fit(line(), (X, Y[:, None]), **CHOSEN)  # real targets: the mean squared error by default
    assert torch.equal(weights(fit(line(), (X, Y[:, None]), loss=loss, **CHOSEN)), weights(expected))


def test_a_loss_of_torch_with_weights_of_its_own_is_used_as_it_is():
    weight = torch.tensor([1.0, 3.0])
    one = fit(line(2), (X, C), loss=nn.CrossEntropyLoss(weight, label_smoothing=0.1), **CHOSEN)
    by_hand = lambda model, batch: functional.cross_entropy(model(batch.x), batch.y, weight, label_smoothing=0.1)  # noqa: E731
    assert torch.equal(weights(one), weights(fit(line(2), (X, C), loss=by_hand, **CHOSEN)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"data": (X, Y)}, r"the output has shape \(10, 1\) and y \(10,\): torch would compare .*; use y\[:, None\]"),
        ({"data": (X, Y), "loss": nn.L1Loss()}, r"use y\[:, None\]"),
        ({"data": (X, C)}, "the model has outputs for the classes 0 to 0, but y holds 0 to 1: give it more outputs"),
        ({"data": (X, C * 0 + 1)}, "classes 0 to 0, but y holds 1 to 1: count classes from 0"),
        ({"data": (X, 2 * C - 1)}, "y holds -1 to 1: count classes from 0"),
        ({"data": (X, C[:, None])}, r"one class an example, got \(10, 1\) int64: use y\[:, 0\]"),
        ({"data": (X, functional.one_hot(C))}, r"one class an example, got \(10, 2\) int64: use y\.argmax\(1\)"),
        ({"data": (X, C.int()), "loss": nn.CrossEntropyLoss()}, r"y is \(10,\) int32: use y\.long"),
        (
            {"data": (X, Y), "loss": functional.cross_entropy},
            r"y holds real numbers .*: use y\.long",
        ),
        ({"data": (X, C), "loss": functional.mse_loss}, r"but y holds integers .* int64\): use y\.float"),
        ({"data": (X, X), "loss": nn.MSELoss()}, r"shape \(10, 1\) and y \(10, 3\): torch would compare each"),
        ({"data": (X, X[:, :2, None]), "loss": nn.BCELoss()}, r"cannot compare the output, \(10, 1\) float32, with y"),
        ({"data": (X[:, :2], Y[:, None])}, r"the model cannot take x of shape \(10, 2\) float32: mat1 and mat2 shap"),
        (
            {"data": ((X * 255).byte(), Y[:, None])},
            r"the model cannot take x of shape \(10, 3\) uint8: .*dtype.*; use x\.float",
        ),
        ({"loss": 5}, r"loss must be a function, such as nn\.MSELoss\(\) or F\.cross_entropy, got 5"),
        ({"loss": nn.MSELoss(reduction="none")}, r"one number, .* got shape \(10, 1\): take its mean"),
        ({"loss": lambda model, batch: 5.0}, r"loss must be a tensor with one number, or a dict .*, got 5\.0"),
        ({"loss": lambda model, batch: {"los": 1}}, r"or a dict with one under 'loss', got None"),
        ({"metrics": {"lr": accuracy}}, "a metric cannot be called lr: choose another name"),
        (
            {"metrics": {"all": lambda output, target: output}},
            r"metric all must give one number, got shape",
        ),
        ({"metrics": [accuracy]}, r"metrics must be a dict of functions of \(output, target\), got \["),
        ({"optimizer": 5}, "optimizer must be an object of torch.optim or a function that makes one, got 5"),
        ({"optimizer": lambda parameters: 5}, "optimizer must be one of torch.optim's kind, got int"),
        ({"optimizer": SGD(line().parameters(), lr=1.0)}, r"optimizer holds no parameter of the model: build it from"),
        ({"optimizer": AdamW, "lr": 0.1}, "lr belongs to your optimizer: set it there"),
        ({"optimizer": "adagard"}, "optimizer must be one of .*adam, adamw, .*sgd.*, got 'adagard'"),
        ({"scheduler": 5}, "scheduler must be an object of torch.optim or a function that makes one, got 5"),
        ({"scheduler": "cosine"}, "must be an object or a function, got 'cosine': names are for schedule"),
        ({"scheduler": lr_scheduler.ReduceLROnPlateau, "scheduler_every": "step"}, "looks at the score of an epoch"),
        ({"scheduler": lambda optimizer: 5}, "scheduler must be one of torch.optim.lr_scheduler, got int"),
        (
            {"scheduler": lr_scheduler.ConstantLR, "schedule": "cosine"},
            "are two ways to move lr",
        ),
        (
            {"scheduler": lr_scheduler.ConstantLR, "scheduler_every": "day"},
            "must be epoch or step, got",
        ),
        ({"batchsize": 3}, "fit has no option 'batchsize': did you mean batch_size?"),
        ({"learning_rate": 3}, "fit has no option 'learning_rate'; it has epochs, .*, lr, "),
        ({"on_steps": print}, "fit has no option 'on_steps': did you mean on_step?"),
        ({"on_step": 5}, "on_step must be a function of the training's state, or several, got 5"),
        ({"on_epoch": [5]}, "on_epoch must be a function of the training's state, or several, got 5"),
        (
            {"on_step": lambda state: "stop"},
            "must return True to stop, or else False or nothing, got 'stop'",
        ),
    ],
)
def test_what_does_not_fit_is_named_at_once(words, message):
    words = {"data": (X, Y[:, None]), **CHOSEN} | words
    with pytest.raises((ValueError, TypeError), match=message):
        fit(line(), words.pop("data"), **words)


def test_a_loss_of_two_parameters_with_other_names_is_told_what_it_was_given():
    with pytest.raises((TypeError, AttributeError)) as told:
        fit(line(), (X, Y[:, None]), loss=lambda guess, truth: functional.mse_loss(guess, truth), **CHOSEN)
    assert "loss was given (model, batch); for (output, target)" in told.value.__notes__[0]


def test_classes_may_be_of_any_whole_kind_and_padded():
    runs = [fit(nn.Linear(3, 2), (X, y), **CHOSEN, steps=1) for y in (C.int(), C.short(), C.bool(), C.byte(), C)]
    assert all(run.steps == 1 for run in runs)
    padded, ignored = C.clone(), C.clone()
    padded[0], ignored[0] = -100, -1
    fit(nn.Linear(3, 2), (X, padded), **CHOSEN)  # -100 is what torch ignores
    fit(nn.Linear(3, 2), (X, ignored), loss=nn.CrossEntropyLoss(ignore_index=-1), **CHOSEN)


def test_a_loss_that_is_nan_before_any_step_is_not_blamed_on_the_learning_rate():
    with pytest.raises(ArithmeticError, match=r"nan at step 1 \(epoch 1\): no step was taken yet"):
        fit(line(), (X, Y[:, None]), loss=lambda model, batch: (model(batch.x) * 0 - 1).log().mean(), **CHOSEN)


def test_an_optimizer_for_another_model_is_refused_for_its_scheduler_too():
    with pytest.raises(ValueError, match="scheduler moves another optimizer than the one that is used"):
        fit(
            line(), (X, C), optimizer=SGD, scheduler=lr_scheduler.ConstantLR(SGD(line().parameters(), lr=1.0)), **CHOSEN
        )


# --- Optimisers and schedulers ---


def by_hand(make, schedule=None, every="epoch"):
    """The weights after four epochs in the loop's own order of batches, and the learning rate of every step."""
    from lemmata.train import batch_indices

    model, lrs = line(2), []
    optimizer = make(model.parameters())
    scheduler = schedule(optimizer) if schedule else None
    for epoch in range(4):
        for batch in range(4):
            chosen = batch_indices(0, epoch, batch, 10, 40)
            optimizer.zero_grad()
            functional.cross_entropy(model(X[chosen]), C[chosen]).backward()
            lrs.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if scheduler and every == "step":
                scheduler.step()
        if scheduler and every == "epoch":
            scheduler.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]), lrs


MAKES = {
    "sgd": lambda parameters: SGD(parameters, lr=0.3, momentum=0.9, nesterov=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
    "adamw": functools.partial(AdamW, lr=0.05, weight_decay=0.1),
}
SCHEDULES = {
    "steps": lambda optimizer: lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
    "cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=17),
    "warm": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), lr_scheduler.CosineAnnealingLR(optimizer, 13)],
        [3],
    ),
    "by a function": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
}


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("schedule", [None, *SCHEDULES])
@pytest.mark.parametrize("every", ["epoch", "step"])
def test_own_optimisers_and_schedulers_do_what_a_loop_by_hand_does(make, schedule, every):
    expected, lrs = by_hand(MAKES[make], SCHEDULES.get(schedule), every)
    words = {"optimizer": MAKES[make], "scheduler": SCHEDULES.get(schedule), "scheduler_every": every, **CHOSEN}
    run = fit(line(2), (X, C), **words)
    assert torch.equal(weights(run), expected)
    assert [row["lr"] for row in run.history.steps] == lrs


def test_instances_are_used_as_they_are():
    model = line(2)
    optimizer = MAKES["sgd"](model.parameters())
    run = fit(model, (X, C), scheduler=SCHEDULES["steps"](optimizer), **CHOSEN)  # it brings its optimizer along
    assert torch.equal(weights(run), by_hand(MAKES["sgd"], SCHEDULES["steps"])[0])
    assert optimizer.state


def test_the_options_schedule_moves_an_optimizer_of_ones_own_too():
    def groups(parameters):
        weight, bias = parameters
        return SGD([{"params": [weight], "lr": 0.4}, {"params": [bias], "lr": 0.04}], lr=1.0)

    seen = []
    see = lambda state: seen.append([group["lr"] for group in state.optimizer.param_groups])  # noqa: E731
    fit(line(2), (X, C), optimizer=groups, schedule="linear", on_step=see, **CHOSEN)
    assert seen == [pytest.approx([0.4 * (1 - t / 16), 0.04 * (1 - t / 16)]) for t in range(16)]


def test_a_plateau_is_looked_for_in_the_score_that_counts():
    words = {"factor": 0.1, "patience": 0, "threshold": 9.0, "threshold_mode": "abs"}  # no epoch is that much better
    plateau = functools.partial(lr_scheduler.ReduceLROnPlateau, **words)
    run = fit(line(2), (X, C), validation=(X, C), optimizer=MAKES["sgd"], scheduler=plateau, **CHOSEN)
    assert run.history["lr"] == pytest.approx([0.3, 0.3, 0.03, 0.003])
    alone = fit(line(2), (X, C), optimizer=MAKES["sgd"], scheduler=plateau, **CHOSEN)
    assert alone.history["lr"] == pytest.approx([0.3, 0.3, 0.03, 0.003])


def test_an_optimizer_that_asks_for_a_closure_gets_one():
    exact = torch.linalg.lstsq(torch.cat([X, torch.ones(40, 1)], 1), Y[:, None]).solution.flatten()
    whole = {"epochs": 20, "batch_size": 40, "device": "cpu"}
    run = fit(line(), (X, Y[:, None]), optimizer=lambda p: torch.optim.LBFGS(p, line_search_fn="strong_wolfe"), **whole)
    assert torch.allclose(weights(run), exact, atol=1e-3)  # SGD at any lr is not near it after 20 steps
    assert run.steps == 20


class StopAfter(Watcher):
    def __init__(self, step):
        self.step = step

    def saved(self, step, path):
        if step == self.step:
            raise KeyboardInterrupt


PAIRS = [(make, schedule) for make in MAKES for schedule in (None, *SCHEDULES)]


@pytest.mark.parametrize(("make", "schedule"), [*PAIRS, ("lbfgs", None), ("lbfgs", "warm")])
def test_own_optimisers_and_schedulers_are_resumed_to_the_bit(tmp_path, make, schedule):
    makes = MAKES | {"lbfgs": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1, max_iter=3)}
    words = {"optimizer": makes[make], "scheduler": SCHEDULES.get(schedule), "scheduler_every": "step", **CHOSEN}
    whole = fit(line(2), (X, C), **words)
    with pytest.raises(KeyboardInterrupt):
        fit(line(2), (X, C), save=1, out=tmp_path, watchers=[StopAfter(6)], **words)
    torch.manual_seed(7)
    cut = fit(nn.Linear(3, 2), (X, C), save=1, out=tmp_path, resume=True, **words)
    assert torch.equal(weights(cut), weights(whole))
    assert cut.history.to_json() == whole.history.to_json()


def test_another_optimizer_than_the_run_began_with_is_refused(tmp_path):
    fit(line(2), (X, C), optimizer=MAKES["sgd"], out=tmp_path, **CHOSEN)
    with pytest.raises(ValueError, match=r"does not fit this run \(ValueError: its optimizer was SGD, not RMSprop\)"):
        fit(line(2), (X, C), optimizer=MAKES["rmsprop"], out=tmp_path, resume=True, **CHOSEN)
    words = {"optimizer": MAKES["sgd"], "scheduler": SCHEDULES["steps"]}
    with pytest.raises(ValueError, match=r"its scheduler was None, not StepLR"):
        fit(line(2), (X, C), out=tmp_path, resume=True, **words, **CHOSEN)


# --- Metrics ---


def test_metrics_are_measured_while_learning_and_on_held_out_examples():
    metrics = {"accuracy": accuracy, "size": lambda output, target: float(len(target))}
    run = fit(
        line(2), (X[:30], C[:30]), validation=(X[30:], C[30:]), test=(X[30:35], C[30:35]), metrics=metrics, **CHOSEN
    )
    assert (
        run.history.names
        == "epoch step loss accuracy size lr validation_loss validation_accuracy validation_size".split()
    )
    with torch.no_grad():
        output = run.model(X[30:])
    assert run.history["validation_accuracy"][-1] == pytest.approx(float(accuracy(output, C[30:])))
    assert run.history["validation_loss"][-1] == pytest.approx(float(functional.cross_entropy(output, C[30:])))
    assert (run.history["size"], run.history["validation_size"]) == ([10.0] * 4, [10.0] * 4)
    assert run.scores["accuracy"] == pytest.approx(float(accuracy(output[:5], C[30:35])))


def test_metrics_do_not_change_what_is_learnt_and_go_with_a_loss_of_ones_own():
    plain = fit(line(2), (X, C), **CHOSEN)
    measured = fit(line(2), (X, C), metrics={"accuracy": accuracy}, accumulate=1, **CHOSEN)
    assert torch.equal(weights(plain), weights(measured))
    loss = lambda model, batch: functional.cross_entropy(model(batch.x), batch.y)  # noqa: E731
    own = fit(line(2), (X, C), test=(X, C), loss=loss, metrics={"accuracy": accuracy}, **CHOSEN)
    assert own.history["test_accuracy"][-1] == own.scores["accuracy"] == measured.scores["accuracy"]
    together = fit(line(2), (X, C), test=(X, C), metrics=lambda model, batch: {"n": len(batch)}, **CHOSEN)
    assert together.scores["n"] == 40


def test_accumulated_parts_measure_the_mean_over_the_batch():
    run = fit(line(2), (X, C), metrics={"mean": lambda output, target: target.float().mean()}, accumulate=4, **CHOSEN)
    assert run.history["mean"] == pytest.approx([0.5] * 4)
    assert math.isclose(C.float().mean(), 0.5)


def test_patience_may_watch_a_metric():
    falling = iter([0.5, 0.4, 0.3, 0.2, 0.1])
    metrics = {"score": lambda output, target: next(falling) if len(target) == 40 else 0.0}
    words = {**CHOSEN, "epochs": 9, "patience": 2, "metric": "score", "largest": True}
    run = fit(line(2), (X[:30], C[:30]), validation=Examples(x=X, y=C), metrics=metrics, test=(X[:5], C[:5]), **words)
    assert (run.stopped, run.epochs, run.best["score"]) == ("patience", 3, 0.5)
