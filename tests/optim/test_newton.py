"""Newton's method with the closures, groups, dtypes and refusals of an optimiser."""

import copy

import pytest
import torch
from torch import nn

from lemmata.optim import Newton, NewtonCG
from lemmata.testing import check_optimizer


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).to(dtype)


def dense_step(model, loss, lr=1.0, damping=0.0):
    """Newton's step by the Hessian of torch.func for all parameters in one vector."""
    names, parts = zip(*model.named_parameters(), strict=True)
    flat = torch.cat([p.detach().flatten() for p in parts])

    def of(vector):
        pieces = vector.split([p.numel() for p in parts])
        values = {n: piece.view_as(p) for n, piece, p in zip(names, pieces, parts, strict=True)}
        return loss(lambda x: torch.func.functional_call(model, values, (x,)))

    hessian, gradient = torch.func.hessian(of)(flat), torch.func.grad(of)(flat)
    return flat - lr * torch.linalg.solve(hessian + damping * torch.eye(len(flat)).double(), gradient)


def squares(model):
    x = torch.linspace(-1, 1, 24).double().reshape(12, 2)
    return (model(x)[:, 0] - x[:, 0] * x[:, 1]).square().mean()


@pytest.mark.parametrize("calls_backward", [True, False])
def test_a_step_is_that_of_the_dense_hessian(calls_backward):
    model = network()
    optimizer = Newton(model.parameters(), lr=0.5, damping=0.1)
    expected = dense_step(model, squares, lr=0.5, damping=0.1)

    def closure():
        optimizer.zero_grad()
        loss = squares(model)
        if calls_backward:
            loss.backward()
        return loss

    before = float(squares(model).detach())
    assert float(optimizer.step(closure).detach()) == before
    torch.testing.assert_close(nn.utils.parameters_to_vector(model.parameters()), expected, rtol=0, atol=1e-12)


def test_gradients_are_left_for_others_to_see_and_parts_of_a_batch_add_up():
    model = network()
    x = torch.linspace(-1, 1, 24).double().reshape(12, 2)
    optimizer, whole = Newton(model.parameters(), lr=0.0, damping=1.0), network()
    whole(x).square().mean().backward()

    def closure():
        optimizer.zero_grad()
        for part in x.split(6):
            (model(part).square().mean() / 2).backward()

    assert optimizer.step(closure) is None
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        assert not mine.grad.requires_grad
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("kind", [Newton, NewtonCG])
def test_backward_keeps_its_arguments(kind):
    a, b = (nn.Parameter(torch.tensor([2.0]).double()) for _ in range(2))
    optimizer = kind([a, b], damping=0.5)

    def quarter():
        optimizer.zero_grad()
        loss = (a**2 + b**2).sum() / 2
        loss.backward(torch.tensor(0.25).double())
        return loss / 4

    optimizer.step(quarter)
    expected = 2 - 0.5 / (0.25 + 0.5)  # gradient 0.25 * 2, curvature 0.25
    assert a.item() == pytest.approx(expected, rel=1e-12)
    assert b.item() == pytest.approx(expected, rel=1e-12)

    def one(inputs):
        optimizer.zero_grad()
        loss = (a**2 + a * b + b**2).sum() / 2
        loss.backward(inputs=inputs)
        return loss

    for inputs in ([a], a):
        before = a.item()
        optimizer.step(lambda inputs=inputs: one(inputs))
        assert a.item() == pytest.approx(before - (before + expected / 2) / 1.5, rel=1e-12)
        assert (b.item(), b.grad) == (expected, None)
    before = a.item()
    optimizer.step(lambda: one([nn.Parameter(torch.ones(1))]))
    assert (a.item(), b.item()) == (before, expected)


@pytest.mark.parametrize("kind", [Newton, NewtonCG])
def test_a_backward_that_keeps_no_graph_is_refused(kind):
    weight = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match=r"closure must call loss.backward\(\), not torch.autograd.backward"):
        kind([weight]).step(lambda: torch.autograd.backward((weight**2).sum()))
    (weight**2).sum().backward()  # and elsewhere nothing is refused


@pytest.mark.parametrize("kind", [Newton, NewtonCG])
def test_gradients_that_are_not_finite_move_nothing(kind):
    weight = nn.Parameter(torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="the gradient is not finite: look for NaN and overflow"):
        kind([weight]).step(lambda: weight.sqrt().sum())
    assert weight.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("kind", [Newton, NewtonCG])
def test_a_copy_steps_as_the_original_does(kind):
    weight = nn.Parameter(torch.tensor([3.0, 1.0]))
    optimizer = kind([weight], damping=0.5)
    again, copied = copy.deepcopy((weight, optimizer))
    optimizer.step(lambda: (weight**4).sum())
    copied.step(lambda: (again**4).sum())
    assert again.equal(weight)
    assert not again.equal(torch.tensor([3.0, 1.0]))


@pytest.mark.parametrize("kind", [Newton, NewtonCG])
def test_what_is_not_chosen_are_whole_steps_without_damping(kind):
    assert kind([nn.Parameter(torch.ones(1))]).defaults == {"lr": 1.0, "damping": 0.0}


def test_groups_have_rates_and_dampings_of_their_own():
    x, y = (nn.Parameter(torch.tensor([4.0])) for _ in range(2))
    optimizer = Newton([{"params": [x], "lr": 0.5}, {"params": [y], "damping": 1.0}])
    optimizer.step(lambda: (x**2 + y**2).sum() / 2)
    assert (x.item(), y.item()) == (2.0, 2.0)  # half of the way; half of the gradient


def test_parameters_that_the_loss_does_not_use_need_damping():
    used, unused = nn.Parameter(torch.tensor([1.0])), nn.Parameter(torch.tensor([1.0]))
    with pytest.raises(
        ValueError, match=r"no gradient reaches a parameter of shape \(1,\): leave it out of params, or"
    ):
        Newton([used, unused]).step(lambda: (used**2).sum())
    Newton([used, unused], damping=1e-3).step(lambda: (used**2).sum())
    assert unused.item() == 1.0
    with pytest.raises(ValueError, match="the Hessian is singular: set damping > 0"):
        Newton([used]).step(lambda: 3 * used.sum())  # linear: no curvature at all


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_keeps_the_dtype_and_solves_in_a_wider_one(dtype):
    weight = nn.Parameter(torch.tensor([3.0, -2.0], dtype=dtype))
    Newton([weight]).step(lambda: (weight**2 * torch.tensor([1.0, 8.0], dtype=dtype)).sum())
    assert weight.dtype == dtype
    assert weight.detach().abs().max() < 1e-2


def test_state_and_frozen_parameters():
    weight, frozen = nn.Parameter(torch.tensor([3.0])), nn.Parameter(torch.tensor([5.0]), requires_grad=False)
    optimizer = Newton([weight, frozen], lr=0.25)
    other = Newton([weight, frozen])
    other.load_state_dict(optimizer.state_dict())
    other.step(lambda: (weight * frozen).square().sum())
    assert (weight.item(), frozen.item()) == (2.25, 5.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": torch.tensor(-1.0)}, "lr must be >= 0"),
        ({"damping": -1.0}, "damping must be >= 0"),
        ({"max_parameters": 0}, ">= 1"),
    ],
)
def test_bad_options_are_answered(options, words):
    with pytest.raises(ValueError, match=words):
        Newton([nn.Parameter(torch.ones(2))], **options)


def test_bad_closures_and_parameters_are_answered():
    weight = nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match="use NewtonCG"):
        Newton([weight], max_parameters=2).step(lambda: weight.sum())
    with pytest.raises(ValueError, match="closure must return the loss"):
        Newton([weight]).step(lambda: None)
    with pytest.raises(ValueError, match="closure must return the loss"):
        Newton([weight]).step(lambda: torch.ones(()))
    with pytest.raises(TypeError, match="real parameters"):
        Newton([nn.Parameter(torch.ones(2, dtype=torch.complex64))]).step(lambda: weight.sum())


def test_it_conforms():
    check_optimizer(Newton, lr=0.5, damping=0.5, nan="raise")
