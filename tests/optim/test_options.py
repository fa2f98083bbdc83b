"""Options that all optimisers check in one way: learning rates, and groups that are added."""

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
