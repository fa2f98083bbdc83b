"""Every claim that a finding about anatomy, signals, units or inputs rests on is one of ours."""

import torch
from tests.audit.probes.usage import statements
from torch import nn

from lemmata.audit import audit
from lemmata.audit.probes import anatomy, dead_units, input_scale, signal


def test_named_claims_exist():
    known = statements()
    named = {*anatomy.CLAIMS, *anatomy.SYMMETRY, *signal.CLAIMS, *input_scale.CLAIMS}
    named |= {*dead_units.CLAIMS, *dead_units.SLOPES}
    layers = [layer for _ in range(6) for layer in (nn.Linear(8, 8), nn.ReLU())]
    model = nn.Sequential(nn.BatchNorm1d(8), *layers, nn.Linear(8, 2))
    data = torch.randn(64, 8), torch.randint(0, 2, (64,))
    report = audit(model, data, probes=["anatomy", "dead_units", "input_scale", "signal"])
    named |= {claim for finding in report.findings for claim in finding.claims}
    assert named
    assert named <= known, named - known
