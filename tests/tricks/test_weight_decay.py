"""Weight decay: which parameters it takes, agreement with torch's optimisers, hard quadratics, bad input."""

import copy
import re

import pytest
import torch
from torch import nn

from lemmata.feedforward.mlp import MLP
from lemmata.tricks import (
    LayerNorm,
    constrained_minimum,
    decay_groups,
    decay_weights,
    decayed_minimum,
    l2_penalty,
    shrinkage,
)


def normalised() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Conv1d(1, 2, 3), nn.Linear(2, 1)).double()


def test_of_a_module_the_matrices_are_taken():
    model = normalised()
    matrices = [model.get_parameter(f"{number}.weight") for number in (0, 2, 3)]
    assert l2_penalty(model, 0.3).item() == pytest.approx(sum(0.15 * w.square().sum().item() for w in matrices))
    before = copy.deepcopy(model.state_dict())
    decay_weights(model, lr=0.5, weight_decay=0.4)
    for name, values in model.state_dict().items():
        factor = 0.8 if name in ("0.weight", "2.weight", "3.weight") else 1
        torch.testing.assert_close(values, factor * before[name])


def test_groups_cover_every_parameter_once_and_leave_frozen_ones_out():
    model = normalised()
    model[3].requires_grad_(False)
    decayed, free = decay_groups(model, 0.1)
    found = [id(values) for group in (decayed, free) for values in group["params"]]
    assert sorted(found) == sorted(id(values) for values in model.parameters() if values.requires_grad)
    assert all(values.ndim >= 2 for values in decayed["params"])
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
    assert len(decay_groups(nn.Linear(2, 2, bias=False), 1)) == 1


def test_frozen_weights_do_not_decay():
    model = normalised()
    model[3].requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    decay_weights(model, lr=0.5, weight_decay=0.4)
    torch.testing.assert_close(model.get_parameter("0.weight"), 0.8 * before["0.weight"])
    assert torch.equal(model.get_parameter("3.weight"), before["3.weight"])


@pytest.mark.parametrize("norm", [nn.LayerNorm([3, 4]), LayerNorm((3, 4)), nn.RMSNorm([3, 4])])
def test_scales_of_several_axes_are_no_matrices(norm: nn.Module):
    model = nn.Sequential(nn.Linear(4, 4), norm)
    decayed, free = decay_groups(model, 0.1)
    assert [id(values) for values in decayed["params"]] == [id(model.get_parameter("0.weight"))]
    assert len(free["params"]) == 1 + len(list(norm.parameters()))
    torch.testing.assert_close(l2_penalty(model, 2.0), model.get_parameter("0.weight").square().sum())


def test_decoupled_decay_with_adam_is_adamw():
    x, y = torch.randn(30, 4, dtype=torch.double), torch.randn(30, 2, dtype=torch.double)
    ours = MLP(4, 2, widths=(5,), dtype=torch.double)
    twin = copy.deepcopy(ours)
    adam, adamw = torch.optim.Adam(ours.parameters(), 0.01), torch.optim.AdamW(decay_groups(twin, 0.3), 0.01)
    for _ in range(10):
        for model, optimizer in ((ours, adam), (twin, adamw)):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            if optimizer is adam:
                decay_weights(model, lr=0.01, weight_decay=0.3)
            optimizer.step()
    for a, b in zip(ours.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_the_penalty_has_gradients():
    weights = [torch.randn(2, 3, dtype=torch.double, requires_grad=True), torch.randn(2, dtype=torch.double)]
    assert torch.autograd.gradcheck(lambda w: l2_penalty([w, weights[1]], [0.7, 2]), weights[:1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtypes_are_kept(dtype: torch.dtype):
    assert l2_penalty([torch.ones(3, dtype=dtype)], 1.0).dtype is dtype
    assert shrinkage(torch.ones(3, dtype=dtype), 1.0).dtype is dtype
    if dtype is not torch.bfloat16:  # torch has no eigenvalues in it
        assert decayed_minimum(torch.eye(2, dtype=dtype), torch.ones(2, dtype=dtype), 1.0).dtype is dtype
        assert constrained_minimum(torch.eye(2, dtype=dtype), torch.ones(2, dtype=dtype), 1.0).theta.dtype is dtype


def test_no_decay_leaves_the_shortest_minimum():
    hessian = torch.diag(torch.tensor([2.0, 0.0, 1e-20]))
    torch.testing.assert_close(decayed_minimum(hessian, torch.ones(3), 0), torch.tensor([1.0, 0.0, 0.0]))
    assert shrinkage(torch.tensor([1e308, 1e-300, 0.0], dtype=torch.double), 0.0).tolist() == [1, 1, 0]
    assert shrinkage(torch.tensor([1e-300], dtype=torch.double), 1e300).item() == 0


@pytest.mark.parametrize("radius", [1e-12, 1e-3, 0.5, 0.999999])
@pytest.mark.parametrize("spread", [1, 1e6])
def test_the_ball_is_reached_at_any_radius(radius: float, spread: float):
    hessian = torch.diag(torch.logspace(0, torch.tensor(spread).log10().item(), 5, dtype=torch.double)) / spread
    minimum = torch.ones(5, dtype=torch.double) / 5**0.5
    found = constrained_minimum(hessian, minimum, radius)
    assert found.theta.norm().item() == pytest.approx(radius, rel=1e-9)
    pull = hessian @ (found.theta - minimum) + found.weight_decay * found.theta
    assert pull.norm().item() < 1e-12


@pytest.mark.parametrize("radius", [1e-150, 1e-160, 1e-300])
def test_the_ball_may_be_tiny(radius: float):
    best = torch.tensor([1.0, 2.0], dtype=torch.double)
    found = constrained_minimum(torch.diag(torch.tensor([9.0, 1.0]).double()), best, radius)
    # theta is H best / mu for a large decay
    wanted = torch.tensor([9.0, 2.0], dtype=torch.double) / 85**0.5
    torch.testing.assert_close(found.theta / radius, wanted)
    assert found.weight_decay * radius == pytest.approx(85**0.5)


def test_a_minimum_inside_the_ball_stays():
    found = constrained_minimum(torch.eye(2), torch.tensor([0.3, 0.4]), radius=1)
    assert found.weight_decay == 0
    torch.testing.assert_close(found.theta, torch.tensor([0.3, 0.4]))
    singular = constrained_minimum(torch.diag(torch.tensor([1.0, 0.0])), torch.tensor([0.5, 9.0]), radius=1)
    torch.testing.assert_close(singular.theta, torch.tensor([0.5, 0.0]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: l2_penalty([torch.ones(2)], -1), "weight_decay must be >= 0, got -1"),
        (lambda: l2_penalty([torch.ones(2)], [1, 2]), "weight_decay must have one number for each of 1 tensors, got 2"),
        (lambda: l2_penalty(nn.ReLU(), 1), "weights must hold at least one tensor"),
        (
            lambda: decay_weights([], 2, 1),
            "lr * weight_decay must be at most 1, got 2: weights would change their sign",
        ),
        (lambda: decay_weights([], float("nan"), 1), "lr must be finite, got nan"),
        (lambda: decay_groups(nn.ReLU(), -1), "weight_decay must be >= 0, got -1"),
        (lambda: shrinkage(torch.tensor([-1.0]), 1), "eigenvalues must not be negative, got -1: this is no minimum"),
        (lambda: shrinkage(torch.zeros(0), 1), "eigenvalues must not be empty, got shape (0,)"),
        (lambda: decayed_minimum(-torch.eye(2), torch.ones(2), 1), "hessian must be positive semi-definite, its least"),
        (lambda: decayed_minimum(torch.eye(2), torch.ones(3), 1), "minimum must have 2 entries, got 3"),
        (lambda: constrained_minimum(torch.eye(2), torch.ones(2), 5e-324), "radius must be larger, got 5e-324"),
        (lambda: constrained_minimum(torch.eye(2), torch.ones(2), 0), "radius must be > 0, got 0"),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: l2_penalty("x", 1),
            "weights must be a module or a list of tensors such as model.parameters(), got str",
        ),  # type: ignore[arg-type]
        (lambda: decay_weights(nn.Linear(1, 1).named_parameters(), 0.1, 1), "got tuple"),  # type: ignore[arg-type]
        (lambda: decay_groups([torch.ones(2, 2)], 1), "model must be an nn.Module, got list"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_weights_is_told(call, told: str):
    with pytest.raises(TypeError, match=re.escape(told)):
        call()
