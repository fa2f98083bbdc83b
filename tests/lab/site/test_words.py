"""What stands on a page is words and set formulas: nothing of LaTeX, of Markdown or of Python shows through."""

import html.parser
import re

import pytest
from tests.lab.site.test_pages import every_page

from lemmata.judge.evidence_words import sentence
from lemmata.lab.site import pages
from lemmata.lab.site.formulas import ASSETS
from lemmata.lab.site.knowledge import known
from lemmata.lab.site.labs import labs
from lemmata.lab.site.verdicts import reason
from lemmata.lab.site.views import labs as lab_views
from lemmata.lab.site.views import systems

RAW = re.compile(r"[\\`^_]|(?<!^)(?<![.!?:] )\b(?:True|False|None)\b")  # not of a sentence that begins with them
READ = re.compile(r"[\\`$]")  # a name for a screen reader is one line of Unicode, which has no script for every letter
# Code, ids and commands; formulas with their LaTeX for copying; what no reader sees.
QUOTED = {"code", "pre", "kbd", "samp", "annotation", "script", "style", "svg", "option", "textarea"}
SPOKEN = ("aria-label", "aria-valuetext", "alt", "title", "placeholder")  # read out, or shown
VOID = {"meta", "link", "input", "br", "img", "hr", "col", "source"}


class Words(html.parser.HTMLParser):
    """The texts of a page that are neither quoted nor set."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.spoken = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.spoken += [value or "" for name, value in attributes if name in SPOKEN]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data):
        if not QUOTED & set(self.open):
            self.texts.append(data)


@pytest.fixture(scope="module")
def snapshot():
    """The course as it is, without verdicts: what a check says of itself has its own test below."""
    return known()


def walk(snapshot):
    """(address, text) of every page."""
    yield from every_page(snapshot, live=True)
    yield "/systems", pages.render("systems.html", **systems.systems_context(snapshot))
    for id in snapshot.catalog.systems:
        yield f"/systems/{id}", pages.render("system.html", **systems.system_context(snapshot, id))
    yield "/labs", pages.render("labs.html", labs=list(labs().values()))
    for lab in labs().values():
        yield f"/labs/{lab.name}", pages.render(f"lab_{lab.name}.html", **lab_views.lab_context(lab, {}))


@pytest.mark.skipif(not (ASSETS / "formulas.json").is_file(), reason="formulas were not set here: they show as Unicode")
def test_no_page_shows_latex_backticks_carets_underscores_or_python(snapshot):
    fallen = {}
    for place, page in walk(snapshot):
        words = Words(page)
        for text, wrong in [*((said, RAW) for said in words.texts), *((said, READ) for said in words.spoken)]:
            said = text.strip()
            for found in wrong.finditer(said):
                fallen.setdefault(f"…{said[max(0, found.start() - 30) : found.end() + 20]}…", place)
    told = [f"{place}: {' '.join(text.split())}" for text, place in fallen.items()]
    assert not told, f"{len(told)} texts\n" + "\n".join(told)


VALUES = [(True, True), (True, False), (None, "None"), ("((True, True), (False, True))", "(True,)")]
VALUES += [("torch.Size([2, 3])", "[2, 3]"), ("['a', 'b']", "{'a'}"), (0.5, 0.5), (-1, 3), ("(1+2j)", "nan")]


@pytest.mark.parametrize(("measured", "predicted"), VALUES)
def test_evidence_is_words_whatever_was_measured(measured, predicted):
    evidence = {"measured": measured, "predicted": predicted, "relation": "=", "margin": 0.0, "alpha": 0.0}
    for detail in ("", "4 of 4 checks hold", "the signs agree"):
        said = sentence(evidence | {"detail": detail})
        assert not re.search(r"True|False|None|torch|[\[\]{}'\\`_]", said)


def test_a_reason_on_the_page_names_no_exception_and_no_file():
    assert reason("ValueError: the ring has none (eigenvalue_ring.py:92)") == "it cannot be computed: the ring has none"
    assert reason("RuntimeError: without a message (x.py:1)") == "it cannot be computed"
    assert reason("measured 3, predicted 4 (x)") == "measured 3, predicted 4 (x)"
