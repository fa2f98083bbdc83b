"""`lemmata audit` of code that does not behave: it ends, hangs, forks or moves in a process of its own."""

import json

import pytest

from lemmata.audit.finding import fine
from lemmata.lab.cli import main
from lemmata.lab.cli.audit import GRACE, Arguments, _Audit

MISCHIEF = """
import os, sys, time
import torch
from torch import nn

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 3), 0

    def forward(self, x):
        self.calls += 1
        {what}
        return self.layer(x)

net = Plain()
data = (torch.randn(40, 4), torch.arange(40) % 3)
{at_import}
"""


@pytest.fixture
def mischief(tmp_path, monkeypatch, capsys):
    """Exit code, what was printed, and the report, of an audit of a model whose forward does something else besides."""

    def audited(what="pass", at_import="", budget=5.0):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "bad.py").write_text(MISCHIEF.format(what=what, at_import=at_import))
        words = ["bad.py:net", "--data", "bad.py:data", "--budget", str(budget), "--out", "r.json"]
        code = main(["audit", *words])
        captured = capsys.readouterr()
        report = json.loads((tmp_path / "r.json").read_text()) if (tmp_path / "r.json").exists() else None
        return code, captured.out + captured.err, report

    return audited


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_no_model_that_ends_the_process_passes(mischief, end):
    code, told, _ = mischief(end)
    assert code == 2
    assert "ended the process before anything was measured" in told


@pytest.mark.parametrize(("late", "severity"), [(False, "alarm"), (True, "skipped")])
def test_what_was_found_before_the_end_is_kept(late, severity):
    audit = _Audit(Arguments("bad.py:net", budget=3.0), watch=lambda title: None)
    assert audit.heard({"began": True}) == 1.2 * 3.0 + GRACE
    audit.heard({"title": "Calibration"})
    audit.heard({"finding": fine("shape", "it fits").to_json()})
    report = audit.cut_short("the worker ended with exit code 0", late)
    assert [one.name for one in report.of("fine")] == ["shape"]
    (last,) = report.of(severity)
    assert "while the audit asked: calibration" in last.verdict
    assert bool(report.alarms) != late


def test_a_file_that_ends_the_process_on_import_is_no_pass(mischief):
    code, told, report = mischief(at_import="os._exit(0)")
    assert (code, report) == (2, None)
    assert "ended the process before anything was measured (the worker ended with exit code 0)" in told


def test_a_forward_that_never_returns_is_ended_with_the_budget(mischief, monkeypatch):
    monkeypatch.setattr("lemmata.lab.cli.audit.GRACE", 0.0)
    code, told, _ = mischief("while True: pass", budget=1.0)
    assert code == 2
    assert "nothing could be measured in 1 s: give a larger --budget" in told


def test_an_import_that_hangs_is_ended(mischief, monkeypatch):
    monkeypatch.setattr("lemmata.lab.cli.audit.READING", 1.0)
    code, told, report = mischief(at_import="while True: pass", budget=1.0)
    assert (code, report) == (2, None)
    assert "bad.py:net and its data were not read within 1 s: give a larger --budget" in told


def test_a_file_that_changes_its_folder_moves_no_report(mischief, tmp_path):
    code, _, report = mischief(at_import="os.chdir('/')")
    assert code in (0, 1)
    assert report["findings"]


@pytest.mark.parametrize(
    ("what", "at_import", "said"),
    [
        ("del self.layer", "", "has no attribute 'layer'"),
        ("pass", "net = net.to('meta')", "on the meta device"),
    ],
)
def test_a_broken_model_is_one_sentence_and_no_fault_of_ours(mischief, what, at_import, said):
    code, told, report = mischief(what, at_import)
    assert (code, report) == (2, None)
    assert said in told
    assert "fault of lemmata" not in told
    assert told.count("\n") == 1


def test_a_forward_that_forks_makes_one_report(mischief):
    code, told, report = mischief("os.fork() if self.calls == 5 else None")
    assert code in (0, 1)
    assert report["findings"]
    assert told.count("Plain") <= 2
