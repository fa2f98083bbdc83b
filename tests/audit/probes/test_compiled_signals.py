"""Compiled models are looked at as they are written, and stay compiled."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit

PROBES = ["anatomy", "signal", "dead_units", "input_scale"]


def faulty():
    """Dead in its second layer."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    nn.init.constant_(model[2].bias, -100.0)
    return model


@pytest.mark.parametrize("how", ["wrapped", "part", "in place", "plain"])
def test_compiled_models_are_looked_at_as_written(how):
    model = faulty()
    calls = []

    def compiler(graph, inputs):
        calls.append(len(inputs))
        return graph.forward

    if how == "wrapped":
        model = torch.compile(model, backend=compiler)
    elif how == "part":
        model[2] = torch.compile(model[2], backend=compiler)
    elif how == "in place":
        model.compile(backend=compiler)
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    report = audit(model, (x, torch.zeros(200, dtype=torch.long)), probes=PROBES)
    assert {one.name for one in report.alarms} == {"dead units", "constant outputs"}, str(report)
    assert report["dead units"].where == ["2"]
    assert calls == []  # nothing was compiled for the audit
    if how in ("wrapped", "part"):
        with torch.no_grad():
            model(x)
        assert len(calls) == 1  # and it is still compiled afterwards
