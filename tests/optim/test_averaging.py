"""Averages of parameters: beside torch's, swapped in and out, saved, and in narrow dtypes."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lemmata.optim import PolyakAverage


def iterates(model, number):
    generator = torch.Generator().manual_seed(0)
    for _ in range(number):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
        yield


@pytest.mark.parametrize("decay", [None, 0.9])
def test_it_is_torchs_averaged_model(decay):
    model = nn.Linear(3, 2).double()
    ours = PolyakAverage(model.parameters(), ema_decay=decay)
    theirs = AveragedModel(model, multi_avg_fn=None if decay is None else get_ema_multi_avg_fn(decay))
    for _ in iterates(model, 50):
        ours.update()
        theirs.update_parameters(model)
    for mine, other in zip(ours.averages, theirs.module.parameters(), strict=True):
        torch.testing.assert_close(mine, other.detach(), rtol=0, atol=1e-12)
    with ours.applied():
        x = torch.ones(1, 3).double()
        torch.testing.assert_close(model(x), theirs(x))


def test_the_first_steps_can_be_left_out():
    model = nn.Linear(2, 1).double()
    average, kept = PolyakAverage(model.parameters(), start=3), []
    for step, _ in enumerate(iterates(model, 8), 1):
        average.update()
        if step > 3:
            kept.append(model.weight.detach().clone())
        else:
            assert average.averages[0].equal(model.weight.detach())  # until then, what is newest
        assert average.averaged == max(step - 3, 0)
    torch.testing.assert_close(average.averages[0], torch.stack(kept).mean(0))


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("decay", [None, 0.9])
def test_averaging_leaves_the_parameters_alone(decay, start):
    weight = nn.Parameter(torch.tensor([1.0]))
    average = PolyakAverage([weight], ema_decay=decay, start=start)
    for value in (5.0, 6.0, 7.0, 8.0):
        weight.data.fill_(value)
        average.update()
        assert weight.item() == value


def test_parameters_get_back_what_they_held_even_after_an_error():
    weight = nn.Parameter(torch.tensor([1.0]))
    average = PolyakAverage([weight])
    average.update()
    weight.data.fill_(5.0)

    def look():
        with average.applied():
            raise KeyError(weight.item())

    with pytest.raises(KeyError, match=r"1\.0"):
        look()
    assert weight.item() == 5.0
    average.copy_to_parameters()
    assert weight.item() == 1.0
    assert weight.requires_grad
    weight.data.fill_(7.0)
    assert average.averages[0].item() == 1.0  # a copy, not the parameter itself


def test_a_saved_average_continues_to_the_last_bit():
    model = nn.Linear(3, 2)
    average = PolyakAverage(model.parameters())
    steps = iterates(model, 20)
    for _ in range(7):
        next(steps)
        average.update()
    again = PolyakAverage(model.parameters())
    state = copy.deepcopy(average.state_dict())
    again.load_state_dict(state)
    for _ in steps:
        average.update()
        again.update()
    assert all(one.equal(other) for one, other in zip(average.averages, again.averages, strict=True))
    assert not state["averages"][0].equal(average.averages[0])
    with pytest.raises(ValueError, match="averages must have the parameters' shapes"):
        PolyakAverage([nn.Parameter(torch.ones(1))]).load_state_dict(state)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64])
def test_narrow_numbers_are_averaged_in_wider_ones(dtype):
    weight = nn.Parameter(torch.ones(2, dtype=dtype))
    average = PolyakAverage([weight])
    for _ in range(1000):
        average.update()
    weight.data.fill_(2.0)
    for _ in range(1000):
        average.update()
    assert torch.allclose(average.averages[0], torch.full_like(average.averages[0], 1.5), atol=1e-3)
    with average.applied():
        assert weight.dtype == dtype


@pytest.mark.parametrize("decay", [-0.1, 1.0, math.nan])
def test_bad_options_are_answered(decay):
    with pytest.raises(ValueError, match="ema_decay must be"):
        PolyakAverage([nn.Parameter(torch.ones(1))], ema_decay=decay)
    with pytest.raises(ValueError, match="start must be >= 0"):
        PolyakAverage([nn.Parameter(torch.ones(1))], start=-1)
    with pytest.raises(ValueError, match="params must hold at least one tensor"):
        PolyakAverage([])
