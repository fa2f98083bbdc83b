"""Step lengths: networks against dense Hessians, many parameters, flat and falling losses, bad input."""

import math

import pytest
import torch
from torch import nn

from lemmata.optim import best_constant_step, stability_limit, step_model


def network(width, dtype=torch.float64):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1)).to(dtype)
    x, y = torch.randn(12, 3, dtype=dtype), torch.randn(12, 1, dtype=dtype)
    return layers, lambda: nn.functional.mse_loss(layers(x), y)


def dense_hessian(layers, loss):
    parameters = list(layers.parameters())
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss(), parameters, create_graph=True)])
    rows = [torch.autograd.grad(entry, parameters, retain_graph=True, materialize_grads=True) for entry in gradient]
    return gradient.detach(), torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


@pytest.mark.parametrize("width", [4, 30])  # 21 parameters by the whole Hessian, 151 by an iteration
def test_a_network_is_measured_as_its_dense_hessian(width):
    layers, loss = network(width)
    gradient, hessian = dense_hessian(layers, loss)
    model = step_model(loss, layers.parameters())
    assert model.loss == pytest.approx(loss().item())
    assert model.slope == pytest.approx(float(gradient @ gradient), rel=1e-12)
    assert model.bend == pytest.approx(float(gradient @ hessian @ gradient), rel=1e-10)
    assert stability_limit(loss, layers.parameters()) == pytest.approx(
        2 / float(torch.linalg.eigvalsh(hessian)[-1]), rel=1e-5
    )


def test_the_model_foretells_a_step():
    layers, loss = network(4)
    model, lr = step_model(loss, layers.parameters()), 1e-4
    before = loss().item()
    optimizer = torch.optim.SGD(layers.parameters(), lr=lr)
    loss().backward()
    optimizer.step()
    assert loss().item() - before == pytest.approx(model.change(lr), rel=1e-4)
    assert model.change(model.largest) == pytest.approx(0.0, abs=1e-12)
    assert model.best == model.largest / 2


def test_single_precision_and_frozen_parameters():
    layers, loss = network(4, torch.float32)
    assert stability_limit(loss, layers.parameters()) > 0
    layers[0].requires_grad_(False)
    last = list(layers[2].parameters())
    assert step_model(loss, layers.parameters()) == step_model(loss, last)
    assert all(value.grad is None for value in layers.parameters())


def test_many_parameters_have_the_extremes_of_their_curvatures():
    curvatures = torch.linspace(1.0, 9.0, 500, dtype=torch.float64)
    w = torch.zeros(500, dtype=torch.float64, requires_grad=True)

    def loss():
        return (curvatures * w.square()).sum() / 2

    assert stability_limit(loss, [w]) == pytest.approx(2 / 9, rel=1e-6)
    assert best_constant_step(loss, [w]) == pytest.approx(0.2, rel=1e-5)
    assert stability_limit(loss, [w]) == stability_limit(loss, [w])


def test_flat_and_falling_losses_have_no_limit():
    w = torch.ones(2, requires_grad=True)
    assert stability_limit(lambda: w.sum(), [w]) == math.inf
    assert stability_limit(lambda: -w.square().sum(), [w]) == math.inf
    falling = step_model(lambda: -w.square().sum(), [w])
    assert (falling.largest, falling.best) == (math.inf, math.inf)
    resting = step_model(lambda: (w - 1).square().sum(), [w])
    assert resting.slope == 0


def test_gentle_losses_have_limits_too():
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)

    def loss():
        return (w.square() * torch.tensor([0.1, 0.3])).sum() / 2

    assert stability_limit(loss, [w]) == pytest.approx(2 / 0.3)
    assert best_constant_step(loss, [w]) == pytest.approx(2 / 0.4)
    assert step_model(loss, [w]).best == pytest.approx((0.1**2 + 0.3**2) / (0.1**3 + 0.3**3))
    with pytest.raises(ValueError, match="loss must be convex where it is measured"):
        best_constant_step(lambda: w[0] ** 2 - 1e-4 * w[1] ** 2, [w])


def test_a_loss_may_be_linear_in_some_parameters_and_not_depend_on_others():
    w, v, idle = (torch.full((2,), 3.0, requires_grad=True) for _ in range(3))
    found = step_model(lambda: w.square().sum() + 2 * v.sum(), [w, v, idle])
    assert (found.loss, found.slope, found.bend) == (30.0, 2 * 6**2 + 2 * 2**2, 2 * 6 * 2 * 6)
    assert stability_limit(lambda: w.square().sum() + 2 * v.sum(), [w, v, idle]) == pytest.approx(1.0)


def test_a_singular_quadratic_still_has_a_best_step():
    w = torch.ones(2, requires_grad=True)
    assert best_constant_step(lambda: 2 * w[0].square(), [w]) == pytest.approx(0.5)


def test_bad_input_is_answered():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="loss must be convex where it is measured"):
        best_constant_step(lambda: w[0] ** 2 - w[1] ** 2, [w])
    with pytest.raises(ValueError, match="loss must be convex where it is measured"):
        best_constant_step(lambda: w.sum(), [w])
    with pytest.raises(ValueError, match=r"loss must return one number, got shape \(2,\)"):
        step_model(lambda: w * 2, [w])
    with pytest.raises(ValueError, match="loss must return one number, got float"):
        step_model(lambda: 2.0, [w])
    with pytest.raises(ValueError, match="requires a gradient"):
        stability_limit(lambda: w.sum(), [torch.ones(2)])
    with pytest.raises(ValueError, match="gradient must be finite"):
        step_model(lambda: (w - 1).norm() / (w - 1).norm(), [w])
