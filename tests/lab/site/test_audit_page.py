"""The report of an audit as a file: whole, safe, and asking nobody for anything."""

import html.parser
import json
import re

import pytest

from lemmata.audit.finding import alarm, fine, hint, skipped
from lemmata.audit.report import AuditReport
from lemmata.figure import Bars, Figure, Line
from lemmata.lab.site.audit_page import audit_page, findings_part, write_report

EVIL = '<img src=x onerror="alert(1)">'


def report():
    curve = Figure(f"Curve {EVIL}", "x", "y", [Line([0, 1, 2], [1.0, 3.0, 2.0], "measured")])
    places = [f"layer.{i}" for i in range(40)]
    bars = Figure("Labels", marks=[Bars(["a"], [1.0])])
    more = {"measured": "λ = 13.6", "predicted": "2/λ", "advice": "lower it", "claims": ["hopfield.energy", "no.such"]}
    return AuditReport(
        f"mine {EVIL}",
        [
            alarm("step size", f"3 times too large {EVIL}", figures=[curve], where=places, **more),
            alarm("step size", "another of this name"),
            hint("calibration", "somewhat too sure"),
            hint("batch size", "could be larger"),
            fine("labels", "labels are whole", measured="0 to 9", figures=[bars]),
            skipped("symmetry", "it needs pictures"),
        ],
        {"model": "MLP, 5 parameters"},
        3.0,
        60.0,
    )  # fmt: skip


class Reader(html.parser.HTMLParser):
    """Every tag with its attributes, and whether they are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img", "input", "hr", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page():
    return audit_page(report())


def test_it_asks_nobody_and_runs_nothing(page):
    read = Reader(page)
    assert not read.open
    assert not {tag for tag, _ in read.tags} & {"script", "link", "img", "iframe", "object", "form"}
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("href", "src"):
            assert attributes.get(name, "#").startswith(("#", "data:text/csv", "data:image/svg+xml")), attributes
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.S))
    assert "@import" not in style
    assert "url(" not in style
    assert "prefers-color-scheme" in style or "light-dark" in style
    assert "@media print" in style


def test_every_link_leads_to_one_place(page):
    read = Reader(page)
    places = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    targets = [a["href"][1:] for tag, a in read.tags if tag == "a" and a.get("href", "").startswith("#")]
    assert targets == ["step-size", "step-size--2", "calibration"]
    assert all(places.count(target) == 1 for target in targets)


def test_findings_stand_in_their_order_with_all_they_say(page):
    words = ["3 times too large", "λ = 13.6", "2/λ", "lower it", "layer.11", "and 28 more", "hopfield.energy"]
    words += ["another of this name", "somewhat too sure", "could be larger", "labels are whole", "it needs pictures"]
    body = page[page.index("<section") :]
    places = [body.index(word) for word in words]
    assert places == sorted(places)
    assert "Hopfield energy" in body  # what the claim is called
    assert page.count("Curve &lt;img") >= 2


def test_claims_are_linked_in_the_lab_only():
    assert 'href="/claim/hopfield.energy"' in findings_part(report(), linked=True)
    assert "/claim/" not in findings_part(report())


def test_a_report_without_findings_says_so():
    assert "Nothing is wrong" in audit_page(AuditReport("MLP", []))


def test_it_is_written_as_its_ending_says(tmp_path):
    assert write_report(report(), tmp_path / "a" / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    data = json.loads(write_report(report(), tmp_path / "r.json").read_text(encoding="utf-8"))
    assert AuditReport.from_json(data).to_json() == data
    assert write_report(report()).name == "report.html"
