"""Schedules: the formulas, torch's own where it has them, resuming, and refusals."""

import math

import pytest
import torch
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR

from lemmata.optim import PowerDecay, WarmupDecay


def rates(make, steps=12, lrs=(0.6, 0.1)):
    optimizer = SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in lrs])
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize(("power", "delay"), [(1.0, 1.0), (0.75, 4.0), (0.0, 1.0)])
def test_power_decay_is_its_formula(power, delay):
    expected = rates(lambda o: LambdaLR(o, lambda t: (delay / (delay + t)) ** power))
    torch.testing.assert_close(rates(lambda o: PowerDecay(o, power, delay)), expected)


def test_a_cosine_without_warm_up_is_torchs():
    torch.testing.assert_close(rates(lambda o: WarmupDecay(o, steps=12)), rates(lambda o: CosineAnnealingLR(o, 12)))


@pytest.mark.parametrize("shape", ["cosine", "linear", "constant"])
def test_it_rises_then_falls_then_stays(shape):
    found = rates(lambda o: WarmupDecay(o, steps=8, warmup=3, shape=shape, least=0.25), 12)
    assert found[:4, 0].tolist() == pytest.approx([0.2, 0.4, 0.6, 0.6])
    halfway = {"cosine": 0.25 + 0.75 * (1 + math.cos(0.4 * math.pi)) / 2, "linear": 0.25 + 0.75 * 0.6, "constant": 1}
    assert found[5, 0].item() == pytest.approx(0.6 * halfway[shape])
    assert found[8:, 0].tolist() == pytest.approx(4 * [0.6 if shape == "constant" else 0.15])
    torch.testing.assert_close(found[:, 0], 6 * found[:, 1])


def test_a_warm_up_may_be_longer_than_the_run():
    assert rates(lambda o: WarmupDecay(o, steps=2, warmup=4, least=0.5), 7)[:, 0].tolist() == pytest.approx(
        [0.15, 0.3, 0.45, 0.6, 0.6, 0.6, 0.6]
    )


@pytest.mark.parametrize(
    "make", [lambda o: PowerDecay(o, 0.7, 3.0), lambda o: WarmupDecay(o, 9, 2, "linear")], ids=["power", "warmup"]
)
def test_a_schedule_goes_on_where_it_was(make):
    expected = rates(make, 10)

    def resumed(optimizer):
        first = make(optimizer)
        optimizer.step()
        first.step()
        second = make(SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in (0.6, 0.1)]))
        second.load_state_dict(first.state_dict())
        second.optimizer = optimizer
        return second

    torch.testing.assert_close(rates(resumed, 9), expected[1:])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda o: PowerDecay(o, power=-1.0), "power must be >= 0, got -1.0"),
        (lambda o: PowerDecay(o, delay=0.0), "delay must be > 0, got 0.0"),
        (lambda o: WarmupDecay(o, steps=0), "steps must be >= 1, got 0"),
        (lambda o: WarmupDecay(o, steps=3, warmup=-1), "warmup must be >= 0, got -1"),
        (lambda o: WarmupDecay(o, steps=3, shape="step"), "shape must be one of cosine, linear, constant, got 'step'"),
        (lambda o: WarmupDecay(o, steps=3, least=1.5), r"least must be in \[0, 1\], got 1.5"),
    ],
)
def test_bad_options_are_refused(make, told):
    with pytest.raises(ValueError, match=told):
        rates(make)
