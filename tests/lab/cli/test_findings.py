"""A report on the screen: wide, narrow, without colours, without letters beyond ASCII."""

import io

import pytest
from rich.console import Console

from lemmata.audit.finding import alarm, fine, hint, skipped
from lemmata.audit.report import AuditReport
from lemmata.lab.cli import findings
from lemmata.lab.cli.findings import tell

REPORT = AuditReport(
    "mine [bold]",
    [
        alarm("step size", "your step 0.5 is 3.4 times the stable limit", measured="λ ≤ 13.6 [units]", predicted="2/λ",
              advice="lower it", where=[f"layer.{i}" for i in range(10)], claims=["gd.stability"], weight=9),
        alarm("dead units", "64 of 64 units are dead", weight=8),
        hint("calibration", "somewhat too sure", advice="divide by 2"),
        hint("batch size", "could be larger", advice="use 128", weight=0.5),
        fine("labels", "labels are whole"),
        skipped("symmetry", "it needs pictures"),
    ],
    {"model": "MLP, 5 parameters"},
    3.0,
    60.0,
)  # fmt: skip


def shown(width, report=REPORT, place=None):
    screen = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    tell(screen, report, place)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_the_three_most_important_stand_first_and_in_full():
    lines = shown(100)
    assert lines[0] == "mine [bold]"
    assert "2 alarms  2 hints  1 fine  1 not asked  in 3.00 s of 60 s" in lines
    start = lines.index("✘ alarm  step size")
    assert lines[start + 1 : start + 7] == [
        "  your step 0.5 is 3.4 times the stable limit",
        "  measured λ ≤ 13.6 [units]",
        "  theory   2/λ",
        "  do       lower it",
        "  where    layer.0, layer.1, layer.2, layer.3, layer.4, layer.5, layer.6, layer.7 and 2 more",
        "  claims   gd.stability",
    ]
    assert lines.index("✘ alarm  dead units") < lines.index("◐ hint  calibration")
    assert lines[-3:] == [
        "◐ batch size  could be larger",
        "✔ labels      labels are whole",
        "– symmetry    it needs pictures",
    ]


@pytest.mark.parametrize("width", [30, 50, 64, 200])
def test_no_line_is_longer_than_the_screen_and_no_word_is_lost(width):
    lines = shown(width)
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    for words in ("64 of 64 units are dead", "could be larger", "divide by 2", "it needs pictures"):
        assert words in said


def test_a_terminal_without_those_signs_gets_others(monkeypatch):
    monkeypatch.setattr(findings, "unicode_works", lambda: False)
    monkeypatch.setattr("lemmata.lab.cli.terminal.unicode_works", lambda: False)
    lines = shown(100)
    assert "x alarm  step size" in lines
    assert "  measured lambda <= 13.6 [units]" in lines


def test_a_report_without_alarms():
    lines = shown(80, AuditReport("MLP", [fine("labels", "labels are whole")], {}, 1.0, 60.0), "r.html")
    assert lines == ["MLP", "", "1 fine  in 1.00 s of 60 s", "", "✔ labels  labels are whole", "", "report   r.html"]
