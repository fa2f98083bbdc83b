"""Nothing is wrong with a healthy model, and the audit says so."""

import pytest
import torch
from tests.audit.healthy_models import HEALTHY

from lemmata.audit import audit

# What torch says where its kernels are switched by hand.
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
QUICK = (
    "relu_network_on_digits", "network_on_diabetes", "pooled_network_with_batch_norm_on_fashion", "lstm_over_rows",
    "transformer_with_norms_first",
)  # fmt: skip


def no_alarm(name: str) -> None:
    case = HEALTHY[name]()
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled="bfloat16" not in name):
        report = audit(case.model, case.data, case.test, budget=20.0, **case.words)
    assert report.alarms == [], str(report)
    assert any(finding.severity == "fine" for finding in report.findings)


def test_there_are_thirty():
    assert len(HEALTHY) == 30


@pytest.mark.parametrize("name", QUICK)
def test_no_alarm(name):
    no_alarm(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in HEALTHY if name not in QUICK])
def test_no_alarm_anywhere(name):
    no_alarm(name)
