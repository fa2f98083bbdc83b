"""Findings and the report they form: order, JSON, words."""

import json
import math

import pytest

from lemmata.audit.finding import alarm, fine, hint, skipped
from lemmata.audit.report import AuditReport
from lemmata.figure import Figure, Line

FIGURE = Figure("Curvature", "step", "loss", [Line([0, 1], [1.0, math.nan], "measured")])


def report():
    return AuditReport(
        "MLP",
        [
            fine("labels", "labels are integers from 0 to 9"),
            hint("batch size", "64 is half the noise scale 128", advice="use 128", weight=2),
            skipped("test gap", "it needs a test part"),
            alarm("dead units", "12 of 64 units of layer 1 are dead", weight=3, where=("1",)),
            hint("input scale", "inputs have mean 128", weight=5),
            alarm(
                "step size",
                "your step 0.1 is 3.4 times the stable limit 0.029",
                measured="top eigenvalue 68",
                predicted="2/68 = 0.029",
                advice="use a step below 0.029",
                claims=["gd.stability"],
                figures=[FIGURE],
                numbers={"ratio": 3.4, "gap": math.inf},
                weight=8,
                probe="step_size",
            ),
        ],
        {"model": "MLP, 5 parameters"},
        seconds=3.25,
        budget=60.0,
    )


def test_alarms_come_first_and_among_equals_the_heavier():
    names = [finding.name for finding in report().findings]
    assert names == ["step size", "dead units", "input scale", "batch size", "labels", "test gap"]
    assert [one.name for one in report().most_important] == names[:3]
    assert [one.name for one in report().alarms] == names[:2]


def test_what_is_fine_or_skipped_is_never_among_the_most_important():
    assert AuditReport("MLP", [fine("labels", "fine"), skipped("gap", "no test part")]).most_important == []


def test_a_finding_is_had_by_its_name_and_the_most_severe_of_several():
    found = AuditReport("MLP", [hint("gap", "small"), alarm("gap", "large")])
    assert found["gap"].verdict == "large"
    with pytest.raises(KeyError, match="no finding 'gpa' among gap"):
        found["gpa"]


def test_it_goes_through_json_and_back():
    text = json.dumps(report().to_json(), allow_nan=False)
    back = AuditReport.from_json(json.loads(text))
    assert json.dumps(back.to_json()) == text
    first = back.findings[0]
    assert (first.figures, first.numbers["ratio"], first.claims) == ([FIGURE], 3.4, ["gd.stability"])
    assert math.isnan(first.numbers["gap"])
    assert json.loads(text)["format"] == 1


def test_time_that_nobody_told_is_none():
    empty = AuditReport("MLP", [])
    assert (empty.seconds, empty.budget, empty.alarms, empty.facts) == (0, 0, [], {})


def test_its_words_say_what_is_wrong_and_what_to_do():
    told = str(report()).splitlines()
    assert told[0] == "MLP: 2 alarm, 2 hint, 1 fine, 1 skipped (3.2 s)"
    assert told[1:3] == [
        "alarm    step size: your step 0.1 is 3.4 times the stable limit 0.029",
        "         -> use a step below 0.029",
    ]
    assert told[-1] == "skipped  test gap: it needs a test part"
