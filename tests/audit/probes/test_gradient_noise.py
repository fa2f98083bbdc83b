"""The noise scale against that of all gradients one by one, and hints on batches far from it."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.audit.auditing import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.probes.gradient_noise import gradient_noise
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject


def regression(noise: float, number: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(number, 4)
    return x, x.sum(1, keepdim=True) + noise * torch.randn(number, 1)


def zero_layer() -> nn.Linear:
    layer = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def asked(model: nn.Module, data, **how):
    (finding,) = audit(model, data, probes=["gradient_noise"], budget=1000.0, **how).findings
    return finding


@pytest.mark.parametrize("noise", [0.5, 3.0])
def test_the_interval_holds_the_scale_of_all_gradients(noise: float):
    data, model = regression(noise, number=2048), zero_layer()
    found = asked(model, data)
    each = -2 * data[1] * data[0]  # the gradient of one example at zero weights
    scale = each.var(0).sum() / each.mean(0).square().sum()
    assert found.severity == "fine"
    assert found.numbers["low"] <= scale <= found.numbers["high"]
    assert found.numbers["low"] > scale / 3
    assert found.numbers["high"] < 3 * scale


def test_batches_far_above_the_scale_get_a_hint_and_those_near_it_none():
    data, model = regression(0.1), zero_layer()
    scale = asked(model, data).numbers["scale"]
    large = asked(model, data, batch_size=1000)
    assert large.severity == "hint"
    assert "batches of 1000 are" in large.verdict
    assert large.numbers["high"] * 10 < 1000
    assert asked(model, data, batch_size=max(round(scale), 1)).severity == "fine"


def test_batches_far_below_the_scale_get_a_hint():
    data, model = regression(30.0), zero_layer()
    found = asked(model, data, batch_size=2)
    assert found.severity == "hint"
    assert "mostly noise" in found.verdict


def test_at_a_minimum_the_scale_has_no_upper_end():
    x, y = regression(1.0)
    model = nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.linalg.lstsq(x, y).solution.T)
    found = asked(model, (x, y), batch_size=64)
    assert found.severity in ("fine", "hint")
    assert found.numbers["high"] == float("inf")
    assert "at least" in found.measured


def test_networks_with_batch_normalisation_and_dropout_in_half_precision(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)  # whose bfloat16 not every virtual machine can run
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)).bfloat16()
    x = torch.randn(512, 4)
    found = asked(model, (x, x[:, :3].argmax(1)), batch_size=32)
    assert found.severity in ("fine", "hint")
    assert 0 < found.numbers["low"] < found.numbers["high"]
    assert model[1].num_batches_tracked == 0
    assert functional.softmax(model.eval()(x.bfloat16()), 1).dtype == torch.bfloat16


def test_too_few_examples_frozen_models_and_short_budgets_are_said():
    data = regression(1.0, number=40)
    assert "64 examples are the fewest" in asked(zero_layer(), data).verdict
    assert asked(zero_layer().requires_grad_(False), regression(1.0)).severity == "skipped"
    subject = Subject(zero_layer(), as_sample(regression(1.0)))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="the noise of the gradients would take"):
        list(gradient_noise.asks(subject, Clock(5.0)))


def test_slow_gradients_are_taken_of_fewer_batches():
    class Ticking:
        def __init__(self):
            self.seconds = 0.0

        def __call__(self):
            self.seconds += 0.01
            return self.seconds

    subject = Subject(zero_layer(), as_sample(regression(1.0)))
    time = Ticking()
    for seconds, found in ((100.0, 1), (0.5, 1)):
        assert len(list(gradient_noise.asks(subject, Clock(seconds, time)))) == found
    with pytest.raises(OutOfTime, match="the noise of the gradients would take"):
        list(gradient_noise.asks(subject, Clock(0.1, time)))


def test_the_claims_it_names_exist():
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    known = {line[6:].strip() for path in files for line in path.read_text().splitlines() if line.startswith("- id:")}
    found = asked(zero_layer(), regression(1.0))
    assert found.claims
    assert set(found.claims) <= known
