"""Steps on a support as a function: any rule, some parameters only, learnt rates, and first order."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.meta import adapt, outputs_after
from lemmata.meta.inner_loop import momentum_rule


def network(outputs=1):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, outputs)).double()


def support(shots=8):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shots, 2, generator=generator, dtype=torch.float64)
    return x, x.sum(1, keepdim=True).sin()


def after_torchs_own(optimizer, steps, loss=functional.mse_loss, targets=None, outputs=1):
    """The parameters after as many steps of one of torch's optimisers."""
    model, (x, y) = network(outputs), support()
    steps_of = optimizer(model.parameters())
    for _ in range(steps):
        steps_of.zero_grad()
        loss(model(x), y if targets is None else targets).backward()
        steps_of.step()
    return dict(model.named_parameters())


def same(found, wanted):
    return found.keys() == wanted.keys() and all(torch.allclose(found[name], wanted[name], rtol=1e-9) for name in found)


def test_steps_are_those_of_torchs_gradient_descent():
    model, (x, y) = network(), support()
    before = {name: part.detach().clone() for name, part in model.named_parameters()}
    found = adapt(model, x, y, 4, 0.1)
    assert same(found, after_torchs_own(lambda parameters: torch.optim.SGD(parameters, lr=0.1), 4))
    assert same(before, dict(model.named_parameters()))
    assert all(part.grad is None for part in model.parameters())


def test_any_rule_takes_the_step():
    model, (x, y) = network(), support()
    found = adapt(model, x, y, 5, rule=momentum_rule(0.05, 0.8))
    assert same(found, after_torchs_own(lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.8), 5))
    signs = adapt(
        model, x, y, 1, rule=lambda now, g, state: ({n: p - 0.5 * g[n].sign() for n, p in now.items()}, state)
    )
    moves = [float((signs[name] - part).detach().abs().max()) for name, part in model.named_parameters()]
    assert moves == pytest.approx([0.5] * 4)


def test_integer_targets_are_classes():
    model, (x, _) = network(3), support()
    y = torch.arange(8) % 3
    found = adapt(model, x, y, 3, 0.2)
    wanted = after_torchs_own(
        lambda parameters: torch.optim.SGD(parameters, lr=0.2), 3, functional.cross_entropy, y, outputs=3
    )
    assert same(found, wanted)


def test_only_what_is_named_moves():
    model, (x, y) = network(), support()
    found = adapt(model, x, y, 2, 0.1, names=["2.bias"])
    moved = [name for name, part in model.named_parameters() if not torch.equal(found[name], part)]
    assert moved == ["2.bias"]


def test_each_parameter_may_have_a_rate_and_rates_have_gradients():
    model, (x, y) = network(), support()
    rates = {name: torch.tensor(0.1 * k, dtype=torch.float64, requires_grad=True) for k, name in enumerate(adaptable())}
    found = adapt(model, x, y, 1, rates)
    assert torch.equal(found["0.weight"], model[0].weight)  # its rate is 0
    loss = functional.mse_loss(outputs_after(model, found, x, x), y)
    slopes = torch.autograd.grad(loss, list(rates.values()))
    assert all(slope < 0 for slope in slopes)  # a longer step would help each of them


def adaptable():
    return [name for name, _ in network().named_parameters()]


def test_first_order_keeps_no_graph_of_the_steps():
    """What is differentiated is the identity: the graph is as small after many steps as after one."""
    model, (x, y) = network(), support()
    sizes = [graph_size(adapt(model, x, y, steps, 0.1, first_order=True)["0.weight"]) for steps in (1, 12)]
    second = [graph_size(adapt(model, x, y, steps, 0.1)["0.weight"]) for steps in (1, 12)]
    assert sizes[0] < 12
    assert sizes[1] - sizes[0] <= 4 * 11  # the subtractions alone
    assert second[1] > 10 * sizes[1]
    (slope,) = torch.autograd.grad(adapt(model, x, y, 3, 0.1, first_order=True)["2.bias"].sum(), [model[2].bias])
    assert torch.equal(slope, torch.ones_like(slope))


def graph_size(tensor):
    """How many operations autograd would walk through."""
    seen, left = set(), [tensor.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions]
    return len(seen)


def test_first_order_and_second_reach_the_same_values():
    model, (x, y) = network(), support()
    assert same(adapt(model, x, y, 3, 0.1, first_order=True), adapt(model, x, y, 3, 0.1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes_stay(dtype):
    model, (x, y) = network().to(dtype), support()
    found = adapt(model, x.to(dtype), y.to(dtype), 2, 0.1)
    assert {part.dtype for part in found.values()} == {dtype}


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    model, (x, y) = network(), support()
    with pytest.raises(ValueError, match="steps must be >= 0, got -1"):
        adapt(model, x, y, -1)
    with pytest.raises(ValueError, match=r"names must be parameters of the model, got head: it has 0\.weight"):
        adapt(model, x, y, names=["head"])
    with pytest.raises(ValueError, match=r"y must have the shape of the outputs, \(8, 1\) a task, got \(8,\)"):
        adapt(model, x, y[:, 0])
    with pytest.raises(ValueError, match=r"y must hold a class for each of the outputs .* for numbers use y.float"):
        adapt(model, x, y.long())
