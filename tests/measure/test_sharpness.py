"""Sharpness: the dense Hessian's top, the step at which descent turns, and the worst point within a radius."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.sharpness import hessian_sharpness, worst_loss_rise


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    return model, (torch.randn(6, 4).double(), torch.randn(6, 2).double())


def test_it_is_the_largest_eigenvalue_of_the_dense_hessian():
    model, batch = network()
    top = torch.linalg.eigvalsh(HessianOperator(model, functional.mse_loss, batch).dense())[-1].item()
    found = hessian_sharpness(model, functional.mse_loss, batch, generator=torch.Generator().manual_seed(0))
    assert found.eigenvalue == pytest.approx(top, rel=1e-5)
    assert found.residual <= 1e-3 * top
    assert found.largest_step == 2 / found.eigenvalue


@pytest.mark.parametrize(("factor", "grows"), [(0.99, False), (1.01, True)])
def test_descent_on_a_quadratic_diverges_beyond_the_largest_step(factor, grows):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1, bias=False).double(), torch.randn(8, 3).double()
    batch = x, torch.zeros(8, 1).double()
    step = factor * hessian_sharpness(model, functional.mse_loss, batch, accuracy=1e-6).largest_step
    first = functional.mse_loss(model(x), batch[1]).item()
    optimizer = torch.optim.SGD(model.parameters(), lr=step)
    for _ in range(600):
        optimizer.zero_grad()
        functional.mse_loss(model(x), batch[1]).backward()
        optimizer.step()
    assert (functional.mse_loss(model(x), batch[1]).item() > first) == grows


def test_a_gentle_curve_bounds_the_step_too():
    model, x = nn.Linear(1, 1, bias=False).double(), torch.ones(1, 1).double()
    found = hessian_sharpness(model, lambda f, y: 0.125 * f.square().mean(), (x, None))
    assert found.eigenvalue == pytest.approx(0.25)
    assert found.largest_step == pytest.approx(8)


def test_a_loss_that_curves_downwards_bounds_no_step():
    model, x = nn.Linear(1, 1, bias=False).double(), torch.ones(1, 1).double()
    found = hessian_sharpness(model, lambda f, y: -f.square().mean(), (x, None))
    assert found.eigenvalue == pytest.approx(-2)
    assert found.largest_step == math.inf
    flat = hessian_sharpness(model, lambda f, y: f.sum(), (x, None))
    assert (flat.eigenvalue, flat.largest_step) == (0.0, math.inf)


def test_a_parameter_that_the_loss_does_not_use_stays_where_it_is():
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 2)}).double()
    model.forward = lambda x: model["used"](x)
    found = worst_loss_rise(model, functional.mse_loss, (torch.ones(3, 2).double(), torch.ones(3, 1).double()))
    assert found.rise > 0
    assert found.moved["idle.weight"].equal(model["idle"].weight)


def test_the_rise_of_a_quadratic_is_that_of_its_steepest_direction():
    model = nn.Linear(2, 1, bias=False).double()
    model.weight.data.copy_(torch.tensor([[0.0, 0.1]]))
    x = torch.tensor([[3.0, 0.0], [0.0, 1.0]]).double()
    found = worst_loss_rise(model, functional.mse_loss, (x, torch.zeros(2, 1).double()), radius=0.5, steps=1)
    assert found.rise == pytest.approx((0.6**2 - 0.1**2) / 2)  # along the gradient
    model.weight.data[0, 0] = 1e-3
    further = worst_loss_rise(model, functional.mse_loss, (x, torch.zeros(2, 1).double()), radius=0.5, steps=50)
    # The maximum over the circle, by looking at all of it.
    angles = torch.linspace(0, 2 * math.pi, 100_001).double()
    weights = model.weight.detach() + 0.5 * torch.stack([angles.cos(), angles.sin()], 1)
    highest = ((weights @ x.mT) ** 2).mean(1).max().item() - further.loss
    assert further.rise == pytest.approx(highest, rel=1e-6)
    moved = torch.cat([(further.moved[name] - p).flatten() for name, p in model.named_parameters()])
    assert moved.norm().item() == pytest.approx(0.5)


def test_it_is_a_lower_bound_that_leaves_the_model_alone():
    model, batch = network()
    before = [p.clone() for p in model.parameters()]
    rises = [worst_loss_rise(model, functional.mse_loss, batch, radius=0.1, steps=steps).rise for steps in (1, 2, 10)]
    assert 0 < rises[0] <= rises[1] <= rises[2]
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())
    flat = worst_loss_rise(model, lambda f, y: (f * 0).sum(), batch)
    assert flat.rise == 0.0


def test_without_more_said_it_looks_five_times_within_a_twentieth():
    seen = []

    def loss(f, y):
        seen.append(1)
        return functional.mse_loss(f, y)

    model, batch = network()
    found = worst_loss_rise(model, loss, batch)
    moved = torch.cat([(found.moved[name] - p).flatten() for name, p in model.named_parameters()])
    assert moved.norm().item() == pytest.approx(0.05)
    assert len(seen) == 6  # and at the parameters themselves


def test_where_nothing_is_higher_the_worst_point_is_where_they_stand():
    """A slope that is lost in the rounding of the loss."""
    model, x = nn.Linear(1, 1, bias=False).double(), torch.ones(1, 1).double()
    found = worst_loss_rise(model, lambda f, y: 1e20 + f.sum(), (x, None))
    assert found.rise == 0
    assert found.moved["weight"].equal(model.weight)


def test_a_model_may_have_several_inputs():
    torch.manual_seed(0)
    model, x, z = nn.Bilinear(2, 3, 1).double(), torch.randn(4, 2).double(), torch.randn(4, 3).double()
    joined = nn.Linear(6, 1).double()
    joined.weight.data, joined.bias.data = model.weight.data.reshape(1, 6), model.bias.data
    target, products = torch.zeros(4, 1).double(), (x[:, :, None] * z[:, None, :]).flatten(1)
    several = worst_loss_rise(model, functional.mse_loss, ((x, z), target))
    one = worst_loss_rise(joined, functional.mse_loss, (products, target))
    assert several.rise == pytest.approx(one.rise, rel=1e-10)


def test_the_counts_of_batch_normalisation_stay_as_they_were():
    model, batch = network()
    model.insert(1, nn.BatchNorm1d(5).double())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert worst_loss_rise(model, functional.mse_loss, batch).rise > 0
    hessian_sharpness(model, functional.mse_loss, batch)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_answered_in_words():
    model, batch = network()
    with pytest.raises(ValueError, match="radius must be > 0, got 0"):
        worst_loss_rise(model, functional.mse_loss, batch, radius=0)
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        worst_loss_rise(model, functional.mse_loss, batch, steps=0)
    with pytest.raises(ValueError, match=r"model must not draw units while it is measured: call model.eval\(\) first"):
        worst_loss_rise(nn.Sequential(model, nn.Dropout()), functional.mse_loss, batch)
    with pytest.raises(ValueError, match="model must have parameters that require gradients"):
        worst_loss_rise(model.requires_grad_(False), functional.mse_loss, batch)
