"""A model that was lent comes back as it was, whatever was done to it."""

import contextlib
import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

from lemmata.audit import audit
from lemmata.train.as_found import kept_as_found


class Counting(nn.Module):
    """A model that changes by being called, as models of people do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
        self.calls, self.last = 0, None
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.calls += 1
        self.last = self.body(x)
        self.mean = self.mean + 1  # another tensor by the same name
        return self.last


def everything(model):
    """All that must not change, as comparable values."""
    tensors = {name: value.clone() for name, value in model.state_dict(keep_vars=False).items()}
    grads = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    parts = {name: (part.training, list(part._forward_hooks), type(part)) for name, part in model.named_modules()}
    flags = {name: (p.requires_grad, p.dtype, id(p), id(p.grad)) for name, p in model.named_parameters()}
    return tensors, grads, parts, flags, model.calls, id(model.last), id(model.mean)


def same(before, after):
    for one, other in zip(before[:2], after[:2], strict=True):
        assert list(one) == list(other)
        assert all(
            (a is None and b is None) or torch.equal(a, b) for a, b in zip(one.values(), other.values(), strict=True)
        )
    assert before[2:] == after[2:]


def spoil(model):
    """What a careless probe could do."""
    model.train()
    model(torch.randn(8, 3)).sum().backward()
    model.body[0].register_forward_hook(lambda *_: None)
    model.body[1].eval()
    for p in model.parameters():
        p.requires_grad_(False)
    nn.init.constant_(model.body[0].weight, 7.0)
    model.body[3] = nn.Linear(4, 5)
    model.extra = 3
    model.double()
    torch.set_grad_enabled(False)
    torch.rand(1), np.random.rand(1), random.random()  # noqa: NPY002


@pytest.fixture
def model():
    made = Counting()
    made.body[0].register_forward_hook(lambda *_: None)
    made.body[3].weight.requires_grad_(False)
    made(torch.randn(8, 3)).sum().backward()
    made.body[2].eval()
    return made


@pytest.mark.parametrize("end", [None, RuntimeError, KeyboardInterrupt])
def test_everything_is_given_back_also_after_an_error_or_ctrl_c(model, end):
    before = everything(model)
    torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
    drawn = torch.rand(1), np.random.rand(1), random.random()  # noqa: NPY002
    torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
    with pytest.raises(end) if end else contextlib.nullcontext(), kept_as_found(model):
        spoil(model)
        if end:
            raise end
    assert torch.is_grad_enabled()
    same(before, everything(model))
    assert (torch.rand(1), np.random.rand(1), random.random()) == drawn  # noqa: NPY002
    assert not hasattr(model, "extra")
    assert model(torch.randn(2, 3)).shape == (2, 2)


def test_what_did_not_change_keeps_its_version_so_that_a_graph_built_before_still_runs_backwards(model):
    loss = model(torch.randn(8, 3)).square().sum()
    with kept_as_found(model), torch.no_grad():
        model.body[0](torch.randn(2, 3))
    loss.backward()


def test_one_number_that_changed_is_given_back_and_as_often_as_wanted():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    weight, grad = model.weight.detach().clone(), model.weight.grad.clone()
    with kept_as_found(model) as give_back:
        for _ in range(2):
            with torch.no_grad():
                model.weight[0, 1] += 1
                model.weight.grad[1, 0] += 1
            give_back()
            assert torch.equal(model.weight, weight)
            assert torch.equal(model.weight.grad, grad)


def test_nan_counts_as_itself():
    model = nn.Linear(2, 2)
    with torch.no_grad():
        model.weight[0, 0] = torch.nan
    version = model.weight._version
    with kept_as_found(model):
        pass
    assert model.weight._version == version


def test_keys_of_the_state_keep_their_order():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with kept_as_found(model):
        model[0].weight = nn.Parameter(torch.zeros(2, 2))
        del model[0].bias
        model[0].bias = nn.Parameter(torch.zeros(2))
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_a_whole_audit_leaves_model_optimiser_and_random_numbers_as_they_were(model):
    x, y = torch.randn(80, 3), torch.arange(80) % 2
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    model.body[1].eval()
    before, state = everything(model), copy.deepcopy(optimizer.state_dict())
    generator, threads, default = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    report = audit(model, (x, y), (x[:40], y[:40]), optimizer=optimizer, budget=30.0)
    assert len(report.findings) > 10
    same(before, everything(model))
    after = optimizer.state_dict()
    assert after["param_groups"] == state["param_groups"]
    for index, held in state["state"].items():
        assert all(torch.equal(value, after["state"][index][name]) for name, value in held.items())
    assert torch.equal(torch.get_rng_state(), generator)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, default)
    assert torch.is_grad_enabled()
