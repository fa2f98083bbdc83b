"""Early stopping: in a loop, in fit, with ties and NaN, saved and restored; and the functions that compare it."""

import re

import pytest
import torch
from torch import nn

import lemmata
from lemmata.tricks import EarlyStopping, descent_shrinkage, matching_steps, shrinkage


def course(scores: list[float], **choices) -> list[bool]:
    stopping = EarlyStopping(**choices)
    return [stopping.update(score) for score in scores]


@pytest.mark.parametrize(
    ("scores", "choices", "stops"),
    [
        ([1.0, 1.0, 1.0], {"patience": 2}, 2),  # a tie is no improvement
        ([1.0, 0.95, 0.9, 0.85], {"patience": 2, "least_change": 0.1}, 2),
        ([0.1, 0.2, 0.2, 0.3, 0.1, 0.2], {"patience": 2, "largest": True}, 5),
        ([float("nan"), float("nan"), 1.0], {"patience": 2}, 1),
        ([1.0, float("nan"), 0.5, float("inf"), 0.7], {"patience": 2}, 4),
        ([3.0, 2.0, 1.0], {"patience": 1}, None),
    ],
)
def test_where_it_stops(scores: list[float], choices: dict, stops: int | None):
    found = course(scores, **choices)
    assert (found.index(True) if True in found else None) == stops


def test_the_best_weights_come_back_and_are_copies():
    model, stopping = nn.Linear(2, 1), EarlyStopping(patience=1)
    nn.init.constant_(model.weight, 1.0)
    stopping.update(torch.tensor(0.5), model)
    nn.init.constant_(model.weight, 2.0)
    assert stopping.update(0.6, model)
    stopping.restore(model)
    assert model.weight.tolist() == [[1.0, 1.0]]
    nn.init.constant_(model.weight, 3.0)
    stopping.restore(model)
    assert model.weight.tolist() == [[1.0, 1.0]]


def test_it_goes_on_from_its_state():
    scores = [1.0, 0.5, 0.7, 0.6, 0.55, 0.58]
    whole, first, second = (EarlyStopping(patience=3) for _ in range(3))
    model = nn.Linear(1, 1)
    wanted = [whole.update(score, model) for score in scores]
    found = [first.update(score, model) for score in scores[:3]]
    second.load_state_dict(first.state_dict())
    assert found + [second.update(score, model) for score in scores[3:]] == wanted
    assert second.best_check == whole.best_check == 1
    second.restore(model)


def overfitting() -> tuple[nn.Module, tuple, tuple]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 30, generator=generator)
    y = x[:, :1] + 2 * torch.randn(40, 1, generator=generator)
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 1)), (x[:30], y[:30]), (x[30:], y[30:])


@pytest.mark.parametrize("evaluate", [1, 2])
def test_as_callback_of_fit(evaluate: int):
    model, train, held_out = overfitting()
    stopping = EarlyStopping(patience=3)
    words = {"epochs": 60, "lr": 0.01, "device": "cpu", "progress": False, "evaluate": evaluate}
    run = lemmata.fit(model, train, validation=held_out, on_epoch=stopping, **words)
    errors = [row["validation_loss"] for row in run.history.epochs if "validation_loss" in row]
    assert run.stopped == "callback"
    assert stopping.checks == len(errors) == stopping.best_check + 1 + 3
    assert stopping.best == pytest.approx(min(errors))
    assert nn.functional.mse_loss(model(held_out[0]), held_out[1]).item() == pytest.approx(min(errors), rel=1e-5)


def test_after_the_last_epoch_the_best_weights_are_back_too():
    model, train, held_out = overfitting()
    stopping = EarlyStopping(patience=1000)
    run = lemmata.fit(
        model, train, validation=held_out, on_epoch=stopping, epochs=40, lr=0.01, device="cpu", progress=False
    )
    assert run.stopped == "finished"
    assert nn.functional.mse_loss(model(held_out[0]), held_out[1]).item() == pytest.approx(stopping.best, rel=1e-5)
    assert stopping.best_check < 39


def test_a_second_training_begins_anew_and_a_loaded_state_goes_on():
    x = torch.linspace(-1, 1, 40)[:, None]
    words = {"epochs": 6, "lr": 0.05, "device": "cpu", "progress": False}
    stopping, first, second = EarlyStopping(patience=9), nn.Linear(1, 1), nn.Linear(1, 1)
    lemmata.fit(first, (x, x), validation=(x, x), on_epoch=stopping, **words)
    lemmata.fit(second, (x, -9 * x), validation=(x, -9 * x), on_epoch=stopping, **words)
    assert stopping.checks == 6
    assert nn.functional.mse_loss(second(x), -9 * x).item() == pytest.approx(stopping.best, rel=1e-5)
    later = EarlyStopping(patience=9)
    later.load_state_dict({**stopping.state_dict(), "best": 0.0})
    lemmata.fit(second, (x, -9 * x), validation=(x, -9 * x), on_epoch=later, **words)
    assert later.checks == 12
    assert later.best_check == stopping.best_check


def test_averaged_weights_are_refused():
    model, train, held_out = overfitting()
    words = {"epochs": 2, "ema_decay": 0.9, "device": "cpu", "progress": False}
    with pytest.raises(ValueError, match=r"EarlyStopping cannot keep averaged weights: use fit.*patience"):
        lemmata.fit(model, train, validation=held_out, on_epoch=EarlyStopping(), **words)


@pytest.mark.parametrize(
    ("value", "lr", "decay", "steps"),
    [
        (1e-30, 1e-20, 0.1, 1e21),
        (1e-40, 1e-3, 0.1, 1e4),
        (0.0, 1e-3, 0.1, 1e4),
        (1.0, 0.5, 1e-40, 132.877),  # 40 log 10 / log 2
        (1.0, 1e-20, 1e-10, 2.302585e21),
    ],
)
def test_few_digits_do_not_spoil_the_matching_steps(value: float, lr: float, decay: float, steps: float):
    found = matching_steps(torch.tensor([value]), lr, decay)
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(steps, rel=1e-5)


def test_steps_beyond_the_largest_number_are_told():
    with pytest.raises(ValueError, match=r"the number of steps is too large for torch.float32: .*eigenvalues.double"):
        matching_steps(torch.zeros(1), 1e-30, 1e-30)


def test_both_shrinkages_agree_at_the_matching_time():
    values = torch.logspace(-9, 1, 30, dtype=torch.double)
    for value, time in zip(values, matching_steps(values, 0.09, 0.2), strict=True):
        found = descent_shrinkage(value, 0.09, float(time))
        torch.testing.assert_close(found, shrinkage(value, 0.2), rtol=1e-9, atol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: EarlyStopping(0), "patience must be >= 1, got 0"),
        (lambda: EarlyStopping(least_change=-1), "least_change must be >= 0, got -1"),
        (lambda: descent_shrinkage(torch.tensor([3.0]), 0.5, 2), "eigenvalues must be from 0 to below 1 / lr = 2"),
        (lambda: descent_shrinkage(torch.tensor([-1.0]), 0.5, 2), "got -1: this is no minimum"),
        (lambda: descent_shrinkage(torch.tensor([1.0]), 0.5, -2), "steps must be >= 0, got -2"),
        (lambda: matching_steps(torch.tensor([1.0]), 0.5, 0), "weight_decay must be > 0, got 0"),
        (lambda: matching_steps(torch.zeros(1).double(), 1e-200, 1e-200), "the number of steps is too large"),
        (lambda: matching_steps(torch.tensor([float("nan")]), 0.5, 1), "eigenvalues must be finite"),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


def test_what_is_missing_is_told():
    with pytest.raises(RuntimeError, match="there are no weights to restore"):
        EarlyStopping().restore(nn.Linear(1, 1))
    lost = EarlyStopping()
    lost.update(float("nan"), nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="no weights to restore: all 1 scores were NaN"):
        lost.restore(nn.Linear(1, 1))
    model, train, held_out = overfitting()
    with pytest.raises(ValueError, match="metric must be one of the scores, got 'accuracy'; there are loss"):
        lemmata.fit(model, train, validation=held_out, on_epoch=EarlyStopping(metric="accuracy"), progress=False)
    with pytest.raises(ValueError, match="there are none: give fit validation examples"):
        lemmata.fit(model, train, on_epoch=EarlyStopping(), progress=False)
