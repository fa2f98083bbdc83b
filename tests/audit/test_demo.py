"""The shipped network with faults: each is found, within half a minute, and rests on claims that there are."""

import json

import pytest
import torch

from lemmata.audit import AuditReport, audit
from lemmata.audit.demo import LEAKED, faulty
from lemmata.catalog import load
from lemmata.data.images import digits


@pytest.fixture(scope="module")
def report():
    return audit(**faulty())


def test_every_fault_is_an_alarm(report):
    assert {one.name for one in report.alarms} >= {
        "dead units", "outputs and loss", "step size", "calibration", "copies in test",
    }  # fmt: skip
    assert f"{LEAKED} of 359" in report["copies in test"].verdict
    assert report["input scale"].severity == "hint"
    assert report.seconds < 1.2 * report.budget


def test_a_network_without_them_raises_none():
    parts = [(part.x[:400] - 0.3, part.y[:400]) for part in (digits().train, digits().test)]
    (x, y), _ = parts
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    report = audit(model, *parts, loss="cross_entropy", optimizer="sgd", lr=0.1, batch_size=64)
    assert report.alarms == []


def test_every_claim_that_is_named_exists(report):
    known = load().claims
    assert [id for one in report.findings for id in one.claims if id not in known] == []


def test_findings_say_all_that_a_reader_needs(report):
    for one in report.findings:
        assert one.verdict
        assert "\n" not in one.verdict
        assert one.probe
        if one.severity in ("alarm", "hint"):
            assert one.advice, one.name
            assert one.claims, one.name
    assert all(one.measured for one in report.alarms)


def test_it_goes_through_json(report):
    text = json.dumps(report.to_json(), allow_nan=False)
    assert AuditReport.from_json(json.loads(text)).to_json() == json.loads(text)


def test_it_is_the_same_every_time():
    one, other = faulty(), faulty()
    pairs = zip(one["model"].state_dict().values(), other["model"].state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
