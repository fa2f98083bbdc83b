"""The conformance suite of optimisers passes torch's and ours, measures what is advertised, and refuses bad words."""

import functools

import pytest
import torch
from torch import optim as peers

from lemmata import optim
from lemmata.testing import check_optimizer

TORCH = {
    "SGD": peers.SGD,
    "SGD with momentum": functools.partial(peers.SGD, momentum=0.9),
    "SGD as Nesterov": functools.partial(peers.SGD, momentum=0.9, nesterov=True),
    "Adagrad": peers.Adagrad,
    "RMSprop": peers.RMSprop,
    "Adam": peers.Adam,
    "AMSGrad": functools.partial(peers.Adam, amsgrad=True),
    "AdamW": peers.AdamW,
    "NAdam": peers.NAdam,
    "RAdam": peers.RAdam,
    "Adamax": peers.Adamax,
    "Adadelta": peers.Adadelta,
    "ASGD": peers.ASGD,
    "Muon": peers.Muon,
    "LBFGS": peers.LBFGS,
}
OURS = ("GradientDescent", "HeavyBall", "Nesterov", "Adagrad", "RMSprop", "Adam", "AdamW")


def adagrad_takes_groups():
    """Whether a group added later gets its sums: that of torch 2.11 does not, and its step raises KeyError."""
    optimizer, late = peers.Adagrad([torch.zeros(1, requires_grad=True)]), torch.zeros(1, requires_grad=True)
    optimizer.add_param_group({"params": [late]})
    late.grad = torch.ones(1)
    try:
        optimizer.step()
    except KeyError:
        return False
    return True


@pytest.mark.parametrize("name", TORCH)
def test_torchs_own_pass(name):
    report = check_optimizer(TORCH[name], skip=["groups"] if name == "Adagrad" and not adagrad_takes_groups() else [])
    assert report.passed
    assert {"descent", "resume", "schedule", "aliasing", "nan"} <= set(report.named("passed"))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("foreach", [False, True])
def test_ours_pass(name, foreach):
    report = check_optimizer(getattr(optim, name), foreach=foreach, lr=0.01)
    assert report.named("skipped") == ["sparse", "invariances"]  # refused, and not asked for


@pytest.mark.parametrize(
    ("kind", "has", "lacks"),
    [
        (peers.SGD, ["rotation", "separation"], ["scale"]),
        (peers.Adam, ["scale", "separation"], ["rotation"]),
        (peers.Muon, ["scale", "separation"], []),
        (peers.LBFGS, [], ["separation"]),
    ],
)
def test_advertised_invariances_are_measured(kind, has, lacks):
    check_optimizer(kind, invariances=has)
    for name in lacks:
        report = check_optimizer(kind, invariances=[name], on_fail="report")
        assert report.named("failed") == ["invariances"]
        assert report.findings[-1].why.startswith(f"{name}: ")


def test_what_is_not_done_is_skipped_with_a_reason():
    why = {finding.check: finding.why for finding in check_optimizer(peers.LBFGS).findings}
    assert "refuses several groups (ValueError: LBFGS doesn't support per-parameter options" in why["groups"]
    assert why["sparse"] == "its step computes gradients by a closure"
    assert why["maximize"] == "the optimiser has no option maximize"
    why = {finding.check: finding.why for finding in check_optimizer(peers.Muon).findings}
    assert "refuses complex parameters (RuntimeError: Muon does not support complex" in why["complex"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"make": 5}, "make must be a class of optimisers or a function that makes one, got int"),
        ({"nan": "hide"}, "nan must be one of propagate, skip, raise, got 'hide'"),
        ({"invariances": ["shift"]}, "invariances must be one of scale, rotation, separation, got 'shift'"),
        ({"skip": ["steps"]}, "skip must name checks among interface, descent, .*, got steps"),
        ({"on_fail": "tell"}, "on_fail must be 'raise' or 'report', got 'tell'"),
    ],
)
def test_bad_words_are_refused(words, told):
    with pytest.raises((ValueError, TypeError), match=told):
        check_optimizer(**{"make": peers.SGD} | words)


def test_options_are_handed_on_and_the_generators_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    report = check_optimizer(functools.partial(peers.SGD, weight_decay=0.1), lr=0.05, skip=["nan"])
    assert torch.equal(torch.rand(2), expected)
    assert "nan" not in [finding.check for finding in report.findings]
    assert report.subject.startswith("functools.partial(")


def test_one_that_cannot_be_made_is_told():
    report = check_optimizer(lambda params: peers.SGD([]), on_fail="report")
    assert report.named("failed") == ["interface"]
    assert "it cannot be made for parameters of the shapes" in report.findings[0].why
    assert set(report.named("skipped")) == {finding.check for finding in report.findings[1:]}
