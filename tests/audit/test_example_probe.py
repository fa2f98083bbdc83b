"""The probe in docs/audit.md does what the page says."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from lemmata.audit import audit, auditing

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
X, Y = torch.randn(60, 4), torch.arange(60) % 3


@pytest.fixture
def example(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    place = tmp_path / "output_size.py"
    place.write_text(next(block for block in blocks if "@probe" in block))
    spec = importlib.util.spec_from_file_location("output_size", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(auditing, "all_probes", lambda: [module.output_size])


def test_it_finds_the_fault_and_not_its_twin(example):
    model = nn.Linear(4, 3)
    report = audit(model, (X, Y))
    assert (report["output size"].severity, report["output size"].probe) == ("fine", "output_size")
    nn.init.zeros_(model.weight)
    assert [one.verdict for one in audit(model, (X, Y)).alarms] == ["every example gets the same outputs"]
