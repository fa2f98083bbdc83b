"""The report of an audit as one HTML file: figures, light and dark, for paper too, without script or request."""

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import lemmata
from lemmata import catalog
from lemmata.audit.finding import AuditFinding
from lemmata.audit.report import AuditReport
from lemmata.catalog.unicode_math import unicode_math
from lemmata.files import cache_folder, write_whole
from lemmata.lab.site.figures import draw
from lemmata.lab.site.verdicts import mark
from lemmata.lab.words import count, seconds

__all__ = ["audit_page", "findings_part", "write_report"]

SHEETS = ("site.css", "figures.css", "audit.css")
HEADINGS = {"alarm": "Wrong", "hint": "Could be better", "fine": "As theory wants it", "skipped": "Not asked"}
COUNTED = {
    "alarm": ("alarm", "alarms"), "hint": ("hint", "hints"), "fine": ("fine", "fine"), "skipped": ("not asked",) * 2,
}  # fmt: skip
WHERE = 12  # places that are named


def audit_page(report: AuditReport) -> str:
    """The whole report as one file.

    >>> from lemmata.audit.finding import fine
    >>> "no pixel is missing" in audit_page(AuditReport("MLP", [fine("inputs", "no pixel is missing")]))
    True
    """
    static = Path(__file__).parent / "static"
    style = "\n".join((static / name).read_text(encoding="utf-8") for name in SHEETS)
    given = {
        "report": report,
        "findings": findings_part(report),
        "style": Markup(style),
        "version": lemmata.__version__,
    }
    return _page_environment().get_template("audit_report.html").render(given)


def facts_part(report: AuditReport) -> Markup:
    """What was audited, as a part of a page."""
    return Markup(_page_environment().get_template("audit_facts.html").render(report=report))


def findings_part(report: AuditReport, linked: bool = False) -> Markup:
    """The findings as a part of a page; in the lab, claims are `linked`."""
    given = {"report": report, "linked": linked, "titles": _claim_titles(report), "anchor": _Anchors(report)}
    return Markup(_page_environment().get_template("findings.html").render(given))


def write_report(report: AuditReport, path: Path | None = None) -> Path:
    """Write the report as .html or .json, by default where the latest one is kept; where that is."""
    path = path or cache_folder() / "audit" / "report.html"
    text = json.dumps(report.to_json(), indent=1) if path.suffix == ".json" else audit_page(report)
    write_whole(path, text.encode())
    return path


class _Anchors:
    """A place on the page for each finding: its name, and a number where several have the same."""

    def __init__(self, report: AuditReport) -> None:
        self.names: dict[int, str] = {}
        for one in report.findings:
            stem = re.sub(r"[^a-z0-9]+", "-", one.name.lower()).strip("-") or "finding"
            taken = sum(name.partition("--")[0] == stem for name in self.names.values())
            self.names[id(one)] = f"{stem}--{taken + 1}" if taken else stem

    def __call__(self, one: AuditFinding) -> str:
        return self.names[id(one)]


def _claim_titles(report: AuditReport) -> Mapping[str, str]:
    """What the claims that are named say, in a few words each."""
    known = catalog.load().statements
    named = {id for one in report.findings for id in one.claims if id in known}
    return {id: unicode_math(known[id].title) for id in named}


@functools.cache
def _page_environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {"mark": mark, "draw": draw, "count": count, "seconds": seconds, "WHERE": WHERE}
    made.globals |= {"HEADINGS": HEADINGS, "COUNTED": COUNTED}
    return made
