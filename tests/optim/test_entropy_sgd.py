"""Entropy-SGD: the walk against its mean on a parabola, its noise, and what an optimiser owes its users."""

import copy
import math

import pytest
import torch
from torch import nn

from lemmata.optim import EntropySGD
from lemmata.testing import check_optimizer


def parabola(curvature, start, count=1, **options):
    weight = nn.Parameter(torch.full((count,), start).double())
    optimizer = EntropySGD([weight], **options)

    def closure():
        optimizer.zero_grad()
        loss = (curvature * weight**2 / 2).sum()
        loss.backward()
        return loss

    return weight, optimizer, closure


def test_without_noise_it_moves_to_where_slope_and_tie_balance():
    """The walk ends where h x = gamma (theta - x); many steps and a quick mean forget where it began."""
    weight, optimizer, closure = parabola(2.0, 3.0, lr=0.2, steps=300, scope=0.5, noise=0.0)
    optimizer.step(closure)
    assert math.isclose(weight.item(), 3.0 * 0.5 / (2.0 + 0.5), rel_tol=1e-12)


def test_a_few_steps_are_those_of_the_formula():
    weight, optimizer, closure = parabola(2.0, 3.0, lr=0.1, steps=4, scope=0.5, noise=0.0, mean_rate=0.3, outer_lr=0.7)
    place, mean = 3.0, 3.0
    for _ in range(4):
        place -= 0.1 * (2.0 * place - 0.5 * (3.0 - place))
        mean = 0.7 * mean + 0.3 * place
    loss = optimizer.step(closure).detach()
    assert math.isclose(weight.item(), 3.0 - 0.7 * (3.0 - mean), rel_tol=1e-12)
    assert float(loss) == 9.0


def test_what_is_not_chosen_walks_twenty_small_steps_and_moves_all_the_way():
    optimizer = EntropySGD([nn.Parameter(torch.ones(1))])
    expected = {"lr": 1e-2, "scope": 1e-2, "noise": 1e-4, "mean_rate": 0.25, "outer_lr": 1.0}
    assert optimizer.defaults == expected
    assert optimizer.steps == 20


def test_the_walk_spreads_as_langevins_does():
    """One step of the walk from the minimum is the noise alone, of deviation sqrt(lr) times `noise`."""
    generator = torch.Generator().manual_seed(0)
    options = {"lr": 0.04, "steps": 1, "noise": 3.0, "mean_rate": 1.0, "generator": generator}
    weight, optimizer, closure = parabola(1.0, 0.0, count=100_000, **options)
    optimizer.step(closure)
    assert abs(float(weight.detach().std()) / 0.6 - 1) < 6.1 / math.sqrt(2 * 100_000)
    assert abs(float(weight.detach().mean())) < 6.1 * 0.6 / math.sqrt(100_000)


def test_the_same_generator_gives_the_same_walk():
    ends = []
    for _ in range(2):
        torch.randn(3)
        generator = torch.Generator().manual_seed(1)
        weight, optimizer, closure = parabola(1.0, 1.0, noise=1.0, generator=generator)
        optimizer.step(closure)
        ends.append(weight.item())
    assert ends[0] == ends[1]


def test_a_saved_walk_goes_on_with_the_same_noise():
    options = {"lr": 0.1, "noise": 1.0, "steps": 3}
    weight, optimizer, closure = parabola(2.0, 3.0, **options, generator=torch.Generator().manual_seed(1))
    optimizer.step(closure)
    saved, place = copy.deepcopy(optimizer.state_dict()), weight.detach().clone()
    copied_weight, copied = copy.deepcopy((weight, optimizer))
    optimizer.step(closure)
    other, again, same = parabola(2.0, 0.0, **options, generator=torch.Generator().manual_seed(2))
    other.data.copy_(place)
    again.load_state_dict(saved)
    again.step(same)
    assert other.item() == weight.item()
    copied.step(lambda: (copied.zero_grad(), (copied_weight**2).sum().backward()))
    assert copied_weight.item() == weight.item()
    with pytest.raises(ValueError, match="build EntropySGD with a generator"):
        parabola(2.0, 3.0)[1].load_state_dict(saved)
    plain = parabola(2.0, 3.0)[1].state_dict()
    again.load_state_dict(plain)  # without one its own goes on


def test_a_failing_walk_leaves_the_parameters_where_they_were():
    weight, optimizer, closure = parabola(1.0, 1.0)
    calls = []

    def failing():
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return closure()

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(failing)
    assert weight.item() == 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_dtypes_groups_and_frozen_parameters_are_kept(dtype):
    weight, frozen = nn.Parameter(torch.ones(3, dtype=dtype)), nn.Parameter(torch.ones(2), requires_grad=False)
    still = nn.Parameter(torch.ones(1))
    optimizer = EntropySGD([{"params": [weight, frozen]}, {"params": [still], "outer_lr": 0.0}], lr=0.1)

    def closure():
        optimizer.zero_grad()
        ((weight * weight.conj()).real.sum() + still.sum()).backward()

    assert optimizer.step(closure) is None
    assert weight.dtype == dtype
    assert weight.detach().abs().max() < 1
    assert frozen.detach().equal(torch.ones(2))
    assert still.item() == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr must be >= 0"),
        ({"lr": torch.tensor(-1.0)}, "lr must be >= 0"),
        ({"steps": 0}, "steps must be >= 1"),
        ({"noise": -1.0}, "noise must be >= 0"),
        ({"scope": math.inf}, "scope must be finite"),
        ({"mean_rate": 0.0}, "mean_rate must be > 0 and <= 1"),
        ({"outer_lr": -1.0}, "outer_lr must be >= 0"),
    ],
)
def test_bad_options_are_answered(options, words):
    with pytest.raises(ValueError, match=words):
        EntropySGD([nn.Parameter(torch.ones(2))], **options)


def test_sparse_gradients_are_refused():
    table = nn.Embedding(4, 2, sparse=True)
    with pytest.raises(ValueError, match="dense gradients"):
        EntropySGD(table.parameters()).step(lambda: table(torch.tensor([1])).sum().backward())


def test_it_conforms():
    check_optimizer(EntropySGD, lr=0.05, noise=0.0)
