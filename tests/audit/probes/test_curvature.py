"""Ends, trace and density of the spectrum against the whole Hessian; a saddle is told, and a minimum is not one."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.audit.auditing import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.probes.curvature import curvature
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject
from lemmata.measure.curvature_products import HessianOperator

torch.manual_seed(0)
X = torch.randn(120, 3)
Y = X.prod(1, keepdim=True)


def network(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)


def asked(model: nn.Module, data=(X, Y), budget: float = 1000.0, **how):
    return audit(model, data, probes=["curvature"], budget=budget, **how)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_are_those_of_the_whole_hessian(dtype: torch.dtype):
    model = network(dtype)
    report = asked(model)
    exact = HessianOperator(model, functional.mse_loss, (X.to(dtype), Y.to(dtype))).dense()
    values = torch.linalg.eigvalsh(exact.double())
    ends, spread = report["negative curvature"].numbers, report["curvature"].numbers
    assert abs(ends["least"] - values[0]) <= ends["residual"] + 1e-4
    assert abs(spread["largest"] - values[-1]) <= spread["residual"] + 1e-4
    # Hutch++ with ten probes: four of its standard errors, which are themselves estimates.
    assert abs(spread["trace"] - exact.trace().item()) < 4 * spread["trace_error"] + 1e-3
    assert spread["parameters"] == len(values)


def test_the_density_has_its_mass_where_the_eigenvalues_are():
    (figure,) = asked(network())["curvature"].figures
    (line,) = figure.marks
    x, y = torch.tensor(line.x), torch.tensor(line.y)
    assert torch.trapezoid(y, x).item() == pytest.approx(1, abs=0.05)
    assert figure.y_log


def test_large_networks_are_measured_with_few_vectors(monkeypatch):
    monkeypatch.setattr("lemmata.audit.learning_form.BYTES", 4 * 41 * 5)  # room for five vectors of this network
    model = network()
    found = asked(model)["curvature"]
    assert "Hutchinson with" in found.measured
    assert not found.figures
    trace = HessianOperator(model, functional.mse_loss, (X, Y)).dense().trace().item()
    assert abs(found.numbers["trace"] - trace) < 4 * found.numbers["trace_error"]


def test_a_saddle_is_told_and_fresh_or_trained_networks_are_not_at_one():
    # All weights zero: nothing depends on the hidden layer, and its gradient is zero.
    y = torch.tanh(X @ torch.ones(3, 1))
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 1, bias=False))
    for value in model.parameters():
        nn.init.zeros_(value)
    saddle = asked(model, (X, y))["negative curvature"]
    assert saddle.severity == "hint"
    assert "the weights are at a saddle" in saddle.verdict
    model = network()
    assert asked(model, (X, y))["negative curvature"].severity == "fine"
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        functional.mse_loss(model(X), y).backward()
        optimizer.step()
    assert asked(model, (X, y))["negative curvature"].severity == "fine"


def test_normalisation_dropout_and_recurrence_are_measured_as_they_learn():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    found = asked(model, (X, torch.arange(120) % 3), batch_size=40)["curvature"]
    assert found.severity == "fine"
    assert "as it learns, without dropout" in found.measured
    assert all(part.training for part in model.modules())


def test_a_loss_that_does_not_bend():
    report = asked(nn.Linear(3, 1), loss="l1")
    assert not report.alarms
    assert report["curvature"].numbers["trace"] == 0


def test_frozen_models_and_short_budgets_are_said():
    assert asked(network().requires_grad_(False))["curvature"].severity == "skipped"
    subject = Subject(network(), as_sample((X, Y)))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="the ends of the spectrum would take"):
        list(curvature.asks(subject, Clock(5.0)))


def test_the_claims_it_names_exist():
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    known = {line[6:].strip() for path in files for line in path.read_text().splitlines() if line.startswith("- id:")}
    for finding in asked(network()).findings:
        assert finding.claims
        assert set(finding.claims) <= known
