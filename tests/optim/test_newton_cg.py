"""Newton's method by conjugate gradients: exact solutions, saddles, line search, and networks."""

import pytest
import scipy.optimize
import torch
from torch import nn

from lemmata.optim import Newton, NewtonCG, truncated_cg
from lemmata.testing import check_optimizer


def test_conjugate_gradients_solve_in_as_many_steps_as_there_are_eigenvalues():
    torch.manual_seed(0)
    q = torch.linalg.qr(torch.randn(30, 30).double()).Q
    matrix = (q * torch.tensor([1.0, 5.0, 20.0]).double().repeat(10)) @ q.T
    target, calls = torch.randn(30).double(), []

    def product(vector):
        calls.append(1)
        return matrix @ vector

    found = truncated_cg(product, target, tolerance=1e-12)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target), rtol=0, atol=1e-10)
    assert len(calls) <= 4


def test_conjugate_gradients_stop_where_the_curvature_is_not_positive():
    target = torch.tensor([1.0, 1.0])
    assert truncated_cg(lambda v: -v, target).equal(target)
    assert truncated_cg(lambda v: 0 * v, target).equal(target)
    bowl = torch.tensor([2.0, -1.0])
    found = truncated_cg(lambda v: bowl * v, torch.tensor([1.0, 0.1]))
    assert float(found @ torch.tensor([1.0, 0.1])) > 0
    assert truncated_cg(lambda v: v, torch.zeros(2)).equal(torch.zeros(2))
    assert truncated_cg(lambda v: bowl.abs() * v, target, max_iterations=1).norm() > 0


def test_with_exact_solutions_it_is_newtons_method():
    torch.manual_seed(0)
    x, y = torch.randn(40, 3).double(), torch.randint(0, 2, (40,)).double() * 2 - 1
    ends = []
    for kind, options in ((Newton, {}), (NewtonCG, {"tolerance": 1e-14, "line_search": False})):
        weight = nn.Parameter(torch.zeros(3).double())
        optimizer = kind([weight], damping=0.1, **options)
        for _ in range(4):
            optimizer.step(lambda w=weight: nn.functional.softplus(-y * (x @ w)).mean())
        ends.append(weight.detach())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)


def test_it_finds_scipys_minimum_of_rosenbrocks_function_in_twenty_dimensions():
    start = torch.full((20,), -1.0).double()
    weight = nn.Parameter(start.clone())
    optimizer = NewtonCG([weight])

    def loss():
        return ((1 - weight[:-1]) ** 2 + 100 * (weight[1:] - weight[:-1] ** 2) ** 2).sum()

    for _ in range(150):
        optimizer.step(loss)
    found = scipy.optimize.minimize(scipy.optimize.rosen, start.numpy(), method="BFGS", options={"gtol": 1e-8})
    assert float(loss().detach()) <= found.fun + 1e-12


def test_saddles_repel_it():
    weight = nn.Parameter(torch.tensor([1.0, 1e-3]).double())
    optimizer = NewtonCG([weight])
    for _ in range(30):
        optimizer.step(lambda: weight[0] ** 2 - weight[1] ** 2 + weight[1] ** 4)
    # The loss is flat to its last digit within the root of the rounding.
    torch.testing.assert_close(weight.detach().abs(), torch.tensor([0.0, 0.5**0.5]).double(), rtol=0, atol=1e-6)


def test_no_step_goes_up_and_none_is_taken_where_all_do():
    weight = nn.Parameter(torch.tensor([3.0]).double())
    optimizer, losses = NewtonCG([weight]), []
    for _ in range(20):
        losses.append(float(optimizer.step(lambda: torch.sqrt(1 + weight**2).sum()).detach()))  # Newton alone diverges
    assert losses == sorted(losses, reverse=True)
    assert abs(weight.item()) < 1e-6
    edge = nn.Parameter(torch.tensor([1.0]).double())
    NewtonCG([edge]).step(lambda: torch.where(edge == 1.0, edge, torch.inf).sum() + 0.5 * (edge**2).sum())
    assert edge.item() == 1.0


def test_rates_that_differ_by_group_do_not_send_it_up():
    """With a rate of zero for one coordinate, what is left of Newton's direction climbs."""
    hessian = torch.tensor([[1.0, 0.9], [0.9, 1.0]]).double()
    place = nn.Parameter(torch.tensor([2.0]).double()), nn.Parameter(torch.tensor([-1.5]).double())
    optimizer = NewtonCG([{"params": [place[0]], "lr": 0.0}, {"params": [place[1]]}])

    def loss():
        x = torch.cat(place)
        return x @ hessian @ x / 2

    losses = [float(optimizer.step(loss).detach()) for _ in range(20)]
    assert losses == sorted(losses, reverse=True)
    assert place[0].item() == 2.0
    assert abs(place[1].item() + 0.9 * 2.0) < 1e-6
    still = NewtonCG(place, lr=0.0)
    still.step(loss)
    assert place[0].item() == 2.0


@pytest.mark.parametrize(
    ("start", "offset", "falls", "end"),
    [
        (1.0, 0.0, [1.5e-4], 0.0),  # a ten-thousandth of what the slope promises is enough
        (1.0, 0.0, [0.7e-4, 0.7e-4], 0.5),  # less is not; half of the way promises half as much
        (1.0, 0.0, [-1.0] * 100, 1.0),
        (2e-6, 1.0, [0.0], 0.0),  # the promise is a few roundings of the loss, which cannot tell
    ],
)
def test_the_line_search_asks_for_a_part_of_what_the_slope_promises(start, offset, falls, end):
    weight = nn.Parameter(torch.tensor([start]).double())
    seen = []

    def closure():
        """The loss where the step begins; afterwards what the search is to see."""
        seen.append(weight.item())
        if len(seen) == 1:
            return offset + (weight**2 / 2).sum()
        return torch.tensor(offset + start**2 / 2 - falls[len(seen) - 2], dtype=torch.float64)

    NewtonCG([weight], tolerance=1e-10).step(closure)
    assert weight.item() == end


@pytest.mark.parametrize("answers", [0, 2])  # of the line search, before the closure fails
def test_a_closure_that_raises_in_the_line_search_leaves_the_parameters_where_they_were(answers):
    weights = [nn.Parameter(torch.tensor([3.0, -1.0])), nn.Parameter(torch.tensor([[2.0]], dtype=torch.float64))]
    before = [weight.detach().clone() for weight in weights]
    calls = []

    def closure():
        calls.append([weight.detach().clone() for weight in weights])
        if len(calls) == 1:
            return sum((weight.double() ** 2).sum() for weight in weights)
        if len(calls) - 2 == answers:
            raise KeyboardInterrupt
        return torch.tensor(torch.inf)

    with pytest.raises(KeyboardInterrupt):
        NewtonCG(weights).step(closure)
    assert not any(there.equal(start) for there, start in zip(calls[-1], before, strict=True))  # it had moved them
    assert all(weight.equal(start) for weight, start in zip(weights, before, strict=True))


def test_it_trains_a_network_in_an_ordinary_closure_that_calls_backward():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    x = torch.linspace(-1, 1, 64).double()[:, None]
    optimizer = NewtonCG(model.parameters(), damping=1e-2)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - torch.sin(3 * x)).square().mean()
        loss.backward()
        return loss

    for _ in range(40):
        loss = optimizer.step(closure)
    assert float(loss.detach()) < 1e-3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr must be >= 0"),
        ({"damping": -1.0}, "damping must be >= 0"),
        ({"max_iterations": 0}, "max_iterations must be >= 1"),
        ({"tolerance": 1.0}, "tolerance must be > 0 and < 1"),
    ],
)
def test_bad_options_are_answered(options, words):
    with pytest.raises(ValueError, match=words):
        NewtonCG([nn.Parameter(torch.ones(2))], **options)


def test_it_conforms():
    check_optimizer(NewtonCG, nan="raise")
