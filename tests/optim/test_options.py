"""Options that all optimisers check in one way: learning rates, and groups that are added."""

import inspect

import pytest
import torch
from torch import nn

from lemmata.optim import SAM, Adam, EntropySGD, Extragradient, Muon, Newton, NewtonCG

KINDS = [Adam, EntropySGD, Extragradient, Muon, Newton, NewtonCG]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("lr", "was"), [("a", "str"), (None, "NoneType"), (True, "bool")])
def test_a_rate_is_a_number(kind, lr, was):
    with pytest.raises(TypeError, match=f"lr must be a number, got {was}"):
        kind([nn.Parameter(torch.ones(2, 2))], lr=lr)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", [*KINDS, SAM])
def test_a_rate_in_a_tensor_is_taken_and_a_group_is_a_dict(kind):
    optimizer = kind([nn.Parameter(torch.ones(2, 2))], lr=torch.tensor(0.1))
    with pytest.raises(TypeError, match="param_group must be a dict, got list: use"):
        optimizer.add_param_group([nn.Parameter(torch.ones(2, 2))])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
def test_a_group_is_refused_for_its_own_options(kind):
    """Whatever those of the others are, and keeps them where they will do."""
    weight = nn.Parameter(torch.ones(2, 2))
    with pytest.raises(ValueError, match=r"lr must be >= 0, got -1\.0"):
        kind([{"params": [weight], "lr": -1.0}])
    optimizer = kind([nn.Parameter(torch.ones(2, 2))])
    with pytest.raises(ValueError, match=r"lr must be >= 0, got -1\.0"):
        optimizer.add_param_group({"params": [weight], "lr": -1.0})
    optimizer.add_param_group({"params": [weight], "lr": 0.25})
    assert optimizer.param_groups[-1]["lr"] == 0.25


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *((kind, "damping") for kind in (Newton, NewtonCG)),
        *((EntropySGD, name) for name in ("scope", "noise", "outer_lr")),
        *((kind, "weight_decay") for kind in (Adam, Muon)),
        (SAM, "rho"),
    ],
)
def test_no_option_of_a_group_is_negative(kind, option):
    with pytest.raises(ValueError, match=rf"{option} must be >= 0, got -1\.0"):
        kind([{"params": [nn.Parameter(torch.ones(2, 2))], option: -1.0}])


@pytest.mark.parametrize("kind", [SAM, Newton, NewtonCG, EntropySGD, Extragradient])
@pytest.mark.parametrize("given", [(), (None,), (torch.tensor(1.0),)])
def test_a_step_without_its_closure_is_told_so(kind, given):
    options = {"base": torch.optim.SGD, "lr": 0.1} if kind is SAM else {"lr": 0.1}
    optimizer = kind([torch.ones(2, requires_grad=True)], **options)
    with pytest.raises(TypeError, match=rf"{kind.__name__}\.step needs a closure, .*use optimizer\.step\(closure\)"):
        optimizer.step(*given)
    closure = inspect.signature(optimizer.step).parameters["closure"]
    assert closure.default is inspect.Parameter.empty  # by which training loops know
